/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the time of a call of sgemm_() in libtegula_blas.so with that of tgl_sgemm(). Both
 * compute products of 8 x 8 x 8, in turn.
 *
 *     build/bench/blas_call [ROUNDS]
 *
 * Prints the median time of a call in ROUNDS (400) rounds of 5000 calls, and the median of the
 * differences.
 */
#include "tegula/tegula.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 8, CALLS = 5000, ROUNDS = 400 };

void sgemm_(const char *trans_a, const char *trans_b, const int32_t *m, const int32_t *n,
            const int32_t *k, const float *alpha, const float *A, const int32_t *lda,
            const float *B, const int32_t *ldb, const float *beta, float *C, const int32_t *ldc);

static float A[N * N], B[N * N], C[N * N];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The mean time of a call of tgl_sgemm(), in nanoseconds. */
static double time_library(tgl_device *cpu)
{
    const double begin = now();
    for (int i = 0; i < CALLS; i++)
        tgl_sgemm(cpu, TGL_COL_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, N, N, N, 1, A, N, B, N, 0, C, N,
                  NULL);
    return (now() - begin) / CALLS;
}

static double time_drop_in(void)
{
    const int32_t n = N;
    const float one = 1, zero = 0;
    const double begin = now();
    for (int i = 0; i < CALLS; i++)
        sgemm_("N", "N", &n, &n, &n, &one, A, &n, B, &n, &zero, C, &n);
    return (now() - begin) / CALLS;
}

static int compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, compare);
    return times[count / 2];
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    tgl_device *cpu;
    if (rounds < 1 || tgl_device_open("cpu", NULL, &cpu) != TGL_OK) return 1;
    double *times = malloc(3 * (size_t)rounds * sizeof *times);
    if (times == NULL) return 1;
    double *library = times, *drop_in = times + rounds, *difference = times + 2 * rounds;
    time_library(cpu), time_drop_in(); /* opens the device of the drop-in */
    for (int i = 0; i < rounds; i++) {
        library[i] = time_library(cpu);
        drop_in[i] = time_drop_in();
        difference[i] = drop_in[i] - library[i];
    }
    printf("tgl_sgemm() %.1f ns, sgemm_() %.1f ns, difference %.1f ns\n", median(library, rounds),
           median(drop_in, rounds), median(difference, rounds));
    free(times);
    tgl_device_close(cpu);
    return 0;
}
