/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the debug information and symbols of a compiled kernel's shared object: the source line of
 * an instruction (DWARF 2 to 4, .debug_line) and the addresses of variables (.symtab). Information
 * that is missing or damaged is skipped.
 */
#ifndef TGL_SIM_ELF_IMAGE_H
#define TGL_SIM_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The source line of all addresses from `address` up to the address of the next row. Addresses are
 * relative to the load address. */
typedef struct tgl_line_row {
    uint64_t address;
    const char *file; /* the path as it was passed to the compiler */
    int line;         /* 0: no line */
    size_t order;     /* if rows have the same address, the one with the highest order is valid */
} tgl_line_row;

typedef struct tgl_line_table {
    tgl_line_row *rows; /* sorted by address */
    size_t count, room;
    char **files; /* owns the file names */
    size_t file_count;
} tgl_line_table;

/* *table := the rows of the object; empty if there are none. False: no memory. */
bool tgl_line_table_read(tgl_line_table *table, const void *image, size_t size);
void tgl_line_table_free(tgl_line_table *table);

/* The row that covers an address, or NULL. */
const tgl_line_row *tgl_line_table_find(const tgl_line_table *table, uint64_t address);

/* The lowest address of a row that is greater than `address`; UINT64_MAX: there is none. */
uint64_t tgl_line_table_next(const tgl_line_table *table, uint64_t address);

/* Calls visit(address, context) for each relocation of the code that names this symbol, in the
 * order of the addresses. The linker keeps relocations with --emit-relocs. */
void tgl_elf_each_use(const void *image, size_t size, const char *symbol,
                      void (*visit)(uint64_t address, void *context), void *context);

/* Calls visit(name, address, size, context) for each variable of the object. */
void tgl_elf_each_variable(const void *image, size_t size,
                           void (*visit)(const char *name, uint64_t address, uint64_t bytes,
                                         void *context),
                           void *context);

#endif
