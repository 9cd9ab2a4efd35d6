/* SPDX-License-Identifier: Apache-2.0
 *
 * The families mma and batch_mma on the simulator: every configuration, in all layouts, with the
 * types that it takes, and copies of every width; k whole, ragged and split; batches, epilogues,
 * scalars of the device, results of another type, and values that are not finite. The reference is
 * computed in double from the very elements that the kernel reads. An argument "i/n" takes the i-th
 * of n parts.
 */
#include "plan/family.h"
#include "support.h"

static int part = 0, parts = 1;

/* ---- Elements -------------------------------------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double load(tgl_type type, const void *memory, int64_t i)
{
    const uint16_t *half = (const uint16_t *)memory + i;
    const int exponent = type == TGL_F16 ? *half >> 10 & 31 : 0;
    switch (type) {
    case TGL_F32:
        return ((const float *)memory)[i];
    case TGL_F64:
        return ((const double *)memory)[i];
    case TGL_BF16:
        return float_of((uint32_t)*half << 16);
    default:
        if (exponent == 31) return *half & 0x3ff ? NAN : *half >> 15 ? -INFINITY : INFINITY;
        return (*half >> 15 ? -1 : 1) * ldexp((*half & 0x3ff) + (exponent > 0 ? 1024 : 0),
                                              (exponent > 0 ? exponent : 1) - 25);
    }
}

/* Stores x. 16-bit types cut it to their precision, and F16 stores 0 instead of denormal numbers.
 * The reference reads the stored elements. */
static void store(tgl_type type, void *memory, int64_t i, double x)
{
    const uint32_t sign = signbit(x) ? 0x8000 : 0;
    int exponent;
    if (type == TGL_F32) {
        ((float *)memory)[i] = (float)x;
    } else if (type == TGL_F64) {
        ((double *)memory)[i] = x;
    } else if (type == TGL_BF16) {
        ((uint16_t *)memory)[i] = isnan(x) ? 0x7fff : (uint16_t)(bits_of((float)x) >> 16);
    } else if (isnan(x) || isinf(x)) {
        ((uint16_t *)memory)[i] = (uint16_t)(isnan(x) ? 0x7fff : sign | 0x7c00);
    } else {
        const double fraction = frexp(fabs(x), &exponent); /* of a normal number */
        const uint32_t magnitude = fabs(x) < 0x1p-14 ? 0
                                                     : (uint32_t)(exponent + 14) << 10 |
                                                           ((uint32_t)(fraction * 2048) & 0x3ff);
        ((uint16_t *)memory)[i] = (uint16_t)(sign | magnitude);
    }
}

/* An element as the tensor cores see it: FP32 rounded to tf32, ties away from zero. */
static double load_operand(tgl_type type, const void *memory, int64_t i)
{
    if (type != TGL_F32) return load(type, memory, i);
    const float x = ((const float *)memory)[i];
    return isfinite(x) ? float_of((bits_of(x) + 0x1000) & ~0x1fffu) : x;
}

/* The unit roundoff of a type. */
static double roundoff(tgl_type type)
{
    return ldexp(1, type == TGL_F64 ? -53 : type == TGL_F32 ? -24 : type == TGL_F16 ? -11 : -8);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

typedef struct mma_case {
    tgl_problem problem; /* row-major, with all strides */
    double alpha, beta;
    bool pointers;         /* the run gets arrays of pointers to the matrices */
    int offset;            /* elements from a multiple of 16 bytes to A and B */
    tgl_epilogue epilogue; /* size 0: none */
    bool is_finite;        /* false: NaN and Inf here and there */
    bool is_exact;         /* small integers, whose sums are exact */
    const char *kernel;
    uint64_t seed;
} mma_case;

enum { ROOM = 1 << 19, BATCH_MAX = 4 };

/* Memory of a case: operands by their bytes, with room around them. */
static _Alignas(256) char A[8 * ROOM], B[8 * ROOM], C[8 * ROOM], D[8 * ROOM];
static double bias[4096], residual[ROOM];

static bool is_transposed(tgl_transpose trans)
{
    return trans != TGL_NO_TRANS;
}

static void fill(const mma_case *c, tgl_type type, void *memory, int64_t count, uint64_t *seed)
{
    for (int64_t i = 0; type != 0 && i < count; i++) {
        double x = c->is_exact ? (double)random_int(seed, -4, 4) : 2 * random_unit(seed) - 1;
        if (!c->is_finite && random_int(seed, 0, 60) == 0)
            x = random_int(seed, 0, 1) ? NAN : random_int(seed, 0, 1) ? INFINITY : -INFINITY;
        store(type, memory, i, x);
    }
}

static double activated(tgl_activation activation, double x)
{
    return activation == TGL_ACTIVATION_RELU   ? (x < 0 ? 0 : x)
           : activation == TGL_ACTIVATION_SILU ? x / (1 + exp(-x))
                                               : x;
}

static const char *type_name(tgl_type type)
{
    return type == TGL_F16 ? "f16" : type == TGL_BF16 ? "bf16" : type == TGL_F32 ? "tf32" : "f64";
}

/* The memory of a case. */
typedef struct operands {
    char *a, *b;  /* in A and B */
    char *before; /* C before the run */
    const void *A_array[BATCH_MAX], *B_array[BATCH_MAX];
    void *C_array[BATCH_MAX];
    float alpha, beta; /* as scalars of the device in FP32 */
} operands;

static void make_operands(const mma_case *c, operands *o)
{
    const tgl_problem *p = &c->problem;
    const int64_t size = (int64_t)tgl_type_size(p->type_a);
    const int64_t size_c = (int64_t)tgl_type_size(p->type_c);
    const int64_t lines_a = is_transposed(p->trans_a) ? p->k : p->m;
    const int64_t lines_b = is_transposed(p->trans_b) ? p->n : p->k;
    const int64_t of_a = (p->batch - 1) * p->stride_a + p->lda * lines_a;
    const int64_t of_b = (p->batch - 1) * p->stride_b + p->ldb * lines_b;
    const int64_t of_c = (p->batch - 1) * p->stride_c + p->ldc * p->m;
    uint64_t seed = c->seed;
    o->a = A + c->offset * size;
    o->b = B + c->offset * size;
    assert_true(of_a < ROOM - 8 && of_b < ROOM - 8 && of_c < ROOM - 8 && p->batch <= BATCH_MAX);
    fill(c, p->type_a, o->a, of_a, &seed);
    fill(c, p->type_b, o->b, of_b, &seed);
    fill(c, p->type_c, C, of_c, &seed);
    fill(c, c->epilogue.type_bias, bias, p->m > p->n ? p->m : p->n, &seed);
    fill(c, c->epilogue.type_residual, residual, p->m * p->n, &seed);
    o->before = malloc((size_t)(of_c * size_c));
    assert_non_null(o->before);
    memcpy(o->before, C, (size_t)(of_c * size_c));
    for (int i = 0; i < p->batch; i++) {
        o->A_array[i] = o->a + i * p->stride_a * size;
        o->B_array[i] = o->b + i * p->stride_b * size;
        o->C_array[i] = C + i * p->stride_c * size_c;
    }
    o->alpha = (float)c->alpha;
    o->beta = (float)c->beta;
}

static tgl_operands operands_of(const mma_case *c, const operands *o)
{
    const tgl_problem *p = &c->problem;
    const bool is_f64 = p->type_a == TGL_F64, on_device = p->scalars == TGL_SCALARS_DEVICE;
    tgl_operands to = {.size = sizeof to};
    if (on_device) {
        to.alpha_at = is_f64 ? (const void *)&c->alpha : &o->alpha;
        to.beta_at = is_f64 ? (const void *)&c->beta : &o->beta;
    } else {
        to.alpha = c->alpha;
        to.beta = c->beta;
    }
    if (c->pointers) {
        to.A_array = o->A_array;
        to.B_array = o->B_array;
        to.C_array = o->C_array;
    } else {
        to.A = o->a;
        to.B = o->b;
        to.C = C;
    }
    if (p->type_d != 0) to.D = D;
    if (c->epilogue.bias != TGL_BIAS_NONE) to.bias = bias;
    if (c->epilogue.residual) to.residual = residual;
    return to;
}

/* Fails unless element i, j of D in product z is right. old: the element of C before the run. */
static void check_element(const mma_case *c, const operands *o, int64_t z, int64_t i, int64_t j,
                          double old, double result)
{
    const tgl_problem *p = &c->problem;
    const tgl_type type = p->type_d != 0 ? p->type_d : p->type_c;
    const bool ta = is_transposed(p->trans_a), tb = is_transposed(p->trans_b);
    const bool has_product = p->k > 0 && c->alpha != 0;
    double sum = 0, size = 0;
    for (int64_t q = 0; q < p->k && has_product; q++) {
        const double x =
            load_operand(p->type_a, o->a, z * p->stride_a + (ta ? q * p->lda + i : i * p->lda + q));
        const double y =
            load_operand(p->type_b, o->b, z * p->stride_b + (tb ? j * p->ldb + q : q * p->ldb + j));
        sum += x * y;
        size += fabs(x * y);
    }
    double value = has_product ? c->alpha * sum : 0;
    size *= fabs(c->alpha);
    if (c->beta != 0) value += c->beta * old, size += fabs(c->beta * old);
    if (c->epilogue.bias != TGL_BIAS_NONE)
        value += load(c->epilogue.type_bias, bias, c->epilogue.bias == TGL_BIAS_ROW ? i : j),
            size += 1;
    value = activated(c->epilogue.activation, value);
    if (c->epilogue.residual)
        value += load(c->epilogue.type_residual, residual, i * p->n + j), size += 1;
    double bound = 0; /* of sums of integers */
    if (!c->is_exact)
        bound =
            (2.0 * (double)p->k + 8) * roundoff(p->type_a == TGL_F64 ? TGL_F64 : TGL_F32) * size;
    if (!c->is_exact || type == TGL_F16 || type == TGL_BF16)
        bound += roundoff(type) * (fabs(value) + bound);
    const bool is_right = isnan(value)   ? isnan(result)
                          : isinf(value) ? result == value
                                         : fabs(result - value) <= bound;
    if (!is_right)
        fail_msg("%s %s %s%s m=%d n=%d k=%d lda=%d ldb=%d: D[%d](%d, %d) = %.17g, not %.17g +- %g",
                 c->kernel, type_name(p->type_a), ta ? "T" : "N", tb ? "T" : "N", (int)p->m,
                 (int)p->n, (int)p->k, (int)p->lda, (int)p->ldb, (int)z, (int)i, (int)j, result,
                 value, bound);
}

static void check_result(const mma_case *c, const operands *o)
{
    const tgl_problem *p = &c->problem;
    const bool is_separate = p->type_d != 0;
    const tgl_type type_d = is_separate ? p->type_d : p->type_c;
    const int64_t ldd = is_separate ? p->ldd : p->ldc;
    const int64_t stride_d = is_separate ? p->stride_d : p->stride_c;
    for (int64_t z = 0; z < p->batch; z++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                check_element(c, o, z, i, j,
                              load(p->type_c, o->before, z * p->stride_c + i * p->ldc + j),
                              load(type_d, is_separate ? D : C, z * stride_d + i * ldd + j));
}

static void fail_unless_ok(const mma_case *c, tgl_status status)
{
    char sentence[500];
    tgl_last_error(sentence, sizeof sentence);
    if (status != TGL_OK)
        fail_msg("%s %s m=%d n=%d k=%d: %s", c->kernel, type_name(c->problem.type_a),
                 (int)c->problem.m, (int)c->problem.n, (int)c->problem.k, sentence);
}

/* Runs a case and checks every element. */
static void run(tgl_device *dev, const mma_case *c)
{
    tgl_problem problem = c->problem;
    if (c->pointers) {
        problem.batching = TGL_POINTERS;
        problem.stride_a = problem.stride_b = problem.stride_c = 0;
    }
    const bool has_epilogue = c->epilogue.size != 0;
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = c->kernel,
                                      .epilogue = has_epilogue ? &c->epilogue : NULL};
    operands o;
    tgl_plan *plan;
    make_operands(c, &o);
    const tgl_operands given = operands_of(c, &o);
    fail_unless_ok(c, tgl_plan_create(dev, &problem, &options, &plan));
    fail_unless_ok(c, tgl_plan_run_operands(plan, &given, NULL));
    check_result(c, &o);
    tgl_plan_destroy(plan);
    free(o.before);
}

/* ---- Problems -------------------------------------------------------------------------------- */

/* Row-major, layout: bit 0: A is transposed, bit 1: B. Rows are padded to a multiple of 8 elements.
 * pad: further elements after each row of A and B. */
static tgl_problem problem_in(tgl_type type, int64_t m, int64_t n, int64_t k, int layout, int pad)
{
    tgl_problem p = problem_of(type, m, n, k);
    p.trans_a = layout & 1 ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = layout & 2 ? TGL_TRANS : TGL_NO_TRANS;
    const int64_t line_a = layout & 1 ? m : k, line_b = layout & 2 ? k : n;
    p.lda = (line_a + 7) / 8 * 8 + pad;
    p.ldb = (line_b + 7) / 8 * 8 + pad;
    p.ldc = (n + 7) / 8 * 8;
    p.stride_a = p.lda * (layout & 1 ? k : m);
    p.stride_b = p.ldb * (layout & 2 ? n : k);
    p.stride_c = p.ldc * m;
    if (type == TGL_F32) p.compute = TGL_COMPUTE_TF32;
    return p;
}

static void separate(tgl_problem *p, tgl_type type_d, int64_t ldd)
{
    p->type_d = type_d;
    p->ldd = ldd;
    p->stride_d = ldd * p->m;
}

/* ---- Configurations -------------------------------------------------------------------------- */

enum { STRING = 80 };
static const tgl_type types[] = {TGL_F16, TGL_BF16, TGL_F32, TGL_F64};

/* Whether a configuration of the family is for this type: its name says f64. */
static bool takes(const char *name, tgl_type type)
{
    return (strstr(name, "f64") != NULL) == (type == TGL_F64);
}

/* The tile of a configuration: mma_64x32x128, batch_mma_16x16. */
static void tile_of(const char *name, int *bm, int *bn)
{
    assert_int_equal(sscanf(strstr(name, "mma_"), "mma_%dx%d", bm, bn), 2);
}

/* Calls visit() for each configuration of the family that belongs to this part of the test. */
static void each(tgl_device *dev, const char *family,
                 void (*visit)(tgl_device *dev, const char *name, int number))
{
    tgl_choice choice;
    int count = 0;
    for (int i = 0; tgl_configuration_at(i, &choice); i++)
        if (strcmp(choice.family->name, family) == 0 && count++ % parts == part)
            visit(dev, tgl_choice_name(&choice), count);
    assert_true(count > 0);
}

/* Cycles through the types that a configuration supports. */
static tgl_type type_of(const char *name, int i)
{
    return takes(name, TGL_F64) ? TGL_F64 : types[i % 3];
}

/* Tests a configuration in all layouts, with copies of one element to 16 bytes, with one tile or a
 * few, whole and partial, and with k shorter than a step and longer than all stages. A
 * configuration gets half of the cases and one type for each, which change from one configuration
 * to the next. */
static void try_layouts(tgl_device *dev, const char *name, int number)
{
    static const int pads[] = {0, 1, 4, 2, 1, 0, 3, 8};
    int bm, bn;
    tile_of(name, &bm, &bn);
    for (int i = 0; i < 8; i++) {
        if ((i / 4 + i + number) % 2 != 0) continue; /* one of the two cases of a layout */
        const int64_t m = i < 4 ? bm / 2 + 5 : bm + 1, n = i < 4 ? bn + 3 : bn - 9;
        const int64_t k = i == 0 ? 64 : i == 5 ? 7 : i % 2 ? 77 : 150;
        const tgl_type type = type_of(name, number / 2 + i);
        const mma_case c = {.problem = problem_in(type, m, n, k, i % 4, pads[i]),
                            .alpha = i == 3 ? -0.5 : 1,
                            .beta = i % 3 == 1 ? 2 : 0,
                            .offset = i == 2 ? 1 : 0,
                            .is_finite = i != 4,
                            .is_exact = i % 2 == 0,
                            .kernel = name,
                            .seed = (uint64_t)i};
        run(dev, &c);
    }
}

static void test_layouts(void **state)
{
    each(*state, "mma", try_layouts);
}

/* Tests split-K of all tiles, of only the last tiles, or in a batch. A configuration gets one of
 * the three cases. */
static void try_splits(tgl_device *dev, const char *name, int number)
{
    const int i = number % 3;
    char kernel[STRING];
    int bm, bn;
    tile_of(name, &bm, &bn);
    const int64_t m = i == 1 ? bm + 4 : bm - 3;
    mma_case c = {.problem = problem_in(type_of(name, number / 3), m, bn, 300 + i, i, i),
                  .alpha = 1,
                  .beta = i == 1 ? -1 : 0,
                  .is_finite = true,
                  .is_exact = i == 2,
                  .kernel = kernel,
                  .seed = (uint64_t)i};
    if (i == 2) c.problem.batch = 2;
    snprintf(kernel, sizeof kernel, "%s:splits=%d,whole=%d,strips=0", name, 2 + i, i == 1);
    run(dev, &c);
}

static void test_splits(void **state)
{
    each(*state, "mma", try_splits);
}

/* Unaligned 16-bit operands. The cases cover the first and last elements of a matrix, rows
 * or columns that are shorter than a 16-byte word, and all offsets within 16 bytes. The memory
 * around an operand holds NaN. */
static void test_unaligned(void **state)
{
    for (int i = part; i < 20; i += parts) {
        const int64_t k = i % 4 == 0 ? 3 : i % 4 == 1 ? 17 : i % 4 == 2 ? 64 : 143;
        mma_case c = {.problem =
                          problem_in(types[i % 2], i % 3 == 0 ? 5 : 67, 40 + i, k, i / 4 % 4, 0),
                      .alpha = 1,
                      .offset = (i + i / 8) % 8,
                      .is_finite = true,
                      .is_exact = true,
                      .kernel = i % 5 == 0 ? "mma_64x16x256_s2:strips=0" : "mma_64x64x128:strips=0",
                      .seed = (uint64_t)i};
        tgl_problem *p = &c.problem;
        p->lda = (is_transposed(p->trans_a) ? p->m : p->k) + i / 8 % 2 * 2;
        p->ldb = (is_transposed(p->trans_b) ? p->k : p->n) + i % 2;
        p->stride_a = p->lda * (is_transposed(p->trans_a) ? p->k : p->m);
        p->stride_b = p->ldb * (is_transposed(p->trans_b) ? p->n : p->k);
        memset(A, 0xff, 1 << 16);
        memset(B, 0xff, 1 << 16);
        run(*state, &c);
    }
}

/* Results of all types with alpha but without beta. Rows of D and matrices of a batch begin at
 * multiples of 16 or 8 bytes, at a 32-bit word, and in the middle of a word. */
static void test_results_at_any_address(void **state)
{
    static const int gaps[] = {4, 0, 1, 2, 8, 3};
    for (int i = part; i < 48; i += parts) {
        const tgl_type type = types[i % 4];
        const bool is_batch = i / 4 % 2 != 0;
        const int64_t m = 29, n = i % 3 == 0 ? 24 : 21 + i / 8, k = 40;
        mma_case c = {.problem = problem_in(type, m, n, k, i / 2 % 4, 0),
                      .alpha = -0.5,
                      .is_finite = true,
                      .is_exact = true,
                      .kernel = is_batch
                                    ? type == TGL_F64 ? "batch_mma_32x32_f64" : "batch_mma_32x32"
                                : type == TGL_F64 ? "mma_64x64x128_f64:strips=0"
                                                  : "mma_64x64x128:strips=0",
                      .seed = (uint64_t)i};
        c.problem.batch = 3;
        c.problem.ldc = i / 8 % 2 == 0 ? 24 + i % 3 * 8 : n + i / 16;
        c.problem.stride_c = c.problem.ldc * m + gaps[i / 8];
        run(*state, &c);
    }
}

/* ---- Batches of small products ----------------------------------------------------------------
 */

/* Whether tiles are so large that only half of the cases are run. */
static bool has_large_tiles(int bm, int bn)
{
    return bm > 64 || bn > 64;
}

/* Tests all layouts, products as large as the tile and smaller, copies of one element to 16 bytes,
 * and k shorter than a tile, not a multiple of it, and longer than all stages. Two blocks compute a
 * batch of three or four products, so that a block computes one or two. */
static void try_small_products(tgl_device *dev, const char *name, int number)
{
    static const int pads[] = {0, 1, 0, 2, 1, 4, 0, 3}, less[] = {0, 1, 8, 15};
    char kernel[STRING];
    int bm, bn;
    tile_of(name, &bm, &bn);
    snprintf(kernel, sizeof kernel, "%s:blocks=2", name);
    for (int i = 0; i < 8; i++) {
        const int64_t m = bm - less[(i + number) % 4], n = bn - less[(i / 2 + number) % 4];
        if (has_large_tiles(bm, bn) && (i / 4 + i + number) % 2 != 0) continue;
        const int64_t k = i == 0 ? bm : i == 5 ? 7 : i % 2 ? 77 : bn + 8;
        mma_case c = {.problem = problem_in(type_of(name, number + i), m, n, k, i % 4, pads[i]),
                      .alpha = i == 3 ? -0.5 : 1,
                      .beta = i % 3 == 1 ? 2 : 0,
                      .pointers = i == 6,
                      .offset = i == 2 || i == 7 ? 1 : 0,
                      .is_finite = i != 4,
                      .is_exact = i % 2 == 0,
                      .kernel = kernel,
                      .seed = (uint64_t)i};
        c.problem.batch = 3 + i % 2;
        if (c.pointers) c.problem.alignment = 16;
        run(dev, &c);
    }
}

static void test_small_products(void **state)
{
    each(*state, "batch_mma", try_small_products);
}

/* Tests matrices without gaps whose rows have odd lengths. A and B are then copied in 16-byte words
 * that reach beyond the ends of a product, and 16-bit results are stored as one line. Some products
 * have more rows and columns than a tile, and some have rows of A and B that are shorter than 16
 * bytes. */
static void try_ragged_products(tgl_device *dev, const char *name, int number)
{
    char kernel[STRING];
    int bm, bn;
    tile_of(name, &bm, &bn);
    snprintf(kernel, sizeof kernel, "%s:blocks=2", name);
    const bool takes_several_tiles = bm > 32 || bn > 32; /* the smallest take one only */
    for (int i = 0; i < 4; i++) {
        const bool is_cut = takes_several_tiles && (i / 2 + number / 2) % 2 == 0;
        if (has_large_tiles(bm, bn) && (i + number) % 2 != 0) continue;
        const int64_t m = is_cut ? bm + 3 : bm - 5, n = is_cut && i < 2 ? bn + 19 : bn - 3 - 2 * i;
        const int64_t k = i == 3 ? 5 : i == 2 ? 69 : 47;
        mma_case c = {.problem = problem_in(type_of(name, number + i), m, n, k, i, 0),
                      .alpha = i == 1 ? -0.5 : 1,
                      .beta = i == 3 ? 2 : 0,
                      .offset = i == 2,
                      .is_finite = true,
                      .is_exact = i != 1,
                      .kernel = kernel,
                      .seed = (uint64_t)(i + number)};
        tgl_problem *p = &c.problem;
        p->batch = 4 - i % 2;
        p->lda = is_transposed(p->trans_a) ? m : k;
        p->ldb = is_transposed(p->trans_b) ? k : n;
        p->ldc = n;
        p->stride_a = m * k, p->stride_b = k * n, p->stride_c = m * n;
        run(dev, &c);
    }
}

static void test_ragged_products(void **state)
{
    each(*state, "batch_mma", try_ragged_products);
}

/* ---- Bank conflicts -------------------------------------------------------------------------- */

/* The number of bank conflicts of loads and copies in shared memory, in a product of the size of
 * one tile with this k. */
static int64_t conflicts_of(tgl_device *dev, const char *name, const char *kernel, tgl_type type,
                            int layout, int64_t k)
{
    int bm, bn;
    tile_of(name, &bm, &bn);
    const mma_case c = {.problem = problem_in(type, bm, bn, k, layout, 0), .kernel = kernel};
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    tgl_counters counters = {.size = sizeof counters};
    tgl_plan *plan;
    fail_unless_ok(&c, tgl_plan_create(dev, &c.problem, &options, &plan));
    fail_unless_ok(&c, tgl_plan_run(plan, 1, A, B, 0, C, NULL));
    assert_status(tgl_plan_counters(plan, &counters), TGL_OK);
    tgl_plan_destroy(plan);
    assert_true(counters.shared_load_wavefronts > 0 && counters.async_copy_wavefronts > 0);
    return counters.shared_load_conflicts + counters.async_copy_conflicts +
           counters.shared_store_conflicts;
}

/* The main loop has no bank conflicts: their number does not grow with k. The two layouts together
 * have both orders of each operand. f16 and bf16 have the same addresses. */
static void try_banks(tgl_device *dev, const char *name, int number)
{
    const tgl_type type = type_of(name, 1 + number % 2);
    const bool is_batch = name[0] == 'b';
    char kernel[STRING];
    snprintf(kernel, sizeof kernel, "%s%s", name, is_batch ? "" : ":splits=1,strips=0");
    for (int layout = 0; layout < 4; layout += 3)
        assert_int_equal(conflicts_of(dev, name, kernel, type, layout, 128),
                         conflicts_of(dev, name, kernel, type, layout, 256));
}

static void test_banks(void **state)
{
    each(*state, "mma", try_banks);
    each(*state, "batch_mma", try_banks);
}

/* ---- Operands and epilogues ------------------------------------------------------------------ */

/* A kernel of the family mma or batch_mma. */
static const char *small_kernel(tgl_type type, bool is_batch)
{
    if (is_batch) return type == TGL_F64 ? "batch_mma_64x64_f64" : "batch_mma_64x64";
    return type == TGL_F64 ? "mma_64x32x128_f64:strips=0" : "mma_64x32x128:strips=0";
}

/* Tests bias, activation and residual; a D that is another matrix, also of FP32; unaligned rows of
 * D; and scalars in device memory, some of which are 0. */
static void test_operands(void **state)
{
    for (int i = part; i < 24; i += parts) {
        const tgl_type type = types[i % 4];
        const bool is_wide = type == TGL_F16 || type == TGL_BF16;
        const bool is_batch = i / 4 % 2 != 0;
        mma_case c = {.problem = problem_in(type, is_batch ? 50 : 70, 41 + i % 3, 50, i / 4 % 4, 0),
                      .alpha = i % 11 == 10 ? 0 : 1.5,
                      .beta = i % 5 == 1 ? 0.5 : 0,
                      .is_finite = true,
                      .kernel = small_kernel(type, is_batch),
                      .seed = (uint64_t)i};
        if (i % 3 == 1) {
            c.problem.type_c = is_wide && i % 2 ? TGL_F32 : type;
            separate(&c.problem, i % 6 == 1 && is_wide ? TGL_F32 : c.problem.type_c, 50 + i % 7);
        }
        if (i % 7 == 3) c.problem.ldc = c.problem.n + i % 2;
        if (i % 2 == 0)
            c.epilogue =
                (tgl_epilogue){.size = sizeof c.epilogue,
                               .bias = (tgl_bias)(i / 2 % 3),
                               .activation = i / 6 % 2 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_SILU,
                               .residual = i / 4 % 2,
                               .type_bias = i % 3 == 0 ? type : TGL_F32,
                               .type_residual = type};
        if (type == TGL_F64) c.epilogue.type_bias = TGL_F64;
        if (i % 3 == 2) c.problem.scalars = TGL_SCALARS_DEVICE;
        run(*state, &c);
    }
}

/* Strided batches, shared operands, and pointers with and without promised alignment. */
static void test_batches(void **state)
{
    for (int i = part; i < 24; i += parts) {
        const tgl_type type = types[i % 4];
        mma_case c = {.problem = problem_in(type, 33, 20, 40, i / 4 % 4, 0),
                      .alpha = 1,
                      .beta = i % 2,
                      .pointers = i >= 12,
                      .is_finite = true,
                      .is_exact = true,
                      .kernel = small_kernel(type, i / 4 % 2),
                      .seed = (uint64_t)i};
        c.problem.batch = 3;
        if (i % 3 == 0) c.problem.stride_a = 0;
        if (i % 3 == 1 && i < 12) c.problem.stride_b += 3;
        if (c.pointers) c.problem.alignment = i % 3 == 1 ? 0 : 16;
        run(*state, &c);
    }
}

/* Tests beta = 0 with NaN in C, alpha = 0 with NaN in A and B, and k = 0, with kernels of both
 * families and with scalars in host and in device memory. */
static void test_zeros(void **state)
{
    for (int i = part; i < 48; i += parts) {
        const tgl_type type = types[i % 4];
        const int zero = i / 4 % 3;
        mma_case c = {.problem = problem_in(type, 20, 12, zero == 1 ? 0 : 30, 0, 0),
                      .alpha = zero == 2 ? 0 : 1,
                      .beta = zero == 0 ? 0 : 1,
                      .is_finite = false,
                      .kernel = small_kernel(type, i / 12 % 2),
                      .seed = (uint64_t)i};
        if (i >= 24) c.problem.scalars = TGL_SCALARS_DEVICE;
        run(*state, &c);
    }
}

/* The same problem with split-K gives the same bits twice. */
static void test_repeats(void **state)
{
    enum { M = 40, N = 24, K = 2000 };
    static float first[M * N];
    if (part != 0) return;
    const mma_case c = {.problem = problem_in(TGL_BF16, M, N, K, 0, 0),
                        .alpha = 1,
                        .is_finite = true,
                        .kernel = "mma_32x64x128:splits=7,strips=0"};
    for (int i = 0; i < 2; i++) {
        mma_case again = c;
        again.problem.type_c = TGL_F32;
        run(*state, &again);
        if (i == 0) memcpy(first, C, sizeof first);
    }
    assert_memory_equal(first, C, sizeof first);
}

/* ---- What the family does not take ----------------------------------------------------------- */

static void test_refusals(void **state)
{
    static const struct {
        tgl_type type;
        tgl_compute compute;
        const char *kernel;
    } cases[] = {{TGL_F32, TGL_COMPUTE_DEFAULT, "mma_64x64x128"},
                 {TGL_F32, TGL_COMPUTE_IEEE, "mma_64x64x128"},
                 {TGL_F64, TGL_COMPUTE_DEFAULT, "mma_64x64x128"},
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, "mma_64x64x128_f64"},
                 {TGL_F32, TGL_COMPUTE_IEEE, "batch_mma_64x64"},
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, "batch_mma_64x64_f64"},
                 {TGL_BF16, TGL_COMPUTE_DEFAULT, "batch_mma_32x32"},
                 {TGL_I8, TGL_COMPUTE_DEFAULT, "mma_64x64x128_f64"},
                 {TGL_I8, TGL_COMPUTE_DEFAULT, "batch_mma_64x64"}};
    if (part != 0) return;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tgl_problem p = problem_of(cases[i].type, 64, 64, 64);
        const tgl_plan_options options = {.size = sizeof options, .kernel = cases[i].kernel};
        tgl_plan *plan;
        p.compute = cases[i].compute;
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_UNSUPPORTED);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_unaligned),      cmocka_unit_test(test_results_at_any_address),
        cmocka_unit_test(test_banks),          cmocka_unit_test(test_operands),
        cmocka_unit_test(test_batches),        cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_repeats),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_small_products), cmocka_unit_test(test_ragged_products),
    };
    if (argc > 1 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || parts < 1)) return 2;
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
