/* SPDX-License-Identifier: Apache-2.0
 *
 * The first part of `tegula check --accuracy`: the errors e (reference.h) of products of many
 * shapes, over elements drawn from all of C. It compares the errors of Tegula, of cuBLAS in the
 * same arithmetic, and of a loop of fused multiply-adds over k.
 *
 * The part passes if no element exceeds error_bound_of() (reference.h). If cuBLAS is available, two
 * more conditions must hold:
 * - Over all products, the geometric mean of (Tegula's RMS error / cuBLAS's RMS error) is at most
 *   `max_mean_ratio`.
 * - No product's RMS error is more than `max_single_ratio` times the larger of the RMS errors of
 *   cuBLAS and of the loop.
 *
 * Both limits are above 1, because the compared elements are a random sample, and because errors
 * depend on the order of summation even where no order is better. The second limit includes the
 * loop's error, because for sums of 16 products the sequential order is at times more exact than
 * any other by more than 10 %.
 */
#include "check_accuracy.h"
#include "check_classes.h"
#include "check_lu.h"
#include "cli.h"
#include "csv.h"
#include "cublas.h"
#include "elements.h"
#include "kernel_names.h"
#include "output_file.h"
#include "problem_options.h"
#include "progress.h"
#include "random.h"
#include "reference.h"
#include "stats.h"
#include "timed_operands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double max_mean_ratio = 1.01, max_single_ratio = 1.1;
enum { SAMPLES = 4096 }; /* number of elements of a large C that are compared */

/* Columns: m, n, k; whether A is transposed; whether B is; number of products in the batch. */
typedef struct accuracy_shape {
    int64_t m, n, k;
    bool trans_a, trans_b;
    int64_t batch;
} accuracy_shape;

// clang-format off
static const accuracy_shape shapes[] = {
    {33,   35,   300,   false, false, 1}, {4,    100,  1000,  false, false, 1},
    {16,   16,   16,    false, false, 8}, {256,  256,  256,   false, false, 1},
    {512,  512,  512,   false, false, 1}, {1023, 1025, 1027,  false, false, 1},
    {2048, 2048, 1024,  false, false, 1}, {4096, 4096, 1024,  false, false, 1},
    {1000, 1000, 1000,  true,  false, 1}, {1000, 1000, 1000,  false, true,  1},
    {1000, 1000, 1000,  true,  true,  1}, {64,   64,   65536, false, false, 1},
    {128,  128,  16384, false, false, 1}, {512,  512,  4096,  false, true,  1},
    {16,   4096, 4096,  false, false, 1}, {1,    4096, 4096,  false, true,  1},
    {4096, 1,    4096,  false, false, 1}, {4096, 4096, 64,    false, false, 1},
    {64,   64,   64,    false, false, 100},
};
// clang-format on
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* The distributions of inputs that are used. CANCELLATION is not: its products cancel in pairs, so
 * the errors would depend on the order of summation alone. */
static const inputs kinds[] = {UNIFORM_01, UNIFORM_11, NORMAL, WIDE};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* A party computes the products whose errors are compared: Tegula, cuBLAS, and a sequential loop
 * (sequential_sum()). */
enum { OURS, CUBLAS, SEQUENTIAL, PARTIES };
static const char *const party_names[] = {"tegula", "cublas", "sequential"};

/* One product, on inputs of one distribution. */
typedef struct trial {
    tgl_problem problem;
    inputs inputs;
    operands operands;
    double *A, *B; /* op(A) and op(B) of one product of the batch, as doubles */
    error_summary errors[PARTIES];
    bool has[PARTIES];
} trial;

typedef struct accuracy_run {
    tgl_device *dev;
    cublas *lib; /* NULL: there is none */
    tgl_type type, type_c;
    tgl_compute compute;
    int64_t seed;
    int threads;
    output_file csv;
    geometric_mean mean; /* geometric mean of (Tegula's RMS error / cuBLAS's RMS error) */
    double worst;
    int failed;
    char where[96]; /* the shape with the ratio `worst` */
} accuracy_run;

/* ---- One trial ------------------------------------------------------------------------------- */

static void store_batch(const stored_matrix *x, void *memory, int64_t b, const double *X)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++)
            element_set(x->type, memory, stored_place(x, b, i, j), X[i * x->cols + j]);
}

/* Draws A and B of all products of the batch, and copies them to the device. */
static tgl_status fill_inputs(const accuracy_run *run, trial *t)
{
    const tgl_problem *p = &t->problem;
    const operands *o = &t->operands;
    random_state r;
    random_seed(&r, (uint64_t)run->seed, (uint64_t)t->inputs);
    for (int64_t b = 0; b < p->batch; b++) {
        random_inputs(&r, t->inputs, p->type_a, p->m, p->n, p->k, t->A, t->B);
        store_batch(&o->a, o->host_a, b, t->A);
        store_batch(&o->b, o->host_b, b, t->B);
    }
    return operands_upload(o);
}

/* Element (i, j) of product b, computed by a sequential loop over k of fused multiply-adds in the
 * accumulation type. For f32 each fused multiply-add is emulated by (float)(sum + x * y) in double,
 * where x * y is exact. The result differs from a fused one only if the sum in double rounds to the
 * midpoint of two floats. */
static double sequential_sum(const trial *t, int64_t b, int64_t i, int64_t j)
{
    const operands *o = &t->operands;
    double sum = 0;
    for (int64_t p = 0; p < t->problem.k; p++) {
        const double x = element_get(o->a.type, o->host_a, stored_place(&o->a, b, i, p));
        const double y = element_get(o->b.type, o->host_b, stored_place(&o->b, b, p, j));
        sum = o->a.type == TGL_F64 ? fma(x, y, sum) : (double)(float)(sum + x * y);
    }
    return element_round(o->result.type, sum);
}

/* Adds the errors of all elements of a small C, or of SAMPLES random elements of a large one, to
 * t->errors of each party. */
static void compare_results(const accuracy_run *run, trial *t, void *const results[PARTIES])
{
    const tgl_problem *p = &t->problem;
    const stored_matrix *result = &t->operands.result;
    const int64_t count = p->m * p->n * p->batch;
    const double bound = error_bound_of(p, !cli_device_is_host(run->dev));
    random_state r;
    random_seed(&r, 7, 0);
    for (int64_t n = 0; n < SAMPLES && n < count; n++) {
        const int64_t at = count <= SAMPLES ? n : random_int(&r, 0, count - 1);
        const int64_t b = at / (p->m * p->n), i = at / p->n % p->m, j = at % p->n;
        const reference_element e = operands_expected(&t->operands, b, i, j, 0);
        for (int party = 0; party < PARTIES; party++) {
            if (!t->has[party]) continue;
            const double x = party == SEQUENTIAL ? sequential_sum(t, b, i, j)
                                                 : element_get(result->type, results[party],
                                                               stored_place(result, b, i, j));
            double error;
            error_add(&t->errors[party], result->type, x, &e, bound, &error);
        }
    }
}

/* Fills C with NaN, computes the product by one party (OURS or CUBLAS), and copies C to
 * `result`. */
static tgl_status multiply_by_party(const accuracy_run *run, trial *t, int party, void *result)
{
    const operand_set set = operands_for(&t->operands, 0);
    CLI_TRY(operands_forget_result(&t->operands, result));
    CLI_TRY(party == OURS ? tgl_gemm(run->dev, &t->problem, 1, set.A, set.B, 0, set.C, NULL)
                          : cublas_multiply(run->lib, &t->operands, &t->has[party]));
    return operands_download_result(&t->operands, result);
}

static tgl_status try_parties(const accuracy_run *run, trial *t)
{
    void *results[PARTIES] = {NULL};
    tgl_status status = fill_inputs(run, t);
    t->has[OURS] = t->has[SEQUENTIAL] = true;
    t->has[CUBLAS] = run->lib != NULL;
    for (int party = OURS; party <= CUBLAS && status == TGL_OK; party++) {
        if (!t->has[party]) continue;
        results[party] = malloc(t->operands.size_c);
        status = results[party] != NULL ? multiply_by_party(run, t, party, results[party])
                                        : TGL_NO_MEMORY;
    }
    if (status == TGL_OK) compare_results(run, t, results);
    free(results[OURS]);
    free(results[CUBLAS]);
    return status;
}

static tgl_status try_trial(const accuracy_run *run, trial *t)
{
    const tgl_problem *p = &t->problem;
    tgl_status status = operands_make(&t->operands, run->dev, p, false);
    t->A = malloc(sizeof(double) * (size_t)(p->m * p->k));
    t->B = malloc(sizeof(double) * (size_t)(p->k * p->n));
    if (status == TGL_OK)
        status = t->A != NULL && t->B != NULL ? try_parties(run, t) : TGL_NO_MEMORY;
    free(t->A);
    free(t->B);
    operands_release(&t->operands);
    return status;
}

/* ---- Results --------------------------------------------------------------------------------- */

static void write_line(accuracy_run *run, const trial *t)
{
    const tgl_problem *p = &t->problem;
    FILE *csv = run->csv.stream;
    fprintf(csv, "%s,%s,", tgl_device_name(run->dev), problem_type_label(p).text);
    csv_put_text(csv, inputs_name(t->inputs));
    fprintf(csv, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%" PRId64, p->m, p->n, p->k,
            problem_layout(p), p->batch);
    for (int party = 0; party < PARTIES; party++) {
        const error_summary *e = &t->errors[party];
        if (t->has[party])
            fprintf(csv, ",%.6g,%.6g", error_rms(e), e->max);
        else
            fputs(",,", csv);
    }
    fputs(",,,\n", csv);
    output_file_flush(&run->csv);
}

static void judge(accuracy_run *run, const trial *t, const char *what)
{
    const double ours = error_rms(&t->errors[OURS]), peer = error_rms(&t->errors[CUBLAS]);
    const double sequential = error_rms(&t->errors[SEQUENTIAL]);
    const bool is_wrong = t->errors[OURS].wrong > 0;
    const bool is_worse =
        t->has[CUBLAS] && ours > max_single_ratio * (peer > sequential ? peer : sequential);
    if (is_wrong || is_worse) run->failed++;
    printf("%-45s", what);
    for (int party = 0; party < PARTIES; party++) {
        if (t->has[party])
            printf(" %7.3f %7.3f", error_rms(&t->errors[party]), t->errors[party].max);
        else
            printf(" %7s %7s", "-", "-");
    }
    if (t->has[CUBLAS] && ours > 0 && peer > 0) {
        const double ratio = ours / peer;
        if (run->mean.count == 0 || ratio > run->worst) {
            run->worst = ratio;
            snprintf(run->where, sizeof run->where, "%s", what);
        }
        geometric_mean_add(&run->mean, ratio);
        printf("  x%.3f", ratio);
    }
    puts(is_wrong ? "  WRONG" : is_worse ? "  WORSE" : "");
}

static tgl_status try_shape(accuracy_run *run, const accuracy_shape *s, inputs kind)
{
    trial t = {.problem = cli_problem(run->type, s->m, s->n, s->k), .inputs = kind};
    tgl_problem *p = &t.problem;
    p->trans_a = s->trans_a ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = s->trans_b ? TGL_TRANS : TGL_NO_TRANS;
    p->compute = run->compute;
    p->batch = s->batch;
    if (run->type_c != 0) p->type_c = run->type_c;
    problem_set_strides(p);
    CLI_TRY(try_trial(run, &t));
    char what[96];
    snprintf(what, sizeof what, "%-9s %" PRId64 "x%" PRId64 "x%" PRId64 " %s, batch %" PRId64,
             inputs_name(kind), p->m, p->n, p->k, problem_layout(p), p->batch);
    judge(run, &t, what);
    if (run->csv.stream != NULL) write_line(run, &t);
    return TGL_OK;
}

/* Prints the geometric mean and the worst ratio of errors, and the number of products that fail.
 * Returns an exit code. */
static int conclude_shapes(const accuracy_run *run)
{
    const double mean = geometric_mean_value(&run->mean);
    if (run->mean.count > 0)
        printf("RMS error over cuBLAS's on %s: geometric mean %.3f (at most %.2f passes), greatest "
               "%.3f at %s\n",
               tgl_device_name(run->dev), mean, max_mean_ratio, run->worst, run->where);
    printf("%d products are wrong%s\n", run->failed,
           run->mean.count > 0
               ? ", or less exact than cuBLAS's and a sequential sum by more than a tenth"
               : "");
    return run->failed == 0 && mean <= max_mean_ratio ? EXIT_DONE : EXIT_FAILED;
}

/* Runs the first part of the check: compares Tegula's errors with those of cuBLAS and of the
 * sequential loop. Returns an exit code. */
static int check_shapes(accuracy_run *run, bool small)
{
    progress line;
    tgl_status status = TGL_OK;
    printf("%-45s %15s %15s %15s\n%-45s", "", party_names[OURS], party_names[CUBLAS],
           party_names[SEQUENTIAL], "inputs, product");
    for (int party = 0; party < PARTIES; party++)
        printf(" %7s %7s", "RMS", "max");
    puts("  RMS over cuBLAS's");
    progress_start(&line, KINDS * SHAPES);
    for (int i = 0; i < KINDS * SHAPES && status == TGL_OK; i++) {
        const accuracy_shape *s = &shapes[i % SHAPES];
        if (small && s->m * s->n * s->k * s->batch > 1000000) continue;
        progress_update(&line, i, "accuracy");
        progress_clear(&line);
        status = try_shape(run, s, kinds[i / SHAPES]);
    }
    progress_clear(&line);
    return status == TGL_OK ? conclude_shapes(run) : cli_fail_status(status);
}

static void write_heading(FILE *csv, const tgl_device *dev)
{
    csv_put_origin(csv, dev);
    fputs("device,type,inputs,m,n,k,layout,batch", csv);
    for (int party = 0; party < PARTIES; party++)
        fprintf(csv, ",%s_rms,%s_max", party_names[party], party_names[party]);
    fputs(",ieee_rms,ieee_max,kernel\n", csv);
}

/* Runs the second part of the check, check_classes(), and the third, check_lu(). They are for f32
 * products in a compute mode that keeps the error bound of FP32 sums; see has_classes(). Returns an
 * exit code. */
static int check_f32(accuracy_run *run, const char *kernel, bool small)
{
    const class_settings settings = {.dev = run->dev,
                                     .lib = run->lib,
                                     .compute = run->compute,
                                     .kernel = kernel,
                                     .seed = run->seed,
                                     .threads = run->threads,
                                     .small = small,
                                     .csv = &run->csv};
    bool passes = false, lu_passes = false;
    tgl_status status = check_classes(&settings, &passes);
    if (status == TGL_OK) status = check_lu(run->dev, run->compute, kernel, small, &lu_passes);
    if (status != TGL_OK) return cli_fail_plan(run->dev, "accuracy", status);
    return passes && lu_passes ? EXIT_DONE : EXIT_FAILED;
}

static bool has_classes(const accuracy_run *run)
{
    return run->type == TGL_F32 && (run->type_c == 0 || run->type_c == TGL_F32) &&
           run->compute != TGL_COMPUTE_TF32;
}

int check_accuracy(tgl_device *dev, tgl_type type, tgl_type type_c, tgl_compute compute,
                   const char *kernel, int64_t seed, int threads, bool small, const char *csv)
{
    accuracy_run run = {.dev = dev,
                        .type = type,
                        .type_c = type_c,
                        .compute = compute,
                        .seed = seed,
                        .threads = threads};
    char message[512];
    if (kernel != NULL && !has_classes(&run))
        return cli_misuse("--accuracy takes --kernel for f32 only, without tf32");
    if (kernel != NULL && !kernel_is_one(dev, kernel)) return cli_unknown_kernel(dev, kernel);
    if (!output_file_open(&run.csv, csv)) return EXIT_FAILED;
    if (run.csv.stream != NULL) write_heading(run.csv.stream, dev);
    if (!cli_device_is_host(dev)) {
        run.lib = cublas_open(dev, message, sizeof message);
        if (run.lib == NULL) printf("without cuBLAS: %s\n", message);
    }
    int code = kernel == NULL ? check_shapes(&run, small) : EXIT_DONE;
    if (has_classes(&run)) {
        const int of_classes = check_f32(&run, kernel, small);
        if (of_classes != EXIT_DONE) code = of_classes;
    }
    cublas_close(run.lib);
    return output_file_close(&run.csv) ? code : EXIT_FAILED;
}
