/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: the API. The input bytes become a problem, valid or not. If tgl_problem_check()
 * returns an error, tgl_gemm() and tgl_plan_create() must return the same status without accessing
 * the pointers. Otherwise small products of F32 and F64 must be correct, with every buffer at an
 * inaccessible page; of other types, a plan is made.
 *
 *     fuzz_api -max_total_time=60
 */
#include "gemm_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* ---- Bytes to problems ----------------------------------------------------------------------- */

typedef struct source {
    const uint8_t *bytes;
    size_t size;
} source;

static unsigned take(source *from)
{
    if (from->size == 0) return 0;
    from->size--;
    return *from->bytes++;
}

/* A size that is usually small and sometimes near the limits of int64_t. */
static int64_t take_count(source *from, unsigned largest)
{
    static const int64_t odd[] = {-1,
                                  INT64_MIN,
                                  INT64_MAX,
                                  INT64_MAX / 4,
                                  INT64_MAX / 8 + 1,
                                  (int64_t)1 << 31,
                                  (int64_t)1 << 32,
                                  1000};
    const unsigned byte = take(from);
    return byte < 248 ? (int64_t)(byte % largest) : odd[byte - 248];
}

/* A value from `first` to first + count - 1, and sometimes a value outside this range. */
static int take_enum(source *from, int first, int count)
{
    const unsigned byte = take(from);
    return byte < 250 ? first + (int)byte % count : first - 1 + (int)(byte - 250) * 2;
}

static tgl_problem take_problem(source *from)
{
    tgl_problem p = problem_of((tgl_type)take_enum(from, TGL_F32, 2), take_count(from, 48),
                               take_count(from, 48), take_count(from, 48));
    p.order = (tgl_order)take_enum(from, TGL_ROW_MAJOR, 2);
    p.trans_a = (tgl_transpose)take_enum(from, TGL_NO_TRANS, 3);
    p.trans_b = (tgl_transpose)take_enum(from, TGL_NO_TRANS, 3);
    const unsigned flags = take(from);
    if (flags & 1) {
        p.lda = take_count(from, 64);
        p.ldb = take_count(from, 64);
        p.ldc = take_count(from, 64);
    }
    if (flags & 2) {
        p.batch = take_count(from, 4);
        p.stride_a = take_count(from, 200);
        p.stride_b = take_count(from, 200);
        p.stride_c = take_count(from, 240);
        if (p.stride_c >= 0 && p.stride_c < 240) p.stride_c *= 16;
    }
    if (flags & 4) p.type_c = (tgl_type)take_enum(from, TGL_F32, 8);
    if (flags & 8) p.compute = (tgl_compute)take_enum(from, TGL_COMPUTE_DEFAULT, 5);
    if ((flags & 0xf0) == 0xf0) p.size--;
    if ((flags & 0x30) == 0x20) {
        p.type_d = (tgl_type)take_enum(from, TGL_F32, 2);
        p.ldd = take_count(from, 64);
        p.stride_d = take_count(from, 240);
        if (p.stride_d >= 0 && p.stride_d < 240) p.stride_d *= 16;
    }
    if (flags & 0x40) p.scalars = (tgl_scalars)take_enum(from, TGL_SCALARS_HOST, 2);
    if ((flags & 0x30) == 0x10) {
        p.batching = (tgl_batching)take_enum(from, TGL_STRIDED, 2);
        p.alignment = take_count(from, 17);
    }
    return p;
}

/* Places the matrices of a batch that is given by pointers one after the other. */
static void lay_out(tgl_problem *p)
{
    if (p->batching != TGL_POINTERS) return;
    p->batching = TGL_STRIDED;
    p->alignment = 0; /* no alignment is guaranteed */
    p->stride_a = p->stride_b = 0;
    p->stride_c = 64 * 1000 + 64; /* at least the extent of the largest is_small() result */
    p->stride_d = p->type_d != 0 ? p->stride_c : 0;
}

static double take_scalar(source *from)
{
    static const double scalars[] = {1, 0, -0.5, 2, -0.0, 1e-60, (double)NAN, (double)INFINITY};
    return scalars[take(from) % 8];
}

/* ---- What must hold -------------------------------------------------------------------------- */

static void require(int condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "fuzz_api: %s\n", what);
    abort();
}

static void check_refused(tgl_device *dev, const tgl_problem *problem, tgl_status status)
{
    char message[256];
    tgl_last_error(message, sizeof message);
    void *nowhere = (void *)8;
    tgl_plan *plan = nowhere;
    char text[256];
    require(message[0] != '\0', "a problem is refused without a sentence");
    require(tgl_gemm(dev, problem, 1, nowhere, nowhere, 1, nowhere, NULL) == status,
            "tgl_gemm() does not agree with tgl_problem_check()");
    tgl_last_error(text, sizeof text);
    require(strcmp(text, message) == 0, "tgl_gemm() has another sentence");
    require(tgl_plan_create(dev, problem, NULL, &plan) == status && plan == NULL,
            "tgl_plan_create() does not agree with tgl_problem_check()");
}

/* Whether a problem is small enough to be computed. Larger problems are valid, but are not
 * computed. */
static int is_small(const tgl_problem *p)
{
    const int64_t limit = 1000;
    return p->m <= 64 && p->n <= 64 && p->k <= 64 && p->batch <= 4 && p->lda <= limit &&
           p->ldb <= limit && p->ldc <= limit && p->ldd <= limit && p->stride_a <= limit &&
           p->stride_b <= limit && p->stride_c <= 100 * limit && p->stride_d <= 100 * limit;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static tgl_device *dev;
    if (dev == NULL) require(tgl_device_open("cpu", NULL, &dev) == TGL_OK, "no cpu device");

    source from = {bytes, size};
    const tgl_problem problem = take_problem(&from);
    const tgl_status status = tgl_problem_check(&problem);
    if (status != TGL_OK) {
        check_refused(dev, &problem, status);
        return 0;
    }
    if (problem.batching == TGL_STRIDED && !is_small(&problem)) return 0;
    const int has_kernel = problem.type_c == problem.type_a &&
                           (problem.type_c == TGL_F32 || problem.type_c == TGL_F64);
    if (!has_kernel) {
        tgl_plan *plan;
        const tgl_status planned = tgl_plan_create(dev, &problem, NULL, &plan);
        require((planned == TGL_OK) == (plan != NULL), "a plan does not agree with its status");
        tgl_plan_destroy(plan);
        return 0;
    }
    gemm_case c = {.problem = problem,
                   .pointers = problem.batching == TGL_POINTERS,
                   .alpha = take_scalar(&from),
                   .beta = take_scalar(&from),
                   .gives_workspace = take(&from) % 2 == 0,
                   .fill = (inputs)(take(&from) % INPUTS_END)};
    /* A sum of denormal products may be 0 in double and not 0 in the longer type of the reference.
     * Times infinity, the first gives NaN and the second gives infinity. */
    if (c.fill == DENORMAL && isinf(c.alpha)) c.alpha = 1;
    lay_out(&c.problem);
    if (!is_small(&c.problem)) return 0;
    c.at_end = take(&from) % 4 != 0;
    c.seed = take(&from);
    for (unsigned choice = take(&from) % 4; choice > 0 && c.kernel == NULL; choice--)
        c.kernel = tgl_kernel_name(dev, (int)choice - 1);
    gemm_outcome outcome;
    gemm_case_run(dev, &c, false, &outcome);
    require(outcome.fault[0] == '\0', outcome.fault);
    return 0;
}
