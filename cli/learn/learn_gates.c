/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes figures of a run from the counts that the simulator keeps for each source line, and
 * compares them with the gates, which are the limits that the exercise sets.
 */
#include "learn_gates.h"

#include <stddef.h>
#include <stdio.h>

enum { LINES_MAX = 96 };

/* The counts of a run. */
typedef struct measured {
    learn_line lines[LINES_MAX];
    int count;
    tgl_counters totals;
    double ffmas; /* FFMA instructions of warps that the product needs, with all lanes active */
} measured;

static double count_of(const learn_line *line, size_t member)
{
    return (double)*(const int64_t *)(const void *)((const char *)line + member);
}

/* The sum of a count over all lines with accesses of these kinds. member: the offset of the count
 * in learn_line. */
static double sum_of(const measured *x, unsigned kinds, size_t member)
{
    double sum = 0;
    for (int i = 0; i < x->count; i++)
        if (x->lines[i].kind & kinds) sum += count_of(&x->lines[i], member);
    return sum;
}

/* ---- Figures --------------------------------------------------------------------------------- */

#define AT(member) offsetof(learn_line, member)

static double one(const measured *x, unsigned kinds)
{
    (void)x, (void)kinds;
    return 1;
}

static double requests(const measured *x, unsigned kinds)
{
    return sum_of(x, kinds, AT(requests));
}

static double lanes(const measured *x, unsigned kinds)
{
    return 32 * requests(x, kinds);
}

static double needed_sectors(const measured *x, unsigned kinds)
{
    (void)kinds;
    return (double)x->totals.needed_bytes / 32;
}

static double ffmas(const measured *x, unsigned kinds)
{
    (void)kinds;
    return x->ffmas;
}

static double loaded_bytes(const measured *x, unsigned kinds)
{
    (void)kinds;
    return sum_of(x, LEARN_LOADS, AT(bytes));
}

static double stored_bytes(const measured *x, unsigned kinds)
{
    (void)kinds;
    return sum_of(x, LEARN_STORES, AT(bytes));
}

/* The number of mma.sync.m16n8k16 instructions of warps that the product needs; each does the work
 * of 64 FFMA instructions. */
static double needed_mmas(const measured *x, unsigned kinds)
{
    (void)kinds;
    return x->ffmas / 64;
}

/* The number of mma.sync.m16n8k8 instructions (TF32) of warps that the product needs; each does the
 * work of 32 FFMA instructions. */
static double needed_tf32(const measured *x, unsigned kinds)
{
    (void)kinds;
    return x->ffmas / 32;
}

/* The number of wgmma.m64n64k16 instructions that the product needs; each does the work of 2048
 * FFMA instructions of a warp. */
static double needed_wgmmas(const measured *x, unsigned kinds)
{
    (void)kinds;
    return x->ffmas / 2048;
}

/* A figure is the sum of the count `member` over all lines with accesses of `kinds`, divided by
 * divisor(). If divisor is NULL, figure_of() computes the figure from the totals. */
static const struct {
    const char *name, *formula;
    unsigned kinds;
    size_t member;
    double (*divisor)(const measured *x, unsigned kinds);
} figures[LEARN_FIGURES] = {
    [SECTORS_PER_LOAD] = {"sectors a global load",
                          "sectors of 32 bytes / requests of warps, of all loads of global memory",
                          LEARN_LOADS, AT(sectors), requests},
    [LOADED_PER_NEEDED] = {"bytes loaded / bytes needed",
                           "bytes of all sectors loaded / bytes of A, B and C, each once; C is not "
                           "loaded at beta = 0",
                           LEARN_LOADS, AT(sectors), needed_sectors},
    [BYTES_PER_LANE] = {"bytes a lane loads at once",
                        "bytes loaded / (32 lanes * requests), of all loads of global memory",
                        LEARN_LOADS, AT(bytes), lanes},
    [CONFLICTS] = {"bank conflicts", "wavefronts of shared memory beyond those that the bytes need",
                   LEARN_SHARED_LOAD | LEARN_SHARED_STORE | LEARN_ASYNC_COPY, AT(conflicts), one},
    [WAVEFRONTS_PER_FFMA] = {"shared wavefronts an FFMA",
                             "wavefronts of shared loads / (m*n*k / 32), the FFMAs of warps",
                             LEARN_SHARED_LOAD, AT(wavefronts), ffmas},
    [BARRIERS_PER_BLOCK] = {"barriers a block", "barriers that a block passes, __syncthreads()", 0,
                            0, NULL},
    [COPIED_BYTES] = {"part loaded by cp.async",
                      "bytes of cp.async / bytes loaded from global memory", LEARN_ASYNC_COPY,
                      AT(bytes), loaded_bytes},
    [TMA_BYTES] = {"part loaded by TMA", "bytes of TMA / bytes loaded from global memory",
                   LEARN_TMA_LOAD, AT(bytes), loaded_bytes},
    [TMA_STORED] = {"part stored by TMA", "bytes that TMA stores / bytes stored in global memory",
                    LEARN_TMA_STORE, AT(bytes), stored_bytes},
    [TF32_PER_NEEDED] = {"mma.sync / those of TF32",
                         "mma.sync of warps / (m*n*k / 1024), for 16 x 8 x 8 each", LEARN_MMA,
                         AT(requests), needed_tf32},
    [MMA_PER_NEEDED] = {"mma.sync / needed",
                        "mma.sync of warps / (m*n*k / 2048), for 16 x 8 x 16 each", LEARN_MMA,
                        AT(requests), needed_mmas},
    [WGMMA_PER_NEEDED] = {"wgmma / needed",
                          "wgmma of warpgroups / (m*n*k / 65536), for 64 x 64 x 16 each",
                          LEARN_WGMMA, AT(requests), needed_wgmmas},
};

static double figure_of(const measured *x, learn_figure figure)
{
    if (figure == BARRIERS_PER_BLOCK)
        return x->totals.blocks > 0 ? (double)x->totals.barriers / (double)x->totals.blocks : 0;
    const unsigned kinds = figures[figure].kinds;
    const double divisor = figures[figure].divisor(x, kinds);
    return divisor > 0 ? sum_of(x, kinds, figures[figure].member) / divisor : 0;
}

/* ---- Gates ----------------------------------------------------------------------------------- */

/* The source line that contributes most to the figure; NULL: no line contributes. */
static const learn_line *costliest(const measured *x, learn_figure figure)
{
    const learn_line *costliest_line = NULL;
    for (int i = 0; i < x->count; i++) {
        const learn_line *line = &x->lines[i];
        if (!(line->kind & figures[figure].kinds)) continue;
        const double cost = count_of(line, figures[figure].member);
        if (cost > 0 &&
            (costliest_line == NULL || cost > count_of(costliest_line, figures[figure].member)))
            costliest_line = line;
    }
    return costliest_line;
}

static void say_line(const measured *x, learn_figure figure, const char *file)
{
    const learn_line *line = costliest(x, figure);
    if (line == NULL) return;
    const double n = line->requests > 0 ? (double)line->requests : 1;
    printf("          most at %s:%d, %s%s%s: %lld requests", file, line->line, line->access,
           line->target[0] != '\0' ? " of " : "", line->target, (long long)line->requests);
    if (line->sectors > 0) printf(" of %.2f sectors", (double)line->sectors / n);
    if (line->wavefronts > 0) printf(" of %.2f wavefronts", (double)line->wavefronts / n);
    printf("\n");
}

static bool check_gate(const measured *x, const learn_gate *gate, const char *file)
{
    const double seen = figure_of(x, gate->figure);
    const bool ok = gate->at_least ? seen >= gate->limit : seen <= gate->limit;
    printf("gate      %-28s %8.2f, wanted at %s %.2f: %s\n", figures[gate->figure].name, seen,
           gate->at_least ? "least" : "most", gate->limit, ok ? "passed" : "FAILED");
    if (!ok) say_line(x, gate->figure, file);
    printf("          = %s\n", figures[gate->figure].formula);
    return ok;
}

/* Whether the counts can include all loads of the kernel: it must load every element of A and B at
 * least once, so fewer bytes mean that loads were not counted. Prints an error if not. */
static bool counts_all_loads(const measured *x, const exercise *e, const tgl_problem *p)
{
    const double least = (double)((p->m * p->k + p->k * p->n) * (int64_t)tgl_type_size(e->type));
    const double seen = loaded_bytes(x, 0);
    if (seen >= least) return true;
    printf("gate      loads of %.0f bytes are counted, but A and B have %.0f: FAILED\n"
           "          the simulator counts loads that C code, or a function of lib/, does\n",
           seen, least);
    return false;
}

bool learn_gates_check(const exercise *e, const tgl_problem *problem, const tgl_plan *plan,
                       const char *file)
{
    measured x = {.totals = {.size = sizeof x.totals}};
    x.ffmas = (double)problem->m * (double)problem->n * (double)problem->k / 32;
    x.count = learn_plan_lines(plan, x.lines, LINES_MAX);
    printf("gates     at m = %lld, n = %lld, k = %lld\n", (long long)problem->m,
           (long long)problem->n, (long long)problem->k);
    bool ok = tgl_plan_counters(plan, &x.totals) == TGL_OK && counts_all_loads(&x, e, problem);
    for (int i = 0; i < e->gate_count; i++)
        if (!check_gate(&x, &e->gates[i], file)) ok = false;
    return ok;
}
