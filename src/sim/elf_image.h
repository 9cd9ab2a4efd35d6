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

/* A row of the line table: the source line of the code from `address` up to the next row's address.
 * Addresses are relative to the load address. */
typedef struct tgl_line_row {
    uint64_t address;
    const char *file; /* the path as it was passed to the compiler */
    int line;         /* line number from 1; 0: the code has no line */
    size_t order;     /* position in .debug_line; of rows with equal addresses, the last one is
                         valid */
} tgl_line_row;

typedef struct tgl_line_table {
    tgl_line_row *rows; /* sorted by address */
    size_t count, room;
    char **files; /* owns the file names */
    size_t file_count;
} tgl_line_table;

/* Reads the line table of the object; it is empty if the object has none. False: out of memory. */
bool tgl_line_table_read(tgl_line_table *table, const void *image, size_t size);
void tgl_line_table_free(tgl_line_table *table);

/* The row whose code contains the address; NULL: none. */
const tgl_line_row *tgl_line_table_find(const tgl_line_table *table, uint64_t address);

/* The lowest row address above `address`; UINT64_MAX: there is none. */
uint64_t tgl_line_table_next(const tgl_line_table *table, uint64_t address);

/* Calls visit(address, context) for each relocation in the code that refers to this symbol, in
 * order of the addresses. The object must have been linked with --emit-relocs, which keeps
 * relocations. */
void tgl_elf_each_use(const void *image, size_t size, const char *symbol,
                      void (*visit)(uint64_t address, void *context), void *context);

/* Calls visit(name, address, size, context) for each variable of the object. */
void tgl_elf_each_variable(const void *image, size_t size,
                           void (*visit)(const char *name, uint64_t address, uint64_t bytes,
                                         void *context),
                           void *context);

#endif
