/* SPDX-License-Identifier: Apache-2.0
 *
 * The wgmma family on the simulator, or on the device that TEGULA_TEST_DEVICE names ("cuda:0"):
 * each tile in all layouts, alignments, and ways to use it. Elements are small integers,
 * so that all sums are exact, and results are compared bit by bit. An argument "i/n" takes the i-th
 * of n parts of the cases; a second one names a test.
 */
#include "support.h"

static int part = 0, parts = 1;

/* ---- Elements -------------------------------------------------------------------------------- */

static size_t bytes_of(tgl_type type, int64_t count)
{
    return tgl_type_size(type) * (size_t)count;
}

/* To nearest even, with `bits` of fraction; the exponents of the tests are those of all types. */
static double round_to(double x, int bits)
{
    int exponent;
    if (x == 0) return 0;
    frexp(x, &exponent);
    const double unit = ldexp(1, exponent - 1 - bits);
    return nearbyint(x / unit) * unit;
}

static double rounded(tgl_type type, double x)
{
    return type == TGL_F16 ? round_to(x, 10) : type == TGL_BF16 ? round_to(x, 7) : (float)x;
}

/* x is a value of the type. */
static void put(void *matrix, tgl_type type, int64_t at, double x)
{
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == TGL_F32) {
        ((float *)matrix)[at] = f;
        return;
    }
    uint32_t half = bits >> 16;
    if (type == TGL_F16) /* the exponent's bias is 15 instead of 127 */
        half = f == 0 ? bits >> 31 << 15
                      : bits >> 31 << 15 | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 1023);
    ((uint16_t *)matrix)[at] = (uint16_t)half;
}

static double get(const void *matrix, tgl_type type, int64_t at)
{
    if (type == TGL_F32) return ((const float *)matrix)[at];
    const uint32_t half = ((const uint16_t *)matrix)[at];
    uint32_t bits = half << 16;
    if (type == TGL_F16)
        bits = (half & 0x7fff) == 0
                   ? half << 16
                   : half >> 15 << 31 | ((half >> 10 & 31) + 112) << 23 | (half & 1023) << 13;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

typedef struct product {
    const char *kernel;
    tgl_type type, type_c, type_d; /* type_d: 0: D is C */
    int m, n, k;
    bool trans_a, trans_b;
    int pad_a, pad_b, pad_c;    /* elements that rows are longer than need be */
    int skip_a, skip_b, skip_c; /* elements before the matrix */
    int batch;                  /* 0: 1 */
    bool shares_a;              /* all problems of the batch have one A */
    double alpha, beta;
    bool device_scalars;
    tgl_bias bias;
    tgl_activation activation; /* none or relu */
    bool residual;
    const char *expression; /* acc - c + row - 2 * col */
} product;

/* A matrix, or a batch of them, in host memory and that of the device. */
typedef struct matrix {
    tgl_type type;
    int64_t rows, cols, ld, skip, stride, count; /* count: elements in all */
    char *host;
    void *device;
} matrix;

static void fill(matrix *x, unsigned seed)
{
    for (int64_t i = 0; i < x->count; i++) {
        seed = seed * 1664525 + 1013904223;
        put(x->host, x->type, i, (double)((int)(seed >> 24) % 9 - 4));
    }
}

static matrix make_matrix(tgl_device *dev, tgl_type type, int64_t rows, int64_t cols, int pad,
                          int skip, int64_t batch, unsigned seed)
{
    matrix x = {.type = type, .rows = rows, .cols = cols, .ld = cols + pad, .skip = skip};
    x.stride = rows * x.ld;
    x.count = skip + x.stride * batch;
    const size_t bytes = bytes_of(type, x.count);
    x.host = calloc(bytes + 1, 1);
    assert_non_null(x.host);
    fill(&x, seed);
    assert_status(tgl_alloc(dev, bytes + 1, &x.device), TGL_OK);
    assert_status(tgl_upload(dev, x.device, x.host, bytes, NULL), TGL_OK);
    return x;
}

static void free_matrix(tgl_device *dev, matrix *x)
{
    tgl_free(dev, x->device);
    free(x->host);
}

static void *at_device(const matrix *x)
{
    return (char *)x->device + bytes_of(x->type, x->skip);
}

static double element(const matrix *x, int64_t batch, int64_t row, int64_t col)
{
    return get(x->host, x->type, x->skip + batch * x->stride + row * x->ld + col);
}

/* ---- One product ----------------------------------------------------------------------------- */

typedef struct operands {
    matrix A, B, C, D, bias, residual, scalars;
} operands;

static double expected(const product *p, const operands *o, int64_t batch, int row, int col)
{
    double sum = 0;
    for (int i = 0; i < p->k; i++)
        sum += (p->trans_a ? element(&o->A, p->shares_a ? 0 : batch, i, row)
                           : element(&o->A, p->shares_a ? 0 : batch, row, i)) *
               (p->trans_b ? element(&o->B, batch, col, i) : element(&o->B, batch, i, col));
    const double acc = p->alpha != 0 ? p->alpha * sum : 0;
    const double c = p->beta != 0 ? p->beta * element(&o->C, batch, row, col) : 0;
    double x = acc + c;
    if (p->expression != NULL) x = acc - c + row - 2 * col;
    if (p->bias != TGL_BIAS_NONE && p->expression == NULL)
        x += element(&o->bias, 0, 0, p->bias == TGL_BIAS_ROW ? row : col);
    if (p->activation == TGL_ACTIVATION_RELU && x < 0) x = 0;
    if (p->residual) x += element(&o->residual, batch, row, col);
    return rounded(p->type_d ? p->type_d : p->type_c, x);
}

static const char *describe(const product *p)
{
    static char text[400];
    snprintf(
        text, sizeof text,
        "%s types %d %d %d, %dx%dx%d%s%s pads %d %d %d skips %d %d %d batch %d%s alpha %g beta "
        "%g%s bias %d act %d res %d%s",
        p->kernel, (int)p->type, (int)p->type_c, (int)p->type_d, p->m, p->n, p->k,
        p->trans_a ? " TA" : "", p->trans_b ? " TB" : "", p->pad_a, p->pad_b, p->pad_c, p->skip_a,
        p->skip_b, p->skip_c, p->batch, p->shares_a ? " shared A" : "", p->alpha, p->beta,
        p->device_scalars ? " on device" : "", (int)p->bias, (int)p->activation, p->residual,
        p->expression != NULL ? " expression" : "");
    return text;
}

/* All of D's memory, gaps between rows included. */
static void compare(const product *p, const operands *o, const matrix *D, const char *before)
{
    for (int64_t i = 0; i < D->count; i++) {
        const int64_t inside = i - D->skip, batch = inside / D->stride;
        const int row = (int)(inside % D->stride / D->ld), col = (int)(inside % D->ld);
        const double found = get(D->host, D->type, i);
        const double right = i < D->skip || col >= D->cols ? get(before, D->type, i)
                                                           : expected(p, o, batch, row, col);
        if (found != right)
            fail_msg("%s: D[%lld][%d][%d] is %g, not %g", describe(p), (long long)batch, row, col,
                     found, right);
    }
}

static tgl_problem problem_for(const product *p, const operands *o)
{
    tgl_problem problem;
    tgl_problem_init(&problem, sizeof problem, p->type, p->m, p->n, p->k);
    problem.trans_a = p->trans_a ? TGL_TRANS : TGL_NO_TRANS;
    problem.trans_b = p->trans_b ? TGL_TRANS : TGL_NO_TRANS;
    problem.type_c = p->type_c;
    problem.type_d = p->type_d;
    if (p->type == TGL_F32) problem.compute = TGL_COMPUTE_TF32;
    if (p->device_scalars) problem.scalars = TGL_SCALARS_DEVICE;
    problem.lda = o->A.ld;
    problem.ldb = o->B.ld;
    problem.ldc = o->C.ld;
    problem.batch = p->batch > 0 ? p->batch : 1;
    problem.stride_a = p->shares_a ? 0 : o->A.stride;
    problem.stride_b = o->B.stride;
    problem.stride_c = o->C.stride;
    if (p->type_d) {
        problem.ldd = o->D.ld;
        problem.stride_d = o->D.stride;
    }
    return problem;
}

static operands make_operands(tgl_device *dev, const product *p)
{
    const int64_t batch = p->batch > 0 ? p->batch : 1;
    const tgl_type d = p->type_d ? p->type_d : p->type_c;
    const float scalars[2] = {(float)p->alpha, (float)p->beta};
    operands o = {
        .A = make_matrix(dev, p->type, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->pad_a,
                         p->skip_a, p->shares_a ? 1 : batch, 1),
        .B = make_matrix(dev, p->type, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->pad_b,
                         p->skip_b, batch, 2),
        .C = make_matrix(dev, p->type_c, p->m, p->n, p->pad_c, p->skip_c, batch, 3),
        .D = make_matrix(dev, d, p->m, p->n, p->pad_c, p->skip_c, batch, 4),
        .bias = make_matrix(dev, d, 1, p->m > p->n ? p->m : p->n, 0, 0, 1, 5),
        .residual = make_matrix(dev, d, p->m, p->n, 0, 0, batch, 6),
        .scalars = make_matrix(dev, TGL_F32, 1, 2, 0, 0, 1, 7),
    };
    assert_status(tgl_upload(dev, o.scalars.device, scalars, sizeof scalars, NULL), TGL_OK);
    return o;
}

static void free_operands(tgl_device *dev, const operands *o)
{
    const matrix *const all[] = {&o->A, &o->B, &o->C, &o->D, &o->bias, &o->residual, &o->scalars};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        matrix x = *all[i];
        free_matrix(dev, &x);
    }
}

static tgl_operands given(const product *p, const operands *o)
{
    const bool has_product = p->device_scalars || (p->alpha != 0 && p->k > 0);
    tgl_operands to = {.size = sizeof to,
                       .A = has_product ? at_device(&o->A) : NULL,
                       .B = has_product ? at_device(&o->B) : NULL,
                       .C = at_device(&o->C),
                       .D = p->type_d ? at_device(&o->D) : NULL,
                       .bias = p->bias != TGL_BIAS_NONE ? o->bias.device : NULL,
                       .residual = p->residual ? o->residual.device : NULL};
    if (p->device_scalars) {
        to.alpha_at = o->scalars.device;
        to.beta_at = (float *)o->scalars.device + 1;
    } else {
        to.alpha = p->alpha;
        to.beta = p->beta;
    }
    return to;
}

/* Runs it twice: the counters have to be zero again after the first run. */
static void run(tgl_device *dev, const product *p)
{
    const operands o = make_operands(dev, p);
    const tgl_problem problem = problem_for(p, &o);
    const tgl_epilogue epilogue = {.size = sizeof epilogue,
                                   .bias = p->bias,
                                   .activation = p->activation,
                                   .residual = p->residual,
                                   .expression = p->expression,
                                   .stride_residual = o.residual.stride};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = p->kernel, .epilogue = &epilogue};
    const matrix *result = p->type_d ? &o.D : &o.C;
    const size_t bytes = bytes_of(result->type, result->count);
    char *before = malloc(bytes);
    tgl_plan *plan;
    char error[600];
    assert_non_null(before);
    memcpy(before, result->host, bytes);
    tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    for (int i = 0; i < 2 && status == TGL_OK; i++) {
        const tgl_operands to = given(p, &o);
        matrix D = *result;
        D.host = malloc(bytes);
        assert_non_null(D.host);
        tgl_upload(dev, result->device, before, bytes, NULL);
        status = tgl_plan_run_operands(plan, &to, NULL);
        if (status == TGL_OK) status = tgl_download(dev, D.host, result->device, bytes, NULL);
        if (status == TGL_OK) compare(p, &o, &D, before);
        free(D.host);
    }
    if (status != TGL_OK) {
        tgl_last_error(error, sizeof error);
        fail_msg("%s: %s", describe(p), error);
    }
    tgl_plan_destroy(plan);
    free(before);
    free_operands(dev, &o);
}

static bool is_mine(int number)
{
    return number % parts == part;
}

static product basic(const char *kernel, tgl_type type, int m, int n, int k)
{
    return (product){.kernel = kernel,
                     .type = type,
                     .type_c = type,
                     .m = m,
                     .n = n,
                     .k = k,
                     .alpha = 1,
                     .beta = 0};
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int bm, bn;
    bool has_clusters;
} rows[] = {{"wgmma_128x256", 128, 256, true},     {"wgmma_256x128", 256, 128, true},
            {"wgmma_192x192", 192, 192, true},     {"wgmma_128x192", 128, 192, true},
            {"wgmma_128x160", 128, 160, true},     {"wgmma_128x128", 128, 128, true},
            {"wgmma_128x128_alt", 128, 128, true}, {"wgmma_128x96", 128, 96, true},
            {"wgmma_64x256_alt", 64, 256, true},   {"wgmma_128x64", 128, 64, true},
            {"wgmma_64x256", 64, 256, true},       {"wgmma_64x128", 64, 128, true},
            {"wgmma_64x64", 64, 64, true},         {"wgmma_64x32", 64, 32, true},
            {"wgmma_64x16", 64, 16, true},         {"wgmma_256x144", 256, 144, true},
            {"wgmma_128x224", 128, 224, true},     {"wgmma_128x144", 128, 144, true}};

/* A little more than a tile, by 5 or 8, and than a stage; of aligned rows. */
static void every_configuration_in_every_layout(void **state)
{
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int way = 0; way < 16; way++) {
            char kernel[80];
            const bool exchanged = way / 4 % 2 != 0, clusters = way / 8 != 0;
            if (clusters && way % 4 != (int)(i % 4)) continue; /* in one layout */
            if (!is_mine(number++)) continue;
            snprintf(kernel, sizeof kernel, "%s:exchanged=%d,cluster=%d", rows[i].name, exchanged,
                     1 + (clusters && rows[i].has_clusters));
            const int more = number % 2 == 0 ? 8 : 5;
            const int left = rows[i].bm + more, right = rows[i].bn + more;
            product p = basic(kernel, i % 2 == 0 ? TGL_BF16 : TGL_F16, exchanged ? right : left,
                              exchanged ? left : right, 72);
            p.trans_a = way % 2 != 0;
            p.trans_b = way / 2 % 2 != 0;
            p.pad_a = p.trans_a ? 8 - more : 0;
            p.pad_b = p.trans_b ? 0 : 8 - more;
            p.pad_c = 8 - more;
            p.beta = -2;
            run(*state, &p);
        }
}

/* TF32 is K-major; other layouts and distances are repacked. */
static void tf32_in_every_layout(void **state)
{
    static const char *const kernels[] = {"wgmma_128x128", "wgmma_64x32:exchanged=1",
                                          "wgmma_64x64:cluster=2,splits=2"};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (int way = 0; way < 8; way++) {
            if (!is_mine(number++)) continue;
            product p = basic(kernels[i], TGL_F32, 140, 68, 100);
            p.trans_a = way % 2 != 0;
            p.trans_b = way / 2 % 2 != 0;
            if (way / 4 != 0) p.pad_a = 1, p.pad_b = 3, p.pad_c = 1;
            run(*state, &p);
        }
}

/* The kernel of the plan has the left operand in registers, without a pre-pass. */
static void assert_in_registers(tgl_device *dev, const product *p)
{
    char text[32768];
    tgl_plan *plan;
    const operands o = make_operands(dev, p);
    const tgl_problem problem = problem_for(p, &o);
    const tgl_plan_options options = {.size = sizeof options, .kernel = p->kernel};
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_true(tgl_plan_explain(plan, text, sizeof text) < sizeof text);
    if (strstr(text, "left        through registers") == NULL)
        fail_msg("%s: the left operand is not in registers:\n%s", p->kernel, text);
    tgl_plan_destroy(plan);
    free_operands(dev, &o);
}

/* Rings that are filled several times, consumers in turn, clusters, edges, exchanged operands. The
 * right operand is K-major with long rows, or MN-major. */
static void tf32_through_registers(void **state)
{
    static const struct {
        const char *kernel;
        int m, n, k, batch;
    } cases[] = {
        {"wgmma_128x128:left_registers=1", 68, 40, 32 * 13, 1},
        {"wgmma_128x128:left_registers=1", 260, 40, 7, 1},
        {"wgmma_128x128:left_registers=1", 68, 40, 0, 1},
        {"wgmma_128x256:cluster=2,left_registers=1", 600, 24, 32 * 11, 1},
        {"wgmma_64x256_alt:left_registers=1", 40, 24, 136, 280},
        {"wgmma_64x256_alt:left_registers=1", 40, 24, 32 * 13, 280},
        {"wgmma_64x64:splits=3,left_registers=1", 72, 72, 32 * 21, 1},
        {"wgmma_128x64_s8:exchanged=1,left_registers=1", 24, 132, 32 * 19 + 1, 1},
        {"wgmma_128x128:left_registers=1", 140, 68, 100, 1},
        {"wgmma_64x256_alt:exchanged=1,left_registers=1", 140, 68, 100, 1},
        {"wgmma_128x256:cluster=2,splits=2,left_registers=1", 140, 68, 100, 1},
        {"wgmma_64x64_s12:exchanged=1,splits=2,in_cluster=1,left_registers=1", 140, 68, 100, 1}};
    for (size_t number = 0; number < 2 * COUNT_OF(cases); number++) {
        const size_t i = number / 2;
        if (!is_mine((int)number)) continue;
        const bool exchanged = strstr(cases[i].kernel, "exchanged") != NULL;
        product p = basic(cases[i].kernel, TGL_F32, cases[i].m, cases[i].n, cases[i].k);
        p.batch = cases[i].batch;
        const bool is_k_major = number % 2 != 0; /* the right operand */
        p.trans_a = exchanged ? !is_k_major : true;
        p.trans_b = exchanged ? false : is_k_major;
        if (is_k_major) *(exchanged ? &p.pad_a : &p.pad_b) = 3;
        if (p.k > 0) assert_in_registers(*state, &p);
        run(*state, &p);
    }
}

/* FP32 to TF32, to nearest: 10 bits of fraction remain. No test has a tie. */
static float to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000) & ~(uint32_t)0x1fff;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* B selects: column c of D is column p(c) of A, times 1 or -1. A is read by TMA, or repacked in
 * lines, or transposed, or read by threads. */
static void tf32_is_rounded_to_nearest(void **state)
{
    enum { SIZE = 64 };
    for (int way = 0; way < 5; way++) {
        if (!is_mine(way)) continue;
        product p = basic(way == 4 ? "wgmma_64x64:left_registers=1" : "wgmma_64x64", TGL_F32, SIZE,
                          SIZE, SIZE);
        p.trans_a = way / 2 != 0;
        p.pad_a = way % 2;
        operands o = make_operands(*state, &p);
        float *a = (float *)(void *)o.A.host, *b = (float *)(void *)o.B.host;
        for (int64_t i = 0; i < o.A.count; i++)
            a[i] = (float)(1 + (double)((i * 2654435761u + 12345) & 0x7ffffe) / 0x800000 +
                           1.0 / 0x800000);
        for (int i = 0; i < SIZE * SIZE; i++)
            b[i] = i / SIZE == i * 5 % SIZE ? (i % 2 != 0 ? -1.0f : 1.0f) : 0.0f;
        assert_status(tgl_upload(*state, o.A.device, a, 4 * (size_t)o.A.count, NULL), TGL_OK);
        assert_status(tgl_upload(*state, o.B.device, b, 4 * (size_t)o.B.count, NULL), TGL_OK);
        const tgl_problem problem = problem_for(&p, &o);
        const tgl_plan_options options = {.size = sizeof options, .kernel = p.kernel};
        const tgl_operands to = given(&p, &o);
        tgl_plan *plan;
        float d[SIZE * SIZE];
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run_operands(plan, &to, NULL), TGL_OK);
        assert_status(tgl_download(*state, d, o.C.device, sizeof d, NULL), TGL_OK);
        for (int row = 0; row < SIZE; row++)
            for (int col = 0; col < SIZE; col++) {
                const int at = col * 5 % SIZE;
                const float x = (float)element(&o.A, 0, p.trans_a ? at : row, p.trans_a ? row : at);
                const float right = to_tf32(x) * b[at * SIZE + col];
                if (d[row * SIZE + col] != right)
                    fail_msg("way %d: D[%d][%d] is %a, not %a", way, row, col,
                             (double)d[row * SIZE + col], (double)right);
            }
        tgl_plan_destroy(plan);
        free_operands(*state, &o);
    }
}

/* Rows, matrices and pointers that are no multiples of 16 bytes. */
static void any_alignment(void **state)
{
    int number = 0;
    for (int way = 0; way < 32; way++) {
        if (!is_mine(number++)) continue;
        product p = basic(way % 2 != 0 ? "wgmma_64x64" : "wgmma_128x64:splits=2",
                          way % 3 != 0 ? TGL_BF16 : TGL_F16, 72, 80, 168);
        p.trans_a = way / 2 % 2 != 0;
        p.trans_b = way / 4 % 2 != 0;
        p.skip_a = way * 3 % 8;
        p.skip_b = way * 5 % 8;
        p.skip_c = way % 5;
        if (way / 8 == 1) p.pad_a = way % 7 + 1;
        if (way / 8 == 2) p.pad_b = way % 5 + 1;
        if (way / 8 == 3) p.m--, p.n -= 3, p.k--, p.pad_c = 1;
        run(*state, &p);
    }
}

/* K from nothing to several stages, whole and split. */
static void every_k(void **state)
{
    static const int ks[] = {0, 1, 8, 63, 64, 65, 128, 320, 1000};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(ks); i++)
        for (int splits = 1; splits <= 3; splits++) {
            char kernel[80];
            if (!is_mine(number++)) continue;
            snprintf(kernel, sizeof kernel, "wgmma_64x32:splits=%d", splits);
            product p = basic(kernel, TGL_BF16, 70, 40, ks[i]);
            p.pad_a = (int)(-ks[i] & 7);
            p.beta = splits - 1;
            run(*state, &p);
        }
}

/* Matrices that are not read may be at any distance. */
static void no_product_in_a_batch(void **state)
{
    product p = basic("wgmma_64x32", TGL_BF16, 11, 9, 0);
    p.batch = 5;
    p.pad_a = 1, p.pad_b = 3;
    p.beta = 3;
    run(*state, &p);
}

/* More tiles than resident blocks, in bands of 6 rows of tiles, or of 3 rows of clusters, on
 * a chip of 132 SMs: the last band has fewer. */
static void many_tiles(void **state)
{
    static const char *const kernels[] = {"wgmma_64x16", "wgmma_64x16:cluster=2",
                                          "wgmma_64x16:exchanged=1,splits=2"};
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        if (!is_mine((int)i)) continue;
        product p = basic(kernels[i], TGL_BF16, 64 * 9 + 1, 16 * 40, 64);
        p.alpha = 0.5;
        run(*state, &p);
    }
}

/* Each block has two or three tiles, which its consumers take in turn. A tile has three steps of
 * the ring's five stages, or so many that the parities of its barriers repeat. */
static void consumers_alternate(void **state)
{
    static const char *const kernels[] = {"wgmma_64x256_alt", "wgmma_64x256_alt:exchanged=1",
                                          "wgmma_64x256_alt:cluster=2", "wgmma_64x256_alt"};
    for (int i = 0; i < 4; i++) {
        if (!is_mine(i)) continue;
        product p = basic(kernels[i], TGL_BF16, i == 2 ? 104 : 40, i == 1 ? 40 : 24,
                          i == 3 ? 64 * 13 : 136);
        p.batch = 280;
        run(*state, &p);
    }
}

/* TMA stores one tile while the block multiplies its next one: 280 problems for the
 * blocks of a chip of 132 SMs. Rows and columns end within a tile; not all row lengths are
 * multiples of 16 bytes, nor do all matrices begin at one. */
static void results_are_stored_by_tma(void **state)
{
    static const struct {
        const char *kernel;
        int m, n, pad, skip;
        double beta;
    } cases[] = {{"wgmma_128x256", 72, 264, 0, 0, 0},
                 {"wgmma_128x256:exchanged=0,cluster=2", 200, 24, 0, 0, 0},
                 {"wgmma_256x128:exchanged=0", 200, 40, 8, 0, 0},
                 {"wgmma_256x128:exchanged=0", 136, 43, 5, 0, 0},
                 {"wgmma_128x192:exchanged=0", 40, 200, 0, 0, 0},
                 {"wgmma_192x192:exchanged=0", 24, 136, 0, 0, 0},
                 {"wgmma_128x192:exchanged=0", 24, 40, 0, 3, 0},
                 {"wgmma_128x128:exchanged=0", 24, 32, 0, 0, -1},
                 {"wgmma_128x64_s8:exchanged=0", 72, 56, 0, 0, 0},
                 {"wgmma_64x128_s8:exchanged=0", 40, 136, 0, 8, 0},
                 {"wgmma_64x64_s12:exchanged=0", 24, 33, 7, 0, 0},
                 {"wgmma_64x256:exchanged=0", 33, 72, 0, 0, 0},
                 {"wgmma_128x224:exchanged=0", 72, 232, 0, 0, 0},
                 {"wgmma_128x224:exchanged=0,cluster=2", 200, 72, 8, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!is_mine((int)i)) continue;
        product p = basic(cases[i].kernel, i % 2 == 0 ? TGL_BF16 : TGL_F16, cases[i].m, cases[i].n,
                          64 + 8 * (i % 3 == 0));
        p.pad_c = cases[i].pad;
        p.skip_c = cases[i].skip;
        p.beta = cases[i].beta;
        p.batch = 280;
        p.bias = i % 2 == 0 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN;
        p.activation = TGL_ACTIVATION_RELU;
        run(*state, &p);
        p.batch = 1;
        p.bias = TGL_BIAS_NONE;
        p.activation = TGL_ACTIVATION_NONE;
        p.expression = "acc - c + row - 2 * col";
        run(*state, &p);
    }
}

/* With split-K, without a product, with scalars and a D elsewhere, with a second tile of a cluster
 * wholly behind the matrix, and with a D that TMA cannot store. */
static void tma_stores_in_other_ways(void **state)
{
    static const char tiles[] = "wgmma_64x64_s12:exchanged=0";
    enum { WAYS = 12 };
    for (int way = 0; way < WAYS; way++) {
        if (!is_mine(way)) continue;
        product p = basic(tiles, TGL_BF16, 72, 136, 256);
        switch (way) {
        case 0:
            p.kernel = "wgmma_64x64_s12:exchanged=0,splits=2";
            break;
        case 1:
            p.kernel = "wgmma_64x64_s12:exchanged=0,splits=3,whole=2";
            break;
        case 2:
        case 3:
            p.kernel = "wgmma_128x64_s8:exchanged=0,cluster=2";
            p.m = way == 2 ? 100 : 300;
            break;
        case 4:
        case 5:
            p.alpha = 0;
            p.beta = way == 4 ? 0 : -1;
            break;
        case 6:
            p.k = 0;
            break;
        case 7:
        case 8:
            p.device_scalars = true;
            p.beta = way == 7 ? 0 : -1;
            break;
        case 9:
        case 10:
            p.type_d = TGL_BF16;
            p.beta = way == 9 ? 0 : -1;
            break;
        default:
            p.skip_c = 4;
        }
        run(*state, &p);
    }
}

/* The blocks of a cluster share a tile: a K that gives some of them nothing, batches, edges. */
static void splits_in_clusters(void **state)
{
    static const char *const kernels[] = {"wgmma_128x128:splits=2", "wgmma_64x64:splits=4",
                                          "wgmma_64x256:splits=8", "wgmma_128x192:splits=3",
                                          "wgmma_64x32:splits=2"};
    static const int ks[] = {0, 64, 200, 520};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (int way = 0; way < 8; way++) {
            char kernel[80];
            if (!is_mine(number++)) continue;
            snprintf(kernel, sizeof kernel, "%s,in_cluster=1,exchanged=%d", kernels[i], way % 2);
            product p = basic(kernel, TGL_BF16, 72 + way * 8, 136, ks[way / 2]);
            if (way % 3 == 1) p.type_c = TGL_F32;
            p.trans_a = way / 4 != 0;
            p.batch = way == 5 ? 3 : 0;
            p.beta = way % 3;
            p.bias = way == 6 ? TGL_BIAS_COLUMN : TGL_BIAS_NONE;
            p.residual = way == 3;
            run(*state, &p);
        }
}

/* Clusters of several rows and columns of tiles, in every layout: more steps of K than the ring has
 * stages, more clusters than are resident, tiles beyond the edges. */
static void clusters_of_rows_and_columns(void **state)
{
    static const struct {
        const char *kernel;
        int m, n, k, batch;
    } cases[] = {{"wgmma_64x64_s12:cluster=2,columns=2", 200, 72, 64 * 15, 0},
                 {"wgmma_64x64_s12:columns=4", 72, 200, 200, 3},
                 {"wgmma_64x64:cluster=4", 264, 72, 64 * 9, 0},
                 {"wgmma_64x64:columns=2,splits=2,exchanged=1", 72, 200, 264, 0},
                 {"wgmma_64x64:cluster=2,columns=2", 72, 72, 200, 70},
                 {"wgmma_128x128_alt:columns=2", 24, 136, 72, 150},
                 {"wgmma_64x80_s11:cluster=2,columns=2,exchanged=1", 88, 72, 64 * 13, 0},
                 {"wgmma_192x192:columns=2", 40, 200, 136, 0}};
    int number = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int way = 0; way < 8; way++) {
            const bool is_tf32 = way / 4 != 0, is_long = cases[i].batch > 10;
            char kernel[80];
            if (is_long && way % 4 != (int)i % 4) continue; /* in one layout */
            if (!is_mine(number++)) continue;
            const bool exchanged = strstr(cases[i].kernel, "exchanged") != NULL;
            const bool through_registers = is_tf32 && way % 4 == (exchanged ? 0 : 3) && i < 5;
            snprintf(kernel, sizeof kernel, "%s%s", cases[i].kernel,
                     through_registers ? ",left_registers=1" : "");
            product p =
                basic(kernel, is_tf32 ? TGL_F32 : TGL_BF16, cases[i].m, cases[i].n, cases[i].k);
            p.batch = cases[i].batch;
            p.trans_a = way % 2 != 0;
            p.trans_b = way / 2 % 2 != 0;
            p.beta = way % 3;
            run(*state, &p);
        }
}

/* Few rows or columns that are MN-major, and have to be repacked, become K-major. */
static void slivers_become_k_major(void **state)
{
    static const char *const kernels[] = {"wgmma_64x16", "wgmma_64x32:exchanged=1",
                                          "wgmma_64x64:cluster=2"};
    for (int i = 0; i < 12; i++) {
        if (!is_mine(i)) continue;
        const bool few_rows = i % 2 != 0;
        product p = basic(kernels[i % 3], i % 4 < 2 ? TGL_BF16 : TGL_F16, few_rows ? 1 + i : 140,
                          few_rows ? 140 : 3 + i, 61 + 16 * i + i % 3);
        p.trans_a = few_rows;
        p.trans_b = few_rows;
        p.pad_a = few_rows ? 2 : 0;
        p.batch = i / 6 != 0 ? 2 : 0;
        run(*state, &p);
    }
}

/* Some tiles whole, the others split; in clusters that share right tiles, and in batches. */
static void some_tiles_whole(void **state)
{
    static const char *const kernels[] = {
        "wgmma_64x32:splits=3,whole=5", "wgmma_64x32:splits=2,whole=1,exchanged=1",
        "wgmma_64x32:splits=2,whole=3,cluster=2", "wgmma_64x32:splits=2,whole=1000"};
    for (int i = 0; i < 8; i++) {
        if (!is_mine(i)) continue;
        product p = basic(kernels[i % 4], TGL_BF16, 200, 72, 264);
        p.batch = i / 4 != 0 ? 3 : 0;
        run(*state, &p);
    }
}

static void refused_for(tgl_device *dev, tgl_type type, const char *kernel, const char *why)
{
    const product p = basic(kernel, type, 128, 128, 128);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    const operands o = make_operands(dev, &p);
    const tgl_problem problem = problem_for(&p, &o);
    tgl_plan *plan = NULL;
    char error[600];
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_UNSUPPORTED);
    tgl_last_error(error, sizeof error);
    if (strstr(error, why) == NULL) fail_msg("%s: \"%s\" does not say \"%s\"", kernel, error, why);
    free_operands(dev, &o);
}

static void refused(tgl_device *dev, const char *kernel, const char *why)
{
    refused_for(dev, TGL_BF16, kernel, why);
}

static void impossible_options_are_refused(void **state)
{
    refused(*state, "wgmma_64x256_alt:splits=2", "split no tiles");
    refused(*state, "wgmma_64x64:cluster=3", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x64:cluster=8", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x64:cluster=4,columns=2", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x64:columns=3", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x64:columns=65536", "1, 2 or 4 tiles");
    refused(*state, "wgmma_64x16:cluster=4", "multiples of 8 columns");
    refused(*state, "wgmma_64x64:splits=2,in_cluster=1,columns=2", "with no other");
    refused(*state, "wgmma_64x64:in_cluster=1", "cannot have as many blocks");
    refused(*state, "wgmma_64x64:splits=9,in_cluster=1", "cannot have as many blocks");
    refused(*state, "wgmma_64x64:splits=3,in_cluster=1", "cannot share the columns");
    refused(*state, "wgmma_64x16:splits=2,in_cluster=1", "cannot share the columns");
    refused(*state, "wgmma_64x64:splits=2,in_cluster=1,cluster=2", "with no other");
    refused(*state, "wgmma_64x64:left_registers=1", "is for TF32");
    refused_for(*state, TGL_F32, "wgmma_64x64:left_registers=1", "contiguous in its rows");
    refused_for(*state, TGL_F32, "wgmma_64x32:left_registers=1", "leave enough registers");
}

static void batches(void **state)
{
    for (int way = 0; way < 8; way++) {
        if (!is_mine(way)) continue;
        product p = basic("wgmma_64x32", TGL_BF16, 70, 40, 72);
        p.batch = 3;
        p.shares_a = way % 2 != 0;
        if (way / 2 % 2 != 0) p.kernel = "wgmma_64x32:exchanged=1,splits=2";
        if (way / 4 != 0) p.pad_a = 1, p.pad_b = 2;
        p.residual = true;
        run(*state, &p);
    }
}

/* Every epilogue, D of each type and alignment, scalars of either kind. */
static void epilogues(void **state)
{
    static const char *const kernels[] = {"wgmma_128x64", "wgmma_64x32:exchanged=1",
                                          "wgmma_64x64:splits=2"};
    for (int way = 0; way < 48; way++) {
        if (!is_mine(way)) continue;
        product p = basic(kernels[way % 3], way % 2 != 0 ? TGL_F16 : TGL_BF16, 72, 104, 136);
        p.type_c = way / 2 % 2 != 0 ? TGL_F32 : p.type;
        if (way / 4 % 2 != 0) p.type_d = way % 3 == 0 ? TGL_F32 : p.type;
        p.bias = way % 3;
        p.activation = way / 3 % 2 != 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE;
        p.residual = way / 5 % 2 != 0;
        p.device_scalars = way / 8 % 2 != 0;
        p.alpha = way % 7 == 6 ? 0 : 2;
        p.beta = way % 5 == 4 ? 0 : -1;
        p.pad_c = way % 11 % 3 * 4;
        if (way % 6 == 5) p.pad_c = 1;
        if (way % 10 == 9) {
            p.expression = "acc - c + row - 2 * col";
            p.activation = TGL_ACTIVATION_NONE;
        }
        if (way % 16 == 12) p.k = 0;
        run(*state, &p);
    }
}

static int setup(void **state)
{
    const char *name = getenv("TEGULA_TEST_DEVICE");
    tgl_device *dev;
    if (tgl_device_open(name != NULL ? name : "sim", NULL, &dev) != TGL_OK) return -1;
    *state = dev;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) sscanf(argv[1], "%d/%d", &part, &parts);
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_configuration_in_every_layout),
        cmocka_unit_test(tf32_in_every_layout),
        cmocka_unit_test(tf32_through_registers),
        cmocka_unit_test(tf32_is_rounded_to_nearest),
        cmocka_unit_test(any_alignment),
        cmocka_unit_test(every_k),
        cmocka_unit_test(many_tiles),
        cmocka_unit_test(no_product_in_a_batch),
        cmocka_unit_test(consumers_alternate),
        cmocka_unit_test(results_are_stored_by_tma),
        cmocka_unit_test(tma_stores_in_other_ways),
        cmocka_unit_test(splits_in_clusters),
        cmocka_unit_test(clusters_of_rows_and_columns),
        cmocka_unit_test(slivers_become_k_major),
        cmocka_unit_test(some_tiles_whole),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(batches),
        cmocka_unit_test(epilogues),
    };
    return cmocka_run_group_tests(tests, setup, teardown_device);
}
