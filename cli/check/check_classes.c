/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes products of all classes of inputs (input_classes.h), and checks the rules below. e is
 * the error that reference.h defines. FFMA is a loop of fused multiply-adds on the host, in
 * ascending order of k.
 *
 *   - The greatest e is at most the larger of 10 and 1.1 times FFMA's greatest e, and within the
 *     bound of `tegula check`.
 *   - If the kernel is not that of mode ieee, the geometric mean of the ratio RMS e / FFMA's RMS e,
 *     over the classes with CLASS_IN_MEAN and all k from 1024 on, is at most 1/2.
 *   - Grade A (J. Demmel et al., "How to grade the accuracy of an implementation of the BLAS",
 *     2024): the greatest e grows with k at most linearly. A line fitted to log e over log k has a
 *     slope of at most 1.
 *   - Results of classes with CLASS_EXACT are exact: products with matrices of zeros and ones, and
 *     sums of products of integers, whose magnitudes add up to less than 2^24 - 2^13.
 *   - Where a row of A or a column of B has Inf or NaN, the result has Inf and NaN in the same
 *     elements as FFMA's result.
 *   - For finite inputs, results of the kernel family accurate are not NaN. They are Inf only where
 *     the exact sum is beyond the range of f32 or FFMA's result is Inf. Kernels of other families
 *     are exempt where a partial sum may overflow, because a kernel that computes several partial
 *     sums of an element may add Inf and -Inf there.
 */
#include "check_classes.h"
#include "cli.h"
#include "csv.h"
#include "elements.h"
#include "input_classes.h"
#include "progress.h"
#include "reference.h"
#include "stats.h"
#include "timed_operands.h"
#include "workers.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const double max_error_floor = 10, max_error_ratio = 1.1, max_mean_ratio = 0.5,
                    max_slope = 1;
enum { MEAN_DEPTH = 1024 /* the least k of products whose RMS errors count */ };

/* The values of k, besides MEAN_DEPTH, for classes with CLASS_DEPTHS, in usual and in small runs. 0
 * ends each list. */
static const int64_t all_depths[] = {64, 256, 4096, 16384, 65536, 0},
                     few_depths[] = {64, 256, 2048, 0};

/* The parties whose results are compared. OURS: Tegula in the requested compute mode; IEEE: Tegula
 * in compute mode ieee on the same device; CUBLAS; FFMA: the loop of fused multiply-adds. */
enum { OURS, IEEE, CUBLAS, FFMA, PARTIES };
static const char *const party_names[] = {"tegula", "ieee", "cublas", "ffma"};

/* The comparison with the reference of one row of the results, or of all rows. */
typedef struct verdict {
    error_summary errors[PARTIES]; /* only the members max, finite and sum_squares are used */
    const char *failure;           /* the first rule that was violated; NULL: none was */
} verdict;

typedef struct trial {
    const input_class *of;
    bool is_accurate; /* whether Tegula's kernel is of the kernel family "accurate" */
    class_inputs x;   /* its A and B are the host matrices of `operands` */
    double *B;        /* x.B converted to double */
    operands operands;
    float *results[PARTIES];
    bool has[PARTIES];
    char kernels[PARTIES][96];
    verdict all;
    verdict *rows; /* one for each row of C; several threads compare the rows */
    atomic_int next_row;
} trial;

typedef struct class_run {
    const class_settings *settings;
    geometric_mean mean; /* geometric mean of (Tegula's RMS error / FFMA's RMS error) */
    int failed, products;
    double slope; /* for grade A: the greatest slope of the lines that are fitted, one for each
                     class with CLASS_DEPTHS, to log (greatest e) over log k */
} class_run;

/* ---- Products -------------------------------------------------------------------------------- */

/* Copies C to the device; if beta is 0, NaNs instead, because C must not be read then. room:
 * scratch memory of the size of C. */
static tgl_status upload_c(const trial *t, tgl_device *dev, float *room)
{
    memcpy(room, t->x.C, t->operands.size_c);
    if (t->x.beta == 0) memset(room, 0xff, t->operands.size_c);
    return tgl_upload(dev, t->operands.C, room, t->operands.size_c, NULL);
}

/* Makes the plan of a party, OURS or IEEE. If the requested kernel does not support this k, the
 * planner chooses a kernel. */
static tgl_status make_plan(const class_settings *s, const trial *t, int party, tgl_plan **plan)
{
    tgl_problem problem = t->operands.problem;
    const char *kernel = party == IEEE ? NULL : s->kernel;
    problem.compute = party == IEEE ? TGL_COMPUTE_IEEE : s->compute;
    const tgl_status status = cli_plan(s->dev, &problem, kernel, plan);
    if (status != TGL_UNSUPPORTED || kernel == NULL) return status;
    return cli_plan(s->dev, &problem, NULL, plan);
}

static tgl_status run_plan(const class_settings *s, trial *t, int party)
{
    tgl_plan *plan;
    CLI_TRY(make_plan(s, t, party, &plan));
    snprintf(t->kernels[party], sizeof t->kernels[party], "%s", tgl_plan_kernel(plan));
    tgl_status status = tgl_plan_run(plan, t->x.alpha, t->operands.A, t->operands.B, t->x.beta,
                                     t->operands.C, NULL);
    if (status == TGL_OK) status = tgl_device_sync(s->dev);
    tgl_plan_destroy(plan);
    return status;
}

/* Computes the product by Tegula, in the requested compute mode and in mode ieee, and by cuBLAS.
 * cuBLAS takes part only if alpha = 1 and beta = 0. */
static tgl_status multiply_by_all(const class_settings *s, trial *t)
{
    tgl_status status = operands_upload(&t->operands);
    t->has[OURS] = t->has[IEEE] = t->has[FFMA] = true;
    t->has[CUBLAS] = s->lib != NULL && t->x.alpha == 1 && t->x.beta == 0;
    for (int party = 0; party < FFMA && status == TGL_OK; party++) {
        if (!t->has[party]) continue;
        CLI_TRY(upload_c(t, s->dev, t->results[party]));
        CLI_TRY(party == CUBLAS ? cublas_multiply(s->lib, &t->operands, &t->has[CUBLAS])
                                : run_plan(s, t, party));
        status = tgl_download(s->dev, t->results[party], t->operands.C, t->operands.size_c, NULL);
    }
    return status;
}

/* Computes row i of FFMA's result. A fused multiply-add is emulated by (float)(sum + x * y) in
 * double, where x * y is exact. The result differs from a fused one only if the sum in double
 * rounds to the midpoint of two floats. sums: scratch memory for n doubles. */
static void run_ffma(trial *t, int64_t i, const double *a, const double *c, double *sums)
{
    const class_inputs *x = &t->x;
    memset(sums, 0, (size_t)x->n * sizeof *sums);
    for (int64_t p = 0; p < x->k; p++)
        for (int64_t j = 0; j < x->n; j++)
            sums[j] = (float)(sums[j] + a[p] * t->B[p * x->n + j]);
    for (int64_t j = 0; j < x->n; j++) {
        const double added = x->beta != 0 ? (float)x->beta * c[j] : 0;
        t->results[FFMA][i * x->n + j] = (float)((float)x->alpha * sums[j] + added);
    }
}

/* ---- Elements -------------------------------------------------------------------------------- */

static void note_failure(verdict *of, const char *why)
{
    if (of->failure == NULL) of->failure = why;
}

static bool is_same_pattern(float x, float y)
{
    return isnan(x) ? isnan(y) : isinf(x) ? x == y : isfinite(y);
}

/* Judges an element whose exact value is beyond 0.99 * FLT_MAX, or for which FFMA has
 * overflowed. */
static void judge_overflow(verdict *of, float ours, float ffma, double exact)
{
    const bool is_beyond = fabs(exact) > FLT_MAX;
    if (isnan(ours))
        note_failure(of, "NaN from finite inputs");
    else if (isinf(ours) && ours != ffma && !(is_beyond && (ours > 0) == (exact > 0)))
        note_failure(of, "an Inf that is neither the sum's nor FFMA's");
    else if (!isinf(ours) && fabs(exact) > 1.01 * FLT_MAX)
        note_failure(of, "a number where the sum is beyond F32");
}

/* Judges Tegula's element number `at` against its reference *e. If FFMA's and Tegula's elements are
 * finite, adds the errors of all parties' finite elements to *of. */
static void judge_element(const trial *t, int64_t at, const reference_element *e, verdict *of)
{
    const float ours = t->results[OURS][at], ffma = t->results[FFMA][at];
    const double exact = (double)e->value, unit = 0x1p-24 * (double)e->magnitude + 0x1p-149;
    if (!isfinite(exact)) {
        if (!is_same_pattern(ours, ffma))
            note_failure(of, "another pattern of Inf and NaN than FFMA's");
        return;
    }
    if (!t->is_accurate && e->magnitude > FLT_MAX) return;
    if (!isfinite(ffma) || fabs(exact) > 0.99 * FLT_MAX) {
        judge_overflow(of, ours, ffma, exact);
        return;
    }
    if (!isfinite(ours)) {
        note_failure(of, isnan(ours) ? "NaN from finite inputs" : "an Inf where FFMA has a number");
        return;
    }
    if ((t->of->flags & CLASS_EXACT) != 0 && ours != exact) note_failure(of, "not exact");
    for (int party = 0; party < PARTIES; party++) {
        if (!t->has[party] || !isfinite(t->results[party][at])) continue;
        const double error = fabs(t->results[party][at] - exact) / unit;
        of->errors[party].finite++;
        of->errors[party].sum_squares += error * error;
        if (error > of->errors[party].max) of->errors[party].max = error;
    }
}

/* Compares rows until none is left. For run_workers(): returns NULL, or another pointer if memory
 * is missing. */
static void *compare_rows(void *of)
{
    trial *t = of;
    const class_inputs *x = &t->x;
    double *row = malloc(sizeof *row * (size_t)(x->k + 2 * x->n)), *c = row + x->k,
           *sums = c + x->n;
    reference_element *expected = malloc(sizeof *expected * (size_t)x->n);
    const bool has_room = row != NULL && expected != NULL;
    int64_t i;
    while (has_room && (i = atomic_fetch_add(&t->next_row, 1)) < x->m) {
        element_read(TGL_F32, x->A, i * x->k, 1, x->k, row);
        element_read(TGL_F32, x->C, i * x->n, 1, x->n, c);
        reference_row(TGL_F32, x->n, x->k, (float)x->alpha, row, t->B, (float)x->beta, c, expected);
        run_ffma(t, i, row, c, sums);
        for (int64_t j = 0; j < x->n; j++)
            judge_element(t, i * x->n + j, &expected[j], &t->rows[i]);
    }
    free(row);
    free(expected);
    return has_room ? NULL : t;
}

/* Adds the comparisons of the rows to t->all, in the order of the rows. */
static void add_rows(trial *t)
{
    for (int64_t i = 0; i < t->x.m; i++) {
        const verdict *row = &t->rows[i];
        if (row->failure != NULL) note_failure(&t->all, row->failure);
        for (int party = 0; party < PARTIES; party++)
            error_merge(&t->all.errors[party], &row->errors[party]);
    }
}

/* ---- One trial ------------------------------------------------------------------------------- */

static bool allocate_trial(trial *t)
{
    class_inputs *x = &t->x;
    const size_t c = (size_t)(x->m * x->n);
    x->A = t->operands.host_a;
    x->B = t->operands.host_b;
    x->C = malloc(c * sizeof(float));
    t->B = malloc((size_t)(x->k * x->n) * sizeof(double));
    t->rows = calloc((size_t)x->m, sizeof *t->rows);
    bool has_all = x->C != NULL && t->B != NULL && t->rows != NULL;
    for (int party = 0; party < PARTIES; party++) {
        t->results[party] = malloc(c * sizeof(float));
        has_all = has_all && t->results[party] != NULL;
    }
    return has_all;
}

static void release_trial(trial *t)
{
    free(t->x.C);
    free(t->B);
    free(t->rows);
    for (int party = 0; party < PARTIES; party++)
        free(t->results[party]);
    operands_release(&t->operands);
}

static tgl_status compute_trial(const class_settings *s, trial *t)
{
    const tgl_problem problem = cli_problem(TGL_F32, t->x.m, t->x.n, t->x.k);
    random_state r;
    random_seed(&r, (uint64_t)s->seed, (uint64_t)t->x.k);
    CLI_TRY(operands_make(&t->operands, s->dev, &problem, false));
    if (!allocate_trial(t)) return TGL_NO_MEMORY;
    input_class_fill(t->of, &r, &t->x);
    element_read(TGL_F32, t->x.B, 0, 1, t->x.k * t->x.n, t->B);
    CLI_TRY(multiply_by_all(s, t));
    t->is_accurate = strncmp(t->kernels[OURS], "accurate", 8) == 0;
    if (!run_workers(s->threads, compare_rows, t)) return TGL_NO_MEMORY;
    add_rows(t);
    return TGL_OK;
}

/* Applies those rules at the head of this file that concern the greatest error of one product. */
static void judge_product(trial *t)
{
    const double error_max = fmax(max_error_floor, max_error_ratio * t->all.errors[FFMA].max);
    if (!(t->all.errors[OURS].max <= error_max)) note_failure(&t->all, "the greatest error");
    if (!(t->all.errors[OURS].max <= error_bound(t->x.k)))
        note_failure(&t->all, "above the bound of all sums");
}

static void add_to_mean(class_run *run, const trial *t)
{
    const double ours = error_rms(&t->all.errors[OURS]), ffma = error_rms(&t->all.errors[FFMA]);
    if ((t->of->flags & CLASS_IN_MEAN) != 0 && t->x.k >= MEAN_DEPTH && ours > 0 && ffma > 0 &&
        strcmp(t->kernels[OURS], t->kernels[IEEE]) != 0)
        geometric_mean_add(&run->mean, ours / ffma);
}

static void print_trial(const trial *t)
{
    printf("%-27s %5" PRId64 " %-22.22s", t->of->name, t->x.k, t->kernels[OURS]);
    for (int party = 0; party < PARTIES; party++) {
        const error_summary *e = &t->all.errors[party];
        if (e->finite > 0)
            printf(" %8.3f %8.3f", error_rms(e), e->max);
        else
            printf(" %8s %8s", "-", "-");
    }
    printf("%s%s\n", t->all.failure != NULL ? "  FAILS: " : "",
           t->all.failure != NULL ? t->all.failure : "");
}

static void write_trial(const class_settings *s, const trial *t)
{
    FILE *csv = s->csv->stream;
    fprintf(csv, "%s,f32,", tgl_device_name(s->dev));
    csv_put_text(csv, t->of->name);
    fprintf(csv, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",NN,1", t->x.m, t->x.n, t->x.k);
    static const int parties[] = {OURS, CUBLAS, FFMA, IEEE}; /* in the order of the columns of the
                                                                CSV file */
    for (int i = 0; i < PARTIES; i++) {
        const error_summary *e = &t->all.errors[parties[i]];
        if (e->finite > 0)
            fprintf(csv, ",%.6g,%.6g", error_rms(e), e->max);
        else
            fputs(",,", csv);
    }
    fputc(',', csv);
    csv_put_text(csv, t->kernels[OURS]);
    fputc('\n', csv);
    output_file_flush(s->csv);
}

/* Computes one product with m = n = size, and applies the rules to it. *max := Tegula's greatest
 * error in it. */
static tgl_status try_product(class_run *run, const input_class *c, int64_t size, int64_t k,
                              double *max)
{
    trial t = {.of = c, .x = {.m = size, .n = size, .k = k}};
    const tgl_status status = compute_trial(run->settings, &t);
    if (status == TGL_OK) {
        judge_product(&t);
        add_to_mean(run, &t);
        print_trial(&t);
        if (run->settings->csv->stream != NULL) write_trial(run->settings, &t);
        run->products++;
        run->failed += t.all.failure != NULL;
        *max = t.all.errors[OURS].max;
    }
    release_trial(&t);
    return status;
}

/* ---- All classes ----------------------------------------------------------------------------- */

/* Sums from which the least-squares line through points (x, y) follows. */
typedef struct fit {
    double count, x, y, xx, xy;
} fit;

static void add_point(fit *f, double x, double y)
{
    f->count++;
    f->x += x;
    f->y += y;
    f->xx += x * x;
    f->xy += x * y;
}

static double slope_of(const fit *f)
{
    return (f->count * f->xy - f->x * f->y) / (f->count * f->xx - f->x * f->x);
}

/* Runs a class with several values of k, and fits a line to the logarithms of its greatest errors.
 * max_at_mean: the greatest error at k = MEAN_DEPTH. */
static tgl_status try_depths(class_run *run, const input_class *c, double max_at_mean)
{
    const bool is_small = run->settings->small;
    const int64_t *depths = is_small ? few_depths : all_depths;
    fit f = {0};
    add_point(&f, log(MEAN_DEPTH), log(max_at_mean));
    for (int i = 0; depths[i] > 0; i++) {
        double max = 0;
        CLI_TRY(try_product(run, c, is_small ? 64 : 128, depths[i], &max));
        add_point(&f, log((double)depths[i]), log(max));
    }
    run->slope = fmax(run->slope, slope_of(&f));
    return TGL_OK;
}

/* Runs a class. In a small run, only classes with CLASS_IN_MEAN use k = MEAN_DEPTH. */
static tgl_status try_class(class_run *run, const input_class *c)
{
    enum { SMALL = 64, SMALL_DEPTH = 256, LARGE = 512 };
    const bool is_small = run->settings->small;
    const bool is_deep = !is_small || (c->flags & CLASS_IN_MEAN) != 0;
    double max = 0;
    CLI_TRY(
        try_product(run, c, is_small ? SMALL : LARGE, is_deep ? MEAN_DEPTH : SMALL_DEPTH, &max));
    return (c->flags & CLASS_DEPTHS) != 0 ? try_depths(run, c, max) : TGL_OK;
}

/* Prints the results of all classes together, and returns whether the rules that concern them
 * hold. */
static bool conclude_classes(const class_run *run)
{
    const double mean = geometric_mean_value(&run->mean);
    if (run->mean.count > 0)
        printf("RMS error over FFMA's, k >= %d: geometric mean %.3f of %d products (at most %.2f "
               "passes)\n",
               MEAN_DEPTH, mean, run->mean.count, max_mean_ratio);
    printf("grade A: the greatest error grows like k^%.2f (at most k^%.0f passes)\n", run->slope,
           max_slope);
    printf("%d of %d products of classes fail\n", run->failed, run->products);
    return run->failed == 0 && mean <= max_mean_ratio && run->slope <= max_slope;
}

tgl_status check_classes(const class_settings *settings, bool *passes)
{
    class_run run = {.settings = settings};
    const input_class *c;
    tgl_status status = TGL_OK;
    progress line;
    printf("\n%-56s", "");
    for (int party = 0; party < PARTIES; party++)
        printf(" %17s", party_names[party]);
    printf("\n%-56s", "class of inputs                 k kernel");
    for (int party = 0; party < PARTIES; party++)
        printf(" %8s %8s", "RMS", "max");
    putchar('\n');
    int count = 0;
    while (input_class_at(count) != NULL)
        count++;
    progress_start(&line, count);
    for (int i = 0; (c = input_class_at(i)) != NULL && status == TGL_OK; i++) {
        progress_update(&line, i, "classes");
        progress_clear(&line);
        status = try_class(&run, c);
    }
    progress_clear(&line);
    *passes = status == TGL_OK && conclude_classes(&run);
    return status;
}
