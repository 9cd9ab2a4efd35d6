/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of 2,000 random products on several models of processors, as a hash for each model and
 * tier. A plan is a pure function, so that any machine plans for any model whose tiers the build
 * has. A change of one model's properties changes that model's hashes only, and a change of the
 * planner that is meant to keep plans keeps all of them. Where plans are meant to change, the
 * failing test prints the new rows.
 */
#include "support.h"

#include "cpu/plan/word_plan.h"

#include <inttypes.h>

enum { PRODUCTS = 2000, MAX_MODEL_TIERS = 6 };

/* The hashes of the plans for one tier. */
typedef struct tier_hashes {
    const char *tier;  /* NULL: the end */
    uint64_t products; /* of f32 and f64, by tgl_cpu_plan() */
    uint64_t blocks;   /* of bf16, f16, int8 and words of f32, by tgl_cpu_plan_blocks() */
} tier_hashes;

typedef struct processor {
    cpu_facts facts;
    tier_hashes tiers[MAX_MODEL_TIERS + 1];
} processor;

/* The caches are those of usual servers with the model: L1 and L2 of a core, and the L3 that a
 * process sees. */
static const processor processors[] = {
    {{.model = "AuthenticAMD 25.1", .l1d = 32 << 10, .l2 = 512 << 10, .l3 = 32 << 20}, /* Zen 3 */
     {{"portable", 0x71f18d6749d71ada, 0x4f857694f0ca372c},
      {"avx2", 0xb0274359c3213b99, 0xd3ef94becd4cf7e8}}},
    {{.model = "AuthenticAMD 25.17", .l1d = 32 << 10, .l2 = 1 << 20, .l3 = 32 << 20}, /* Zen 4 */
     {{"portable", 0x69a185915cd5645f, 0x1f9a3af599e9e4e2},
      {"avx2", 0x4c522e1d8e518d56, 0x78fbc34e65761df4},
      {"avx512", 0xc85aad0ade569dd0, 0xa4a4d282aafe03e0},
      {"avx512_vnni", 0xc85aad0ade569dd0, 0x90703636fab2a873},
      {"avx512_bf16", 0xc85aad0ade569dd0, 0x1cbab716618670bb}}},
    {{.model = "AuthenticAMD 26.2", .l1d = 48 << 10, .l2 = 1 << 20, .l3 = 32 << 20}, /* Zen 5 */
     {{"portable", 0x3a7e8ea60de615df, 0x1f9a3af599e9e4e2},
      {"avx2", 0xe6842690342d9446, 0x78fbc34e65761df4},
      {"avx512", 0xf14fcc8acff327e5, 0xa4a4d282aafe03e0},
      {"avx512_vnni", 0xf14fcc8acff327e5, 0x90703636fab2a873},
      {"avx512_bf16", 0xf14fcc8acff327e5, 0x1cbab716618670bb}}},
    /* Cascade Lake */
    {{.model = "GenuineIntel 6.85", .l1d = 32 << 10, .l2 = 1 << 20, .l3 = 39424 << 10},
     {{"portable", 0x259b21fce279b441, 0x0d3f1db93b024f03},
      {"avx2", 0xf0c89bd43d9420f4, 0x924fdc95ad1b20fe},
      {"avx512", 0xe192a612b6119095, 0x8cd5eb00c3adeb92},
      {"avx512_vnni", 0xe192a612b6119095, 0x01515bbd22635165}}},
    /* Sapphire Rapids */
    {{.model = "GenuineIntel 6.143", .l1d = 48 << 10, .l2 = 2 << 20, .l3 = 105 << 20},
     {{"portable", 0xa3ac151b26908ed4, 0x5715890ade1f539b},
      {"avx2", 0xe49eb7501ad07eb6, 0xc2a2c52c0de2074a},
      {"avx512", 0x5a46fc2d01c89758, 0x3689075428cec638},
      {"avx512_vnni", 0x5a46fc2d01c89758, 0x4ffb0a62dc5784db},
      {"amx", 0x5a46fc2d01c89758, 0x0e82170ed2e33617}}},
    /* Emerald Rapids */
    {{.model = "GenuineIntel 6.207", .l1d = 48 << 10, .l2 = 2 << 20, .l3 = 320 << 20},
     {{"portable", 0xa3ac151b26908ed4, 0x5715890ade1f539b},
      {"avx2", 0xe49eb7501ad07eb6, 0xc2a2c52c0de2074a},
      {"avx512", 0x5a46fc2d01c89758, 0x3689075428cec638},
      {"avx512_vnni", 0x5a46fc2d01c89758, 0x4ffb0a62dc5784db},
      {"amx", 0x5a46fc2d01c89758, 0x0e82170ed2e33617}}},
    /* Unknown: the caches that detect.c assumes */
    {{.model = "", .l1d = 32 << 10, .l2 = 256 << 10},
     {{"portable", 0x23aef7c9edad2f38, 0x23d3d2eaffa8fd78},
      {"avx2", 0x691e1c488c438152, 0x56f83b45d689cbee},
      {"avx512", 0xedad5bdacdf3fb3a, 0x089416d8353cc667},
      {"neon", 0x1dc6a3c6a0742cf9, 0x4520d3052af6a784},
      {"neon_dot", 0x1dc6a3c6a0742cf9, 0x146ff83e299867e6},
      {"neon_mm", 0x1dc6a3c6a0742cf9, 0x2dc238a96d74ea05}}},
    /* Unknown: the caches of Neoverse V1 */
    {{.model = "", .l1d = 64 << 10, .l2 = 1 << 20, .l3 = 32 << 20},
     {{"portable", 0x3a7e8ea60de615df, 0x1f9a3af599e9e4e2},
      {"avx2", 0xe6842690342d9446, 0x78fbc34e65761df4},
      {"avx512", 0xf14fcc8acff327e5, 0xa4a4d282aafe03e0},
      {"neon", 0x6da28003d992e4a0, 0x6f3f8eb52644020c}}},
};

/* ---- Hashes ---------------------------------------------------------------------------------- */

static const uint64_t hash_start = 0xcbf29ce484222325; /* FNV-1a */

static void add(uint64_t *hash, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int byte = 0; byte < 8; byte++) {
            *hash ^= (uint64_t)values[i] >> 8 * byte & 0xff;
            *hash *= 0x100000001b3;
        }
}

/* Adds all members of the plan but three: the kernels, which the caller has chosen, the plan of
 * blocks, and the whole workspace, which is the sum of its parts. */
static void add_plan(uint64_t *hash, const cpu_plan *p)
{
    const int64_t values[] = {
        p->path,
        p->sharing,
        p->threads,
        p->grid_m,
        p->grid_n,
        p->parts,
        p->pack_a,
        p->pack_b,
        p->keep_b,
        p->in_bands,
        p->in_strips,
        p->fetch_c,
        p->fetch,
        p->fetch_next_block,
        p->mc,
        p->nc,
        p->kc,
        (int64_t)p->a_bytes,
        (int64_t)p->b_bytes,
        (int64_t)p->part_bytes,
    };
    add(hash, values, COUNT_OF(values));
}

static void add_workspace(uint64_t *hash, const cpu_plan *p)
{
    const int64_t workspace = (int64_t)p->workspace;
    add(hash, &workspace, 1);
}

/* Adds the members of a plan of blocks. */
static void add_block_plan(uint64_t *hash, const cpu_block_plan *h)
{
    const int64_t values[] = {
        h->words != NULL,
        h->rows,
        h->columns,
        h->steps,
        h->by_digits,
        h->word_steps,
        h->is_vector,
        h->sum_ld,
        h->blocks_m,
        h->blocks_n,
        h->parts,
        (int64_t)h->a_bytes,
        (int64_t)h->b_bytes,
        (int64_t)h->sum_bytes,
        (int64_t)h->row_bytes,
        (int64_t)h->product_bytes,
    };
    add(hash, values, COUNT_OF(values));
    add_plan(hash, &h->product);
    add_workspace(hash, &h->product);
}

/* ---- Random products ------------------------------------------------------------------------- */

/* A product, and the block sizes that the caller requests. */
typedef struct planned_product {
    tgl_problem problem;
    cpu_blocking blocking;
} planned_product;

/* A number from 1 to 2 * `size_max`, with the same probability for each power of two. size_max: a
 * power of two. */
static int64_t random_size(uint64_t *seed, int64_t size_max)
{
    int64_t magnitude = size_max;
    for (int64_t halvings = random_int(seed, 0, 20); halvings > 0 && magnitude > 1; halvings--)
        magnitude /= 2;
    const int64_t size = random_int(seed, magnitude, 2 * magnitude);
    return random_int(seed, 0, 3) == 0 && size > 16 ? size / 16 * 16 : size;
}

/* A leading dimension of rows of this length. */
static int64_t random_ld(uint64_t *seed, int64_t length)
{
    switch (random_int(seed, 0, 5)) {
    case 0:
        return length + random_int(seed, 1, 20);
    case 1: /* rows that fall into few sets of the caches */
        return (length + 1023) / 1024 * 1024 + random_int(seed, 0, 2);
    case 2:
        return 2 * length + random_int(seed, 0, 1);
    default:
        return length;
    }
}

/* The least and the greatest m, n, k and batch of products near the limits of the planner's rules.
 * {0}: any order of magnitude. */
static const int64_t ranges[][4][2] = {
    {{0}, {0}, {0}, {1, 1}},
    {{0}, {0}, {0}, {2, 40}},
    {{1, 120}, {200, 5000}, {100, 5000}, {1, 1}},  /* few rows */
    {{0}, {1, 120}, {1000, 70000}, {1, 1}},        /* few columns, deep */
    {{2, 300}, {2, 300}, {600, 6000}, {1, 1}},     /* deep */
    {{200, 4000}, {200, 4000}, {30, 160}, {1, 1}}, /* a short k and a large C */
    {{100, 1000}, {100, 1000}, {100, 1000}, {1, 1}},
    {{500, 2500}, {500, 2500}, {500, 2500}, {1, 1}},
    {{1, 1}, {8, 70}, {1, 8}, {1, 1}},          /* one row */
    {{1, 4}, {1, 1}, {1, 20}, {1, 1}},          /* one column */
    {{2, 8}, {2, 8}, {1, 8}, {100, 1600}},      /* a batch of tiny products */
    {{20, 66}, {20, 66}, {20, 66}, {50, 1000}}, /* a batch of small ones */
    {{20, 66}, {20, 66}, {20, 66}, {50, 4000}},
    {{240, 340}, {240, 340}, {240, 340}, {2, 40}}, /* a batch of larger ones */
};

static planned_product random_product(uint64_t *seed)
{
    planned_product x = {.problem = problem_of(TGL_F32, 1, 1, 1)};
    tgl_problem *p = &x.problem;
    const int64_t(*range)[2] = ranges[random_int(seed, 0, (int64_t)COUNT_OF(ranges) - 1)];
    int64_t *const sizes[] = {&p->m, &p->n, &p->k, &p->batch};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        *sizes[i] =
            range[i][1] > 0 ? random_int(seed, range[i][0], range[i][1]) : random_size(seed, 2048);
    p->trans_a = random_int(seed, 0, 2) == 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = random_int(seed, 0, 2) == 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->lda = random_ld(seed, p->trans_a == TGL_TRANS ? p->m : p->k);
    p->ldb = random_ld(seed, p->trans_b == TGL_TRANS ? p->k : p->n);
    p->ldc = random_ld(seed, p->n);
    p->stride_a = p->lda * (p->trans_a == TGL_TRANS ? p->k : p->m);
    p->stride_b = p->ldb * (p->trans_b == TGL_TRANS ? p->n : p->k);
    p->stride_c = p->ldc * p->m;
    if (random_int(seed, 0, 9) == 0) x.blocking.kc = (int)random_int(seed, 1, 1000);
    if (random_int(seed, 0, 9) == 0) x.blocking.mc = (int)random_int(seed, 1, 1000);
    return x;
}

static tgl_shape shape_of_type(const tgl_problem *p, tgl_type type)
{
    tgl_problem typed = *p;
    typed.type_a = typed.type_b = type;
    typed.type_c = type == TGL_I8 ? TGL_I32 : type;
    typed.compute = TGL_COMPUTE_ACCURATE;
    tgl_shape shape;
    assert_status(tgl_shape_make(&typed, true, &shape), TGL_OK);
    return shape;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* Whether the build has the tier. *tier := a copy of it whose words are always permitted, because
 * Linux need not permit AMX on this machine. */
static bool find_tier(const char *name, cpu_tier *tier, cpu_words *words)
{
    const cpu_tier *usable[CPU_MAX_TIERS];
    int count;
    if (tgl_cpu_choose_tiers(~0u, name, usable, &count) != TGL_OK) return false;
    *tier = *usable[0];
    if (tier->words != NULL) {
        *words = *tier->words;
        words->is_permitted = NULL;
        tier->words = words;
    }
    return true;
}

static tier_hashes hash_plans(const cpu_facts *facts, const cpu_tier *tier)
{
    static const int teams[] = {1, 2, 16};
    static const tgl_type short_types[] = {TGL_BF16, TGL_F16, TGL_I8, TGL_F32};
    tier_hashes hashes = {tier->name, hash_start, hash_start};
    uint64_t seed = 41;
    for (int i = 0; i < PRODUCTS; i++) {
        const planned_product x = random_product(&seed);
        cpu_plan plan;
        cpu_block_plan blocks;
        for (int j = 0; j < 2 * (int)COUNT_OF(teams); j++) {
            const cpu_machine machine = {.facts = *facts, .threads = teams[j / 2]};
            const tgl_shape shape = shape_of_type(&x.problem, j % 2 ? TGL_F64 : TGL_F32);
            tgl_cpu_plan(&shape, j % 2 ? tier->f64 : tier->f32, x.blocking, &machine, &plan);
            add_plan(&hashes.products, &plan);
            add_workspace(&hashes.products, &plan);
        }
        for (size_t j = 0; j < COUNT_OF(short_types); j++) {
            const cpu_machine machine = {.facts = *facts, .threads = teams[(i + j) % 3]};
            const tgl_shape shape = shape_of_type(&x.problem, short_types[j]);
            const cpu_words *words = tgl_cpu_words_for(&shape, tier);
            if (short_types[j] == TGL_F32 && words == NULL) continue;
            tgl_cpu_plan_blocks(&shape, tier, words, x.blocking, &machine, &blocks, &plan);
            add_plan(&hashes.blocks, &plan);
            add_block_plan(&hashes.blocks, &blocks);
        }
    }
    return hashes;
}

static void plans_are_those_of_the_table(void **state)
{
    (void)state;
    int tiers = 0, changed = 0;
    for (size_t i = 0; i < COUNT_OF(processors); i++)
        for (const tier_hashes *row = processors[i].tiers; row->tier != NULL; row++) {
            cpu_tier tier;
            cpu_words words;
            if (!find_tier(row->tier, &tier, &words)) continue;
            const tier_hashes now = hash_plans(&processors[i].facts, &tier);
            tiers++;
            if (now.products == row->products && now.blocks == row->blocks) continue;
            changed++;
            const cpu_facts *facts = &processors[i].facts;
            print_error("\"%s\", L2 of %zu KB: {\"%s\", 0x%016" PRIx64 ", 0x%016" PRIx64 "},\n",
                        facts->model, facts->l2 >> 10, now.tier, now.products, now.blocks);
        }
    assert_true(tiers >= (int)COUNT_OF(processors)); /* "portable" is there */
    assert_int_equal(changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_those_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
