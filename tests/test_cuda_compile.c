/* SPDX-License-Identifier: Apache-2.0
 *
 * The real NVRTC, if there is one: what the library reads from its log, and compile errors. `tegula
 * warm` tests that every kernel compiles.
 */
#include "support.h"

#include "cuda/nvrtc_compile.h"
#include "plan_shape.h"

static tgl_nvrtc nvrtc;

static void assert_error_has(const char *words)
{
    if (strstr(tgl_error(), words) == NULL) fail_msg("%s", tgl_error());
}

/* A kernel that is a file of the ladder. */
static tgl_kernel kernel_with(const char *macros)
{
    return (tgl_kernel){.name = "test",
                        .file = "ladder/06_thread_tile_2d.cu",
                        .symbol = "sgemm_thread_tile_2d",
                        .macros = macros};
}

static tgl_status compile(const char *macros, const char *arch, tgl_binary *binary)
{
    const tgl_kernel kernel = kernel_with(macros);
    return tgl_cuda_compile(&nvrtc, NULL, &kernel, arch, true, binary);
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
    assert_status(compile("BM=64 BN=64 TM=4 TN=4", newest(), &binary), TGL_OK);
    assert_memory_equal(binary.image, "\177ELF", 4);
    assert_in_range(binary.uses.registers, 16, 255);
    assert_int_equal(binary.uses.local_bytes, 0);
    assert_int_equal(binary.uses.spill_bytes, 0);
    assert_in_range(binary.uses.shared_bytes, 64 * 8 * 2 * 4, 6000); /* A and B, BK=8 */
    free(binary.image);
}

/* 16 x 16 results per thread do not fit in 255 registers. */
static void spills_are_read_from_the_log(void **state)
{
    (void)state;
    tgl_binary binary;
    assert_status(compile("BM=256 BN=256 TM=16 TN=16", newest(), &binary), TGL_OK);
    assert_true(binary.uses.local_bytes > 0);
    assert_true(binary.uses.spill_bytes > 0);
    free(binary.image);
}

static void ptx_is_for_chips_to_come(void **state)
{
    (void)state;
    tgl_binary binary;
    assert_status(compile("", "compute_80", &binary), TGL_OK);
    assert_non_null(strstr(binary.image, ".entry sgemm_thread_tile_2d"));
    assert_int_equal(binary.uses.registers, -1); /* PTX has none assigned */
    free(binary.image);
}

static void illegal_tiles_are_refused_by_the_file(void **state)
{
    (void)state;
    tgl_binary binary;
    assert_status(compile("BM=7", newest(), &binary), TGL_COMPILE);
    assert_null(binary.image);
    assert_error_has("ladder/06_thread_tile_2d.cu");
    assert_error_has("#error \"a block is a grid of at most 1024 threads, and makes every load");
    assert_status(compile("", "sm_1", &binary), TGL_COMPILE);
    assert_error_has("sm_1");
}

/* ---- wgmma with its left operand in registers ------------------------------------------------ */

enum { IN_FLIGHT_MAX = 256 };

/* The numbers of the registers that wgmmas in flight read: those of committed groups, the oldest
 * first, and those of the wgmmas after them. */
typedef struct in_flight {
    long numbers[IN_FLIGHT_MAX];
    int count, wgmmas;
    int ends[IN_FLIGHT_MAX]; /* ends of the groups in numbers[] */
    int groups;
} in_flight;

/* Removes the oldest groups until at most `pending` are in flight. */
static void wait_for_groups(in_flight *of, int pending)
{
    if (of->groups <= pending) return;
    const int done = of->groups - pending, first = of->ends[done - 1];
    of->count -= first;
    memmove(of->numbers, of->numbers + first, (size_t)of->count * sizeof of->numbers[0]);
    for (int i = 0; i < pending; i++)
        of->ends[i] = of->ends[done + i] - first;
    of->groups = pending;
}

/* The number of the register %r... at the text's beginning; -1: there is none. */
static long register_at(const char *text)
{
    return text[0] == '%' && text[1] == 'r' && text[2] >= '0' && text[2] <= '9'
               ? strtol(text + 2, NULL, 10)
               : -1;
}

/* Adds the registers of "{%r1, %r2, %r3, %r4}" behind those of the accumulator. */
static void add_left_registers(in_flight *of, const char *wgmma)
{
    const char *at = strstr(wgmma, "}, {");
    assert_non_null(at);
    of->wgmmas++;
    for (at += 4; register_at(at) >= 0; at += strspn(at, ", ")) {
        assert_true(of->count < IN_FLIGHT_MAX);
        of->numbers[of->count++] = register_at(at);
        at += strcspn(at, ",}");
    }
    assert_true(of->count % 4 == 0 && *at == '}');
}

/* Whether the instruction's first operand, which it writes, is in flight. */
static bool writes_in_flight(const in_flight *of, const char *line)
{
    line += strspn(line, " \t");
    if (*line == '@') line += strcspn(line, " \t"), line += strspn(line, " \t");
    line += strcspn(line, " \t");
    line += strspn(line, " \t{");
    const long number = register_at(line);
    for (int i = 0; i < of->count; i++)
        if (of->numbers[i] == number) return true;
    return false;
}

/* Follows one line of PTX. kernel: its name, for the error. */
static void follow(in_flight *of, const char *kernel, const char *line)
{
    static const char waits[] = "wgmma.wait_group.sync.aligned ";
    const char *wait = strstr(line, waits);
    if (strstr(line, "wgmma.mma_async") != NULL) {
        add_left_registers(of, line);
    } else if (strstr(line, "wgmma.commit_group") != NULL) {
        assert_true(of->groups < IN_FLIGHT_MAX);
        of->ends[of->groups++] = of->count;
    } else if (wait != NULL) {
        wait_for_groups(of, atoi(wait + sizeof waits - 1));
    } else if (writes_in_flight(of, line)) {
        fail_msg("%s: writes a register that wgmma reads: %s", kernel, line);
    }
}

/* If line `at` branches back: the number of the line with the label. Otherwise -1. */
static int earlier_label(char *const *lines, int at)
{
    const char *label = strstr(lines[at], "bra");
    if (label == NULL || (label = strstr(label, "$L_")) == NULL) return -1;
    const size_t length = strcspn(label, ";");
    for (int i = 0; i < at; i++)
        if (strncmp(lines[i], label, length) == 0 && lines[i][length] == ':') return i;
    return -1;
}

/* PTX ISA, wgmma.mma_async: its registers must not be accessed before wgmma.wait_group. NVRTC is
 * not told that the asm statement reads them later: wgmma_hold_left() sees to it. The test
 * follows the lines in order, and a loop's body once more where it branches back. */
static void left_registers_are_not_written_in_flight(void **state)
{
    (void)state;
    enum { LINES_MAX = 20000 };
    static char *lines[LINES_MAX];
    static const char *const macros[] = {"BM=128 BN=256", "BM=256 BN=128",
                                         "BM=64 BN=256 ALTERNATE=1",
                                         "BM=64 BN=64 CONSUMERS=1 MIN_BLOCKS=2"};
    for (size_t i = 0; i < COUNT_OF(macros); i++) {
        char all[200];
        snprintf(all, sizeof all, "%s LEFT_ALONG_K=0 RIGHT_ALONG_K=1 TRANS_A=1 TRANS_B=1",
                 macros[i]);
        const tgl_kernel kernel = {
            .name = "test", .file = "gemm/wgmma.cu", .symbol = "gemm_wgmma", .macros = all};
        tgl_binary binary;
        in_flight of = {.count = 0};
        int count = 0, loops = 0;
        assert_status(tgl_cuda_compile(&nvrtc, NULL, &kernel, "compute_90a", true, &binary),
                      TGL_OK);
        char *rest = binary.image;
        for (char *line; (line = strsep(&rest, "\n")) != NULL; count++) {
            assert_true(count < LINES_MAX);
            lines[count] = line;
            follow(&of, macros[i], line);
            const int from = earlier_label(lines, count);
            if (from < 0 || of.count == 0) continue;
            in_flight again = of;
            for (int j = from; j < count; j++)
                follow(&again, macros[i], lines[j]);
            loops++;
        }
        assert_true(of.wgmmas > 0 && loops > 0);
        free(binary.image);
    }
}

/* ---- Grouped products ------------------------------------------------------------------------ */

/* All kernels of a grouped plan compile. Its tiled kernels do not spill more than the same kernels
 * without groups may. */
static void grouped_kernels_fit_the_registers(void **state)
{
    static const struct {
        tgl_grouping grouping;
        tgl_type type; /* F8_E4M3: A has 1x128 factors and B factors of blocks */
        int64_t m, n, k;
        const char *kernel;
    } rows[] = {{TGL_GROUPED_ROWS, TGL_BF16, 65536, 1536, 2048, "wgmma_128x256"},
                {TGL_GROUPED_ROWS, TGL_BF16, 4096, 1536, 2048, "wgmma_64x32:exchanged=1"},
                {TGL_GROUPED_DEPTH, TGL_BF16, 2048, 1536, 65536, "wgmma_128x256"},
                {TGL_GROUPED_ROWS, TGL_BF16, 65536, 1536, 2048, "wgmma_128x128_alt"},
                {TGL_GROUPED_ROWS, TGL_BF16, 65536, 1536, 2048, "mma_128x128x64"},
                {TGL_GROUPED_ROWS, TGL_F8_E4M3, 65536, 1536, 2048, NULL},
                {TGL_GROUPED_ROWS, TGL_F8_E4M3, 65536, 1536, 2048, "wgmma_128x128"},
                {TGL_GROUPED_ROWS, TGL_F8_E4M3, 4096, 1536, 2048, "wgmma_64x32:exchanged=1"},
                {TGL_GROUPED_MASKED, TGL_F8_E4M3, 512, 1536, 2048, "mma_64x64x128"}};
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bool depth = rows[i].grouping == TGL_GROUPED_DEPTH;
        tgl_problem p;
        tgl_shape shape;
        tgl_binary binary;
        assert_status(tgl_problem_init(&p, sizeof p, rows[i].type, rows[i].m, rows[i].n, rows[i].k),
                      TGL_OK);
        p.grouping = rows[i].grouping;
        p.group_form = TGL_GROUP_SIZES;
        p.trans_a = depth ? TGL_TRANS : TGL_NO_TRANS;
        p.batch = 128;
        p.stride_a = p.grouping == TGL_GROUPED_MASKED ? p.m * p.k : 0;
        p.stride_b = depth ? 0 : p.n * p.k;
        p.stride_c = p.grouping == TGL_GROUPED_ROWS ? 0 : p.m * p.n;
        if (rows[i].type == TGL_F8_E4M3) {
            p.trans_b = TGL_TRANS;
            p.scaling_a = TGL_SCALING_LINE_128;
            p.scaling_b = TGL_SCALING_BLOCK;
        }
        assert_status(tgl_shape_make(&p, true, &shape), TGL_OK);
        const tgl_candidate choice = choose_on(chip, &shape, rows[i].kernel);
        tgl_launch_list list = list_of(chip, &shape, &choice);
        assert_int_equal(list.step_count, 2);
        for (int j = 0; j < list.kernel_count; j++) {
            const tgl_kernel *kernel = list.kernels[j];
            assert_status(tgl_cuda_compile(&nvrtc, NULL, kernel, "sm_90a", true, &binary), TGL_OK);
            if (binary.uses.local_bytes > kernel->local_bytes || binary.uses.serialises)
                fail_msg("%s of %s: %d bytes of local memory, %d spilled, serialised %d",
                         kernel->name, rows[i].kernel, binary.uses.local_bytes,
                         binary.uses.spill_bytes, binary.uses.serialises);
            free(binary.image);
        }
        tgl_list_free(&list);
    }
}

/* The kernels of bundles read their products from the parameters, not from a copy in local memory,
 * and do not spill. */
static void bundles_fit_the_registers(void **state)
{
    static const struct {
        tgl_type type;
        tgl_compute compute;
        int64_t side;
    } rows[] = {{TGL_BF16, TGL_COMPUTE_DEFAULT, 64}, {TGL_BF16, TGL_COMPUTE_DEFAULT, 1024},
                {TGL_F32, TGL_COMPUTE_IEEE, 64},     {TGL_F32, TGL_COMPUTE_IEEE, 512},
                {TGL_F32, TGL_COMPUTE_TF32, 256},    {TGL_F64, TGL_COMPUTE_DEFAULT, 256}};
    (void)state;
    const tgl_chip *chip = chip_of("h200");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tgl_problem p;
        tgl_shape shape;
        tgl_binary binary;
        assert_status(tgl_problem_init(&p, sizeof p, rows[i].type, rows[i].side, rows[i].side, 256),
                      TGL_OK);
        p.compute = rows[i].compute;
        p.batch = 32;
        p.batching = TGL_POINTERS;
        p.alignment = 16;
        assert_status(tgl_shape_make(&p, true, &shape), TGL_OK);
        shape.is_bundle = true;
        const tgl_candidate choice = choose_on(chip, &shape, NULL);
        tgl_launch_list list = list_of(chip, &shape, &choice);
        assert_int_equal(list.kernel_count, 1);
        const tgl_kernel *kernel = list.kernels[0];
        assert_non_null(strstr(kernel->macros, "BUNDLE=1"));
        assert_status(tgl_cuda_compile(&nvrtc, NULL, kernel, "sm_90a", true, &binary), TGL_OK);
        assert_in_range(binary.uses.local_bytes, 0, kernel->local_bytes);
        free(binary.image);
        tgl_list_free(&list);
    }
}

/* ---- Epilogues of the production family ------------------------------------------------------ */

static tgl_status compile_epilogue(const char *macros, const char *expression, tgl_binary *binary)
{
    const tgl_kernel kernel = {.name = "test",
                               .file = "gemm/simt.cu",
                               .symbol = "sgemm_simt",
                               .macros = macros,
                               .expression = expression};
    return tgl_cuda_compile(&nvrtc, NULL, &kernel, newest(), true, binary);
}

static void epilogues_fit_the_registers(void **state)
{
    (void)state;
    static const char *const macros[] = {"BIAS=1 ACTIVATION=1 RESIDUAL=1",
                                         "BIAS=2 ACTIVATION=2 RESIDUAL=1", "ACTIVATION=3"};
    for (size_t i = 0; i < COUNT_OF(macros); i++) {
        tgl_binary binary;
        assert_status(compile_epilogue(macros[i], NULL, &binary), TGL_OK);
        assert_int_equal(binary.uses.local_bytes, 0);
        free(binary.image);
    }
}

static void expressions_are_compiled_in(void **state)
{
    (void)state;
    static const char start[] = "static __device__ float expression(float acc, float c, "
                                "float bias, long long row, long long col)\n{\n    return (\n"
                                "#line 1 \"expression\"\n",
                      end[] = "\n    );\n}\n";
    char source[512];
    tgl_binary binary;
    snprintf(source, sizeof source, "%s%s%s", start, "silu(acc + c) * bias - row + 2 * col", end);
    assert_status(compile_epilogue("BIAS=2 EXPRESSION=1", source, &binary), TGL_OK);
    assert_int_equal(binary.uses.local_bytes, 0);
    free(binary.image);
    snprintf(source, sizeof source, "%s%s%s", start, "acc + scale", end);
    assert_status(compile_epilogue("EXPRESSION=1", source, &binary), TGL_COMPILE);
    assert_null(binary.image);
    assert_error_has("expression(1)");
    assert_error_has("scale");
}

static void a_file_that_is_not_embedded(void **state)
{
    (void)state;
    tgl_kernel kernel = kernel_with("");
    tgl_binary binary;
    kernel.file = "ladder/none.cu";
    assert_status(tgl_cuda_compile(&nvrtc, NULL, &kernel, newest(), true, &binary), TGL_COMPILE);
    assert_error_has("not embedded");
}

/* The list is longer than any plausible fixed-size buffer. The last macro must have its effect. */
static void long_lists_of_macros_are_whole(void **state)
{
    (void)state;
    enum { MANY = 2000, ROOM = 64 * 1024 };
    char *macros = malloc(ROOM);
    tgl_binary binary;
    size_t length = 0;
    assert_non_null(macros);
    for (int i = 0; i < MANY; i++)
        length += (size_t)snprintf(macros + length, ROOM - length, "FILLER_%d=%d ", i, i);
    snprintf(macros + length, ROOM - length, "BM=7");
    assert_status(compile(macros, newest(), &binary), TGL_COMPILE);
    assert_error_has("#error");
    snprintf(macros + length, ROOM - length, "BM=64 BN=64 TM=4 TN=4");
    assert_status(compile(macros, newest(), &binary), TGL_OK);
    free(binary.image);
    free(macros);
}

static void a_source_of_the_caller_s(void **state)
{
    (void)state;
    tgl_binary binary;
    const tgl_kernel kernel = {.name = "test",
                               .file = "test/none.cu",
                               .symbol = "fill",
                               .macros = "VALUE=3",
                               .source = "__global__ void fill(float *x) { *x = VALUE; }\n"};
    assert_status(tgl_cuda_compile(&nvrtc, NULL, &kernel, "compute_80", true, &binary), TGL_OK);
    assert_non_null(strstr(binary.image, ".entry fill"));
    free(binary.image);
}

/* wgmma is asynchronous unless an instruction between its commit and its wait accesses its sums.
 */
static void serialised_wgmmas_are_read_from_the_log(void **state)
{
    (void)state;
    const tgl_kernel kernel = {.name = "test",
                               .file = "test/none.cu",
                               .symbol = "multiply",
                               .source =
                                   "#define TYPE_A 4\n"
                                   "#define WGMMA_TYPE TYPE_A\n"
                                   "#define WGMMA_N 16\n"
                                   "#define WGMMA_LEFT_K_MAJOR 1\n"
                                   "#define WGMMA_RIGHT_K_MAJOR 1\n"
                                   "#include \"lib/wgmma.h\"\n"
                                   "__global__ void multiply(float *to, wgmma_tile x, int n)\n"
                                   "{\n"
                                   "    float acc[8] = {0};\n"
                                   "    for (int i = 0; i < n; i++) {\n"
                                   "        wgmma_fence();\n"
                                   "        wgmma(acc, x, x, 1);\n"
                                   "        wgmma_commit();\n"
                                   "        if (TOUCHES) acc[i % 2] += 1;\n"
                                   "        WGMMA_WAIT(acc, 0);\n"
                                   "    }\n"
                                   "    WGMMA_HOLD(acc);\n"
                                   "    for (int i = 0; i < 8; i++) to[i] = acc[i];\n"
                                   "}\n"};
    for (int touches = 0; touches < 2; touches++) {
        tgl_kernel own = kernel;
        tgl_binary binary;
        own.macros = touches ? "TOUCHES=1" : "TOUCHES=0";
        assert_status(tgl_cuda_compile(&nvrtc, NULL, &own, "sm_90a", true, &binary), TGL_OK);
        assert_int_equal(binary.uses.serialises, touches);
        free(binary.image);
    }
}

/* Narrow copies need registers for addresses. An SM must hold as many blocks of these kernels as
 * the planner counts. */
static void narrow_copies_fit_the_registers(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int m, n;
        bool trans_a, trans_b;
    } cases[] = {
        {"simt_64x64x16", 129, 131, false, false}, {"simt_64x64x16", 129, 131, true, false},
        {"simt_64x64x16", 129, 131, true, true},   {"simt_64x64x16", 129, 131, false, true},
        {"simt_64x64x16", 57, 131, false, false},  {"simt_128x64x16", 129, 131, true, false},
        {"simt_64x32x32", 57, 85, false, false},   {"simt_64x32x32", 129, 131, false, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const tgl_chip *chip = chip_of("h200");
        const tgl_shape s =
            transposed_shape_of(cases[i].m, cases[i].n, 256, cases[i].trans_a, cases[i].trans_b);
        made x = make(chip, &s, cases[i].kernel);
        tgl_binary binary;
        assert_status(tgl_cuda_compile(&nvrtc, NULL, x.kernel, "sm_90a", true, &binary), TGL_OK);
        const int registers = (binary.uses.registers + 7) / 8 * 8; /* the unit of allocation */
        if (registers * x.candidate.threads * x.candidate.resident > chip->registers_per_sm)
            fail_msg("%s %dx%d %c%c: %d registers, %d blocks are planned", cases[i].kernel,
                     cases[i].m, cases[i].n, s.trans_a ? 'T' : 'N', s.trans_b ? 'T' : 'N',
                     binary.uses.registers, x.candidate.resident);
        free(binary.image);
        tgl_list_free(&x.list);
    }
}

static void the_build_is_known(void **state)
{
    (void)state;
    assert_in_range(nvrtc.build_id_size, 8, TGL_BUILD_ID_MAX);
    assert_true(nvrtc.version >= 11040);
}

int main(void)
{
    if (tgl_nvrtc_open(&nvrtc) != TGL_OK) {
        printf("skipped: %s\n", tgl_error());
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_code_comes_with_its_resources),
        cmocka_unit_test(spills_are_read_from_the_log),
        cmocka_unit_test(ptx_is_for_chips_to_come),
        cmocka_unit_test(illegal_tiles_are_refused_by_the_file),
        cmocka_unit_test(left_registers_are_not_written_in_flight),
        cmocka_unit_test(grouped_kernels_fit_the_registers),
        cmocka_unit_test(bundles_fit_the_registers),
        cmocka_unit_test(epilogues_fit_the_registers),
        cmocka_unit_test(expressions_are_compiled_in),
        cmocka_unit_test(a_file_that_is_not_embedded),
        cmocka_unit_test(long_lists_of_macros_are_whole),
        cmocka_unit_test(a_source_of_the_caller_s),
        cmocka_unit_test(serialised_wgmmas_are_read_from_the_log),
        cmocka_unit_test(narrow_copies_fit_the_registers),
        cmocka_unit_test(the_build_is_known),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tgl_nvrtc_close(&nvrtc);
    return failed;
}
