/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h: multiply-adds in registers, whose rate is the upper bound of all products by
 * FMAs (tegula info --measure).
 */

static double NAME(fma_loop)(int64_t rounds, double *sink)
{
    enum { CHAINS = MR * NV < 10 ? MR * NV : 10, REPEATS = 8 };
    V acc[CHAINS];
    /* x comes from memory, so that the compiler cannot remove the loop. The factor y = 0.5 keeps
     * the sums finite. */
    const V x = BROADCAST((T)*sink), y = BROADCAST((T)0.5);
    UNROLL
    for (int i = 0; i < CHAINS; i++)
        acc[i] = BROADCAST((T)i);
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL
        for (int q = 0; q < REPEATS; q++) {
            UNROLL
            for (int i = 0; i < CHAINS; i++)
                acc[i] = FMA(acc[i], y, x);
        }
    }
    V sum = BROADCAST(0);
    UNROLL
    for (int i = 0; i < CHAINS; i++)
        sum = sum + acc[i];
    *sink = (double)NAME(sum_lanes)(sum);
    return 2.0 * VLEN * CHAINS * REPEATS * (double)rounds;
}
