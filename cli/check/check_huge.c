/* SPDX-License-Identifier: Apache-2.0
 *
 * Huge products. Their matrices may not fit in the host's memory. Each element of A and B is
 * therefore taken from a table of random numbers, by its index in memory. Only short segments of
 * rows of C are compared.
 */
#include "check_huge.h"
#include "cli.h"
#include "kernel_names.h"
#include "progress.h"
#include "random.h"
#include "reference.h"
#include "timed_operands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBERS = 16777213, /* length of the table of random numbers; prime, so that successive rows
                           differ */
    GUARD_BYTES = 65536,
    SEGMENT = 64, /* maximum number of elements of a segment */
    SEGMENTS_MAX = 256,
    DEPTH_MAX = 1000000, /* for larger k, fewer segments are compared and splits=3 is left out: both
                            take long */
};
static const double max_products = 3e8; /* number of multiplications for the expected elements of a
                                           shape, which limits the length of segments; segments of
                                           one element may need more */

/* Columns: what is large; m, n, k; whether A and B are transposed; lda, ldb, ldc (0: tight); number
 * of products in the batch; stride of all matrices. All matrices are row-major. */
typedef struct huge_shape {
    const char *what;
    int64_t m, n, k;
    bool trans_a, trans_b;
    int64_t lda, ldb, ldc;
    int64_t batch, stride;
} huge_shape;

// clang-format off
#define FAR ((INT64_C(1) << 31) + 4)
static const huge_shape shapes[] = {
    {"C has 2^32 elements",       70000,    70000,    24,       false, false, 0,   0,   0,   1, 0},
    {"A has 2^31 elements",       34000003, 3,        65,       false, false, 0,   0,   0,   1, 0},
    {"A has 2^31 elements",       34000003, 40,       65,       false, false, 0,   0,   0,   1, 0},
    {"A^T has 2^31 elements",     34000003, 40,       65,       true,  false, 0,   0,   0,   1, 0},
    {"B has 2^31 elements",       5,        34000003, 65,       false, false, 0,   0,   0,   1, 0},
    {"B^T has 2^31 elements",     5,        34000003, 65,       false, true,  0,   0,   0,   1, 0},
    {"A has 2^31 elements",       28,       1,        80000003, false, false, 0,   0,   0,   1, 0},
    {"rows of A 2^31 apart",      7,        300,      300,      false, false, FAR, 0,   0,   1, 0},
    {"columns of A 2^31 apart",   300,      12,       7,        true,  false, FAR, 0,   0,   1, 0},
    {"rows of B 2^31 apart",      12,       300,      7,        false, false, 0,   FAR, 0,   1, 0},
    {"columns of B 2^31 apart",   300,      7,        300,      false, true,  0,   FAR, 0,   1, 0},
    {"rows of C 2^31 apart",      7,        300,      100,      false, false, 0,   0,   FAR, 1, 0},
    {"a batch, 2^30 apart",       100,      100,      100,      false, false, 0,   0,   0,   5, FAR / 2},
};
// clang-format on
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* A batch of matrices in device memory. Each element of A and B is numbers[its index in memory
 * modulo NUMBERS]. */
typedef struct huge_matrix {
    stored_matrix layout;
    void *memory; /* the allocation: a guard, the batch, a guard */
} huge_matrix;

/* A segment: `count` neighbouring elements of row i of product b of C, from column j on, and their
 * expected values. */
typedef struct segment {
    int64_t b, i, j;
    int count;
    reference_element expected[SEGMENT];
} segment;

typedef struct huge_run {
    tgl_device *dev;
    const float *numbers;
    tgl_problem problem;
    huge_matrix a, b, c;
    segment segments[SEGMENTS_MAX];
    int segment_count;
    int right, unsupported;
    char failure[256]; /* the first failure */
} huge_run;

/* ---- Matrices -------------------------------------------------------------------------------- */

static float *base_of(const huge_matrix *x)
{
    return (float *)x->memory + GUARD_BYTES / sizeof(float);
}

static tgl_status allocate_matrix(tgl_device *dev, huge_matrix *x)
{
    const size_t bytes = (size_t)x->layout.extent * sizeof(float) + 2 * GUARD_BYTES;
    return tgl_alloc(dev, bytes, &x->memory);
}

/* Sets the elements with the indices from, ..., from + count - 1 in the matrix's memory to their
 * random numbers. */
static tgl_status fill_range(const huge_run *run, const huge_matrix *x, int64_t from, int64_t count)
{
    while (count > 0) {
        const int64_t at = from % NUMBERS, left = NUMBERS - at, now = count < left ? count : left;
        CLI_TRY(tgl_upload(run->dev, base_of(x) + from, run->numbers + at,
                           (size_t)now * sizeof(float), NULL));
        from += now;
        count -= now;
    }
    return TGL_OK;
}

static tgl_status fill_matrix(const huge_run *run, const huge_matrix *x)
{
    const stored_matrix *l = &x->layout;
    const bool is_transposed = l->trans != TGL_NO_TRANS;
    const int64_t lines = is_transposed ? l->cols : l->rows;
    const int64_t length = is_transposed ? l->rows : l->cols, batch = run->problem.batch;
    if (l->ld == length && batch == 1) return fill_range(run, x, 0, l->extent);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t line = 0; line < lines; line++)
            CLI_TRY(fill_range(run, x, b * l->stride + line * l->ld, length));
    return TGL_OK;
}

/* Writes random numbers to the guards before and after C. If `write` is false, compares the guards
 * instead: *unharmed := whether they are unchanged. */
static tgl_status use_guards(const huge_run *run, bool write, bool *unharmed)
{
    const huge_matrix *c = &run->c;
    const void *guard = run->numbers;
    void *back = malloc(GUARD_BYTES), *ends[] = {c->memory, base_of(c) + c->layout.extent};
    *unharmed = true;
    tgl_status status = back != NULL ? TGL_OK : TGL_NO_MEMORY;
    for (int i = 0; i < 2 && status == TGL_OK; i++) {
        if (write)
            status = tgl_upload(run->dev, ends[i], guard, GUARD_BYTES, NULL);
        else if ((status = tgl_download(run->dev, back, ends[i], GUARD_BYTES, NULL)) == TGL_OK)
            *unharmed = *unharmed && memcmp(back, guard, GUARD_BYTES) == 0;
    }
    free(back);
    return status;
}

static tgl_status make_matrices(huge_run *run)
{
    bool unharmed;
    CLI_TRY(allocate_matrix(run->dev, &run->a));
    CLI_TRY(allocate_matrix(run->dev, &run->b));
    CLI_TRY(allocate_matrix(run->dev, &run->c));
    CLI_TRY(fill_matrix(run, &run->a));
    CLI_TRY(fill_matrix(run, &run->b));
    return use_guards(run, true, &unharmed);
}

static void free_matrices(huge_run *run)
{
    tgl_free(run->dev, run->a.memory);
    tgl_free(run->dev, run->b.memory);
    tgl_free(run->dev, run->c.memory);
}

/* ---- Segments to compare --------------------------------------------------------------------- */

static reference_element expected_element(const huge_run *run, int64_t b, int64_t i, int64_t j)
{
    const stored_matrix *A = &run->a.layout, *B = &run->b.layout;
    const int64_t step_a = stored_place(A, 0, 0, 1) % NUMBERS;
    const int64_t step_b = stored_place(B, 0, 1, 0) % NUMBERS;
    int64_t at_a = stored_place(A, b, i, 0) % NUMBERS, at_b = stored_place(B, b, 0, j) % NUMBERS;
    reference_element e = {0, 0};
    for (int64_t p = 0; p < run->problem.k; p++) {
        const double product = (double)run->numbers[at_a] * (double)run->numbers[at_b];
        e.value += product;
        e.magnitude += fabs(product);
        at_a += at_a + step_a < NUMBERS ? step_a : step_a - NUMBERS;
        at_b += at_b + step_b < NUMBERS ? step_b : step_b - NUMBERS;
    }
    return e;
}

/* Adds the segment of row i of product b that contains column j; does nothing if C has no such
 * element or the list is full. */
static void add_segment(huge_run *run, int64_t b, int64_t i, int64_t j)
{
    const tgl_problem *p = &run->problem;
    const bool is_inside = b >= 0 && b < p->batch && i >= 0 && i < p->m && j >= 0 && j < p->n;
    if (!is_inside || run->segment_count == SEGMENTS_MAX) return;
    const double affordable = max_products / SEGMENTS_MAX / (double)p->k;
    const int64_t count_max = affordable < 1         ? 1
                              : affordable < SEGMENT ? (int64_t)affordable
                                                     : SEGMENT;
    segment *x = &run->segments[run->segment_count++];
    *x = (segment){.b = b, .i = i, .j = j - count_max / 2 > 0 ? j - count_max / 2 : 0};
    x->count = (int)(p->n - x->j < count_max ? p->n - x->j : count_max);
    for (int at = 0; at < x->count; at++)
        x->expected[at] = expected_element(run, b, i, x->j + at);
}

/* Adds segments where the element index or byte offset of C, A or B crosses 2^31 or 2^32. */
static void add_crossings(huge_run *run, random_state *r)
{
    const tgl_problem *p = &run->problem;
    const int64_t lda = run->a.layout.ld, ldb = run->b.layout.ld, ldc = run->c.layout.ld;
    for (int bits = 29; bits <= 32; bits++) {
        const int64_t at = INT64_C(1) << bits, row = at / ldc, col = at % ldc;
        const int64_t i = p->trans_a != TGL_NO_TRANS ? at % lda : at / lda;
        const int64_t j = p->trans_b != TGL_NO_TRANS ? at / ldb : at % ldb;
        add_segment(run, 0, row, col < p->n ? col : p->n - 1);
        add_segment(run, 0, row - 1, p->n - 1);
        add_segment(run, 0, i, random_int(r, 0, p->n - 1));
        add_segment(run, 0, random_int(r, 0, p->m - 1), j);
    }
}

static void choose_segments(huge_run *run)
{
    const tgl_problem *p = &run->problem;
    random_state r;
    random_seed(&r, 11, 0);
    const int count_max = p->k > DEPTH_MAX ? 6 : SEGMENTS_MAX - 32;
    const int64_t i[] = {0, 0, p->m - 1, p->m - 1}, j[] = {0, p->n - 1, 0, p->n - 1};
    for (int corner = 0; corner < 4; corner++)
        add_segment(run, corner % 2 * (p->batch - 1), i[corner], j[corner]);
    while (run->segment_count < count_max)
        add_segment(run, random_int(&r, 0, p->batch - 1), random_int(&r, 0, p->m - 1),
                    random_int(&r, 0, p->n - 1));
    if (p->k <= DEPTH_MAX) add_crossings(run, &r);
}

/* ---- One kernel ------------------------------------------------------------------------------ */

static void *segment_address(const huge_run *run, const segment *x)
{
    return base_of(&run->c) + stored_place(&run->c.layout, x->b, x->i, x->j);
}

/* Fills all segments with NaN, so that results of an earlier kernel cannot pass for results of the
 * next kernel. */
static tgl_status forget_results(const huge_run *run)
{
    float nothing[SEGMENT];
    memset(nothing, 0xff, sizeof nothing);
    for (int i = 0; i < run->segment_count; i++) {
        const segment *x = &run->segments[i];
        CLI_TRY(tgl_upload(run->dev, segment_address(run, x), nothing,
                           (size_t)x->count * sizeof(float), NULL));
    }
    return TGL_OK;
}

/* Compares the segments with their expected values, and the guards. why: must be empty; receives
 * the first fault, if any. */
static tgl_status compare_segments(const huge_run *run, char *why, size_t why_size)
{
    float c[SEGMENT];
    error_summary errors = {0};
    tgl_status status = TGL_OK;
    for (int i = 0; i < run->segment_count && status == TGL_OK && why[0] == '\0'; i++) {
        const segment *x = &run->segments[i];
        status = tgl_download(run->dev, c, segment_address(run, x),
                              (size_t)x->count * sizeof(float), NULL);
        for (int at = 0; at < x->count && status == TGL_OK && why[0] == '\0'; at++) {
            double error;
            if (error_add(&errors, TGL_F32, (double)c[at], &x->expected[at],
                          error_bound(run->problem.k), &error))
                continue;
            snprintf(why, why_size,
                     "C[%" PRId64 "](%" PRId64 ", %" PRId64 ") is %.9g, the reference %.9Lg", x->b,
                     x->i, x->j + at, (double)c[at], x->expected[at].value);
        }
    }
    bool unharmed = true;
    if (status == TGL_OK) status = use_guards(run, false, &unharmed);
    if (!unharmed && why[0] == '\0') snprintf(why, why_size, "memory outside C was written");
    return status;
}

/* Runs and checks one kernel string (NULL: the planner's choice). is_split: true: it is no failure
 * if there is not enough memory for the kernel's workspace. False: the device is lost. */
static bool try_kernel(huge_run *run, const char *kernel, bool is_split)
{
    char why[160] = "", detail[100] = "";
    tgl_status status = forget_results(run);
    if (status == TGL_OK)
        status = cli_multiply(run->dev, &run->problem, kernel, 1, base_of(&run->a),
                              base_of(&run->b), 0, base_of(&run->c));
    if (status == TGL_UNSUPPORTED || status == TGL_GRID_TOO_LARGE ||
        (status == TGL_NO_MEMORY && is_split)) {
        run->unsupported++;
        return true;
    }
    if (status == TGL_OK) status = compare_segments(run, why, sizeof why);
    if (status != TGL_OK) {
        tgl_last_error(detail, sizeof detail);
        snprintf(why, sizeof why, "%s, %s", tgl_status_name(status), detail);
    }
    run->right += why[0] == '\0';
    if (why[0] != '\0' && run->failure[0] == '\0')
        snprintf(run->failure, sizeof run->failure, "%s: %s", kernel != NULL ? kernel : "auto",
                 why);
    return status != TGL_DEVICE_LOST;
}

/* Tries a kernel with the number of splits that the planner chooses and, unless that would take
 * minutes, with three. False: the device is lost. */
static bool try_named(huge_run *run, const char *name)
{
    char split[160];
    if (!try_kernel(run, name, false)) return false;
    if (run->problem.k > DEPTH_MAX || !kernel_has_option(name, "splits=3")) return true;
    snprintf(split, sizeof split, "%s:splits=3", name);
    return try_kernel(run, split, true);
}

/* Tries every kernel that `asked` includes (kernel_names.h), after the planner's choice if that is
 * included; or only `asked` itself, if it is a kernel string with options. False: the device is
 * lost. */
static bool try_kernels(huge_run *run, const char *asked)
{
    const char *name;
    if (strchr(asked, ':') != NULL) return try_kernel(run, asked, true);
    bool goes_on = kernel_is_auto_asked(run->dev, asked) ? try_kernel(run, NULL, false) : true;
    for (int i = 0; goes_on && (name = tgl_kernel_name(run->dev, i)) != NULL; i++)
        if (kernel_is_asked(run->dev, asked, name)) goes_on = try_named(run, name);
    return goes_on;
}

/* ---- All shapes ------------------------------------------------------------------------------ */

static int64_t scaled_size(int64_t size, bool rehearsal)
{
    return rehearsal && size > 4096 ? size / 1024 : size;
}

static void set_up(huge_run *run, const huge_shape *s, tgl_compute compute, bool rehearsal)
{
    tgl_problem p = cli_problem(TGL_F32, scaled_size(s->m, rehearsal), scaled_size(s->n, rehearsal),
                                scaled_size(s->k, rehearsal));
    p.compute = compute;
    p.batch = s->batch;
    p.stride_a = p.stride_b = p.stride_c = scaled_size(s->stride, rehearsal);
    p.trans_a = s->trans_a ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = s->trans_b ? TGL_TRANS : TGL_NO_TRANS;
    p.lda = scaled_size(s->lda, rehearsal);
    p.ldb = scaled_size(s->ldb, rehearsal);
    p.ldc = scaled_size(s->ldc, rehearsal);
    run->problem = p;
    run->a.layout = stored_a(&p);
    run->b.layout = stored_b(&p);
    run->c.layout = stored_result(&p);
}

static double gigabytes_of(const huge_run *run)
{
    return 4e-9 * ((double)run->a.layout.extent + (double)run->b.layout.extent +
                   (double)run->c.layout.extent);
}

/* Tries the kernels on a shape, and prints the results in one line. False: the device is lost. */
static bool try_shape(huge_run *run, const huge_shape *s, const char *asked)
{
    const tgl_problem *p = &run->problem;
    const double start = cli_clock();
    bool goes_on = true;
    tgl_status status = make_matrices(run);
    printf("%-25s %9" PRId64 " x %8" PRId64 " x %8" PRId64 " %c%c  %6.1f GB  ", s->what, p->m, p->n,
           p->k, "NT"[s->trans_a], "NT"[s->trans_b], gigabytes_of(run));
    if (status == TGL_OK) {
        choose_segments(run);
        goes_on = try_kernels(run, asked);
        printf("%3d right, %3d not for it, %5.1f s%s\n", run->right, run->unsupported,
               cli_clock() - start, run->failure[0] != '\0' ? ", FAILED:" : "");
        if (run->failure[0] != '\0') printf("  %s\n", run->failure);
    } else if (status == TGL_NO_MEMORY) {
        puts("left out: the memory is not enough");
    } else {
        char detail[200];
        tgl_last_error(detail, sizeof detail);
        snprintf(run->failure, sizeof run->failure, "%s", detail);
        printf("FAILED: %s\n", detail);
        goes_on = status != TGL_DEVICE_LOST;
    }
    fflush(stdout);
    free_matrices(run);
    return goes_on;
}

static float *make_numbers(void)
{
    float *numbers = malloc(NUMBERS * sizeof *numbers);
    random_state r;
    random_seed(&r, 10, 0);
    if (numbers != NULL) random_fill(&r, TGL_F32, numbers, NUMBERS);
    return numbers;
}

int check_huge(tgl_device *dev, const char *kernel, tgl_compute compute, bool rehearsal)
{
    float *numbers = make_numbers();
    huge_run *run = malloc(sizeof *run);
    int right = 0, failed = 0;
    bool goes_on = numbers != NULL && run != NULL;
    if (!goes_on) cli_fail("no memory for random numbers");
    for (int i = 0; i < SHAPES && goes_on; i++) {
        *run = (huge_run){.dev = dev, .numbers = numbers};
        set_up(run, &shapes[i], compute, rehearsal);
        goes_on = try_shape(run, &shapes[i], kernel);
        right += run->right;
        failed += run->failure[0] != '\0';
    }
    free(run);
    free(numbers);
    printf("%d products were right, %d shapes failed on %s\n", right, failed, tgl_device_name(dev));
    if (right == 0) return cli_fail("nothing was checked: no kernel, or no memory, for any shape");
    return failed == 0 && goes_on ? EXIT_DONE : EXIT_FAILED;
}
