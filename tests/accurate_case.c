/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes products, computes them on a device, and compares the results with a reference.
 */
#include "accurate_case.h"

bool is_mine(void)
{
    static int number = 0;
    return sweep_has(number++);
}

/* ---- Random numbers -------------------------------------------------------------------------- */

static uint64_t draw_state = 1;

double uniform(void)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(draw_state >> 40) + 0.5) * 0x1p-24;
}

double normal(void)
{
    const double radius = sqrt(-2 * log(uniform()));
    return radius * cos(6.283185307179586 * uniform());
}

double symmetric(void)
{
    return 2 * uniform() - 1;
}

/* ---- Products -------------------------------------------------------------------------------- */

int batch_of(const product *p)
{
    return p->batch > 0 ? p->batch : 1;
}

float *floats(int64_t count)
{
    float *x = calloc((size_t)count, sizeof *x);
    assert_non_null(x);
    return x;
}

data make_data(const product *p)
{
    const int64_t batch = batch_of(p);
    const int64_t longer = p->m > p->n ? p->m : p->n;
    data d = {.a = floats(batch * p->m * p->k),
              .b = floats(batch * p->k * p->n),
              .c = floats(batch * p->m * p->n),
              .bias = floats(longer),
              .residual = floats(batch * p->m * p->n)};
    return d;
}

void free_data(data *d)
{
    free(d->a);
    free(d->b);
    free(d->c);
    free(d->bias);
    free(d->residual);
}

void fill(float *x, int64_t count, draw_fn *draw)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)draw();
}

void fill_both(const product *p, data *d, draw_fn *draw)
{
    fill(d->a, (int64_t)batch_of(p) * p->m * p->k, draw);
    fill(d->b, (int64_t)batch_of(p) * p->k * p->n, draw);
}

float *a_at(const product *p, const data *d, int row, int i)
{
    return &d->a[(int64_t)row * p->k + i];
}

float *b_at(const product *p, const data *d, int i, int col)
{
    return &d->b[(int64_t)i * p->n + col];
}

/* A random number of magnitude 0.5 to 1, which is not zero even after scaling by 2^-140. */
static double not_small(void)
{
    const double x = symmetric();
    return x < 0 ? x / 2 - 0.5 : x / 2 + 0.5;
}

void hide(const product *p, data *d, int row, int col, int count, int exponent)
{
    for (int i = 0; i < p->k; i++) {
        const int step = p->k / count;
        const bool is_small = i % step == 1 && i / step < count;
        *a_at(p, d, row, i) = is_small ? (float)(not_small() * ldexp(1, exponent)) : 1;
        *b_at(p, d, i, col) = is_small ? (float)symmetric() : 0;
    }
}

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

float *compute(tgl_device *dev, const product *p, const data *d)
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

typedef struct errors {
    double max, rms;
} errors;

/* ---- The reference --------------------------------------------------------------------------- */

truth truth_of(const product *p, const data *d, int z, int row, int col)
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

static void add_error(errors *e, double found, double right, double bound)
{
    /* An error of up to half of the least denormal number is caused by the type, not by the
     * arithmetic. */
    const double error = fabs(found - right);
    const double in_units = error <= 0x1p-150 ? 0 : error / (0x1p-24 * bound + 0x1p-150);
    if (!(in_units <= e->max)) e->max = in_units;
    e->rms += in_units * in_units;
}

/* Computes the errors of a result and of FFMA's result. Elements that overflow, or whose sum
 * overflows in FFMA's loop, count in neither. */
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

void check_errors(tgl_device *dev, const product *p, const data *d, bool has_small_rms)
{
    errors ours, ffma;
    float *result = compute(dev, p, d);
    measure(p, d, result, &ours, &ffma);
    free(result);
    if (getenv("TEGULA_TEST_VERBOSE") != NULL)
        printf("%-32s max %8.3g (FFMA %8.3g)  rms %8.3g (FFMA %8.3g)\n", p->name, ours.max,
               ffma.max, ours.rms, ffma.rms);
    const double error_max = 1.1 * ffma.max > 10 ? 1.1 * ffma.max : 10;
    if (!(ours.max <= error_max))
        fail_msg("%s: an error of %g, where %g is allowed", p->name, ours.max, error_max);
    if (has_small_rms && !(ours.rms <= 0.5 * ffma.rms))
        fail_msg("%s: RMS error of %g, and %g of FFMA", p->name, ours.rms, ffma.rms);
}

const char *const accurate_kernels[ACCURATE_KERNELS] = {"accurate_128x192", "accurate_128x160",
                                                        "accurate_128x128", "accurate_192x128",
                                                        "accurate_128x96",  "accurate_128x64"};

product square(const char *name, int k)
{
    return (product){
        .name = name, .kernel = "accurate_128x128", .m = 128, .n = 128, .k = k, .alpha = 1};
}
