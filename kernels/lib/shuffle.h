/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchange between the lanes of a warp.
 */
#ifndef TGL_SHUFFLE_H
#define TGL_SHUFFLE_H

#include "lib/element.h"

/* Returns `value` of the lane whose number is the own number XOR `lanes`. The simulator's shuffles
 * move 4 bytes, so on the simulator a double takes two. */
#if ACCUMULATE == TYPE_F64 && defined(TGL_SIM)
static __device__ __forceinline__ double shuffle_xor(double value, int lanes)
{
    union {
        double value;
        unsigned words[2];
    } x = {value};
    x.words[0] = __shfl_xor_sync(0xffffffffu, x.words[0], lanes);
    x.words[1] = __shfl_xor_sync(0xffffffffu, x.words[1], lanes);
    return x.value;
}
#else
#define shuffle_xor(value, lanes) __shfl_xor_sync(0xffffffffu, value, lanes)
#endif

/* Returns `value` of lane 0, for an integer that is equal in all lanes. If the integer depends on
 * threadIdx or on earlier iterations of a loop, the compiler cannot prove that it is equal. After
 * the shuffle it can: it then uses uniform registers and the uniform datapath, which take less
 * power. All 32 lanes call it. */
#define uniform(value) __shfl_sync(0xffffffffu, value, 0)

/* Returns a condition that is equal in all lanes. The compiler can then prove that no lanes diverge
 * at a branch on it, and uses the uniform datapath behind the branch. uniform() does not suffice
 * for that (NVRTC 13.0). All 32 lanes call it. */
#ifdef TGL_SIM
#define uniform_condition(condition) (condition)
#else
#define uniform_condition(condition) __all_sync(0xffffffffu, condition)
#endif

/* Returns true in one lane, sm_90 and later. The compiler knows that only this lane is active at a
 * branch on it. Behind a comparison of threadIdx it repeats each TMA instruction in a loop over the
 * active lanes: 12 instructions a copy instead of 4. All 32 lanes call it. */
#ifdef TGL_SIM
#define elect_lane() (threadIdx.x % 32 == 0)
#else
static __device__ __forceinline__ bool elect_lane(void)
{
    unsigned is_elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
                 : "=r"(is_elected));
    return is_elected != 0;
}
#endif

/* Returns a mask of the lanes whose condition is true: bit i is lane i. All 32 lanes call it. */
static __device__ __forceinline__ unsigned lanes_where(bool condition)
{
#ifdef TGL_SIM
    unsigned mask = (unsigned)condition << threadIdx.x % 32;
    for (int lanes = 16; lanes > 0; lanes /= 2)
        mask |= __shfl_xor_sync(0xffffffffu, mask, lanes);
    return mask;
#else
    return __ballot_sync(0xffffffffu, condition);
#endif
}

#endif
