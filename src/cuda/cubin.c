/* SPDX-License-Identifier: Apache-2.0
 *
 * A cubin is an ELF file of 64 bits, with the code of each kernel in a section of its own:
 * ".text.SYMBOL". Nothing in the file is trusted.
 */
#include "cuda/cubin.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

static bool is_inside(size_t size, uint64_t offset, uint64_t length)
{
    return offset <= size && length <= size - offset;
}

/* Instructions are of 16 bytes from sm_70 on, with the operation in the lowest 12 bits. */
static size_t count_ffmas(const char *code, size_t size)
{
    enum { INSTRUCTION_BYTES = 16, OPERATION_BITS = 0xfff, FFMA = 0x223 };
    size_t count = 0;
    for (size_t i = 0; i + INSTRUCTION_BYTES <= size; i += INSTRUCTION_BYTES) {
        uint16_t lowest;
        memcpy(&lowest, code + i, sizeof lowest);
        count += (lowest & OPERATION_BITS) == FFMA;
    }
    return count;
}

size_t tgl_cubin_ffmas(const void *image, size_t size, const char *symbol)
{
    static const char prefix[] = ".text.";
    const char *bytes = image;
    Elf64_Ehdr file;
    Elf64_Shdr names, section;
    if (size < sizeof file || memcmp(image, ELFMAG, SELFMAG) != 0) return 0;
    memcpy(&file, bytes, sizeof file);
    const uint64_t count = file.e_shnum, at = file.e_shoff;
    if (file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_shstrndx >= count ||
        !is_inside(size, at, count * sizeof section))
        return 0;
    memcpy(&names, bytes + at + file.e_shstrndx * sizeof names, sizeof names);
    if (!is_inside(size, names.sh_offset, names.sh_size)) return 0;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&section, bytes + at + i * sizeof section, sizeof section);
        const size_t length = strlen(prefix) + strlen(symbol) + 1;
        if (!is_inside(names.sh_size, section.sh_name, length)) continue;
        const char *name = bytes + names.sh_offset + section.sh_name;
        if (memcmp(name, prefix, strlen(prefix)) == 0 &&
            memcmp(name + strlen(prefix), symbol, strlen(symbol) + 1) == 0 &&
            is_inside(size, section.sh_offset, section.sh_size))
            return count_ffmas(bytes + section.sh_offset, section.sh_size);
    }
    return 0;
}
