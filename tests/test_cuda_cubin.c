/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the FFMAs of a cubin and their stall counts (bench/cubin.c), in an artificial cubin and
 * in damaged ones.
 */
#include "support.h"

#include "cubin.h"

#include <elf.h>
#include <string.h>

/* An ELF file with three sections: the null section, the section names, and the code. */
typedef struct file {
    Elf64_Ehdr header;
    Elf64_Shdr sections[3];
    char names[32];
    uint64_t code[8]; /* four instructions */
} file;

static file make_file(void)
{
    file f = {.header = {.e_shoff = offsetof(file, sections), .e_shnum = 3, .e_shstrndx = 1},
              .names = "\0.shstrtab\0.text.kernel",
              /* IADD3, FFMA, FFMA with a predicate, a constant that looks like an FFMA */
              .code = {0x7210, 1, 0x7223, 2, 0x1223, 3, 0x1224, 0x7223}};
    memcpy(f.header.e_ident, ELFMAG, SELFMAG);
    f.header.e_ident[EI_CLASS] = ELFCLASS64;
    f.sections[1] =
        (Elf64_Shdr){.sh_name = 1, .sh_offset = offsetof(file, names), .sh_size = sizeof f.names};
    f.sections[2] =
        (Elf64_Shdr){.sh_name = 11, .sh_offset = offsetof(file, code), .sh_size = sizeof f.code};
    return f;
}

static void ffmas_of_a_kernel_are_counted(void **state)
{
    (void)state;
    const file f = make_file();
    assert_int_equal(tgl_cubin_ffmas(&f, sizeof f, "kernel"), 2);
    assert_int_equal(tgl_cubin_ffmas(&f, sizeof f, "kerne"), 0);
    assert_int_equal(tgl_cubin_ffmas(&f, sizeof f, "kernels"), 0);
}

/* The stall after the last FFMA is not included. */
static void stall_counts_are_summed(void **state)
{
    (void)state;
    const uint64_t other_bits = UINT64_MAX << 45 | 0xffff;
    file f = make_file();
    f.code[1] = (uint64_t)9 << 41; /* before the first */
    f.code[3] = (uint64_t)5 << 41 | other_bits;
    f.code[5] = (uint64_t)6 << 41;
    assert_int_equal(tgl_cubin_cycles(&f, sizeof f, "kernel", 2), 5);
    assert_int_equal(tgl_cubin_cycles(&f, sizeof f, "kernel", 3), 0);
    assert_int_equal(tgl_cubin_cycles(&f, sizeof f, "kernels", 2), 0);
    f.code[3] = other_bits; /* without a stall the next instruction issues a cycle later */
    assert_int_equal(tgl_cubin_cycles(&f, sizeof f, "kernel", 2), 1);
}

static void what_is_no_cubin_has_none(void **state)
{
    (void)state;
    static const char ptx[] = ".version 9.0 .target sm_90 .entry kernel() { ret; } // and so on";
    file f = make_file();
    assert_int_equal(tgl_cubin_ffmas(ptx, sizeof ptx, "kernel"), 0);
    assert_int_equal(tgl_cubin_ffmas(&f, 0, "kernel"), 0);
    for (size_t size = 1; size < sizeof f; size++)
        assert_int_equal(tgl_cubin_ffmas(&f, size, "kernel"), 0);
    f.header.e_shoff = UINT64_MAX - 8;
    assert_int_equal(tgl_cubin_ffmas(&f, sizeof f, "kernel"), 0);
    f = make_file();
    f.header.e_shstrndx = 3;
    assert_int_equal(tgl_cubin_ffmas(&f, sizeof f, "kernel"), 0);
    f = make_file();
    f.sections[1].sh_size = UINT64_MAX;
    assert_int_equal(tgl_cubin_ffmas(&f, sizeof f, "kernel"), 0);
    f = make_file();
    f.sections[2].sh_name = 30;
    assert_int_equal(tgl_cubin_ffmas(&f, sizeof f, "kernel"), 0);
    f = make_file();
    f.sections[2].sh_size++;
    assert_int_equal(tgl_cubin_ffmas(&f, sizeof f, "kernel"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ffmas_of_a_kernel_are_counted),
        cmocka_unit_test(stall_counts_are_summed),
        cmocka_unit_test(what_is_no_cubin_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
