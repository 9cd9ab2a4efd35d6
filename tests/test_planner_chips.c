/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans for every chip of the table, on which most kernels were never timed: each launch is legal
 * on the chip, and the predicted time is between what the hardware allows and what is absurd. And
 * the time that planning itself takes.
 */
#include "plan_shape.h"
#include "usual_code.h"

#include "base/error.h"

#include <math.h>
#include <time.h>

enum { SHAPES = 300, THREADS_OF_BLOCK = 1024, GRID_YZ = 65535 };

static int64_t random_size(uint64_t *seed, int bits_max)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    const uint64_t bits = (*seed >> 58) % (uint64_t)bits_max;
    return 1 + (int64_t)((*seed >> 33) % ((uint64_t)2 << bits));
}

static void set_type(tgl_shape *s, tgl_type type)
{
    s->type_a = s->type_b = s->type_c = s->type_d = type;
    s->epilogue.type_bias = s->epilogue.type_residual = type;
    s->type_accumulate = type == TGL_F64 ? TGL_F64 : TGL_F32;
}

/* Product `number`: sizes of up to 2^13. Types and compute modes take turns; every seventh is a
 * batch, of smaller matrices, and two of three have rows with 1 or 2 elements of padding. */
static tgl_shape random_shape(int number, uint64_t *seed)
{
    static const tgl_type types[] = {TGL_F32, TGL_BF16, TGL_F32, TGL_F16, TGL_F64};
    const bool is_batch = number % 7 == 6;
    const int bits = is_batch ? 8 : 13;
    const int64_t m = random_size(seed, bits), n = random_size(seed, bits),
                  k = random_size(seed, bits), pad = number % 3;
    tgl_shape s = transposed_shape_of(m, n, k, number % 2 != 0, number / 2 % 2 != 0);
    set_type(&s, types[number % 5]);
    s.lda += pad;
    s.ldb += pad;
    if (number % 10 == 2) s.compute = TGL_COMPUTE_TF32;
    if (number % 10 == 7) s.compute = TGL_COMPUTE_ACCURATE;
    if (is_batch) make_batch(&s, random_size(seed, 12));
    return s;
}

static void assert_legal(const tgl_chip *chip, const tgl_launch *l)
{
    const unsigned cluster = l->cluster[0] * l->cluster[1] * l->cluster[2];
    assert_int_equal(l->kernel->needs & ~chip->features, 0);
    assert_in_range(l->threads, 1, THREADS_OF_BLOCK);
    assert_in_range(l->dynamic_shared, 0, chip->shared_per_block);
    assert_in_range(cluster, 1, chip->cluster_max);
    assert_in_range(l->grid[0], 1, INT32_MAX);
    assert_in_range(l->grid[1], 1, GRID_YZ);
    assert_in_range(l->grid[2], 1, GRID_YZ);
    for (int i = 0; i < 3; i++)
        assert_int_equal(l->grid[i] % l->cluster[i], 0);
}

/* FLOPs per SM and clock of the fastest units that have the arithmetic. Chips without tensor cores
 * for F64 have at least 2 F64 lanes in an SM. */
static double flops_of(const tgl_chip *chip, const tgl_shape *s)
{
    if (s->type_a == TGL_F64) return fmax(chip->tensor_f64_flops, 4);
    if (s->type_a != TGL_F32 || s->compute == TGL_COMPUTE_ACCURATE) return chip->tensor_flops;
    return s->compute == TGL_COMPUTE_TF32 ? chip->tensor_flops / 2.0 : 2 * chip->fp32_lanes;
}

/* A lower bound of the seconds: the time of the arithmetic, or the time to move each operand once
 * between L2 and the SMs, whichever is longer. */
static double floor_of(const tgl_chip *chip, const tgl_shape *s)
{
    const double rate = 1e6 * chip->clock_mhz * chip->sms * flops_of(chip, s);
    const double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    const double elements = (double)(s->m * s->k + s->k * s->n + s->m * s->n);
    const double bytes = elements * (double)tgl_type_size(s->type_a);
    return (double)s->batch * fmax(flops / rate, bytes / fmax(chip->l2_rate, chip->memory_rate));
}

/* Whether the chip has kernels for the product's type and compute mode. Others are refused. */
static bool has_arithmetic(const tgl_chip *chip, const tgl_shape *s)
{
    if (s->compute == TGL_COMPUTE_ACCURATE) return (chip->features & TGL_HAS_WGMMA) != 0;
    const bool is_later = s->compute == TGL_COMPUTE_TF32 || s->type_a != TGL_F32;
    return !is_later || chip->capability >= 80;
}

static void check_plan(const tgl_chip *chip, const tgl_shape *s)
{
    static const double SLOWEST = 20;     /* times the least; the slowest plan of today: 15 */
    static const double OVERHEAD = 10e-6; /* seconds that any product may take */
    const tgl_request any = request_of(NULL);
    tgl_candidate c;
    if (tgl_planner_choose(chip, s, &any, &c) != TGL_OK)
        fail_msg("%s, type %d, compute %d, %c%c, m=%lld n=%lld k=%lld batch=%lld: %s", chip->name,
                 s->type_a, s->compute, s->trans_a ? 'T' : 'N', s->trans_b ? 'T' : 'N',
                 (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->batch,
                 tgl_error());
    const double least = floor_of(chip, s);
    tgl_launch_list list = list_of(chip, s, &c);
    for (int i = 0; i < list.step_count; i++)
        for (int j = 0; j < list.steps[i].launch_count; j++)
            assert_legal(chip, &list.steps[i].launches[j]);
    tgl_list_free(&list);
    assert_in_range(c.resident, 1, chip->threads_per_sm / c.threads);
    assert_true((int64_t)c.registers * c.threads * c.resident <= chip->registers_per_sm);
    assert_true(c.shared_bytes * c.resident <= chip->shared_per_sm);
    if (!(c.seconds >= 0.9 * least) || !(c.seconds <= SLOWEST * (least + OVERHEAD)))
        fail_msg("%s, %s, m=%lld n=%lld k=%lld batch=%lld: %g s, at least %g", chip->name,
                 tgl_choice_name(&c.choice), (long long)s->m, (long long)s->n, (long long)s->k,
                 (long long)s->batch, c.seconds, least);
}

static void plans_are_legal_and_sane(void **state)
{
    (void)state;
    const tgl_chip *chip;
    for (int i = 0; (chip = tgl_chip_at(i)) != NULL; i++) {
        uint64_t seed = 7;
        for (int number = 0; number < SHAPES; number++) {
            const tgl_shape s = random_shape(number, &seed);
            if (has_arithmetic(chip, &s)) check_plan(chip, &s);
        }
    }
}

/* The time of this thread on a processor: other programs hardly change it. */
static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time to choose a candidate and to make its launch list, the least of several. */
static double planning_seconds(const tgl_chip *chip, const tgl_shape *s)
{
    enum { ROUNDS = 3 };
    double least = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = thread_seconds();
        const tgl_candidate c = choose_on(chip, s, NULL);
        tgl_launch_list list = list_of(chip, s, &c);
        least = fmin(least, thread_seconds() - start);
        tgl_list_free(&list);
    }
    return least;
}

/* A program may have a new shape in each step, as decoding with a growing cache does. */
static void plans_take_little_time(void **state)
{
    static const double SECONDS_MAX = 150e-6; /* on average; 30 us on an AMD EPYC (Zen 4) */
    const tgl_chip *chip = chip_of("h200");
    uint64_t seed = 7;
    double all = 0;
    (void)state;
    if (!IS_USUAL_CODE) skip();
    for (int number = 0; number < SHAPES; number++) {
        const tgl_shape s = random_shape(number, &seed);
        all += planning_seconds(chip, &s);
    }
    print_message("a plan takes %.0f us\n", 1e6 * all / SHAPES);
    assert_true(all / SHAPES <= SECONDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_legal_and_sane),
        cmocka_unit_test(plans_take_little_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
