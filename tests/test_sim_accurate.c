/* SPDX-License-Identifier: Apache-2.0
 *
 * The family accurate on the simulator, whose tensor cores add as Hopper's do, or on the device
 * that TEGULA_TEST_DEVICE names ("cuda:0"): errors of products of all kinds of numbers beside those
 * of FFMA, integers bit by bit, patterns of Inf and NaN, all layouts, alignments and epilogues. An
 * argument "i/n" takes the i-th of n parts of the cases; a second one names a test.
 */
#include "support.h"

static int part = 0, parts = 1, number = 0;

static bool is_mine(void)
{
    return number++ % parts == part;
}

/* ---- Random numbers -------------------------------------------------------------------------- */

static uint64_t draw_state = 1;

static double uniform(void)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(draw_state >> 40) + 0.5) * 0x1p-24;
}

static double normal(void)
{
    const double radius = sqrt(-2 * log(uniform()));
    return radius * cos(6.283185307179586 * uniform());
}

/* ---- Products -------------------------------------------------------------------------------- */

typedef struct product {
    const char *name, *kernel;
    int m, n, k, batch; /* batch: 0: 1 */
    bool trans_a, trans_b, shares_a;
    int pad, skip; /* elements between rows of A and B, and before them */
    float alpha, beta;
    bool device_scalars, separate_d;
    tgl_bias bias;
    tgl_activation activation;
    bool residual;
    tgl_type type_c; /* 0: F32 */
} product;

/* op(A) and op(B), row-major and tight, problem after problem, and C. */
typedef struct data {
    float *a, *b, *c, *bias, *residual;
} data;

static int batch_of(const product *p)
{
    return p->batch > 0 ? p->batch : 1;
}

static float *floats(int64_t count)
{
    float *x = calloc((size_t)count, sizeof *x);
    assert_non_null(x);
    return x;
}

static data make_data(const product *p)
{
    const int64_t batch = batch_of(p);
    const int64_t most = p->m > p->n ? p->m : p->n;
    data d = {.a = floats(batch * p->m * p->k),
              .b = floats(batch * p->k * p->n),
              .c = floats(batch * p->m * p->n),
              .bias = floats(most),
              .residual = floats(batch * p->m * p->n)};
    return d;
}

static void free_data(data *d)
{
    free(d->a);
    free(d->b);
    free(d->c);
    free(d->bias);
    free(d->residual);
}

typedef double draw_fn(void);

static void fill(float *x, int64_t count, draw_fn *draw)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)draw();
}

static void fill_both(const product *p, data *d, draw_fn *draw)
{
    fill(d->a, (int64_t)batch_of(p) * p->m * p->k, draw);
    fill(d->b, (int64_t)batch_of(p) * p->k * p->n, draw);
}

static float *a_at(const product *p, const data *d, int row, int i)
{
    return &d->a[(int64_t)row * p->k + i];
}

static float *b_at(const product *p, const data *d, int i, int col)
{
    return &d->b[(int64_t)i * p->n + col];
}

/* ---- On the device --------------------------------------------------------------------------- */

/* The simulator, or what TEGULA_TEST_DEVICE names. */
static tgl_status open_device(tgl_device **dev)
{
    const char *name = getenv("TEGULA_TEST_DEVICE");
    return tgl_device_open(name != NULL ? name : "sim", NULL, dev);
}

/* A matrix in memory of the device as the product wants it: rows x cols of `from`, transposed or
 * not, with rows longer by pad, from element number skip on. */
typedef struct stored {
    void *memory;
    int64_t ld, stride, skip;
} stored;

static stored store(tgl_device *dev, const float *from, int batch, int rows, int cols,
                    bool transposed, int pad, int skip)
{
    const int lines = transposed ? cols : rows, length = transposed ? rows : cols;
    stored s = {.ld = length + pad, .skip = skip};
    s.stride = s.ld * lines;
    const size_t bytes = (size_t)(skip + s.stride * batch) * sizeof(float);
    float *host = floats(skip + s.stride * batch);
    for (int z = 0; z < batch; z++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < cols; j++)
                host[skip + z * s.stride + (transposed ? j * s.ld + i : i * s.ld + j)] =
                    from[((int64_t)z * rows + i) * cols + j];
    assert_status(tgl_alloc(dev, bytes, &s.memory), TGL_OK);
    assert_status(tgl_upload(dev, s.memory, host, bytes, NULL), TGL_OK);
    free(host);
    return s;
}

static void *begin_of(const stored *s)
{
    return (float *)s->memory + s->skip;
}

static void fail_with_sentence(const product *p)
{
    char error[600];
    tgl_last_error(error, sizeof error);
    fail_msg("%s: %s", p->name, error);
}

/* The result, row-major and tight. */
static float *compute(tgl_device *dev, const product *p, const data *d)
{
    const int batch = batch_of(p);
    const int64_t count = (int64_t)batch * p->m * p->n;
    const float scalars[2] = {p->alpha, p->beta};
    stored A = store(dev, d->a, p->shares_a ? 1 : batch, p->m, p->k, p->trans_a, p->pad, p->skip);
    stored B = store(dev, d->b, batch, p->k, p->n, p->trans_b, p->pad, p->skip);
    stored C = store(dev, d->c, batch, p->m, p->n, false, 0, 0);
    stored D = store(dev, d->c, batch, p->m, p->n, false, 0, 0);
    stored bias = store(dev, d->bias, 1, 1, p->m > p->n ? p->m : p->n, false, 0, 0);
    stored residual = store(dev, d->residual, batch, p->m, p->n, false, 0, 0);
    stored at = store(dev, scalars, 1, 1, 2, false, 0, 0);
    tgl_problem problem;
    tgl_problem_init(&problem, sizeof problem, TGL_F32, p->m, p->n, p->k);
    problem.compute = TGL_COMPUTE_ACCURATE;
    problem.trans_a = p->trans_a ? TGL_TRANS : TGL_NO_TRANS;
    problem.trans_b = p->trans_b ? TGL_TRANS : TGL_NO_TRANS;
    problem.lda = A.ld;
    problem.ldb = B.ld;
    problem.batch = batch;
    problem.stride_a = p->shares_a ? 0 : A.stride;
    problem.stride_b = B.stride;
    problem.stride_c = C.stride;
    if (p->device_scalars) problem.scalars = TGL_SCALARS_DEVICE;
    if (p->separate_d) {
        problem.type_d = TGL_F32;
        problem.ldd = p->n;
        problem.stride_d = D.stride;
    }
    const tgl_epilogue epilogue = {.size = sizeof epilogue,
                                   .bias = p->bias,
                                   .activation = p->activation,
                                   .residual = p->residual,
                                   .stride_residual = residual.stride};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = p->kernel, .epilogue = &epilogue};
    const bool has_product = p->device_scalars || p->alpha != 0;
    const tgl_operands operands = {
        .size = sizeof operands,
        .A = has_product ? begin_of(&A) : NULL,
        .B = has_product ? begin_of(&B) : NULL,
        .C = begin_of(&C),
        .D = p->separate_d ? begin_of(&D) : NULL,
        .bias = p->bias != TGL_BIAS_NONE ? begin_of(&bias) : NULL,
        .residual = p->residual ? begin_of(&residual) : NULL,
        .alpha = p->device_scalars ? 0 : p->alpha,
        .beta = p->device_scalars ? 0 : p->beta,
        .alpha_at = p->device_scalars ? begin_of(&at) : NULL,
        .beta_at = p->device_scalars ? (float *)begin_of(&at) + 1 : NULL,
    };
    float *result = floats(count);
    tgl_plan *plan;
    if (tgl_plan_create(dev, &problem, &options, &plan) != TGL_OK) fail_with_sentence(p);
    if (tgl_plan_run_operands(plan, &operands, NULL) != TGL_OK) fail_with_sentence(p);
    assert_status(tgl_download(dev, result, begin_of(p->separate_d ? &D : &C),
                               (size_t)count * sizeof(float), NULL),
                  TGL_OK);
    tgl_plan_destroy(plan);
    stored *const all[] = {&A, &B, &C, &D, &bias, &residual, &at};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        tgl_free(dev, all[i]->memory);
    return result;
}

/* ---- What it should be ----------------------------------------------------------------------- */

/* The product before the epilogue: exact to about 2^-53, the sum of absolute values, and FFMA's. */
typedef struct truth {
    double sum, absolute;
    float ffma;
} truth;

static truth truth_of(const product *p, const data *d, int z, int row, int col)
{
    const float *a = d->a + (p->shares_a ? 0 : (int64_t)z * p->m * p->k) + (int64_t)row * p->k;
    const float *b = d->b + (int64_t)z * p->k * p->n + col;
    truth t = {0, 0, 0};
    for (int i = 0; i < p->k; i++) {
        const double x = (double)a[i] * (double)b[(int64_t)i * p->n];
        t.sum += x;
        t.absolute += fabs(x);
        t.ffma = fmaf(a[i], b[(int64_t)i * p->n], t.ffma);
    }
    return t;
}

typedef struct errors {
    double max, rms;
} errors;

static void add_error(errors *e, double found, double right, double bound)
{
    /* Half of the least denormal number is no error of arithmetic, but of the type. */
    const double error = fabs(found - right);
    const double in_units = error <= 0x1p-150 ? 0 : error / (0x1p-24 * bound + 0x1p-150);
    if (!(in_units <= e->max)) e->max = in_units;
    e->rms += in_units * in_units;
}

/* Errors of a result, and of FFMA's. A sum of FFMA's that overflows is left out of both. */
static void measure(const product *p, const data *d, const float *result, errors *ours,
                    errors *ffma)
{
    const int64_t count = (int64_t)batch_of(p) * p->m * p->n;
    *ours = *ffma = (errors){0, 0};
    for (int64_t i = 0; i < count; i++) {
        const int z = (int)(i / ((int64_t)p->m * p->n));
        const int row = (int)(i / p->n % p->m), col = (int)(i % p->n);
        const truth t = truth_of(p, d, z, row, col);
        if (isnan(result[i])) fail_msg("%s: D[%d][%d] is NaN", p->name, row, col);
        if (fabs(t.sum) > 0x1.01p128 && result[i] != (p->alpha * t.sum > 0 ? INFINITY : -INFINITY))
            fail_msg("%s: D[%d][%d] is %g, where the sum is %g", p->name, row, col, result[i],
                     t.sum);
        if (isinf(t.ffma) || fabs(t.sum) > 0x1.ffffffp127) continue;
        const double c = p->beta != 0 ? (double)p->beta * d->c[i] : 0;
        const double bound = fabs((double)p->alpha) * t.absolute + fabs(c);
        const double right = (double)p->alpha * t.sum + c;
        if (fabs(right) > 0x1.ffffffp127) continue;
        const float scaled = p->alpha * t.ffma;
        add_error(ours, result[i], right, bound);
        add_error(ffma, p->beta != 0 ? scaled + p->beta * d->c[i] : scaled, right, bound);
    }
    ours->rms = sqrt(ours->rms / (double)count);
    ffma->rms = sqrt(ffma->rms / (double)count);
}

/* The greatest error may be the larger of 10 and 1.1 times FFMA's. has_small_rms: the RMS error may
 * be half of FFMA's. */
static void check_errors(tgl_device *dev, const product *p, const data *d, bool has_small_rms)
{
    errors ours, ffma;
    float *result = compute(dev, p, d);
    measure(p, d, result, &ours, &ffma);
    free(result);
    if (getenv("TEGULA_TEST_VERBOSE") != NULL)
        printf("%-32s max %8.3g (FFMA %8.3g)  rms %8.3g (FFMA %8.3g)\n", p->name, ours.max,
               ffma.max, ours.rms, ffma.rms);
    const double most = 1.1 * ffma.max > 10 ? 1.1 * ffma.max : 10;
    if (!(ours.max <= most))
        fail_msg("%s: an error of %g, where %g is allowed", p->name, ours.max, most);
    if (has_small_rms && !(ours.rms <= 0.5 * ffma.rms))
        fail_msg("%s: RMS error of %g, and %g of FFMA", p->name, ours.rms, ffma.rms);
}

/* Every configuration. */
static const char *const kernels[] = {"accurate_128x192", "accurate_128x160", "accurate_128x128",
                                      "accurate_192x128", "accurate_128x96",  "accurate_128x64"};

static product square(const char *name, int k)
{
    return (product){
        .name = name, .kernel = "accurate_128x128", .m = 128, .n = 128, .k = k, .alpha = 1};
}

/* ---- Kinds of numbers ------------------------------------------------------------------------ */

static double symmetric(void)
{
    return 2 * uniform() - 1;
}

static double wide_1(void)
{
    return (uniform() - 0.5) * exp(normal());
}

static double wide_2(void)
{
    return (uniform() - 0.5) * exp(2 * normal());
}

static double wide_4(void)
{
    return (uniform() - 0.5) * exp(4 * normal());
}

static double denormal(void)
{
    return symmetric() * 0x1p-130;
}

static double near_one(void)
{
    return 1 + 0x1p-10 * normal();
}

static const struct {
    const char *name;
    draw_fn *draw;
} kinds[] = {{"U(0,1)", uniform}, {"U(-1,1)", symmetric}, {"N(0,1)", normal},  {"phi 1", wide_1},
             {"phi 2", wide_2},   {"phi 4", wide_4},      {"near 1", near_one}};

static void kinds_of_numbers(void **state)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (int k = 256; k <= 1024; k *= 4) {
            if (!is_mine()) continue;
            product p = square(kinds[i].name, k);
            data d = make_data(&p);
            fill_both(&p, &d, kinds[i].draw);
            /* With phi = 4 all tiles are exact: more elements are below the range than are listed.
             */
            check_errors(*state, &p, &d, k >= 1024 && kinds[i].draw != wide_4);
            free_data(&d);
        }
}

/* Rows of op(A) and columns of op(B) of very different sizes. */
static void scaled_lines(void **state)
{
    static const int exponents[] = {60, 62, 120, -60, -64, -120};
    for (size_t i = 0; i < COUNT_OF(exponents); i++)
        for (int both = 0; both < 2; both++) {
            if (!is_mine()) continue;
            char name[40];
            snprintf(name, sizeof name, "scaled by 2^%d %d", exponents[i], both);
            product p = square(name, 256);
            data d = make_data(&p);
            fill_both(&p, &d, symmetric);
            for (int row = 0; row < p.m; row++)
                for (int j = 0; j < p.k && row % 3 > 0; j++)
                    *a_at(&p, &d, row, j) *=
                        (float)ldexp(1, row % 3 == 1 ? exponents[i] : -exponents[i]);
            for (int col = 0; col < p.n && both; col++)
                for (int j = 0; j < p.k && col % 3 > 0; j++)
                    *b_at(&p, &d, j, col) *=
                        (float)ldexp(1, col % 3 == 1 ? -exponents[i] : exponents[i]);
            check_errors(*state, &p, &d, false);
            free_data(&d);
        }
}

/* ---- Elements that two words do not hold ----------------------------------------------------- */

enum { LISTED_MAX = 127 /* of 64 lines */, BELOW = -28 /* so much smaller than the largest */ };

/* 0.5 to 1, of either sign: times 2^-140 it is not zero. */
static double not_small(void)
{
    const double x = symmetric();
    return x < 0 ? x / 2 - 0.5 : x / 2 + 0.5;
}

/* Sets row `row` of op(A) to ones, except `count` small elements. Column `col` of op(B) is zero
 * wherever the row is one, so that their product is the sum of the small elements' products. */
static void hide(const product *p, data *d, int row, int col, int count, int exponent)
{
    for (int i = 0; i < p->k; i++) {
        const int step = p->k / count;
        const bool is_small = i % step == 1 && i / step < count;
        *a_at(p, d, row, i) = is_small ? (float)(not_small() * ldexp(1, exponent)) : 1;
        *b_at(p, d, i, col) = is_small ? (float)symmetric() : 0;
    }
}

static bool is_ffma(const product *p, const data *d, const float *result)
{
    for (int64_t i = 0; i < (int64_t)p->m * p->n; i++)
        if (result[i] != truth_of(p, d, 0, (int)(i / p->n), (int)(i % p->n)).ffma) return false;
    return true;
}

static void small_elements_alone(void **state)
{
    static const int counts[] = {1, 2, 16, LISTED_MAX, LISTED_MAX + 1};
    static const int exponents[] = {-20, -26, BELOW, -30, -40, -100, -140};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        for (size_t j = 0; j < COUNT_OF(exponents); j++) {
            if (!is_mine()) continue;
            char name[60];
            snprintf(name, sizeof name, "%d of 2^%d", counts[i], exponents[j]);
            product p = square(name, 256);
            data d = make_data(&p);
            fill_both(&p, &d, symmetric);
            hide(&p, &d, 70, 5, counts[i], exponents[j]);
            check_errors(*state, &p, &d, false);
            float *result = compute(*state, &p, &d);
            /* One more than a list takes, and the tile is exact. */
            if (exponents[j] <= BELOW && is_ffma(&p, &d, result) != (counts[i] > LISTED_MAX))
                fail_msg("%s: the tile is %s", name,
                         counts[i] > LISTED_MAX ? "not exact" : "exact");
            free(result);
            free_data(&d);
        }
}

/* Products in which both factors are below the range, several in a row, in all panels that the
 * tiles of a block meet: those of 160 and 96 columns begin inside panels of B. */
static void small_elements_that_meet(void **state)
{
    for (int way = 0; way < 2 * (int)COUNT_OF(kernels); way++) {
        if (!is_mine()) continue;
        product p = square("small ones meet", 256);
        p.trans_a = way % 2 != 0;
        p.trans_b = way / 2 % 2 != 0;
        p.kernel = kernels[way / 2];
        p.m = 200, p.n = 260;
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        for (int row = 3; row < p.m; row += 50)
            for (int col = 7; col < p.n; col += 60)
                for (int i = 0; i < p.k; i++) {
                    /* k = 10, 20 and 30 have small ones in both; 40 in the row and 50 in the
                     * column, where the other is 1 or, in every other column, 0; elsewhere one of
                     * the two is 0. */
                    const bool is_small = i % 10 == 0 && i > 0 && i <= 50;
                    const float one = col / 60 % 2 == 0 ? 1 : 0;
                    float a = i % 2 == 0 ? 0x1.234p0f : 0, b = i % 2 == 1 ? 0x1.777p0f : 0;
                    if (is_small) a = 0x1.8p-33f + (float)i * 0x1p-45f, b = -0x1.5p-35f;
                    if (i == 40) b = one;
                    if (i == 50) a = 1, b *= one;
                    *a_at(&p, &d, row, i) = a;
                    *b_at(&p, &d, i, col) = b;
                }
        check_errors(*state, &p, &d, false);
        free_data(&d);
    }
}

/* ---- Extremes -------------------------------------------------------------------------------- */

/* Of one row and column: the sum is 2^128 - 2^118, and 2^128 + 2^118 without the product of the
 * element that is listed. */
static void overflow_without_listed(const product *p, data *d)
{
    static const float row[] = {0x1p99f /* listed */, 0x1p127f, 0x1p100f, 0x1p100f, 0x1p100f};
    static const float col[] = {-0x1p20f, 0, 0x1p27f, 0x1p27f, 0x1p18f};
    enum { COUNT = sizeof row / sizeof row[0] };
    for (int i = 0; i < p->k; i++) {
        *a_at(p, d, 70, i) = i < COUNT ? row[i] : 0;
        *b_at(p, d, i, 5) = i < COUNT ? col[i] : 0;
    }
}

static void extremes(void **state)
{
    for (int way = 0; way < 9; way++) {
        static const char *const names[] = {
            "denormal inputs",   "denormal results", "a huge element",
            "zero rows",         "near FLT_MAX",     "overflow midway",
            "denormals and one", "all zero",         "overflow without what is listed"};
        if (!is_mine()) continue;
        product p = square(names[way], 256);
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        for (int i = 0; i < p.k; i++) {
            for (int row = 0; row < p.m; row++) {
                float *x = a_at(&p, &d, row, i);
                if (way == 0) *x = (float)denormal();
                if (way == 1) *x *= 0x1p-70f;
                if (way == 2 && i == 17 && row % 5 == 0) *x = 0x1p100f;
                if (way == 3 && row % 7 == 0) *x = row % 2 == 0 ? 0.0f : -0.0f;
                if (way == 4) *x *= 0x1.fffffep127f;
                if (way == 5) *x = i < 128 ? 0x1.8p127f : -0x1.8p127f;
                if (way == 6) *x = i == 9 ? 1 : (float)denormal();
                if (way == 7) *x = 0;
            }
            for (int col = 0; col < p.n; col++) {
                float *x = b_at(&p, &d, i, col);
                if (way == 0) *x *= 0x1p100f;
                if (way == 1) *x *= 0x1p-68f;
                if (way == 3 && col % 3 == 0) *x = 0;
                if (way == 4) *x *= 0x1p-8f;
                if (way == 5) *x = 1;
                if (way == 7) *x = 0;
            }
        }
        if (way == 8) overflow_without_listed(&p, &d);
        check_errors(*state, &p, &d, false);
        free_data(&d);
    }
}

/* Sums of equal products whose scales exceed the range of FP32 together: far above, far below, and
 * with factors that cancel. At 2^-190 the second factor of unscaled() would be 2^-151, of which a
 * shift by -2 would make 2^-119. */
static void scales_beyond_the_range(void **state)
{
    static const struct {
        int a, b; /* exponents of the elements of A and of B */
        float expected;
    } cases[] = {{126, 120, INFINITY}, {126, 126, INFINITY},  {-95, -95, 0},
                 {-126, -126, 0},      {-149, -149, 0},       {-149, 120, 0x1p-20f},
                 {127, -140, 0x1p-4f}, {-100, -49, 0x1p-140f}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!is_mine()) continue;
        product p = square("scales beyond the range", 512);
        p.n = 64;
        data d = make_data(&p);
        for (int64_t j = 0; j < (int64_t)p.m * p.k; j++)
            d.a[j] = ldexpf(j % 1024 < p.k ? 1 : -1, cases[i].a);
        for (int64_t j = 0; j < (int64_t)p.k * p.n; j++)
            d.b[j] = ldexpf(1, cases[i].b);
        float *result = compute(*state, &p, &d);
        for (int64_t j = 0; j < (int64_t)p.m * p.n; j++) {
            const float expected = j / p.n % 2 == 0 ? cases[i].expected : -cases[i].expected;
            if (result[j] != expected)
                fail_msg("2^%d times 2^%d: D[%d][%d] is %g, not %g", cases[i].a, cases[i].b,
                         (int)(j / p.n), (int)(j % p.n), result[j], expected);
        }
        free(result);
        free_data(&d);
    }
}

static void scalars(void **state)
{
    static const struct {
        float alpha, beta, of_a, of_c;
    } ways[] = {{0x1p126f, 0, 0x1p-100f, 1},
                {0x1p-126f, 0, 0x1p100f, 1},
                {1e38f, 0, 1e-37f, 1},
                {1e-38f, 0, 1e36f, 1},
                {1, 1, 1, 1e30f},
                {-2, 0.5f, 1, 1},
                {1, 1e20f, 1, 1},
                {0, 3, 1, 1}};
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        if (!is_mine()) continue;
        product p = square("scalars", 256);
        data d = make_data(&p);
        p.alpha = ways[way].alpha;
        p.beta = ways[way].beta;
        p.device_scalars = way % 2 != 0;
        fill_both(&p, &d, symmetric);
        for (int64_t i = 0; i < (int64_t)p.m * p.k; i++)
            d.a[i] *= ways[way].of_a;
        for (int64_t i = 0; i < (int64_t)p.m * p.n; i++)
            d.c[i] = (float)symmetric() * ways[way].of_c;
        check_errors(*state, &p, &d, false);
        free_data(&d);
    }
}

/* Inf and NaN in each operand, in different places, for every configuration: the pattern is FFMA's,
 * and the rest exact enough. */
static void inf_and_nan(void **state)
{
    enum { WAYS = 26 };
    static const float values[] = {INFINITY, -INFINITY, NAN};
    for (int way = 0; way < WAYS; way++) {
        if (!is_mine()) continue;
        product p = square("Inf and NaN", 300);
        p.kernel = kernels[way / 2 % (int)COUNT_OF(kernels)];
        p.m = 260, p.n = 200;
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        const float value = values[way % 3];
        const int which = way / 3 % 6, places[] = {0, 63, 64, 127, 130, 199};
        if (way % 4 < 3) *a_at(&p, &d, places[which], which * 59) = value;
        if (way % 4 > 1) *b_at(&p, &d, which * 40 + 3, places[5 - which]) = -value;
        if (way % 5 == 0) *b_at(&p, &d, which * 59, 11) = 0;
        float *result = compute(*state, &p, &d);
        for (int i = 0; i < p.m * p.n; i++) {
            const truth t = truth_of(&p, &d, 0, i / p.n, i % p.n);
            const bool is_same = isnan(t.ffma) ? isnan(result[i])
                                 : isinf(t.ffma)
                                     ? result[i] == t.ffma
                                     : fabs(result[i] - t.sum) <= 10 * 0x1p-24 * t.absolute;
            if (!is_same)
                fail_msg("Inf and NaN %d, %s: D[%d][%d] is %g, FFMA's is %g", way, p.kernel,
                         i / p.n, i % p.n, result[i], t.ffma);
        }
        free(result);
        free_data(&d);
    }
}

/* ---- Exact products -------------------------------------------------------------------------- */

/* Sums are exact in FP32, and so is D. */
static double rounded_sum(const product *p, const data *d, int64_t i)
{
    const int z = (int)(i / ((int64_t)p->m * p->n));
    const int row = (int)(i / p->n % p->m), col = (int)(i % p->n);
    const truth t = truth_of(p, d, z, row, col);
    double x = (p->alpha != 0 ? p->alpha * t.sum : 0) + (p->beta != 0 ? p->beta * d->c[i] : 0);
    if (p->bias != TGL_BIAS_NONE) x += d->bias[p->bias == TGL_BIAS_ROW ? row : col];
    if (p->activation == TGL_ACTIVATION_RELU && x < 0) x = 0;
    return p->residual ? x + d->residual[i] : x;
}

static void check_exact(tgl_device *dev, const product *p, const data *d)
{
    float *result = compute(dev, p, d);
    for (int64_t i = 0; i < (int64_t)batch_of(p) * p->m * p->n; i++)
        if (result[i] != rounded_sum(p, d, i))
            fail_msg("%s %s %dx%dx%d %c%c: element %lld is %.9g, not %.9g", p->name, p->kernel,
                     p->m, p->n, p->k, p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', (long long)i,
                     result[i], rounded_sum(p, d, i));
    free(result);
}

static double of_22_bits(void)
{
    return floor(uniform() * 0x1p23) - 0x1p22;
}

/* Sums of magnitudes of 2^24 - 2^13 - 1, the limit (docs/accuracy.md). Those of hi*hi are 2^24 -
 * 2^10: hi of 2^21 + 2^10 + 1 is 2^21 + 2^11. */
static void fill_to_the_limit(const product *p, data *d, bool a_is_short)
{
    static const float limit[2][2] = {{0x1p21f + 0x1p10f + 1, 7}, {2081784, 1}};
    for (int line = 0; line < p->m; line++)
        for (int i = 0; i < 2; i++) {
            *a_at(p, d, line, i) = limit[i][a_is_short];
            *b_at(p, d, i, line) = limit[i][!a_is_short];
        }
}

/* Three elements of 1 or -1 in each line of one operand, and all of 22 bits in the other. */
static void fill_with_22_bits(const product *p, data *d, bool a_is_short)
{
    fill(a_is_short ? d->b : d->a, (int64_t)p->m * p->k, of_22_bits);
    for (int line = 0; line < p->m; line++)
        for (int i = 0; i < 3; i++) {
            const int k = (7 * line + 85 * i) % p->k;
            *(a_is_short ? a_at(p, d, line, k) : b_at(p, d, k, line)) = (line + i) % 2 * 2 - 1;
        }
}

static void fill_with_11_bits(const product *p, data *d, bool a_is_short)
{
    for (int64_t i = 0; i < (int64_t)p->m * p->k; i++) {
        d->a[i] = (float)(a_is_short ? i % 2048 : i % 9);
        d->b[i] = (float)(a_is_short ? i % 9 : i % 2048);
    }
}

/* One operand has up to 11 bits, the other up to 22, and sums of magnitudes stay below 2^24 - 2^13.
 */
static void integers(void **state)
{
    for (int way = 0; way < 6; way++) {
        if (!is_mine()) continue;
        product p = square("integers", 256);
        data d = make_data(&p);
        const bool a_is_short = way % 2 == 0;
        if (way / 2 == 0) fill_with_22_bits(&p, &d, a_is_short);
        if (way / 2 == 1) fill_with_11_bits(&p, &d, a_is_short);
        if (way / 2 == 2) fill_to_the_limit(&p, &d, a_is_short);
        check_exact(*state, &p, &d);
        free_data(&d);
    }
}

static double of_small_integers(void)
{
    return floor(uniform() * 9) - 4;
}

/* Every configuration and layout, with tiles that are not whole. */
static void configurations(void **state)
{
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (int layout = 0; layout < 4; layout++) {
            if (!is_mine()) continue;
            product p = {.name = "configurations",
                         .kernel = kernels[i],
                         .m = 390,
                         .n = 204,
                         .k = 64 * 5 + (layout == 2 ? 8 : 0),
                         .trans_a = layout % 2 != 0,
                         .trans_b = layout / 2 != 0,
                         .alpha = 1,
                         .beta = layout % 2 != 0 ? -1 : 0};
            data d = make_data(&p);
            fill_both(&p, &d, of_small_integers);
            fill(d.c, (int64_t)p.m * p.n, of_small_integers);
            check_exact(*state, &p, &d);
            free_data(&d);
        }
}

static void alignments(void **state)
{
    for (int way = 0; way < 16; way++) {
        if (!is_mine()) continue;
        product p = square("alignments", 257 + way * 13);
        p.m = 70 + way, p.n = 131 - way;
        p.kernel = "accurate_128x64";
        p.trans_a = way % 2 != 0;
        p.trans_b = way / 2 % 2 != 0;
        p.pad = way / 4 % 4;
        p.skip = way % 5;
        data d = make_data(&p);
        fill_both(&p, &d, of_small_integers);
        check_exact(*state, &p, &d);
        free_data(&d);
    }
}

enum { FIRST = 0, NOT_FINITE, LISTED, PROBLEMS };

/* Problem number z of a batch alone. */
static data problem_of_batch(const product *p, const data *d, int z)
{
    data one = *d;
    if (!p->shares_a) one.a += (int64_t)z * p->m * p->k;
    one.b += (int64_t)z * p->k * p->n;
    return one;
}

/* Problems differ in scales. One has a NaN. In another one, a row of A and a column of B have a
 * listed element, of which their products with the column and the row that are otherwise zero
 * consist. */
static void make_problems_differ(const product *p, data *d)
{
    data not_finite = problem_of_batch(p, d, NOT_FINITE), listed = problem_of_batch(p, d, LISTED);
    const data first = problem_of_batch(p, d, FIRST);
    for (int i = 0; i < p->m * p->k && !p->shares_a; i++)
        not_finite.a[i] *= 0x1p-90f, listed.a[i] *= 0x1p10f;
    for (int i = 0; i < p->k * p->n && !p->shares_a; i++)
        not_finite.b[i] *= 0x1p90f;
    for (int i = 0; i < p->k; i++) {
        *a_at(p, &listed, 5, i) = i == 7 ? 0x1p-40f : 1;
        *b_at(p, &listed, i, 3) = i == 7 ? 3 : 0;
        *b_at(p, &listed, i, 9) = i == 11 ? 0x1p-40f : 1;
        *a_at(p, &listed, 13, i) = i == 11 ? 3 : 0;
    }
    *b_at(p, &first, 7, 3) = -1;
    if (!p->shares_a) *a_at(p, &first, 13, 11) = -1;
    *(p->shares_a ? b_at(p, &not_finite, 9, 70) : a_at(p, &not_finite, 70, 9)) = NAN;
}

static void batches(void **state)
{
    for (int way = 0; way < 8; way++) {
        if (!is_mine()) continue;
        product p = square("batches", 264);
        p.m = 100, p.n = 72, p.batch = PROBLEMS;
        p.kernel = way % 2 != 0 ? "accurate_128x128" : "accurate_128x64";
        p.shares_a = way / 2 % 2 != 0;
        p.trans_a = way / 4 != 0;
        p.trans_b = way % 3 == 0;
        data d = make_data(&p);
        fill_both(&p, &d, of_small_integers);
        make_problems_differ(&p, &d);
        float *result = compute(*state, &p, &d);
        for (int i = 0; i < PROBLEMS * p.m * p.n; i++) {
            const int z = i / (p.m * p.n), row = i / p.n % p.m, col = i % p.n;
            const truth t = truth_of(&p, &d, z, row, col);
            const bool is_right = isnan(t.sum)
                                      ? isnan(result[i])
                                      : fabs(result[i] - t.sum) <= 2 * 0x1p-24 * t.absolute;
            if (!is_right)
                fail_msg("batches %d: D[%d][%d][%d] is %g, not %g", way, z, row, col, result[i],
                         t.sum);
        }
        free(result);
        free_data(&d);
    }
}

static void epilogues(void **state)
{
    for (int way = 0; way < 24; way++) {
        if (!is_mine()) continue;
        product p = square("epilogues", 264);
        p.m = 72, p.n = 104 + way % 2;
        p.kernel = way % 3 == 0 ? "accurate_128x128" : "accurate_128x96";
        p.bias = way % 3;
        p.activation = way / 3 % 2 != 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE;
        p.residual = way / 5 % 2 != 0;
        p.device_scalars = way / 8 % 2 != 0;
        p.separate_d = way / 4 % 2 != 0;
        p.alpha = way % 7 == 6 ? 0 : 2;
        p.beta = way % 5 == 4 ? 0 : -1;
        data d = make_data(&p);
        fill_both(&p, &d, of_small_integers);
        fill(d.c, (int64_t)p.m * p.n, of_small_integers);
        fill(d.bias, p.m > p.n ? p.m : p.n, of_small_integers);
        fill(d.residual, (int64_t)p.m * p.n, of_small_integers);
        check_exact(*state, &p, &d);
        free_data(&d);
    }
}

/* More tiles than resident blocks, some of them exact: in row 2 of the tiles before others of the
 * same block, in row 10 after others. */
static void many_tiles(void **state)
{
    if (!is_mine()) return;
    product p = square("many tiles", 256);
    p.m = 128 * 12, p.n = 64 * 13;
    p.kernel = "accurate_128x64";
    data d = make_data(&p);
    fill_both(&p, &d, of_small_integers);
    *a_at(&p, &d, 300, 9) = *a_at(&p, &d, 1400, 9) = INFINITY;
    for (int col = 0; col < p.n; col++)
        *b_at(&p, &d, 9, col) = 1;
    float *result = compute(*state, &p, &d);
    for (int64_t i = 0; i < (int64_t)p.m * p.n; i += i % 7 + 1)
        if (result[i] != rounded_sum(&p, &d, i))
            fail_msg("many tiles: element %lld is %.9g", (long long)i, result[i]);
    free(result);
    free_data(&d);
}

/* The same bits, whatever the order in which blocks add to a list: the sums of one row are those of
 * listed elements alone, from several blocks of the pre-pass. */
static void repeats(void **state)
{
    if (!is_mine()) return;
    product p = square("repeats", 2048);
    p.m = p.n = 64;
    p.trans_a = true; /* blocks of few elements along k */
    data d = make_data(&p);
    fill_both(&p, &d, symmetric);
    hide(&p, &d, 9, 12, 100, -40);
    float *first = compute(*state, &p, &d), *second = compute(*state, &p, &d);
    assert_memory_equal(first, second, (size_t)p.m * (size_t)p.n * sizeof(float));
    free(second);
    for (int seed = 0; seed < 4; seed++) {
        char text[8];
        tgl_device *shuffled;
        snprintf(text, sizeof text, "%d", seed);
        setenv("TEGULA_SIM_SEED", text, 1);
        assert_status(open_device(&shuffled), TGL_OK);
        unsetenv("TEGULA_SIM_SEED");
        second = compute(shuffled, &p, &d);
        assert_memory_equal(first, second, (size_t)p.m * (size_t)p.n * sizeof(float));
        free(second);
        tgl_device_close(shuffled);
    }
    free(first);
    free_data(&d);
}

/* ---- Who may choose it ----------------------------------------------------------------------- */

static void only_where_it_may_be_chosen(void **state)
{
    static const struct {
        tgl_compute compute;
        int k;
        bool may;
    } ways[] = {{TGL_COMPUTE_ACCURATE, 4096, true}, {TGL_COMPUTE_IEEE, 4096, false},
                {TGL_COMPUTE_DEFAULT, 4096, true},  {TGL_COMPUTE_TF32, 4096, false},
                {TGL_COMPUTE_ACCURATE, 255, false}, {TGL_COMPUTE_ACCURATE, 256, true}};
    if (!is_mine()) return;
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        tgl_problem problem;
        tgl_plan *plan;
        const tgl_plan_options options = {.size = sizeof options, .kernel = "accurate_128x128"};
        tgl_problem_init(&problem, sizeof problem, TGL_F32, 4096, 4096, ways[i].k);
        problem.compute = ways[i].compute;
        const tgl_status status = tgl_plan_create(*state, &problem, &options, &plan);
        assert_status(status, ways[i].may ? TGL_OK : TGL_UNSUPPORTED);
        if (status == TGL_OK) tgl_plan_destroy(plan);
        assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
        if (!ways[i].may && strncmp(tgl_plan_kernel(plan), "accurate", 8) == 0)
            fail_msg("chosen with compute %d, k = %d", (int)ways[i].compute, ways[i].k);
        tgl_plan_destroy(plan);
    }
}

static int setup(void **state)
{
    tgl_device *dev;
    if (open_device(&dev) != TGL_OK) return -1;
    *state = dev;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) sscanf(argv[1], "%d/%d", &part, &parts);
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations),
        cmocka_unit_test(kinds_of_numbers),
        cmocka_unit_test(scaled_lines),
        cmocka_unit_test(small_elements_alone),
        cmocka_unit_test(small_elements_that_meet),
        cmocka_unit_test(extremes),
        cmocka_unit_test(scales_beyond_the_range),
        cmocka_unit_test(scalars),
        cmocka_unit_test(inf_and_nan),
        cmocka_unit_test(integers),
        cmocka_unit_test(alignments),
        cmocka_unit_test(batches),
        cmocka_unit_test(epilogues),
        cmocka_unit_test(many_tiles),
        cmocka_unit_test(repeats),
        cmocka_unit_test(only_where_it_may_be_chosen),
    };
    return cmocka_run_group_tests(tests, setup, teardown_device);
}
