/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h: packing a panel of A or B (cpu_pack_fn in kernels.h). A step is one step of
 * k, and has `width` elements in the packed panel.
 */

/* Stores the first min(lanes, VLEN) lanes; nothing if lanes <= 0. */
INLINE void NAME(store_lanes)(T *to, int64_t lanes, V x)
{
    if (lanes >= VLEN)
        STORE(to, x);
    else if (lanes > 0)
        STORE_MASKED(to, MASK_OF((int)lanes), x);
}

static void NAME(copy)(void *to, int64_t width, const void *from, int64_t ld, int64_t count,
                       int64_t k)
{
    T *dst = to;
    const T *src = from;
    if (width <= VLEN) { /* usual for A: a step fits in one vector */
        const MASK in = MASK_OF((int)count), out = MASK_OF((int)width);
        int64_t p = 0;
        /* Stores whole vectors although only `width` lanes are valid: the next step overwrites the
         * surplus lanes. A masked store of AVX2 would take 12 cycles on AMD's Zen. */
        for (; p * width + VLEN <= k * width; p++)
            STORE(dst + p * width, LOAD_MASKED(src + p * ld, in));
        for (; p < k; p++)
            STORE_MASKED(dst + p * width, out, LOAD_MASKED(src + p * ld, in));
        return;
    }
    if (width < 2 * VLEN && width == count) { /* a step is copied as two vectors that overlap */
        const int64_t second = width - VLEN;
        for (int64_t p = 0; p < k; p++, dst += width, src += ld) {
            const V low = LOAD(src), high = LOAD(src + second);
            STORE(dst, low);
            STORE(dst + second, high);
        }
        return;
    }
    for (int64_t p = 0; p < k; p++, dst += width, src += ld) {
        int64_t i = 0;
        for (; i + VLEN <= count; i += VLEN)
            STORE(dst + i, LOAD(src + i));
        if (i < count) {
            const MASK mask = MASK_OF((int)(count - i));
            NAME(store_lanes)(dst + i, width - i, LOAD_MASKED(src + i, mask));
            i += VLEN;
        }
        for (; i < width; i += VLEN)
            NAME(store_lanes)(dst + i, width - i, BROADCAST(0));
    }
}

/* Packs by transposing VLEN x VLEN blocks in registers. As in copy(), the last vector of a step is
 * stored whole, and its surplus lanes reach into the next step. Therefore the last vectors of all
 * steps are stored first, and the first vectors overwrite the surplus lanes later. */
static void NAME(interleave)(void *to, int64_t width, const void *from, int64_t ld, int64_t count,
                             int64_t k)
{
    T *dst = to;
    const T *src = from;
    for (int64_t i = (width - 1) / VLEN * VLEN; i >= 0; i -= VLEN) {
        for (int64_t p = 0; p < k; p += VLEN) {
            const int64_t steps = NAME(least)(VLEN, k - p);
            const MASK mask = MASK_OF((int)steps);
            V x[VLEN];
            UNROLL
            for (int r = 0; r < VLEN; r++)
                x[r] = i + r < count ? LOAD_MASKED(src + (i + r) * ld + p, mask) : BROADCAST(0);
            TRANSPOSE(x);
            if (steps == VLEN && (p + VLEN - 1) * width + i + VLEN <= k * width) {
                UNROLL
                for (int r = 0; r < VLEN; r++)
                    STORE(dst + (p + r) * width + i, x[r]);
            } else {
                UNROLL
                for (int r = 0; r < VLEN; r++)
                    if (r < steps) NAME(store_lanes)(dst + (p + r) * width + i, width - i, x[r]);
            }
        }
    }
}
