/* SPDX-License-Identifier: Apache-2.0
 *
 * unscaled() of kernels/lib/words.h, which takes the scale of a sum away by two factors, against
 * one exact division that is rounded once: all exponents of sums and all scales, and mantissas for
 * which a second rounding would show.
 */
#include "support.h"

#define __device__
#define __forceinline__ inline
static inline float __int_as_float(int bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
#include "lib/words.h"

/* The sum of the exponents s of a row and of a column, each of which is in [-113, 163] if the
 * line's words are not all 0. */
enum { S_MIN = -2 * 113, S_MAX = 2 * 163 };

static void scales_are_taken_away_with_one_rounding(void **state)
{
    /* Mantissas near the middle between two denormal numbers: any number of leading ones, or a one
     * behind any number of zeros, with and without a last bit. */
    (void)state;
    for (int bit = 0; bit < 24; bit++) {
        for (int way = 0; way < 4; way++) {
            const double tail = way % 2 != 0 ? 0x1p-23 : 0;
            const double mantissa = way < 2 ? 2 - ldexp(1, -bit) + tail : 1 + ldexp(1, -bit) + tail;
            for (int exponent = -59; exponent < 61; exponent++) {
                const float sum = (float)ldexp(mantissa < 2 ? mantissa : 1, exponent);
                for (int s = S_MIN; s <= S_MAX; s++) {
                    const float expected = (float)ldexp(sum, -s), got = unscaled(sum, s);
                    if (got != expected)
                        fail_msg("%a times 2^%d is %a, not %a", sum, -s, expected, got);
                }
            }
        }
    }
}

static void signs_and_zeros_stay(void **state)
{
    (void)state;
    for (int s = S_MIN; s <= S_MAX; s++) {
        assert_true(unscaled(-3, s) == -unscaled(3, s));
        assert_true(unscaled(0, s) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_taken_away_with_one_rounding),
        cmocka_unit_test(signs_and_zeros_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
