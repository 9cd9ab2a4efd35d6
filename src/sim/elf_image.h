/* SPDX-License-Identifier: Apache-2.0
 *
 * What a compiled kernel's shared object says of itself: which source line an instruction comes
 * from (DWARF 2 to 4, .debug_line), and where its variables lie (.symtab). Reads the file's bytes;
 * whatever is missing or damaged is simply not found.
 */
#ifndef TGL_SIM_ELF_IMAGE_H
#define TGL_SIM_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From this address to the next row's. Addresses are as in the file: relative to where the object
 * is loaded. */
typedef struct tgl_line_row {
    uint64_t address;
    const char *file; /* as the compiler was given it */
    int line;         /* 0: no code, or none that belongs to a line */
    size_t order;     /* among rows of one address the last one counts */
} tgl_line_row;

typedef struct tgl_line_table {
    tgl_line_row *rows; /* by address */
    size_t count, room;
    char **files; /* what the rows' names point to */
    size_t file_count;
} tgl_line_table;

/* *table := the rows of the object; empty if there are none. False: no memory. */
bool tgl_line_table_read(tgl_line_table *table, const void *image, size_t size);
void tgl_line_table_free(tgl_line_table *table);

/* The row that covers an address, or NULL. */
const tgl_line_row *tgl_line_table_find(const tgl_line_table *table, uint64_t address);

/* Calls visit(name, address, size, context) for each variable of the object. */
void tgl_elf_each_variable(const void *image, size_t size,
                           void (*visit)(const char *name, uint64_t address, uint64_t bytes,
                                         void *context),
                           void *context);

#endif
