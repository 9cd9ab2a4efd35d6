/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes products in all element types and layouts, runs them, and compares every element of D,
 * including those in gaps.
 */
#include "wgmma_case.h"

/* ---- Elements -------------------------------------------------------------------------------- */

static size_t bytes_of(tgl_type type, int64_t count)
{
    return tgl_type_size(type) * (size_t)count;
}

/* Rounds x to `bits` bits of fraction, ties to even. The exponents in the tests are within the
 * range of all types. */
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

/* Stores x, which must be a value of the type. */
static void put(void *elements, tgl_type type, int64_t at, double x)
{
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == TGL_F32) {
        ((float *)elements)[at] = f;
        return;
    }
    uint32_t half = bits >> 16;
    if (type == TGL_F16) /* the exponent's bias is 15 instead of 127 */
        half = f == 0 ? bits >> 31 << 15
                      : bits >> 31 << 15 | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 1023);
    ((uint16_t *)elements)[at] = (uint16_t)half;
}

static double get(const void *elements, tgl_type type, int64_t at)
{
    if (type == TGL_F32) return ((const float *)elements)[at];
    const uint32_t half = ((const uint16_t *)elements)[at];
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

double element_at(const matrix *x, int64_t batch, int64_t row, int64_t col)
{
    return get(x->host, x->type, x->skip + batch * x->stride + row * x->ld + col);
}

/* ---- One product ----------------------------------------------------------------------------- */

static double expected(const product *p, const operands *o, int64_t batch, int row, int col)
{
    double sum = 0;
    for (int i = 0; i < p->k; i++)
        sum += (p->trans_a ? element_at(&o->A, p->shares_a ? 0 : batch, i, row)
                           : element_at(&o->A, p->shares_a ? 0 : batch, row, i)) *
               (p->trans_b ? element_at(&o->B, batch, col, i) : element_at(&o->B, batch, i, col));
    const double acc = p->alpha != 0 ? p->alpha * sum : 0;
    const double c = p->beta != 0 ? p->beta * element_at(&o->C, batch, row, col) : 0;
    double x = acc + c;
    if (p->expression != NULL) x = acc - c + row - 2 * col;
    if (p->bias != TGL_BIAS_NONE && p->expression == NULL)
        x += element_at(&o->bias, 0, 0, p->bias == TGL_BIAS_ROW ? row : col);
    if (p->activation == TGL_ACTIVATION_RELU && x < 0) x = 0;
    if (p->residual) x += element_at(&o->residual, batch, row, col);
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

/* Compares all of D's memory, including the gaps between rows. */
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

tgl_problem problem_for(const product *p, const operands *o)
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

operands make_operands(tgl_device *dev, const product *p)
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

void free_operands(tgl_device *dev, const operands *o)
{
    const matrix *const all[] = {&o->A, &o->B, &o->C, &o->D, &o->bias, &o->residual, &o->scalars};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        matrix x = *all[i];
        free_matrix(dev, &x);
    }
}

tgl_operands given_operands(const product *p, const operands *o)
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

void run_product(tgl_device *dev, const product *p)
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
        const tgl_operands to = given_operands(p, &o);
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

product basic_product(const char *kernel, tgl_type type, int m, int n, int k)
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
