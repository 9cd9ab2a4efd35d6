/* SPDX-License-Identifier: Apache-2.0
 *
 * A pre-pass that expands weights of 8 or 4 bits to the 16-bit type of the other operand:
 *     to := round((q - zero) * factor), computed in FP32
 * A thread writes 16 bytes, 8 successive elements of a line (a contiguous row of the matrix in
 * memory), with zeros behind the line's end. The 8 elements have one factor if they are contiguous
 * along k (ALONG_K), because a group, the k with one factor, is a multiple of 8 long.
 */
#include "lib/half.h"
#include "lib/launch_order.h"
#include "lib/widen_args.h"

#ifndef BITS
#define BITS 4 /* bits of an integer: 4 or 8 */
#endif
#ifndef BFLOAT
#define BFLOAT 0 /* 1: the result is bf16, else f16 */
#endif
#ifndef ALONG_K
#define ALONG_K 1 /* 1: the elements of a line are contiguous along k */
#endif
#ifndef FACTORS
#define FACTORS 1
#endif
#ifndef ZEROS
#define ZEROS 0
#endif

#if BITS != 4 && BITS != 8
#error "BITS: 4 or 8"
#endif

#define THREADS 256
#define VECTOR  8                   /* elements of a thread */
#define BYTES   (VECTOR * BITS / 8) /* their bytes in memory */
#define WORDS   (BYTES / 4)

#if BFLOAT
#define floats_to_pair floats_to_bf16
#else
#define floats_to_pair floats_to_f16
#endif

/* Reads the integers of `count` elements, at most VECTOR, at any address. */
static __device__ __forceinline__ void read_integers(const unsigned char *at, int count,
                                                     unsigned words[WORDS])
{
    if (count >= VECTOR && (unsigned long long)at % 4 == 0) {
#pragma unroll
        for (int i = 0; i < WORDS; i++)
            words[i] = ((const unsigned *)at)[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        words[i] = 0;
#pragma unroll
    for (int i = 0; i < BYTES; i++)
        if (i * 8 / BITS < count) words[i / 4] |= (unsigned)at[i] << i % 4 * 8;
}

/* Element i of the words, with its sign. */
static __device__ __forceinline__ int integer_of(const unsigned words[WORDS], const int i)
{
    const unsigned bit = (unsigned)(i * BITS);
    return (int)(words[bit / 32] << (32 - BITS - bit % 32)) >> (32 - BITS);
}

/* The value of an integer. at: index of its factor and zero point. */
static __device__ __forceinline__ float weight_of(const struct tgl_widen_args *args, int integer,
                                                  long long at)
{
#if ZEROS
    integer -= args->zeros[at];
#endif
#if FACTORS
    return (float)integer * args->factors[at];
#else
    (void)args, (void)at;
    return (float)integer;
#endif
}

/* Expands the elements [first, first + VECTOR) of a line. */
static __device__ __forceinline__ uint4 widened(const struct tgl_widen_args *args,
                                                const unsigned char *from, long long matrix,
                                                long long line, long long first)
{
    const long long left = args->length - first;
    const int count = left < VECTOR ? (int)left : VECTOR;
    const long long p = ALONG_K ? first : line, column = ALONG_K ? line : first;
    const long long at = p / args->group * args->factor_ld + column * args->factor_step +
                         matrix * args->factor_stride;
    const int step = ALONG_K ? 0 : args->factor_step;
    unsigned words[WORDS], pairs[VECTOR / 2];
    float w[VECTOR];
    read_integers(from + (line * args->ld + first) * BITS / 8, count, words);
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        w[i] = i < count ? weight_of(args, integer_of(words, i), at + i * step) : 0;
#pragma unroll
    for (int i = 0; i < VECTOR / 2; i++)
        pairs[i] = floats_to_pair(w[2 * i], w[2 * i + 1]);
    return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

__global__ void __launch_bounds__(THREADS) widen(const struct tgl_widen_args args)
{
    wait_for_earlier_launches();
    let_later_launches_start();
    if (args.alpha_at && *(const float *)args.alpha_at == 0) return;
    const long long matrix = blockIdx.x / args.blocks, block = blockIdx.x % args.blocks;
    const long long number = block * THREADS + threadIdx.x;
    const long long vectors = (args.length + VECTOR - 1) / VECTOR, line = number / vectors;
    const long long first = (number - line * vectors) * VECTOR;
    const unsigned char *from = (const unsigned char *)args.from + matrix * args.stride * BITS / 8;
    unsigned short *to = (unsigned short *)args.to + matrix * args.to_stride;
    if (line < args.lines)
        *(uint4 *)(to + line * args.pitch + first) = widened(&args, from, matrix, line, first);
}
