/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one grouped product and compares it with a reference (grouped_case.h).
 */
#include "grouped_case.h"

#include "backend/backend.h"
#include "elements.h"

/* A matrix, or a batch of them, on the host and on the device. */
typedef struct stored {
    tgl_type type;
    int64_t lines, length, ld, stride, batch;
    size_t bytes;
    char *host;
    void *device;
} stored;

static stored make_stored(tgl_device *dev, tgl_type type, int64_t lines, int64_t length, int pad,
                          int64_t batch, random_state *r)
{
    stored x = {type, lines, length, length + pad, 0, batch, 0, NULL, NULL};
    x.stride = batch > 1 ? lines * x.ld : 0;
    const int64_t count = lines * x.ld * batch;
    x.bytes = (size_t)count * tgl_type_size(type);
    x.host = malloc(x.bytes + 1);
    assert_non_null(x.host);
    for (int64_t i = 0; i < count; i++)
        element_set(type, x.host, i,
                    i % x.ld < length ? (double)random_int(r, -3, 3) : (double)NAN);
    assert_status(tgl_alloc(dev, x.bytes, &x.device), TGL_OK);
    return x;
}

static int64_t place(const stored *x, int64_t i, int64_t line, int64_t at)
{
    return i * x->stride + line * x->ld + at;
}

static double get(const stored *x, int64_t i, int64_t line, int64_t at)
{
    return element_get(x->type, x->host, place(x, i, line, at));
}

static void free_stored(tgl_device *dev, stored *x)
{
    free(x->host);
    tgl_free(dev, x->device);
}

typedef struct grouped_data {
    stored A, B, C, D, bias, residual; /* host copies; that of D is from before the run */
    void *groups;
} grouped_data;

static grouped_data make_data(tgl_device *dev, const grouped_case *c)
{
    random_state r;
    grouped_data d;
    random_seed(&r, c->seed, 1);
    const bool depth = c->list.grouping == TGL_GROUPED_DEPTH,
               rows = c->list.grouping == TGL_GROUPED_ROWS;
    const bool flip_a = c->trans_a != c->is_column_major, flip_b = c->trans_b != c->is_column_major;
    const bool flip = c->is_column_major;
    const int64_t m = c->rows, n = c->n, k = c->k, count = c->list.count;
    d.A = make_stored(dev, c->type, flip_a ? k : m, flip_a ? m : k, c->pad_a,
                      rows || depth ? 1 : count, &r);
    d.B =
        make_stored(dev, c->type, flip_b ? n : k, flip_b ? k : n, c->pad_b, depth ? 1 : count, &r);
    d.C = make_stored(dev, c->separate_d ? c->type : c->result, flip ? n : m, flip ? m : n,
                      c->pad_c, rows ? 1 : count, &r);
    d.D = make_stored(dev, c->result, flip ? n : m, flip ? m : n, c->pad_c, rows ? 1 : count, &r);
    const bool is_row = c->bias == TGL_BIAS_ROW;
    d.bias = make_stored(dev, c->result, 1, is_row ? m : n, 0, is_row && rows ? 1 : count, &r);
    d.residual = make_stored(dev, c->result, flip ? n : m, flip ? m : n, 0, rows ? 1 : count, &r);
    assert_status(tgl_alloc(dev, (size_t)count * 4, &d.groups), TGL_OK);
    return d;
}

/* Fills A or B with NaN in every second group along k. A kernel that reads beyond the end of the
 * group before computes a wrong result. */
static void poison_depth(const grouped_case *c, const group_span *spans, grouped_data *d)
{
    for (int g = 1; g < c->list.count; g += 2) {
        const bool is_a = g % 4 == 1;
        stored *x = is_a ? &d->A : &d->B;
        const bool is_line = (is_a ? c->trans_a : !c->trans_b) != c->is_column_major;
        for (int64_t p = spans[g].first; p < spans[g].end; p++)
            for (int64_t i = 0; i < (is_a ? c->rows : c->n); i++)
                element_set(c->type, x->host, is_line ? place(x, 0, p, i) : place(x, 0, i, p), NAN);
    }
}

/* Fills the rows of A that belong to group 0 or to no group with NaN, unless A is transposed. */
static void poison_rows(const grouped_case *c, const group_span *spans, grouped_data *d)
{
    for (int64_t i = 0; i < d->A.lines * d->A.batch && !c->trans_a; i++) {
        const int64_t matrix = i / d->A.lines, row = i % d->A.lines;
        bool is_taken = false;
        for (int g = 0; g < c->list.count; g++)
            is_taken |= (c->list.grouping == TGL_GROUPED_ROWS || g == matrix) && g > 0 &&
                        row >= spans[g].first && row < spans[g].end;
        for (int64_t p = 0; p < c->k && !is_taken; p++)
            element_set(c->type, d->A.host, place(&d->A, matrix, row, p), NAN);
    }
}

/* out := the values of matrix i, line after line. Reading them once for all sums takes less time.
 */
static void read_matrix(const stored *x, int64_t i, double *out)
{
    for (int64_t line = 0; line < x->lines; line++)
        element_read(x->type, x->host, place(x, i, line, 0), 1, x->length, out + line * x->length);
}

/* The sum over p from `first` to `end` for an element of D. A, B: read_matrix() of the group's
 * matrices. */
static double sum_of(const grouped_case *c, const grouped_data *d, const double *A, const double *B,
                     const group_span *p, int64_t row, int64_t col)
{
    const bool flip_a = c->trans_a != c->is_column_major, flip_b = c->trans_b != c->is_column_major;
    const int64_t step_a = flip_a ? d->A.length : 1, step_b = flip_b ? 1 : d->B.length;
    const double *a = A + row * (flip_a ? 1 : d->A.length);
    const double *b = B + col * (flip_b ? d->B.length : 1);
    double sum = 0;
    for (int64_t i = p->first; i < p->end; i++)
        sum += a[i * step_a] * b[i * step_b];
    return sum;
}

/* An element of D from its sum of products over `depth` steps of K. */
static double finish_element(const grouped_case *c, const grouped_data *d, double sum,
                             int64_t depth, int64_t g, int64_t row, int64_t col)
{
    const bool rows = c->list.grouping == TGL_GROUPED_ROWS, flip = c->is_column_major;
    const int64_t of_d = rows ? 0 : g;
    const stored *old = c->separate_d ? &d->C : &d->D;
    double x = depth > 0 && c->alpha != 0 ? c->alpha * sum : 0;
    if (c->beta != 0) x += c->beta * get(old, of_d, flip ? col : row, flip ? row : col);
    if (c->bias == TGL_BIAS_ROW) x += get(&d->bias, rows ? 0 : g, 0, row);
    if (c->bias == TGL_BIAS_COLUMN) x += get(&d->bias, g, 0, col);
    if (c->has_relu && x < 0) x = 0;
    if (c->has_residual) x += get(&d->residual, of_d, flip ? col : row, flip ? row : col);
    return element_round(c->result, x);
}

/* expected := the contents of D that the run must leave. */
static void compute_reference(const grouped_case *c, const grouped_data *d, const group_span *spans,
                              char *expected)
{
    const bool flip = c->is_column_major, depth = c->list.grouping == TGL_GROUPED_DEPTH;
    double *A = malloc((size_t)(d->A.lines * d->A.length + 1) * sizeof *A);
    double *B = malloc((size_t)(d->B.lines * d->B.length + 1) * sizeof *B);
    assert_true(A != NULL && B != NULL);
    memcpy(expected, d->D.host, d->D.bytes);
    for (int64_t g = 0; g < c->list.count; g++) {
        const group_span all = {0, c->k}, whole = {0, c->rows};
        const group_span along_k = depth ? spans[g] : all, rows = depth ? whole : spans[g];
        if (g == 0 || d->A.batch > 1) read_matrix(&d->A, g, A);
        if (g == 0 || d->B.batch > 1) read_matrix(&d->B, g, B);
        for (int64_t row = rows.first; row < rows.end; row++)
            for (int64_t col = 0; col < c->n; col++)
                element_set(c->result, expected,
                            place(&d->D, c->list.grouping == TGL_GROUPED_ROWS ? 0 : g,
                                  flip ? col : row, flip ? row : col),
                            finish_element(c, d, sum_of(c, d, A, B, &along_k, row, col),
                                           along_k.end - along_k.first, g, row, col));
    }
    free(A);
    free(B);
}

static void upload(tgl_device *dev, const stored *x)
{
    assert_status(tgl_upload(dev, x->device, x->host, x->bytes, NULL), TGL_OK);
}

static tgl_problem problem_of_case(const grouped_case *c, const grouped_data *d)
{
    tgl_problem p;
    assert_status(tgl_problem_init(&p, sizeof p, c->type, c->rows, c->n, c->k), TGL_OK);
    p.order = c->is_column_major ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
    p.trans_a = c->trans_a ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = c->trans_b ? TGL_TRANS : TGL_NO_TRANS;
    p.type_c = d->C.type;
    p.type_d = c->separate_d ? c->result : 0;
    p.lda = d->A.ld;
    p.ldb = d->B.ld;
    p.ldc = d->C.ld;
    p.ldd = c->separate_d ? d->D.ld : 0;
    p.batch = c->list.count;
    p.stride_a = d->A.stride;
    p.stride_b = d->B.stride;
    p.stride_c = d->C.stride;
    p.stride_d = c->separate_d ? d->D.stride : 0;
    p.compute = c->compute;
    p.grouping = c->list.grouping;
    p.group_form = c->list.form;
    return p;
}

/* Limits the grids of the plan's persistent launches. */
static void limit_grids(tgl_plan *plan, unsigned blocks)
{
    for (int i = 0; i < plan->list.step_count; i++)
        for (int j = 0; j < plan->list.steps[i].launch_count; j++) {
            tgl_launch *launch = &plan->list.steps[i].launches[j];
            if (launch->is_persistent && launch->grid[0] > blocks) launch->grid[0] = blocks;
        }
}

static tgl_status run_plan(tgl_device *dev, const grouped_case *c, const grouped_data *d)
{
    const tgl_problem problem = problem_of_case(c, d);
    const tgl_epilogue epilogue = {.size = sizeof epilogue,
                                   .bias = c->bias,
                                   .activation = c->has_relu ? TGL_ACTIVATION_RELU : 0,
                                   .residual = c->has_residual,
                                   .stride_bias = d->bias.stride,
                                   .stride_residual = d->residual.stride};
    const bool has_epilogue = c->bias != 0 || c->has_relu || c->has_residual;
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = c->kernel, .epilogue = has_epilogue ? &epilogue : NULL};
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = c->alpha,
                                   .beta = c->beta,
                                   .A = d->A.device,
                                   .B = d->B.device,
                                   .C = c->separate_d ? d->C.device : d->D.device,
                                   .D = c->separate_d ? d->D.device : NULL,
                                   .bias = c->bias != 0 ? d->bias.device : NULL,
                                   .residual = c->has_residual ? d->residual.device : NULL,
                                   .groups = d->groups};
    tgl_plan *plan;
    tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    if (status != TGL_OK) return status;
    if (c->blocks > 0) limit_grids(plan, c->blocks);
    status = tgl_plan_run_operands(plan, &operands, NULL);
    tgl_plan_destroy(plan);
    return status;
}

static void compare(const grouped_case *c, const grouped_data *d, const char *found,
                    const char *expected)
{
    const int64_t count = (int64_t)(d->D.bytes / tgl_type_size(c->result));
    for (int64_t i = 0; i < count; i++) {
        const double x = element_get(c->result, found, i), y = element_get(c->result, expected, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        fail_msg("grouping %d form %d %s of %d groups %d,%d,%d.. rows %lld n %lld k %lld %s%s beta "
                 "%g kernel %s seed %llu: D[%lld][%lld] of matrix %lld is %g, not %g",
                 c->list.grouping, c->list.form, element_type_name(c->type), c->list.count,
                 c->list.groups[0], c->list.groups[1], c->list.groups[2], (long long)c->rows,
                 (long long)c->n, (long long)c->k, c->trans_a ? "T" : "N", c->trans_b ? "T" : "N",
                 c->beta, c->kernel != NULL ? c->kernel : "NULL", (unsigned long long)c->seed,
                 (long long)(i / d->D.ld % d->D.lines), (long long)(i % d->D.ld),
                 (long long)(i / d->D.ld / d->D.lines), x, y);
    }
}

tgl_status run_grouped(tgl_device *dev, const grouped_case *c)
{
    group_span spans[GROUPS_MAX];
    grouped_data d = make_data(dev, c);
    stored *const all[] = {&d.A, &d.B, &d.C, &d.D, &d.bias, &d.residual};
    char *expected = malloc(d.D.bytes + 1), *found = malloc(d.D.bytes + 1);
    assert_non_null(expected);
    assert_non_null(found);
    find_group_spans(&c->list, c->list.grouping == TGL_GROUPED_DEPTH ? c->k : c->rows, spans);
    if (c->has_poison && c->list.grouping == TGL_GROUPED_DEPTH) poison_depth(c, spans, &d);
    if (c->has_poison && c->list.grouping != TGL_GROUPED_DEPTH) poison_rows(c, spans, &d);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        upload(dev, all[i]);
    assert_status(tgl_upload(dev, d.groups, c->list.groups, (size_t)c->list.count * 4, NULL),
                  TGL_OK);
    const tgl_status status = run_plan(dev, c, &d);
    if (status == TGL_OK)
        compute_reference(c, &d, spans, expected);
    else
        memcpy(expected, d.D.host, d.D.bytes);
    assert_status(tgl_download(dev, found, d.D.device, d.D.bytes, NULL), TGL_OK);
    compare(c, &d, found, expected);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        free_stored(dev, all[i]);
    tgl_free(dev, d.groups);
    free(expected);
    free(found);
    return status;
}
