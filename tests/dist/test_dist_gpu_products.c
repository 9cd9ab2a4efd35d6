/* SPDX-License-Identifier: Apache-2.0
 *
 * tegula/nccl.h between threads, each with a device of the fake driver: random products by copy
 * engines and by NCCL, sums that go around a ring, and plans.
 */
#include "dist_case.h"
#include "gpu_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Products -------------------------------------------------------------------------------- */

static void run_cases(rank_state *s)
{
    enum { CASES = 16 };
    s->ok = true;
    for (unsigned i = 0; i < CASES && s->ok; i++)
        s->ok = dist_case_run(s->dist, s->dev, 7000 * (unsigned)s->ranks + i);
}

static void random_products(tgl_nccl_engine engine)
{
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        rank_state states[RANKS];
        run_ranks(states, ranks, engine, TIMEOUT, run_cases);
        for (int rank = 0; rank < ranks; rank++) {
            assert_int_equal(states[rank].status, TGL_OK);
            assert_true(states[rank].ok);
        }
    }
}

static void by_copy_engines(void **state)
{
    (void)state;
    const int before = nccl_messages();
    random_products(TGL_NCCL_ENGINE_AUTO);
    assert_int_equal(nccl_messages(), before);
}

/* Ranks on several hosts detect that NCCL has to move the data. */
static void on_two_hosts(void **state)
{
    (void)state;
    const int before = nccl_messages();
    ranks_of_host = 2;
    rank_state states[RANKS];
    run_ranks(states, 3, TGL_NCCL_ENGINE_AUTO, TIMEOUT, run_cases);
    ranks_of_host = 0;
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(states[rank].status, TGL_OK);
        assert_true(states[rank].ok);
    }
    assert_true(nccl_messages() > before);
}

static void by_nccl(void **state)
{
    (void)state;
    random_products(TGL_NCCL_ENGINE_NCCL);
}

/* rank 0's prediction for a product whose operands move, on the machine of the GPU. */
static void predict(rank_state *s)
{
    tgl_problem problem;
    tgl_dist_layout x;
    tgl_dist_plan *plan;
    tgl_dist_figures figures = {.size = sizeof figures};
    tgl_problem_init(&problem, sizeof problem, TGL_F32, 512, 512, 512);
    tgl_dist_rows(&x, sizeof x, 512, 512, s->ranks);
    s->status = tgl_dist_plan_create(s->dist, &problem, &x, &x, &x, NULL, &plan);
    if (s->status != TGL_OK) return;
    tgl_dist_plan_figures(plan, &figures);
    s->seconds = figures.seconds;
    tgl_dist_plan_destroy(plan);
}

/* The planner predicts a longer time for ranks on two hosts than for ranks on one host, even if
 * NCCL moves the data within the host. */
static void plans_for_a_network(void **state)
{
    (void)state;
    rank_state states[3][RANKS];
    uses_defaults = true;
    for (int i = 0; i < 3; i++) {
        ranks_of_host = i < 2 ? 2 : 1;
        run_ranks(states[i], 2, i == 0 ? TGL_NCCL_ENGINE_AUTO : TGL_NCCL_ENGINE_NCCL, TIMEOUT,
                  predict);
        assert_int_equal(states[i][0].status, TGL_OK);
    }
    uses_defaults = false;
    ranks_of_host = 0;
    assert_true(states[0][0].seconds == states[1][0].seconds);
    assert_true(states[2][0].seconds > states[1][0].seconds);
}

/* ---- The ring -------------------------------------------------------------------------------- */

/* A product of small integers whose partial sums go around the ranks. */
typedef struct ring_case {
    int64_t m, n, k;
    tgl_order order;
    bool is_replicated; /* all-reduce; else reduce-scatter */
    double beta;
    bool has_bias;
    int chunks;   /* the number of chunks that the plan must have, of all shards; 1: one product */
    int padding;  /* elements between the lines of C, times the number of the rank */
    bool gathers; /* all-gather of A, which is padded as well; no sums */
    int64_t
        block; /* rows of the first shards of a row-major C; 0: equal shards as far as possible */
    int64_t panel; /* the rows of a chunk that the plan must have; 0: any */
    bool has_relu, is_bf16;
} ring_case;

static const ring_case ring_cases[] = {
    {512, 8, 12, TGL_ROW_MAJOR, .has_bias = true, .chunks = 2},
    {512, 8, 12, TGL_ROW_MAJOR, .is_replicated = true, .chunks = 2},
    {2048, 5, 7, TGL_ROW_MAJOR, .beta = 1, .chunks = 8},
    {2048, 3, 9, TGL_ROW_MAJOR, .is_replicated = true, .beta = -1, .has_bias = true, .chunks = 8},
    {9, 512, 12, TGL_COL_MAJOR, .chunks = 2},
    {700, 4, 6, TGL_ROW_MAJOR, .is_replicated = true, .has_bias = true, .chunks = 2},
    {30, 20, 16, TGL_ROW_MAJOR, .beta = 2, .has_bias = true},
    {31, 20, 16, TGL_ROW_MAJOR, .is_replicated = true, .beta = 1, .has_bias = true},
    {20, 33, 16, TGL_COL_MAJOR, .beta = 1},
    {3, 20, 16, TGL_ROW_MAJOR, .is_replicated = true},
    {512, 8, 12, TGL_ROW_MAJOR, .is_replicated = true, .beta = 1, .has_bias = true, .chunks = 2,
     .padding = 3},
    {512, 8, 12, TGL_ROW_MAJOR, .beta = 1, .has_bias = true, .chunks = 2, .padding = 3},
    {512, 8, 12, TGL_ROW_MAJOR, .has_bias = true, .chunks = 2, .has_relu = true},
    {512, 8, 12, TGL_ROW_MAJOR, .is_replicated = true, .beta = 1, .chunks = 2, .has_relu = true},
    {30, 20, 16, TGL_ROW_MAJOR, .has_bias = true, .has_relu = true},
    {512, 8, 12, TGL_ROW_MAJOR, .has_bias = true, .chunks = 2, .is_bf16 = true},
    {512, 8, 12, TGL_ROW_MAJOR, .beta = 1, .has_bias = true, .chunks = 2, .padding = 3,
     .has_relu = true, .is_bf16 = true},
    {2048, 5, 7, TGL_ROW_MAJOR, .is_replicated = true, .beta = -1, .chunks = 8, .is_bf16 = true},
    {512, 8, 12, TGL_ROW_MAJOR, .is_replicated = true, .chunks = 2, .has_relu = true,
     .is_bf16 = true},
};

/* Products with one collective operation each, on 2 to 4 ranks. */
static const ring_case collective_cases[] = {
    {.m = 48, .n = 20, .k = 16, .order = TGL_ROW_MAJOR},
    {48, 20, 16, TGL_ROW_MAJOR, .has_bias = true, .padding = 3},
    {48, 20, 13, TGL_ROW_MAJOR, .beta = 2, .has_bias = true},
    {12, 7, 2, TGL_ROW_MAJOR, .beta = -1, .padding = 3},
    {31, 20, 16, TGL_ROW_MAJOR, .is_replicated = true, .has_bias = true},
    {31, 20, 13, TGL_ROW_MAJOR, .is_replicated = true, .beta = -1, .has_bias = true},
    {31, 20, 16, TGL_ROW_MAJOR, .is_replicated = true, .padding = 3},
    {31, 20, 16, TGL_ROW_MAJOR, .is_replicated = true, .beta = 2, .has_bias = true, .padding = 3},
    {20, 33, 16, TGL_COL_MAJOR, .is_replicated = true, .beta = 2},
    {48, 20, 16, TGL_ROW_MAJOR, .gathers = true},
    {24, 33, 7, TGL_ROW_MAJOR, .beta = 2, .padding = 3, .gathers = true},
};

static float small(int64_t i, int64_t salt)
{
    return (float)((i * 7 + salt * 13 + i / 5) % 5 - 2);
}

/* C[i][j] of the whole result. */
static float expected(const ring_case *c, int64_t i, int64_t j)
{
    float sum = (float)c->beta * small(i + 3 * j, 4) + (c->has_bias ? small(j, 3) : 0);
    for (int64_t p = 0; p < c->k; p++)
        sum += small(i * c->k + p, 1) * small(p * c->n + j, 2);
    return c->has_relu && sum < 0 ? 0 : sum;
}

/* The size in bytes of an element: F32 or, if the case says so, BF16. The integers of the cases are
 * exact in both. */
static size_t element_of(const ring_case *c)
{
    return c->is_bf16 ? 2 : sizeof(float);
}

static void put(const ring_case *c, void *memory, int64_t i, float value)
{
    union {
        float value;
        uint32_t bits;
    } x = {value};
    if (c->is_bf16)
        ((uint16_t *)memory)[i] = (uint16_t)(x.bits >> 16);
    else
        ((float *)memory)[i] = value;
}

static float get(const ring_case *c, const void *memory, int64_t i)
{
    union {
        uint32_t bits;
        float value;
    } x = {c->is_bf16 ? (uint32_t)((const uint16_t *)memory)[i] << 16 : 0};
    return c->is_bf16 ? x.value : ((const float *)memory)[i];
}

typedef struct ring_part {
    tgl_dist_layout layout;
    int64_t rows, columns, ld;
    size_t bytes;
    void *host, *memory;
} ring_part;

static int64_t ld_of(const rank_state *s, const ring_case *c, const ring_part *x, int salt)
{
    const int64_t tight = c->order == TGL_ROW_MAJOR ? x->columns : x->rows;
    return tight + (salt == 4 || (salt == 1 && c->gathers) ? s->rank * c->padding : 0);
}

/* salt 1: A, 2: B, 4: C. */
static void make_ring_part(rank_state *s, const ring_case *c, ring_part *x, int salt)
{
    const bool by_rows = c->order == TGL_ROW_MAJOR;
    tgl_dist_local(&x->layout, s->rank, &x->rows, &x->columns);
    x->ld = ld_of(s, c, x, salt);
    x->bytes = element_of(c) * (size_t)((by_rows ? x->rows : x->columns) * x->ld);
    x->host = calloc(1, x->bytes + 1);
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++) {
            int64_t row, column;
            tgl_dist_index(&x->layout, s->rank, i, j, &row, &column);
            put(c, x->host, by_rows ? i * x->ld + j : i + j * x->ld,
                small(salt == 4 ? row + 3 * column : row * x->layout.columns + column, salt));
        }
    if (tgl_alloc(s->dev, x->bytes, &x->memory) != TGL_OK ||
        (x->bytes > 0 && tgl_upload(s->dev, x->memory, x->host, x->bytes, NULL) != TGL_OK))
        abort();
}

static bool is_right(rank_state *s, const ring_case *c, ring_part *x)
{
    const bool by_rows = c->order == TGL_ROW_MAJOR;
    if (x->bytes > 0 && tgl_download(s->dev, x->host, x->memory, x->bytes, NULL) != TGL_OK)
        return false;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++) {
            int64_t row, column;
            tgl_dist_index(&x->layout, s->rank, i, j, &row, &column);
            const float got = get(c, x->host, by_rows ? i * x->ld + j : i + j * x->ld);
            if (got == expected(c, row, column)) continue;
            fprintf(stderr, "rank %d of %d, %lld x %lld: C[%lld][%lld] is %g and not %g\n", s->rank,
                    s->ranks, (long long)c->m, (long long)c->n, (long long)row, (long long)column,
                    (double)got, (double)expected(c, row, column));
            return false;
        }
    return true;
}

static void *make_bias(rank_state *s, const ring_case *c)
{
    float bias[64];
    void *memory = NULL;
    for (int64_t j = 0; c->has_bias && j < c->n; j++)
        put(c, bias, j, small(j, 3));
    if (c->has_bias && (tgl_alloc(s->dev, sizeof bias, &memory) != TGL_OK ||
                        tgl_upload(s->dev, memory, bias, sizeof bias, NULL) != TGL_OK))
        abort();
    return memory;
}

/* Runs a plan on new parts of the matrices. The second run uses all buffers and flags again. */
static bool run_ring_plan(rank_state *s, const ring_case *c, tgl_dist_plan *plan, ring_part part[3])
{
    bool ok = true;
    for (int run = 0; run < 2 && ok; run++) {
        for (int x = 0; x < 3; x++)
            make_ring_part(s, c, &part[x], x == 2 ? 4 : x + 1);
        void *bias = make_bias(s, c);
        ok = tgl_dist_plan_run(plan, 1, part[0].memory, part[1].memory, c->beta, part[2].memory,
                               bias) == TGL_OK &&
             tgl_dist_synchronize(s->dist) == TGL_OK && is_right(s, c, &part[2]);
        tgl_free(s->dev, bias);
        for (int x = 0; x < 3; x++)
            free(part[x].host), tgl_free(s->dev, part[x].memory);
    }
    return ok;
}

static void lay_out(const rank_state *s, const ring_case *c, tgl_dist_layout *a, tgl_dist_layout *b,
                    tgl_dist_layout *result)
{
    const size_t size = sizeof *a;
    (c->gathers ? tgl_dist_rows : tgl_dist_columns)(a, size, c->m, c->k, s->ranks);
    (c->gathers ? tgl_dist_columns : tgl_dist_rows)(b, size, c->k, c->n, s->ranks);
    if (c->is_replicated)
        tgl_dist_replicated(result, size, c->m, c->n);
    else if (c->order == TGL_ROW_MAJOR && !c->gathers)
        tgl_dist_rows(result, size, c->m, c->n, s->ranks);
    else
        tgl_dist_columns(result, size, c->m, c->n, s->ranks);
    if (c->block > 0) result->block_rows = c->block;
}

static bool run_ring_case(rank_state *s, const ring_case *c)
{
    tgl_problem problem;
    tgl_dist_plan *plan;
    ring_part part[3];
    tgl_problem_init(&problem, sizeof problem, c->is_bf16 ? TGL_BF16 : TGL_F32, c->m, c->n, c->k);
    problem.order = c->order;
    tgl_dist_layout *of_a = &part[0].layout, *of_b = &part[1].layout, *of_c = &part[2].layout;
    lay_out(s, c, of_a, of_b, of_c);
    tgl_dist_local(of_a, s->rank, &part[0].rows, &part[0].columns);
    tgl_dist_local(of_c, s->rank, &part[2].rows, &part[2].columns);
    if (c->padding > 0) of_a->ld = ld_of(s, c, &part[0], 1);
    if (c->padding > 0) of_c->ld = ld_of(s, c, &part[2], 4);
    const tgl_epilogue epilogue = {.size = sizeof epilogue,
                                   .bias = c->has_bias ? TGL_BIAS_COLUMN : TGL_BIAS_NONE,
                                   .activation =
                                       c->has_relu ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE};
    const tgl_dist_options options = {.size = sizeof options,
                                      .epilogue = c->has_bias || c->has_relu ? &epilogue : NULL,
                                      .parts_m = 1,
                                      .parts_n = c->gathers ? s->ranks : 1,
                                      .parts_k = c->gathers ? 1 : s->ranks};
    if (tgl_dist_plan_create(s->dist, &problem, of_a, of_b, of_c, &options, &plan) != TGL_OK)
        return false;
    tgl_dist_figures figures = {.size = sizeof figures};
    tgl_dist_plan_figures(plan, &figures);
    const bool is_cut =
        figures.panels == (c->chunks > 0 && s->ranks == 2 ? 2 * c->chunks : figures.panels);
    const bool has_panel = c->panel == 0 || figures.panel == c->panel;
    if (!is_cut || !has_panel)
        fprintf(stderr, "the plan has %lld panels of %lld\n", (long long)figures.panels,
                (long long)figures.panel);
    const bool ok = run_ring_plan(s, c, plan, part);
    tgl_dist_plan_destroy(plan);
    return ok && is_cut && has_panel;
}

static void run_ring_list(rank_state *s, const ring_case *cases, size_t count)
{
    s->ok = true;
    for (size_t i = 0; i < count && s->ok; i++)
        s->ok = run_ring_case(s, &cases[i]);
}

static void run_rings(rank_state *s)
{
    run_ring_list(s, ring_cases, sizeof ring_cases / sizeof ring_cases[0]);
}

/* With slow links, shards are cut into as many chunks as possible. */
static void rings(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= RANKS; ranks++)
        for (int engine = TGL_NCCL_ENGINE_AUTO; engine <= TGL_NCCL_ENGINE_NCCL; engine++) {
            rank_state states[RANKS];
            run_ranks(states, ranks, (tgl_nccl_engine)engine, TIMEOUT, run_rings);
            for (int rank = 0; rank < ranks; rank++) {
                assert_int_equal(states[rank].status, TGL_OK);
                assert_true(states[rank].ok);
            }
        }
}

static void run_short_chunks(rank_state *s)
{
    static const ring_case cases[] = {
        {.m = 2048,
         .n = 8,
         .k = 12,
         .order = TGL_ROW_MAJOR,
         .is_replicated = true,
         .chunks = 2,
         .panel = 896},
        {.m = 1900,
         .n = 8,
         .k = 12,
         .order = TGL_ROW_MAJOR,
         .is_replicated = true,
         .chunks = 2,
         .panel = 896},
        {.m = 2048, .n = 8, .k = 12, .order = TGL_ROW_MAJOR, .chunks = 2, .panel = 512},
    };
    run_ring_list(s, cases, sizeof cases / sizeof cases[0]);
}

/* In an all-reduce the last chunk of a shard is one wave, because nothing hides its copies. */
static void short_last_chunks(void **state)
{
    (void)state;
    rank_state states[RANKS];
    wave_elements = 128 * 8;
    run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, TIMEOUT, run_short_chunks);
    wave_elements = 0;
    assert_true(states[0].ok && states[1].ok);
}

/* ---- Collective operations ---------------------------------------------------------------------
 */

static void run_collectives(rank_state *s)
{
    run_ring_list(s, collective_cases, sizeof collective_cases / sizeof collective_cases[0]);
}

static void random_with_collectives(void **state)
{
    (void)state;
    for (int engine = TGL_NCCL_ENGINE_AUTO; engine <= TGL_NCCL_ENGINE_NCCL; engine++) {
        prefers_collectives = true;
        random_products((tgl_nccl_engine)engine);
    }
}

/* Each case runs twice on each rank. There are no messages besides the collective operations. */
static void collectives(void **state)
{
    (void)state;
    enum { RUNS = 2, SCATTERS = 4, REDUCES = 5, GATHERS = 2 };
    prefers_collectives = true;
    for (int ranks = 2; ranks <= RANKS; ranks++)
        for (int engine = TGL_NCCL_ENGINE_AUTO; engine <= TGL_NCCL_ENGINE_NCCL; engine++) {
            rank_state states[RANKS];
            const int messages = nccl_messages(), gathered = nccl_number("fake_nccl_gathered"),
                      scattered = nccl_number("fake_nccl_scattered"),
                      reduced = nccl_number("fake_nccl_reduced");
            run_ranks(states, ranks, (tgl_nccl_engine)engine, TIMEOUT, run_collectives);
            for (int rank = 0; rank < ranks; rank++) {
                assert_int_equal(states[rank].status, TGL_OK);
                assert_true(states[rank].ok);
            }
            assert_int_equal(nccl_messages(), messages);
            assert_int_equal(nccl_number("fake_nccl_gathered"), gathered + RUNS * GATHERS * ranks);
            assert_int_equal(nccl_number("fake_nccl_scattered"),
                             scattered + RUNS * SCATTERS * ranks);
            assert_int_equal(nccl_number("fake_nccl_reduced"), reduced + RUNS * REDUCES * ranks);
        }
}

static void run_uneven(rank_state *s)
{
    static const ring_case uneven[] = {
        {.m = 31, .n = 20, .k = 16, .order = TGL_ROW_MAJOR, .has_bias = true},
        {.m = 32, .n = 20, .k = 16, .order = TGL_ROW_MAJOR, .has_bias = true, .block = 20},
        {.m = 32, .n = 20, .k = 16, .order = TGL_ROW_MAJOR, .block = 32},
    };
    run_ring_list(s, uneven, sizeof uneven / sizeof uneven[0]);
}

/* Shards of different sizes take messages, whatever the planner prefers. */
static void uneven_shards(void **state)
{
    (void)state;
    rank_state states[RANKS];
    const int scattered = nccl_number("fake_nccl_scattered");
    prefers_collectives = true;
    run_ranks(states, 2, TGL_NCCL_ENGINE_AUTO, TIMEOUT, run_uneven);
    assert_true(states[0].ok && states[1].ok);
    assert_int_equal(nccl_number("fake_nccl_scattered"), scattered);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* How the ranks' operands or sums come together. */
typedef enum exchange { COLLECTIVE, PANELS } exchange;

/* A layer of Llama-3 70B's feed-forward network, and how it is best computed on H200: the faster
 * one of NCCL's sequence and panels as measured in bench/results/h200/dist_table-*.csv. */
typedef struct layer {
    int ranks;
    tgl_dist_collective kind;
    int64_t tokens;
    exchange exchange;
} layer;

static const layer layers[] = {
    {2, TGL_DIST_ALL_GATHER, 64, COLLECTIVE},      {2, TGL_DIST_ALL_GATHER, 512, PANELS},
    {2, TGL_DIST_ALL_GATHER, 2048, PANELS},        {2, TGL_DIST_ALL_GATHER, 16384, PANELS},
    {2, TGL_DIST_REDUCE_SCATTER, 64, COLLECTIVE},  {2, TGL_DIST_REDUCE_SCATTER, 256, COLLECTIVE},
    {2, TGL_DIST_REDUCE_SCATTER, 512, COLLECTIVE}, {2, TGL_DIST_REDUCE_SCATTER, 2048, PANELS},
    {2, TGL_DIST_REDUCE_SCATTER, 16384, PANELS},   {2, TGL_DIST_ALL_REDUCE, 64, COLLECTIVE},
    {2, TGL_DIST_ALL_REDUCE, 256, COLLECTIVE},     {2, TGL_DIST_ALL_REDUCE, 512, COLLECTIVE},
    {2, TGL_DIST_ALL_REDUCE, 2048, PANELS},        {2, TGL_DIST_ALL_REDUCE, 16384, PANELS},
    {4, TGL_DIST_ALL_GATHER, 64, COLLECTIVE},      {4, TGL_DIST_ALL_GATHER, 256, COLLECTIVE},
    {4, TGL_DIST_ALL_GATHER, 512, COLLECTIVE},     {4, TGL_DIST_ALL_GATHER, 2048, PANELS},
    {4, TGL_DIST_ALL_GATHER, 4096, PANELS},        {4, TGL_DIST_REDUCE_SCATTER, 64, COLLECTIVE},
    {4, TGL_DIST_REDUCE_SCATTER, 512, COLLECTIVE}, {4, TGL_DIST_REDUCE_SCATTER, 2048, COLLECTIVE},
    {4, TGL_DIST_REDUCE_SCATTER, 4096, PANELS},    {4, TGL_DIST_REDUCE_SCATTER, 16384, PANELS},
    {4, TGL_DIST_ALL_REDUCE, 64, COLLECTIVE},      {4, TGL_DIST_ALL_REDUCE, 2048, COLLECTIVE},
    {4, TGL_DIST_ALL_REDUCE, 4096, COLLECTIVE},    {4, TGL_DIST_ALL_REDUCE, 16384, PANELS},
};

static void lay_out_layer(const layer *l, tgl_dist_layout *a, tgl_dist_layout *b,
                          tgl_dist_layout *c, tgl_problem *problem)
{
    const bool gathers = l->kind == TGL_DIST_ALL_GATHER;
    const int64_t m = l->tokens, n = gathers ? 28672 : 8192, k = gathers ? 8192 : 28672;
    tgl_problem_init(problem, sizeof *problem, TGL_BF16, m, n, k);
    (gathers ? tgl_dist_rows : tgl_dist_columns)(a, sizeof *a, m, k, l->ranks);
    (gathers ? tgl_dist_columns : tgl_dist_rows)(b, sizeof *b, k, n, l->ranks);
    (gathers ? tgl_dist_columns : tgl_dist_rows)(c, sizeof *c, m, n, l->ranks);
    if (l->kind == TGL_DIST_ALL_REDUCE) tgl_dist_replicated(c, sizeof *c, m, n);
}

static void plans_of_layers(void **state)
{
    (void)state;
    const tgl_dist_machine h200 = {.size = sizeof h200, /* gpu_machine.c */
                                   .flops_per_s = 57e12,
                                   .f32_rate = 0.9,
                                   .half_rate = 11.8,
                                   .operand_bytes_per_s = 4.1e12,
                                   .product_s = 4e-6,
                                   .moves_alone = 1,
                                   .bytes_per_s = 350e9,
                                   .latency_s = 20e-6,
                                   .memory_per_s = 1.9e12,
                                   .collective_s = 15e-6,
                                   .wave_elements = 132 * 128 * 256};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const layer *l = &layers[i];
        tgl_problem problem;
        tgl_dist_layout a, b, c;
        tgl_dist_figures f = {.size = sizeof f};
        char text[2000];
        size_t length;
        lay_out_layer(l, &a, &b, &c, &problem);
        assert_int_equal(tgl_dist_explain(&problem, &a, &b, &c, l->ranks, &h200, NULL, &f, text,
                                          sizeof text, &length),
                         TGL_OK);
        const bool stays = (l->kind == TGL_DIST_ALL_GATHER ? f.parts_n : f.parts_k) == l->ranks;
        const char *words = l->exchange == PANELS            ? "messages between two ranks"
                            : l->kind == TGL_DIST_ALL_GATHER ? "one all-gather"
                                                             : "one collective operation";
        if (!stays || strstr(text, words) == NULL || (f.panels > 1) != (l->exchange == PANELS))
            fail_msg("%d ranks, %d, %lld tokens: %s", l->ranks, (int)l->kind, (long long)l->tokens,
                     text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(by_copy_engines, check_fakes),
        cmocka_unit_test_teardown(by_nccl, check_fakes),
        cmocka_unit_test_teardown(on_two_hosts, check_fakes),
        cmocka_unit_test_teardown(plans_for_a_network, check_fakes),
        cmocka_unit_test_teardown(rings, check_fakes),
        cmocka_unit_test_teardown(short_last_chunks, check_fakes),
        cmocka_unit_test_teardown(collectives, check_fakes),
        cmocka_unit_test_teardown(uneven_shards, check_fakes),
        cmocka_unit_test_teardown(random_with_collectives, check_fakes),
        cmocka_unit_test(plans_of_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
