/* SPDX-License-Identifier: Apache-2.0
 *
 * test_dist_many_ranks [STEP]: plans for ranks that need not exist, for each number of ranks up to
 * 4096, or in steps of about STEP percent, every other one to a prime number. A plan takes less
 * than 2 seconds, leaves at most four ranks without work, and is not slower than that of fewer
 * ranks.
 */
#include "tegula/dist.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RANKS = 4096, SIDE = 65536 };

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool is_prime(int number)
{
    for (int divisor = 2; divisor * divisor <= number; divisor++)
        if (number % divisor == 0) return false;
    return true;
}

/* The predicted seconds of a plan; 0: the plan breaks a rule above. */
static double predict(int ranks, bool has_blocks)
{
    tgl_problem problem;
    tgl_dist_layout x;
    tgl_dist_figures f = {.size = sizeof f};
    char text[2000];
    size_t length;
    tgl_problem_init(&problem, sizeof problem, TGL_F64, SIDE, SIDE, SIDE);
    tgl_dist_rows(&x, sizeof x, SIDE, SIDE, ranks);
    if (has_blocks) x.block_rows = x.block_columns = 64;
    const double start = cpu_seconds();
    const tgl_status status =
        tgl_dist_explain(&problem, &x, &x, &x, ranks, NULL, NULL, &f, text, sizeof text, &length);
    const double seconds = cpu_seconds() - start;
    const int used = f.parts_m * f.parts_n * f.parts_k;
    if (status == TGL_OK && seconds < 2 && used <= ranks && used >= ranks - 4) return f.seconds;
    fprintf(stderr, "%d ranks: %s after %.1f s: %s", ranks, tgl_status_name(status), seconds, text);
    return 0;
}

int main(int argc, char **argv)
{
    const int step = argc > 1 ? atoi(argv[1]) : 0;
    double before[2] = {0, 0};
    int count = 0;
    for (int ranks = 2; ranks <= RANKS; count++) {
        for (int blocks = 0; blocks < 2; blocks++) {
            const double seconds = predict(ranks, blocks);
            if (seconds == 0) return EXIT_FAILURE;
            if (before[blocks] > 0 && seconds > 1.02 * before[blocks]) {
                fprintf(stderr, "%d ranks take %.6f s, and fewer %.6f s\n", ranks, seconds,
                        before[blocks]);
                return EXIT_FAILURE;
            }
            before[blocks] = seconds;
        }
        const int next = ranks + 1 + ranks * step / 100;
        ranks = step > 0 && next > RANKS && ranks < RANKS ? RANKS : next;
        while (step > 0 && count % 2 == 0 && ranks < RANKS && !is_prime(ranks))
            ranks++;
    }
    printf("%d numbers of ranks\n", count);
    return EXIT_SUCCESS;
}
