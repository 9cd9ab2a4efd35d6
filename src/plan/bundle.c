/* SPDX-License-Identifier: Apache-2.0
 *
 * Which products a bundle takes, and the table of a bundle.
 */
#include "plan/bundle.h"
#include "base/integers.h"

/* Bytes of a copy of A or B, if all lines (contiguous rows, as stored) of both begin and end at
 * multiples of this number. */
enum { ALIGNMENT = 16 };

/* ---- Products -------------------------------------------------------------------------------- */

/* Maximum k. A bundle has no split-K, so that above this k a launch of the product's own with
 * split-K is expected to be faster. At this k a tile of 64 x 64 takes about 20 us (estimate from
 * mma_cost.c, not measured). */
enum { DEPTH_MAX = 4096 };

/* A product with more elements of D per SM than this fills the chip by itself. 128 x 128 is the
 * largest tile of which two blocks fit on an SM. */
enum { TILE = 128 * 128 };

/* Maximum leading dimension. Byte offsets in a tile of 256 lines then stay below 2^31, also in F64.
 * That is half of the 4 GB from which on a kernel needs WIDE_OFFSETS (kernels/lib/simt_tiles.h). */
enum { LD_MAX = 1 << 20 };

static bool is_plain(const tgl_shape *s, const tgl_run *run)
{
    return s->batch == 1 && s->in_place && !s->pointers && !s->device_scalars &&
           s->grouping == TGL_GROUPED_NONE && !tgl_shape_has_scales(s) &&
           !tgl_shape_has_weights(s) && !tgl_type_is_complex(s->type_a) &&
           tgl_epilogue_is_none(&s->epilogue) && run->workspace == NULL;
}

static bool is_small(const tgl_chip *chip, const tgl_shape *s)
{
    const int64_t elements_max = (int64_t)chip->sms * TILE;
    return s->m <= elements_max && s->n <= elements_max / s->m && s->k <= DEPTH_MAX &&
           s->lda <= LD_MAX && s->ldb <= LD_MAX && s->ldd <= LD_MAX;
}

bool tgl_bundle_takes(const tgl_chip *chip, const tgl_shape *s, const tgl_run *run)
{
    return !tgl_shape_is_empty(s) && is_plain(s, run) && is_small(chip, s);
}

/* Whether all lines of a matrix begin and end at multiples of ALIGNMENT bytes. */
static bool is_aligned(const void *matrix, int64_t length, int64_t ld, tgl_type type)
{
    const int64_t bytes = (length | ld) * (int64_t)tgl_type_size(type);
    return ((uintptr_t)matrix | (uintptr_t)bytes) % ALIGNMENT == 0;
}

static bool has_aligned_inputs(const tgl_shape *s, const tgl_run *run)
{
    if (!run->has_product) return true; /* A and B are not read */
    return is_aligned(run->at[TGL_AT_A], s->trans_a ? s->m : s->k, s->lda, s->type_a) &&
           is_aligned(run->at[TGL_AT_B], s->trans_b ? s->k : s->n, s->ldb, s->type_b);
}

uint64_t tgl_bundle_class(const tgl_shape *s, const tgl_run *run)
{
    const unsigned members[] = {s->type_a,  s->type_b,  s->type_c,  s->type_accumulate,
                                s->compute, s->trans_a, s->trans_b, has_aligned_inputs(s, run)};
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        all = all << 8 | members[i];
    return all;
}

static union tgl_scalar scalar_of(const tgl_shape *s, double value)
{
    union tgl_scalar scalar = {.f64 = 0};
    if (s->type_accumulate == TGL_F64)
        scalar.f64 = value;
    else if (s->type_accumulate == TGL_I32)
        scalar.i32 = (int)value;
    else
        scalar.f32 = (float)value;
    return scalar;
}

struct tgl_bundle_member tgl_bundle_member_of(const tgl_shape *s, const tgl_run *run)
{
    return (struct tgl_bundle_member){
        .A = run->at[TGL_AT_A],
        .B = run->at[TGL_AT_B],
        .D = (void *)run->at[TGL_AT_D],
        .alpha = scalar_of(s, run->has_product ? run->alpha : 0),
        .beta = scalar_of(s, run->beta),
        .m = (int)s->m,
        .n = (int)s->n,
        .k = run->has_product ? (int)s->k : 0,
        .lda = (int)s->lda,
        .ldb = (int)s->ldb,
        .ldd = (int)s->ldd,
    };
}

/* ---- The bundle ------------------------------------------------------------------------------ */

/* The power of two that is nearest to a size, at least 16, because 16 elements of any type are a
 * whole number of 16-byte copies. */
static int64_t round_size(double size)
{
    int64_t power = 16;
    while (size * size > 2 * (double)power * (double)power)
        power *= 2;
    return power;
}

/* Sets m, n and k to their means over the elements of all D, rounded to powers of two. Sets batch
 * to a power of two, so that D of all `batch` products together has about as many elements as D of
 * the bundle. The tiles and the arithmetic are then about those of the bundle. */
static void set_typical_sizes(tgl_shape *s, const struct tgl_bundle_table *bundle)
{
    double area = 0, m = 0, n = 0, k = 0;
    for (int i = 0; i < bundle->count; i++) {
        const struct tgl_bundle_member *x = &bundle->members[i];
        const double own = (double)x->m * x->n;
        area += own;
        m += own * x->m;
        n += own * x->n;
        k += own * x->k;
    }
    s->m = round_size(m / area);
    s->n = round_size(n / area);
    s->k = round_size(k / area);
    s->batch = round_size(16 * area / ((double)s->m * (double)s->n)) / 16;
}

tgl_shape tgl_bundle_shape(const tgl_shape *of, const tgl_run *run,
                           const struct tgl_bundle_table *bundle)
{
    const bool aligned = has_aligned_inputs(of, run);
    tgl_shape s = *of;
    set_typical_sizes(&s, bundle);
    const int pad = aligned ? 0 : 1; /* families derive the width of copies and stores from the
                                        leading dimensions */
    s.lda = (s.trans_a ? s.m : s.k) + pad;
    s.ldb = (s.trans_b ? s.k : s.n) + pad;
    s.ldc = s.ldd = s.n + pad;
    s.stride_a = s.stride_b = s.stride_c = s.stride_d = 0;
    s.alignment = aligned ? ALIGNMENT : (int64_t)tgl_type_size(s.type_a);
    s.pointers = s.is_bundle = true;
    s.swapped = s.unaligned = false;
    return s;
}

void tgl_bundle_number_tiles(struct tgl_bundle_table *bundle, int bm, int bn)
{
    bundle->tiles = 0;
    for (int i = 0; i < bundle->count; i++) {
        struct tgl_bundle_member *x = &bundle->members[i];
        x->first_tile = bundle->tiles;
        bundle->tiles += (int)(tgl_ceil_div(x->m, bm) * tgl_ceil_div(x->n, bn));
    }
}
