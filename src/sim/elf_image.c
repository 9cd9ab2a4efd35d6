/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads sections, symbols and line programs of a 64-bit ELF object of the host's architecture.
 */
#include "sim/elf_image.h"

#include "sim/growing.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A range of bytes, consumed from its front. A read beyond the end returns 0 and empties the
 * range. */
typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

static size_t bytes_left(const bytes *b)
{
    return (size_t)(b->end - b->at);
}

static bytes take_bytes(bytes *b, uint64_t size)
{
    if (size > bytes_left(b)) size = bytes_left(b);
    const bytes taken = {b->at, b->at + size};
    b->at += size;
    return taken;
}

/* Consumes an unsigned number of `size` bytes, the lowest byte first. */
static uint64_t take_number(bytes *b, size_t size)
{
    uint64_t value = 0;
    if (bytes_left(b) < size) {
        b->at = b->end;
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)b->at[i] << 8 * i;
    b->at += size;
    return value;
}

static uint64_t take_uleb(bytes *b)
{
    uint64_t value = 0;
    for (int shift = 0; b->at < b->end; shift += 7) {
        const uint8_t byte = *b->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) break;
    }
    return value;
}

static int64_t take_sleb(bytes *b)
{
    uint64_t value = 0;
    for (int shift = 0; b->at < b->end; shift += 7) {
        const uint8_t byte = *b->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte >= 0x80) continue;
        if (shift + 7 < 64 && (byte & 0x40) != 0) value |= ~(uint64_t)0 << (shift + 7);
        break;
    }
    return (int64_t)value;
}

/* Consumes a string and its terminating zero byte. NULL: there is no zero byte. */
static const char *take_text(bytes *b)
{
    const uint8_t *zero = bytes_left(b) > 0 ? memchr(b->at, 0, bytes_left(b)) : NULL;
    if (zero == NULL) {
        b->at = b->end;
        return NULL;
    }
    const char *text = (const char *)b->at;
    b->at = zero + 1;
    return text;
}

/* ---- Sections and symbols -------------------------------------------------------------------- */

/* Copies section header `index` to *section. False: there is none, or it is damaged. */
static bool section_at(const uint8_t *image, size_t size, unsigned index, Elf64_Shdr *section)
{
    Elf64_Ehdr header;
    if (size < sizeof header) return false;
    memcpy(&header, image, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof *section || index >= header.e_shnum)
        return false;
    const uint64_t at = header.e_shoff + (uint64_t)index * sizeof *section;
    if (at > size || size - at < sizeof *section) return false;
    memcpy(section, image + at, sizeof *section);
    return section->sh_type == SHT_NOBITS ||
           (section->sh_offset <= size && section->sh_size <= size - section->sh_offset);
}

static bytes section_bytes(const uint8_t *image, const Elf64_Shdr *section)
{
    const uint8_t *at = image + section->sh_offset;
    return (bytes){at, at + (section->sh_type == SHT_NOBITS ? 0 : section->sh_size)};
}

static bytes find_section(const uint8_t *image, size_t size, const char *name)
{
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    if (size < sizeof header) return (bytes){0};
    memcpy(&header, image, sizeof header);
    if (!section_at(image, size, header.e_shstrndx, &names)) return (bytes){0};
    for (unsigned i = 0; i < header.e_shnum; i++) {
        if (!section_at(image, size, i, &section)) continue;
        bytes text = section_bytes(image, &names);
        take_bytes(&text, section.sh_name);
        const char *found = take_text(&text);
        if (found != NULL && strcmp(found, name) == 0) return section_bytes(image, &section);
    }
    return (bytes){0};
}

void tgl_elf_each_variable(const void *image, size_t size,
                           void (*visit)(const char *name, uint64_t address, uint64_t bytes,
                                         void *context),
                           void *context)
{
    bytes symbols = find_section(image, size, ".symtab");
    const bytes names = find_section(image, size, ".strtab");
    while (bytes_left(&symbols) >= sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        const bytes entry = take_bytes(&symbols, sizeof symbol);
        memcpy(&symbol, entry.at, sizeof symbol);
        bytes text = names;
        take_bytes(&text, symbol.st_name);
        const char *name = take_text(&text);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_size > 0 && name != NULL)
            visit(name, symbol.st_value, symbol.st_size, context);
    }
}

static const char *name_of_symbol(const bytes *symbols, const bytes *names, uint64_t index)
{
    Elf64_Sym symbol;
    bytes entries = *symbols, text = *names;
    if (index >= bytes_left(symbols) / sizeof symbol) return NULL;
    take_bytes(&entries, index * sizeof symbol);
    memcpy(&symbol, entries.at, sizeof symbol);
    take_bytes(&text, symbol.st_name);
    return take_text(&text);
}

/* Does not sort the relocations by address: compilers write them in the order of the code, and
 * linkers keep that order. */
void tgl_elf_each_use(const void *image, size_t size, const char *symbol,
                      void (*visit)(uint64_t address, void *context), void *context)
{
    const bytes symbols = find_section(image, size, ".symtab");
    const bytes names = find_section(image, size, ".strtab");
    bytes relocations = find_section(image, size, ".rela.text");
    while (bytes_left(&relocations) >= sizeof(Elf64_Rela)) {
        Elf64_Rela relocation;
        const bytes entry = take_bytes(&relocations, sizeof relocation);
        memcpy(&relocation, entry.at, sizeof relocation);
        const char *name = name_of_symbol(&symbols, &names, ELF64_R_SYM(relocation.r_info));
        if (name != NULL && strcmp(name, symbol) == 0) visit(relocation.r_offset, context);
    }
}

/* ---- Line programs --------------------------------------------------------------------------- */

/* The header of a unit of .debug_line. The members are named as in section 6.2 of the DWARF
 * standard. */
typedef struct unit {
    uint8_t minimum_instruction_length, line_range, opcode_base;
    int8_t line_base;
    uint8_t standard_opcode_lengths[256];
    size_t first_file; /* index of this unit's first file in tgl_line_table.files */
} unit;

typedef struct line_state {
    uint64_t address, file;
    int64_t line;
} line_state;

static bool append_row(tgl_line_table *table, const unit *u, const line_state *state, bool is_end)
{
    tgl_line_row *rows = tgl_grow(table->rows, &table->room, table->count, sizeof *rows);
    if (rows == NULL) return false;
    table->rows = rows;
    const size_t file = u->first_file + (size_t)state->file - 1;
    const bool is_known = !is_end && state->file > 0 && file < table->file_count;
    table->rows[table->count] = (tgl_line_row){
        .address = state->address,
        .file = is_known ? table->files[file] : "",
        .line = is_known ? (int)state->line : 0,
        .order = table->count,
    };
    table->count++;
    return true;
}

static bool append_file(tgl_line_table *table, const char *folder, const char *name)
{
    char **files = realloc(table->files, (table->file_count + 1) * sizeof *files);
    if (files == NULL) return false;
    table->files = files;
    const bool is_whole = folder == NULL || name[0] == '/';
    char *path;
    if (asprintf(&path, "%s%s%s", is_whole ? "" : folder, is_whole ? "" : "/", name) < 0)
        return false;
    files[table->file_count++] = path;
    return true;
}

/* Reads the header's list of folders, then its list of files, each with the number of its folder.
 * An empty name ends a list. */
static bool read_files(tgl_line_table *table, bytes *header)
{
    const bytes folders = *header;
    const char *name;
    while ((name = take_text(header)) != NULL && name[0] != '\0')
        ;
    while ((name = take_text(header)) != NULL && name[0] != '\0') {
        const uint64_t index = take_uleb(header);
        take_uleb(header); /* skips the time of modification */
        take_uleb(header); /* skips the length of the file */
        const char *folder = NULL;
        bytes search = folders;
        for (uint64_t i = 0; i < index; i++)
            if ((folder = take_text(&search)) == NULL || folder[0] == '\0') break;
        if (!append_file(table, index > 0 ? folder : NULL, name)) return false;
    }
    return true;
}

static bool run_extended(tgl_line_table *table, const unit *u, line_state *state, bytes *program)
{
    bytes operation = take_bytes(program, take_uleb(program));
    switch (take_number(&operation, 1)) {
    case 1: /* end_sequence */
        if (!append_row(table, u, state, true)) return false;
        *state = (line_state){.file = 1, .line = 1};
        break;
    case 2: /* set_address */
        state->address = take_number(&operation, bytes_left(&operation));
        break;
    }
    return true;
}

static bool run_standard(tgl_line_table *table, const unit *u, line_state *state, uint8_t opcode,
                         bytes *program)
{
    switch (opcode) {
    case 1: /* copy */
        return append_row(table, u, state, false);
    case 2: /* advance_pc */
        state->address += take_uleb(program) * u->minimum_instruction_length;
        return true;
    case 3: /* advance_line */
        state->line += take_sleb(program);
        return true;
    case 4: /* set_file */
        state->file = take_uleb(program);
        return true;
    case 8: /* const_add_pc */
        state->address +=
            (uint64_t)((255 - u->opcode_base) / u->line_range) * u->minimum_instruction_length;
        return true;
    case 9: /* fixed_advance_pc */
        state->address += take_number(program, 2);
        return true;
    default:
        for (int i = 0; i < u->standard_opcode_lengths[opcode]; i++)
            take_uleb(program);
        return true;
    }
}

static bool run_program(tgl_line_table *table, const unit *u, bytes program)
{
    line_state state = {.file = 1, .line = 1};
    while (bytes_left(&program) > 0) {
        const uint8_t opcode = (uint8_t)take_number(&program, 1);
        bool ok = true;
        if (opcode >= u->opcode_base) {
            const int special = opcode - u->opcode_base;
            state.address += (uint64_t)(special / u->line_range) * u->minimum_instruction_length;
            state.line += u->line_base + special % u->line_range;
            ok = append_row(table, u, &state, false);
        } else if (opcode == 0) {
            ok = run_extended(table, u, &state, &program);
        } else {
            ok = run_standard(table, u, &state, opcode, &program);
        }
        if (!ok) return false;
    }
    return true;
}

/* Reads one unit. Skips units of DWARF 5 and units without line_range: kernels are compiled with
 * -gdwarf-4, and the lines of start-up files are not needed. */
static bool read_unit(tgl_line_table *table, bytes body)
{
    const uint64_t version = take_number(&body, 2);
    if (version < 2 || version > 4) return true;
    bytes header = take_bytes(&body, take_number(&body, 4));
    unit u = {.first_file = table->file_count};
    u.minimum_instruction_length = (uint8_t)take_number(&header, 1);
    if (version == 4)
        take_number(&header, 1); /* operations per instruction: always 1, except on VLIW machines */
    take_number(&header, 1);     /* default_is_stmt */
    u.line_base = (int8_t)take_number(&header, 1);
    u.line_range = (uint8_t)take_number(&header, 1);
    u.opcode_base = (uint8_t)take_number(&header, 1);
    if (u.line_range == 0) return true;
    for (int i = 1; i < u.opcode_base; i++)
        u.standard_opcode_lengths[i] = (uint8_t)take_number(&header, 1);
    return read_files(table, &header) && run_program(table, &u, body);
}

static int by_address(const void *x, const void *y)
{
    const tgl_line_row *a = x, *b = y;
    if (a->address != b->address) return a->address < b->address ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

bool tgl_line_table_read(tgl_line_table *table, const void *image, size_t size)
{
    *table = (tgl_line_table){0};
    bytes units = find_section(image, size, ".debug_line");
    while (bytes_left(&units) > 4) {
        uint64_t length = take_number(&units, 4);
        if (length == 0xffffffff) break; /* 64-bit DWARF, for objects past 4 GB */
        if (!read_unit(table, take_bytes(&units, length))) {
            tgl_line_table_free(table);
            return false;
        }
    }
    if (table->count > 0) qsort(table->rows, table->count, sizeof *table->rows, by_address);
    return true;
}

void tgl_line_table_free(tgl_line_table *table)
{
    for (size_t i = 0; i < table->file_count; i++)
        free(table->files[i]);
    free(table->files);
    free(table->rows);
    *table = (tgl_line_table){0};
}

/* The number of rows whose address is at most `address`. */
static size_t count_rows(const tgl_line_table *table, uint64_t address)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (table->rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const tgl_line_row *tgl_line_table_find(const tgl_line_table *table, uint64_t address)
{
    const size_t rows = count_rows(table, address);
    return rows > 0 ? &table->rows[rows - 1] : NULL;
}

uint64_t tgl_line_table_next(const tgl_line_table *table, uint64_t address)
{
    const size_t rows = count_rows(table, address);
    return rows < table->count ? table->rows[rows].address : UINT64_MAX;
}
