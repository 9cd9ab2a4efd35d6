/* SPDX-License-Identifier: Apache-2.0
 *
 * The words, exponents and panels that gemm/decompose.cu makes of an operand, bit by bit, on the
 * simulator or on the device that TEGULA_TEST_DEVICE names ("cuda:0"): short and long lines, in
 * blocks and clusters, of every layout and alignment.
 */
#include "support.h"

#include "backend/backend.h"
#include "base/integers.h"
#include "elements.h"
#include "families/decompose.h"

#include "../kernels/lib/decompose_args.h"

#include <limits.h>

/* op(A) of `batch` products, with `lines` rows of `length` elements, or op(B), with as many
 * columns. */
typedef struct operand_case {
    bool is_b, transposes;
    int lines, length, batch;
    int pad, skip; /* elements between lines or columns in memory, and before the matrix */
    int strip;     /* lines of a block that are columns in memory, as planned; 0: any number */
} operand_case;

/* ---- The matrix ------------------------------------------------------------------------------ */

static uint64_t draw_state;

static float uniform(void)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (float)(draw_state >> 40) * 0x1p-23f - 1;
}

/* Element k of a line. Lines are of all kinds. In panels after the first, the list overflows. */
static float element(int line, int k, int length)
{
    const float x = uniform();
    switch (line % 64) {
    case 1:
        return k % 2 == 0 ? 0.0f : -0.0f;
    case 2:
        return x * 0x1p-130f; /* denormal */
    case 3:
        return x * 0x1p100f;
    case 4:
        return k % (length / 5) == 3 ? x * 0x1p-40f : 1;
    case 5:
        return k == length - 1 ? 0x1p60f : x * 0x1p30f;
    case 6:
        return line > 64 && k < 2 * TGL_LISTED_MAX ? 0x1p-60f : k == length - 1 ? 1 : x;
    case 7:
        return line == 7 ? x : k == 0 ? INFINITY : x;
    case 8:
        return line >= 128 && k == length / 2 ? NAN : x;
    case 9:
        return k % 100 == 0 ? x * 0x1p-13f : 0x1.8p0f; /* the limits of the range */
    case 10:
        return k % 3 == 0 ? 0x1p-27f : k % 3 == 1 ? 0x1.fffffep-28f : 1;
    case 11: /* a single element, and two of them, far from each other and side by side */
        return k == length - 1 ? x : 0;
    case 0:
        return k == 0 || k == length - 1 ? x : 0;
    case 12:
        return k == length / 3 ? -0x1.8p127f : 0;
    case 13:
        return k == 1 ? 0x1p-149f : 0;
    case 14:
        return k == 40 || k == 41 ? x : 0;
    case 15:
        return k == 3 ? line < 64 ? x : -INFINITY : 0;
    default:
        return x;
    }
}

typedef struct matrix {
    float *elements; /* lines x length, for each product */
    float *memory;   /* as the kernel reads it */
    size_t bytes;    /* of memory */
    int64_t ld, stride;
} matrix;

static matrix make_matrix(const operand_case *c)
{
    matrix m;
    const int lines_in_memory = c->transposes ? c->length : c->lines;
    const size_t size = (size_t)c->lines * (size_t)c->length;
    m.ld = (c->transposes ? c->lines : c->length) + c->pad;
    m.stride = m.ld * lines_in_memory;
    m.bytes = (size_t)(c->skip + m.stride * c->batch) * sizeof(float);
    m.elements = malloc(size * (size_t)c->batch * sizeof(float));
    m.memory = calloc(1, m.bytes);
    assert_true(m.elements != NULL && m.memory != NULL);
    draw_state = 1;
    for (int z = 0; z < c->batch; z++)
        for (int i = 0; i < c->lines; i++)
            for (int k = 0; k < c->length; k++) {
                const float x = element(i, k, c->length);
                m.elements[(size_t)z * size + (size_t)i * (size_t)c->length + (size_t)k] = x;
                m.memory[c->skip + z * m.stride + (c->transposes ? k * m.ld + i : i * m.ld + k)] =
                    x;
            }
    return m;
}

static void free_matrix(matrix *m)
{
    free(m->elements);
    free(m->memory);
}

/* ---- What the kernel makes of it ------------------------------------------------------------- */

static void check_strip(const tgl_plan *plan, int strip)
{
    char macro[20];
    snprintf(macro, sizeof macro, "STRIP=%d", strip);
    const char *macros = plan->list.steps[0].launches[0].kernel->macros;
    if (strip > 0 && strstr(macros, macro) == NULL) fail_msg("%s is not in %s", macro, macros);
}

/* Returns the results of the kernel, which the caller frees. */
static char *decompose(tgl_device *dev, const operand_case *c, const matrix *m,
                       const tgl_decompose *layout)
{
    enum { OTHER = 40 };
    const int rows = c->is_b ? OTHER : c->lines, cols = c->is_b ? c->lines : OTHER;
    tgl_problem problem = problem_of(TGL_F32, rows, cols, c->length);
    problem.compute = TGL_COMPUTE_ACCURATE;
    problem.batch = c->batch;
    problem.stride_c = (int64_t)rows * cols;
    problem.lda = c->is_b ? 0 : m->ld;
    problem.ldb = c->is_b ? m->ld : 0;
    if (c->batch > 1) {
        problem.stride_a = c->is_b ? 0 : m->stride;
        problem.stride_b = c->is_b ? m->stride : 0;
    }
    if (!c->is_b && c->transposes) problem.trans_a = TGL_TRANS;
    if (c->is_b && !c->transposes) problem.trans_b = TGL_TRANS;
    const tgl_plan_options options = {.size = sizeof options, .kernel = "accurate_128x64"};
    const tgl_operand operand = c->is_b ? TGL_AT_B : TGL_AT_A;
    tgl_plan *plan;
    void *from;
    tgl_run run = {.alpha = 1, .has_product = true, .is_preparation = true, .prepares = operand};
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_int_equal(plan->list.kept_bytes[operand], layout->bytes);
    check_strip(plan, c->strip);
    assert_status(tgl_alloc(dev, m->bytes, &from), TGL_OK);
    assert_status(tgl_alloc(dev, (size_t)layout->bytes, &run.kept[operand]), TGL_OK);
    assert_status(tgl_upload(dev, from, m->memory, m->bytes, NULL), TGL_OK);
    run.at[operand] = (float *)from + c->skip;
    char *to = malloc((size_t)layout->bytes), error[400];
    assert_non_null(to);
    memset(to, 0xa5, (size_t)layout->bytes);
    assert_status(tgl_upload(dev, run.kept[operand], to, (size_t)layout->bytes, NULL), TGL_OK);
    if (dev->backend->run(plan, &run, NULL) != TGL_OK) {
        tgl_last_error(error, sizeof error);
        fail_msg("%s", error);
    }
    assert_status(tgl_download(dev, to, run.kept[operand], (size_t)layout->bytes, NULL), TGL_OK);
    tgl_free(dev, run.kept[operand]);
    tgl_free(dev, from);
    tgl_plan_destroy(plan);
    return to;
}

/* ---- What it should make of it --------------------------------------------------------------- */

/* What is right for a line: the exponent s of its scale, its entry among the exponents, and the
 * states that it gives its panel. A single line has s = INT_MIN: its words are 0. */
typedef struct line_truth {
    int s, entry;
    unsigned state;
} line_truth;

static line_truth truth_of(const float *x, int length)
{
    float largest = 0;
    int nonzeros = 0, last = 0; /* last: the k of the last element that is not 0 */
    for (int k = 0; k < length; k++) {
        if (!isfinite(x[k])) return (line_truth){0, 0, TGL_PANEL_NOT_FINITE};
        if (fabsf(x[k]) > largest) largest = fabsf(x[k]);
        if (x[k] != 0) nonzeros++, last = k;
    }
    if (nonzeros == 0) return (line_truth){0, 0, 0};
    if (nonzeros == 1) return (line_truth){INT_MIN, TGL_SINGLE_LINE + last, 0};
    const int s = TGL_TOP_EXPONENT - ilogbf(largest);
    return (line_truth){s, s, abs(s) > TGL_MODEST_EXPONENT ? TGL_PANEL_WIDE : 0};
}

static bool is_below(float x, int s)
{
    return x != 0 && fabs(ldexp(x, s)) < ldexp(1, TGL_LOW_EXPONENT);
}

/* The case whose results are compared, and the results. */
typedef struct comparison {
    const operand_case *c;
    const tgl_decompose *layout;
    const char *results;
} comparison;

static void fail_at(const comparison *of, int z, int line, int k, const char *what)
{
    const operand_case *c = of->c;
    fail_msg("%s, %d x %d%s%s, pad %d, skip %d: %s of product %d, line %d, k %d",
             c->is_b ? "B" : "A", c->lines, c->length, c->transposes ? ", columns" : "",
             c->batch > 1 ? ", a batch" : "", c->pad, c->skip, what, z, line, k);
}

static void check_words(const comparison *of, int z, int line, const float *x, int s)
{
    const int64_t pitch = tgl_decompose_pitch(of->layout), lines = of->c->lines;
    const uint16_t *words = (const uint16_t *)(of->results + of->layout->words);
    const uint16_t *hi = words + (2 * z * lines + line) * pitch, *lo = hi + lines * pitch;
    for (int k = 0; k < of->c->length; k++) {
        const double y = s == INT_MIN || is_below(x[k], s) ? 0 : ldexp(x[k], s);
        uint16_t right;
        element_set(TGL_F16, &right, 0, y);
        if (hi[k] != right) fail_at(of, z, line, k, "hi");
        element_set(TGL_F16, &right, 0, ldexp(y - element_get(TGL_F16, &right, 0), 11));
        if (lo[k] != right) fail_at(of, z, line, k, "lo");
    }
}

/* Whether the panel's list has this element. */
static bool is_listed(const struct tgl_panel *panel, int line, int k, float value)
{
    for (unsigned i = 0; i < panel->count; i++) {
        const struct tgl_listed *x = &panel->listed[i];
        if (x->line == line && x->k == k) return x->value == value;
    }
    return false;
}

/* Checks the lines of a panel and its state. first: its first line; x: the elements of that line.
 */
static void check_panel(const comparison *of, int z, int first, const float *x)
{
    const operand_case *c = of->c;
    const int64_t padded = tgl_round_up(c->lines, TGL_PANEL_LINES);
    const int *exponents = (const int *)(of->results + of->layout->exponents) + z * padded;
    const struct tgl_panel *panel = (const struct tgl_panel *)(of->results + of->layout->panels) +
                                    (z * padded + first) / TGL_PANEL_LINES;
    unsigned state = 0, count = 0;
    for (int i = first; i < c->lines && i < first + TGL_PANEL_LINES; i++, x += c->length) {
        const line_truth t = truth_of(x, c->length);
        state |= t.state;
        if (exponents[i] != t.entry) fail_at(of, z, i, 0, "the exponent");
        if (t.state & TGL_PANEL_NOT_FINITE) continue;
        check_words(of, z, i, x, t.s);
        for (int k = 0; k < c->length && t.s != INT_MIN; k++)
            count += is_below(x[k], t.s);
    }
    if (panel->state != state) fail_at(of, z, first, 0, "the state");
    if (panel->count != count) fail_at(of, z, first, 0, "the length of the list");
    if (count > TGL_LISTED_MAX) return;
    x -= (int64_t)(first + TGL_PANEL_LINES < c->lines ? TGL_PANEL_LINES : c->lines - first) *
         c->length;
    for (int i = first; i < c->lines && i < first + TGL_PANEL_LINES; i++, x += c->length) {
        const line_truth t = truth_of(x, c->length);
        for (int k = 0; k < c->length && t.s != INT_MIN && !(t.state & TGL_PANEL_NOT_FINITE); k++)
            if (is_below(x[k], t.s) && !is_listed(panel, i - first, k, x[k]))
                fail_at(of, z, i, k, "the list");
    }
}

static void check_operand(tgl_device *dev, const operand_case *c)
{
    matrix m = make_matrix(c);
    tgl_decompose layout = {.operand = c->is_b ? TGL_AT_B : TGL_AT_A,
                            .transposes = c->transposes,
                            .lines = c->lines,
                            .length = c->length,
                            .count = c->batch};
    tgl_decompose_place(&layout);
    char *results = decompose(dev, c, &m, &layout);
    const comparison of = {c, &layout, results};
    for (int z = 0; z < c->batch; z++)
        for (int i = 0; i < c->lines; i += TGL_PANEL_LINES)
            check_panel(&of, z, i, m.elements + ((int64_t)z * c->lines + i) * c->length);
    free(results);
    free_matrix(&m);
}

/* ---- The cases ------------------------------------------------------------------------------- */

/* Lengths of lines below and above those that fill the threads of a block, a block, and a cluster.
 */
static void lengths(void **state)
{
    static const int all[] = {256, 257, 511, 512, 1000, 1024, 1025, 2048, 2500};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (int way = 0; way < 4; way++) {
            const operand_case c = {way % 2 != 0, way / 2 != 0, 70, all[i], 1, 0, 0, 0};
            check_operand(*state, &c);
        }
}

static void long_lines(void **state)
{
    static const int all[] = {8192, 8195, 16384, 16640, 40000};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (int way = 0; way < 2; way++) {
            const operand_case c = {false, way != 0, 12, all[i], 1, 0, 0, 0};
            check_operand(*state, &c);
        }
}

/* Lines that are columns in memory: a block takes as many as it holds, but fewer if SMs would have
 * no block. Long ones do not fit into a cluster and are read twice. */
static void strips(void **state)
{
    static const operand_case all[] = {
        {false, true, 65, 256, 44, 0, 0, 32}, {false, true, 70, 300, 27, 0, 0, 16},
        {false, true, 150, 300, 1, 0, 0, 8},  {false, true, 150, 777, 1, 0, 0, 8},
        {false, true, 150, 3000, 1, 0, 0, 8}, {false, true, 150, 17000, 1, 0, 0, 8}};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        check_operand(*state, &all[i]);
}

static void numbers_of_lines(void **state)
{
    static const int all[] = {1, 7, 31, 64, 65, 128, 133};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (int way = 0; way < 4; way++) {
            const operand_case c = {way % 2 != 0, way / 2 != 0, all[i], 300, 2, 0, 0, 0};
            check_operand(*state, &c);
        }
}

static void alignments(void **state)
{
    for (int pad = 0; pad < 5; pad++)
        for (int skip = 0; skip < 5; skip += 1 + pad % 2)
            for (int way = 0; way < 2; way++) {
                const operand_case c = {false, way != 0, 72 - pad, 260, 2, pad, skip, 0};
                check_operand(*state, &c);
            }
}

static void a_line_that_is_too_long(void **state)
{
    const tgl_plan_options options = {.size = sizeof options, .kernel = "accurate_128x64"};
    tgl_problem problem = problem_of(TGL_F32, 1, 1, 1 << 26);
    tgl_plan *plan;
    problem.compute = TGL_COMPUTE_ACCURATE;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    assert_sentence("accurate_128x64 cannot serve f32, m=1 n=1 k=67108864: k is too long for the "
                    "pre-pass");
    problem.k--;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    tgl_plan_destroy(plan);
}

/* The simulator runs blocks in a random order. */
static int open_device(void **state)
{
    setenv("TEGULA_SIM_SEED", "5", 1);
    return setup_test_device(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths),    cmocka_unit_test(long_lines),
        cmocka_unit_test(strips),     cmocka_unit_test(numbers_of_lines),
        cmocka_unit_test(alignments), cmocka_unit_test(a_line_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, open_device, teardown_device);
}
