/* SPDX-License-Identifier: Apache-2.0
 *
 * The real NVRTC, where there is one: what the library reads out of its log, and its errors. That
 * every kernel compiles is for `tegula warm` to show.
 */
#include "support.h"

#include "cuda/compile.h"

static tgl_nvrtc nvrtc;

/* A row like those of the registry, on a file of the ladder. */
static tgl_kernel row(const char *defines)
{
    return (tgl_kernel){.name = "test",
                        .file = "ladder/06_thread_tile_2d.cu",
                        .symbol = "sgemm_thread_tile_2d",
                        .defines = defines};
}

static tgl_status compile(const char *defines, const char *arch, tgl_binary *binary, char **error)
{
    const tgl_kernel kernel = row(defines);
    return tgl_cuda_compile(&nvrtc, NULL, &kernel, arch, true, binary, error);
}

static const char *newest(void)
{
    static tgl_arch arch;
    arch = tgl_nvrtc_arch_name(&nvrtc, nvrtc.archs[nvrtc.arch_count - 1]);
    return arch.name;
}

static void machine_code_comes_with_its_resources(void **state)
{
    (void)state;
    tgl_binary binary;
    char *error;
    assert_status(compile("BM=64 BN=64 TM=4 TN=4", newest(), &binary, &error), TGL_OK);
    assert_null(error);
    assert_memory_equal(binary.image, "\177ELF", 4);
    assert_in_range(binary.uses.registers, 16, 255);
    assert_int_equal(binary.uses.local_bytes, 0);
    assert_int_equal(binary.uses.spill_bytes, 0);
    assert_in_range(binary.uses.shared_bytes, 64 * 8 * 2 * 4, 6000); /* A and B, BK=8 */
    free(binary.image);
}

/* 16 x 16 results a thread do not fit 255 registers. */
static void spills_are_read_from_the_log(void **state)
{
    (void)state;
    tgl_binary binary;
    char *error;
    assert_status(compile("BM=256 BN=256 TM=16 TN=16", newest(), &binary, &error), TGL_OK);
    assert_true(binary.uses.local_bytes > 0);
    assert_true(binary.uses.spill_bytes > 0);
    free(binary.image);
}

static void ptx_is_for_chips_to_come(void **state)
{
    (void)state;
    tgl_binary binary;
    char *error;
    assert_status(compile("", "compute_80", &binary, &error), TGL_OK);
    assert_non_null(strstr(binary.image, ".entry sgemm_thread_tile_2d"));
    assert_int_equal(binary.uses.registers, -1); /* nobody has assigned any */
    free(binary.image);
}

static void illegal_tiles_are_refused_by_the_file(void **state)
{
    (void)state;
    tgl_binary binary;
    char *error;
    assert_status(compile("BM=7", newest(), &binary, &error), TGL_COMPILE);
    assert_null(binary.image);
    assert_non_null(strstr(error, "ladder/06_thread_tile_2d.cu"));
    assert_non_null(strstr(error, "#error"));
    free(error);
    assert_status(compile("", "sm_1", &binary, &error), TGL_COMPILE);
    assert_non_null(strstr(error, "sm_1"));
    free(error);
}

/* ---- Epilogues of the production family ------------------------------------------------------ */

static tgl_status compile_epilogue(const char *defines, const char *expression, tgl_binary *binary,
                                   char **error)
{
    const tgl_kernel kernel = {.name = "test",
                               .file = "gemm/simt.cu",
                               .symbol = "sgemm_simt",
                               .defines = defines,
                               .expression = expression};
    return tgl_cuda_compile(&nvrtc, NULL, &kernel, newest(), true, binary, error);
}

static void epilogues_fit_the_registers(void **state)
{
    (void)state;
    static const char *const defines[] = {"BIAS=1 ACTIVATION=1 RESIDUAL=1",
                                          "BIAS=2 ACTIVATION=2 RESIDUAL=1", "ACTIVATION=3"};
    for (size_t i = 0; i < COUNT_OF(defines); i++) {
        tgl_binary binary;
        char *error;
        assert_status(compile_epilogue(defines[i], NULL, &binary, &error), TGL_OK);
        assert_int_equal(binary.uses.local_bytes, 0);
        free(binary.image);
    }
}

static void expressions_are_compiled_in(void **state)
{
    (void)state;
    static const char start[] = "static __device__ float expression(float acc, float c, "
                                "float bias, int row, int col)\n{\n    return (\n"
                                "#line 1 \"expression\"\n",
                      end[] = "\n    );\n}\n";
    char source[512], *error;
    tgl_binary binary;
    snprintf(source, sizeof source, "%s%s%s", start, "silu(acc + c) * bias - row + 2 * col", end);
    assert_status(compile_epilogue("BIAS=2 EXPRESSION=1", source, &binary, &error), TGL_OK);
    assert_int_equal(binary.uses.local_bytes, 0);
    free(binary.image);
    snprintf(source, sizeof source, "%s%s%s", start, "acc + scale", end);
    assert_status(compile_epilogue("EXPRESSION=1", source, &binary, &error), TGL_COMPILE);
    assert_null(binary.image);
    if (strstr(error, "expression(1)") == NULL || strstr(error, "scale") == NULL)
        fail_msg("%s", error);
    free(error);
}

static void a_file_that_is_not_embedded(void **state)
{
    (void)state;
    tgl_kernel kernel = row("");
    tgl_binary binary;
    char *error;
    kernel.file = "ladder/none.cu";
    assert_status(tgl_cuda_compile(&nvrtc, NULL, &kernel, newest(), true, &binary, &error),
                  TGL_COMPILE);
    assert_non_null(strstr(error, "not embedded"));
    free(error);
}

int main(void)
{
    char message[512];
    if (tgl_nvrtc_open(&nvrtc, message, sizeof message) != TGL_OK) {
        printf("skipped: %s\n", message);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_code_comes_with_its_resources),
        cmocka_unit_test(spills_are_read_from_the_log),
        cmocka_unit_test(ptx_is_for_chips_to_come),
        cmocka_unit_test(illegal_tiles_are_refused_by_the_file),
        cmocka_unit_test(epilogues_fit_the_registers),
        cmocka_unit_test(expressions_are_compiled_in),
        cmocka_unit_test(a_file_that_is_not_embedded),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tgl_nvrtc_close(&nvrtc);
    return failed;
}
