/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how fast products with weights of 8 and 4 bits read these: bytes per second of the
 * weights with their factors and zero points, the rate of a copy on the same device, and the time
 * of the product with weights of 16 bits.
 *
 *     weight_rates [-d DEVICE] [-n N] [-k K] [-z] [-m ROWS] [-t WEIGHTS] [-a TYPES] [-g GROUPS]
 *                  [-r RUNS] [KERNEL...]
 *
 * ROWS of A (at most 16), WEIGHTS (i4, i8, 16), TYPES of A (f16, bf16) and GROUPS (k of a group
 * with factors of its own: 32, 64 or 128; 0: one factor for each column) are lists with commas; all
 * combinations are measured. -z: the weights have zero points. KERNEL: kernel strings for weights
 * of 8 and 4 bits, which are measured in addition to the planner's choice. RUNS: at most 99; 0: the
 * kernels are only compiled.
 *
 * Products use several matrices of weights in turn, which together are larger than any L2 cache.
 * Times are medians.
 */
#include "tegula/tegula.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS_MAX = 99, M_MAX = 16 };

/* The minimum size of all matrices of weights together. */
static const size_t ALL_BYTES = (size_t)1 << 30;

typedef struct settings {
    const char *device, *rows, *weights, *types, *groups;
    int64_t n, k;
    int runs;
    bool has_zeros;
    char **kernels; /* ends with NULL */
} settings;

/* A product that is measured. */
typedef struct product {
    const settings *of;
    tgl_type type, weights; /* types of A and of the weights; equal: weights of 16 bits */
    int64_t m;
    int group;
    const char *kernel; /* NULL: the planner's choice */
} product;

typedef struct operands {
    tgl_device *dev;
    char *weights; /* matrices of weights of at least ALL_BYTES together, unless RUNS is 0 */
    size_t bytes;
    void *A, *C, *factors, *zeros;
    double copy; /* rate of a copy in bytes per second; 0: unknown */
} operands;

static void must(tgl_status status)
{
    char text[1000];
    if (status == TGL_OK) return;
    tgl_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", tgl_status_name(status), text);
    exit(1);
}

/* Device memory with random 32-bit words, in which the bits outside of `mask` are replaced by those
 * of `bits`. */
static void *filled(tgl_device *dev, size_t bytes, unsigned mask, unsigned bits)
{
    const size_t words = bytes / 4 + 1;
    unsigned *host = malloc(words * 4), state = 1;
    void *memory;
    if (host == NULL) exit(1);
    for (size_t i = 0; i < words; i++) {
        state = state * 1664525u + 1013904223u;
        host[i] = ((state ^ state >> 15) & mask) | bits;
    }
    must(tgl_alloc(dev, words * 4, &memory));
    must(tgl_upload(dev, memory, host, words * 4, NULL));
    free(host);
    return memory;
}

static int compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The median time of a run of the plan. The runs use matrices of `bytes` bytes in turn. */
static double median_seconds(const operands *all, const tgl_plan *plan, tgl_operands *o,
                             size_t bytes, int runs)
{
    const size_t count = all->bytes / bytes;
    double seconds[RUNS_MAX];
    tgl_timer *timer;
    must(tgl_timer_create(all->dev, &timer));
    for (int i = -1; i < runs; i++) { /* the first run is not counted */
        must(tgl_timer_start(timer, NULL));
        for (size_t j = 0; j < count; j++) {
            o->B = all->weights + j * bytes;
            must(tgl_plan_run_operands(plan, o, NULL));
        }
        must(tgl_timer_stop(timer, NULL, &seconds[i < 0 ? 0 : i]));
    }
    qsort(seconds, (size_t)runs, sizeof *seconds, compare);
    tgl_timer_destroy(timer);
    return seconds[runs / 2] / (double)count;
}

static bool is_quantised(const product *p)
{
    return p->weights != p->type;
}

static tgl_problem problem_of(const product *p)
{
    tgl_problem problem;
    must(tgl_problem_init(&problem, sizeof problem, p->type, p->m, p->of->n, p->of->k));
    problem.type_b = p->weights;
    problem.trans_b = TGL_TRANS;
    problem.ldb = p->of->k;
    if (!is_quantised(p)) return problem;
    problem.scaling_b = p->group > 0 ? TGL_SCALING_GROUP : TGL_SCALING_LINE;
    problem.scale_group = p->group;
    problem.type_zero_b = p->of->has_zeros ? TGL_I8 : 0;
    return problem;
}

static size_t weight_bytes(const product *p)
{
    const size_t elements = (size_t)p->of->n * (size_t)p->of->k;
    return p->weights == TGL_I4 ? elements / 2 : p->weights == TGL_I8 ? elements : 2 * elements;
}

/* The size of the factors and zero points in bytes. */
static double factor_bytes(const product *p)
{
    const int64_t groups = p->group > 0 ? (p->of->k - 1) / p->group + 1 : 1;
    return is_quantised(p) ? (double)(p->of->n * groups * (p->of->has_zeros ? 5 : 4)) : 0;
}

static const char *name_of(tgl_type type)
{
    return type == TGL_I4 ? "i4" : type == TGL_I8 ? "i8" : type == TGL_F16 ? "f16" : "bf16";
}

/* Times a product and prints a line. */
static void measure(const operands *all, const product *p)
{
    const tgl_problem problem = problem_of(p);
    const tgl_plan_options options = {.size = sizeof options, .kernel = p->kernel};
    tgl_operands o = {.size = sizeof o, .alpha = 1, .A = all->A, .C = all->C};
    tgl_plan *plan;
    printf("%-4s %-4s %3lld %4d  ", name_of(p->type), name_of(p->weights), (long long)p->m,
           is_quantised(p) ? p->group : 0);
    if (tgl_plan_create(all->dev, &problem, &options, &plan) != TGL_OK) {
        printf("%26s  not for %s\n", "", p->kernel != NULL ? p->kernel : "this device");
        return;
    }
    if (p->of->runs == 0) {
        printf("%26s  %s\n", "", tgl_plan_kernel(plan));
        tgl_plan_destroy(plan);
        return;
    }
    if (is_quantised(p)) o.scale_b = all->factors;
    if (is_quantised(p) && p->of->has_zeros) o.zero_b = all->zeros;
    const double seconds = median_seconds(all, plan, &o, weight_bytes(p), p->of->runs);
    const double rate = ((double)weight_bytes(p) + factor_bytes(p)) / seconds;
    printf("%8.2f us  %7.1f GB/s %5.1f %%  %s%s\n", 1e6 * seconds, 1e-9 * rate,
           all->copy > 0 ? 100 * rate / all->copy : 0, p->kernel == NULL ? "planned: " : "",
           tgl_plan_kernel(plan));
    fflush(stdout);
    tgl_plan_destroy(plan);
}

/* ---- Combinations ---------------------------------------------------------------------------- */

/* Copies the next element of a list with commas to `to`. False: there is none. */
static bool next_of(const char **list, char to[16])
{
    if (**list == '\0') return false;
    const size_t length = strcspn(*list, ",");
    snprintf(to, 16, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

static void measure_kernels(const operands *all, product p)
{
    measure(all, &p);
    for (char **kernel = p.of->kernels; is_quantised(&p) && *kernel != NULL; kernel++) {
        p.kernel = *kernel;
        measure(all, &p);
    }
}

static void measure_groups(const operands *all, product p)
{
    const char *groups = is_quantised(&p) ? p.of->groups : "0";
    for (char group[16]; next_of(&groups, group);) {
        p.group = atoi(group);
        measure_kernels(all, p);
    }
}

static void measure_types(const operands *all, product p)
{
    const char *types = p.of->types;
    for (char type[16]; next_of(&types, type);) {
        const char *weights = p.of->weights;
        p.type = strcmp(type, "f16") == 0 ? TGL_F16 : TGL_BF16;
        for (char bits[16]; next_of(&weights, bits);) {
            p.weights = strcmp(bits, "i4") == 0   ? TGL_I4
                        : strcmp(bits, "i8") == 0 ? TGL_I8
                                                  : p.type;
            measure_groups(all, p);
        }
    }
}

static int64_t positive(const char *text)
{
    const long long number = atoll(text);
    if (number > 0) return number;
    fprintf(stderr, "weight_rates: %s is not a positive number\n", text);
    exit(2);
}

static int64_t rows_of(const char *text)
{
    const int64_t rows = positive(text);
    if (rows <= M_MAX) return rows;
    fprintf(stderr, "weight_rates: at most %d rows\n", (int)M_MAX);
    exit(2);
}

static settings read_settings(int argc, char **argv)
{
    settings s = {"cuda", "1,4,8,16", "i4,i8,16", "bf16", "128", 16384, 16384, 15, false, NULL};
    for (int option; (option = getopt(argc, argv, "d:n:k:r:zm:t:a:g:")) != -1;) {
        if (option == 'd')
            s.device = optarg;
        else if (option == 'n')
            s.n = positive(optarg);
        else if (option == 'k')
            s.k = positive(optarg);
        else if (option == 'r')
            s.runs = atoi(optarg);
        else if (option == 'z')
            s.has_zeros = true;
        else if (option == 'm')
            s.rows = optarg;
        else if (option == 't')
            s.weights = optarg;
        else if (option == 'a')
            s.types = optarg;
        else if (option == 'g')
            s.groups = optarg;
        else
            exit(2);
    }
    if (s.runs < 0 || s.runs > RUNS_MAX) exit(2);
    s.kernels = argv + optind;
    return s;
}

int main(int argc, char **argv)
{
    const settings s = read_settings(argc, argv);
    operands all = {.bytes = 2 * (size_t)s.n * (size_t)s.k};
    if (all.bytes < ALL_BYTES) all.bytes = ALL_BYTES;
    if (s.runs == 0) all.bytes = 1;
    must(tgl_device_open(s.device, NULL, &all.dev));
    if (s.runs == 0 || tgl_device_measure(all.dev, TGL_CEILING_COPY, &all.copy) != TGL_OK)
        all.copy = 0;
    all.weights = filled(all.dev, all.bytes, 0xffffffffu, 0);
    all.A = filled(all.dev, (size_t)(M_MAX * s.k * 2), 0x807f807fu, 0x3f003f00u);
    all.C = filled(all.dev, (size_t)(M_MAX * s.n * 2), 0, 0);
    all.factors = filled(all.dev, (size_t)(s.n * (s.k / 32 + 1) * 4), 0x807fffffu, 0x3f000000u);
    all.zeros = filled(all.dev, (size_t)(s.n * (s.k / 32 + 1)), 0x07070707u, 0);
    printf("%s, n=%lld k=%lld, copy %.1f GB/s\n", tgl_device_name(all.dev), (long long)s.n,
           (long long)s.k, 1e-9 * all.copy);
    printf("%-4s %-4s %3s %4s  %11s  %12s %7s\n", "A", "B", "m", "g", "time", "rate", "of copy");
    const char *rows = s.rows;
    for (char m[16]; next_of(&rows, m);)
        measure_types(&all, (product){.of = &s, .m = rows_of(m)});
    void *const memory[] = {all.weights, all.A, all.C, all.factors, all.zeros};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        tgl_free(all.dev, memory[i]);
    tgl_device_close(all.dev);
    return 0;
}
