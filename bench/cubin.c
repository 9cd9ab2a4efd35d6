/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the machine code of a kernel from a cubin: a 64-bit ELF file with a section ".text.SYMBOL"
 * for each kernel. The file may be invalid in any way.
 */
#include "cubin.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

static bool is_inside(size_t size, uint64_t offset, uint64_t length)
{
    return offset <= size && length <= size - offset;
}

/* Machine code of sm_70 and later: instructions of two 64-bit words. The lowest 12 bits of the
 * first word are the operation. Bits 41 to 44 of the second are the stall count, the number of
 * cycles until the warp may issue its next instruction. */
typedef struct code {
    const char *at;
    size_t count;
} code;

enum { WORD_BYTES = 8, INSTRUCTION_BYTES = 2 * WORD_BYTES };

static bool is_ffma(const code *c, size_t i)
{
    enum { OPERATION_BITS = 0xfff, FFMA = 0x223 };
    uint64_t word;
    memcpy(&word, c->at + i * INSTRUCTION_BYTES, sizeof word);
    return (word & OPERATION_BITS) == FFMA;
}

static size_t stall_count(const code *c, size_t i)
{
    uint64_t word;
    memcpy(&word, c->at + i * INSTRUCTION_BYTES + WORD_BYTES, sizeof word);
    return word >> 41 & 15;
}

/* The code of the kernel; empty if the image is not a cubin or does not contain the kernel. */
static code code_of(const void *image, size_t size, const char *symbol)
{
    static const char prefix[] = ".text.";
    const char *bytes = image;
    Elf64_Ehdr file;
    Elf64_Shdr names, section;
    const code none = {NULL, 0};
    if (size < sizeof file || memcmp(image, ELFMAG, SELFMAG) != 0) return none;
    memcpy(&file, bytes, sizeof file);
    const uint64_t count = file.e_shnum, at = file.e_shoff;
    if (file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_shstrndx >= count ||
        !is_inside(size, at, count * sizeof section))
        return none;
    memcpy(&names, bytes + at + file.e_shstrndx * sizeof names, sizeof names);
    if (!is_inside(size, names.sh_offset, names.sh_size)) return none;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&section, bytes + at + i * sizeof section, sizeof section);
        const size_t length = strlen(prefix) + strlen(symbol) + 1;
        if (!is_inside(names.sh_size, section.sh_name, length)) continue;
        const char *name = bytes + names.sh_offset + section.sh_name;
        if (memcmp(name, prefix, strlen(prefix)) == 0 &&
            memcmp(name + strlen(prefix), symbol, strlen(symbol) + 1) == 0 &&
            is_inside(size, section.sh_offset, section.sh_size))
            return (code){bytes + section.sh_offset, section.sh_size / INSTRUCTION_BYTES};
    }
    return none;
}

size_t tgl_cubin_ffmas(const void *image, size_t size, const char *symbol)
{
    const code c = code_of(image, size, symbol);
    size_t count = 0;
    for (size_t i = 0; i < c.count; i++)
        count += is_ffma(&c, i);
    return count;
}

size_t tgl_cubin_cycles(const void *image, size_t size, const char *symbol, size_t ffmas)
{
    const code c = code_of(image, size, symbol);
    size_t seen = 0, cycles = 0;
    for (size_t i = 0; i < c.count; i++) {
        seen += is_ffma(&c, i);
        if (seen == ffmas) return cycles;
        const size_t stall = stall_count(&c, i);
        if (seen > 0) cycles += stall > 0 ? stall : 1;
    }
    return 0;
}
