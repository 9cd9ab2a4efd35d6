/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by instructions that multiply groups of bf16 or int8 numbers and add the products of
 * each group. Products of bf16 are added in f32, products of int8 in int32. Elements of f16 are
 * first split into bf16 words, elements of f32 into bf16 words or int8 digits. In names and in
 * other files, "words" stands for all of these: bf16 words, int8 elements and int8 digits.
 *
 * A line is a row of op(A) or a column of op(B). A block is the part of op(A) or op(B) that is
 * packed and multiplied at once.
 *
 * Words: a bf16 number is one word. An f32 number is the sum of three bf16 words, an f16 number the
 * sum of two. The words together hold the 24 bits of an f32 and the 11 bits of an f16 exactly. Here
 * := rounds to the 8 significant bits of bf16:
 *
 *     x = high + middle + low        high := x, middle := x - high, low := x - high - middle
 *     x = high + low                 high := x, low := x - high
 *
 * Digits: another way to write an f32. Each element x of a line becomes the integer nearest to x *
 * 2^s. All elements of a line have the same s, chosen so that the largest integer of the line has
 * 23 bits. Each integer is written as three int8 digits to the base 256, from -128 to 127. A
 * product of digits takes three quarters of the time of a product of words (cpu_words.cycles in
 * tier_amx.c), and its sums are exact, but small elements of a line lose their low bits.
 * multiply_words.c decides when the error is small enough.
 *
 * Packed operands are panels of CPU_WORDS_LINES lines, padded with zeros. A panel is an array
 * [step][word][2] of tiles of 1 KB: 2 tiles of 16 lines each. The index `step` counts groups of
 * CPU_WORDS_STEPS steps of k for bf16, or CPU_WORDS_STEPS_I8 for int8 and digits. Behind its tiles,
 * a panel of digits has the factor 2^(16-s) of each line as f32, in CPU_DIGITS_UNSCALE_BYTES bytes.
 * A tier (the kernels for one instruction set, device/tiers.h) may pack in another layout, if a
 * block takes at most tgl_cpu_words_bytes().
 */
#ifndef TGL_CPU_WORDS_H
#define TGL_CPU_WORDS_H

#include "cpu/kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CPU_WORDS_LINES = 32,
    CPU_WORDS_STEPS = 32,
    CPU_WORDS_STEPS_I8 = 64,
    CPU_WORDS_BYTES = 2 * 1024, /* bytes of two tiles: one word of each element, for 32 lines and
                                   tgl_cpu_word_steps() steps of k */
    CPU_DIGITS = 3,
    CPU_DIGITS_MAX = 0x7f7f7f, /* the greatest integer that three digits can write */
    CPU_DIGITS_UNSCALE_BYTES = 4 * CPU_WORDS_LINES,
    CPU_DIGIT_LEVELS = 5 /* length of cpu_exponents.large */
};

/* The type of the elements, and how each element is represented for the multiply instruction. */
typedef enum cpu_word_kind {
    CPU_WORDS_BF16 = 0, /* bf16, one word */
    CPU_WORDS_F32 = 1,  /* f32, three words */
    CPU_WORDS_F16 = 2,  /* f16, two words */
    CPU_WORDS_I8 = 3,   /* int8 */
    CPU_DIGITS_F32 = 4, /* f32, three int8 digits */
    CPU_WORD_KINDS
} cpu_word_kind;

/* Steps of k in one row (64 bytes) of a packed tile: 32 of bf16, or 64 of int8. */
static inline int64_t tgl_cpu_word_steps(cpu_word_kind kind)
{
    return kind == CPU_WORDS_I8 || kind == CPU_DIGITS_F32 ? CPU_WORDS_STEPS_I8 : CPU_WORDS_STEPS;
}

/* The range of a block's elements, which packing determines, to decide whether the block may be
 * multiplied by words or digits (run/multiply_words.c). least, most: the biased f32 exponents of
 * the smallest and the largest nonzero magnitude; least > most if all elements are 0. With digits,
 * least and most are taken over the largest element of each line. Not used for int8. */
typedef struct cpu_exponents {
    int least; /* 0: an element is denormal */
    int most;  /* 255: there is Inf or NaN */
    /* With digits only. sum: max over the lines of (sum of |highest digit|). large[t]: min over the
     * lines of (number of elements with |highest digit| >= 2 * 2^t). */
    int sum, large[CPU_DIGIT_LEVELS];
} cpu_exponents;

/* Whether a block may be written in digits: the largest element of each line is 0, or at least
 * 2^-40 and below 2^51. Then no scale and no result can overflow or be denormal. */
static inline bool tgl_cpu_digits_in_range(cpu_exponents x)
{
    return x.least >= 127 - 40 && x.most <= 127 + 50;
}

/* A block of op(A) or op(B) in the caller's memory. Line i is row i of op(A) or column i of op(B).
 * Element p of line i is from[i*ld + p] if k_contiguous, else from[p*ld + i]. */
typedef struct cpu_words_source {
    const void *from;
    int64_t ld; /* distance of two lines (if k_contiguous) or of two steps of k, in elements */
    bool k_contiguous; /* true: the elements of a line are contiguous */
    int64_t lines, k;
} cpu_words_source;

/* The memory of the block to pack next, for prefetching: `rows` rows of `bytes` bytes, `step` bytes
 * apart. */
typedef struct cpu_words_next {
    const char *at;
    int64_t step, bytes, rows;
} cpu_words_next;

/* Packs a block at `to`, and returns the range of its elements. */
typedef cpu_exponents cpu_pack_words_fn(void *to, const cpu_words_source *source);

/* C := a*b, or C += a*b if `add`; a is m x k, b is k x n. C is f32, or int32 modulo 2^32. The
 * smallest partial products are not computed: low*middle, middle*low and low*low of three words,
 * and low*low of digits. */
typedef struct cpu_words_product {
    cpu_words_source a, b;     /* m is a.lines, n is b.lines */
    void *packed_a, *packed_b; /* memory for the packed blocks */
    void *c;
    int64_t ldc;
    bool add;
    cpu_words_next next[2]; /* the blocks of A and B that follow, for prefetching */
} cpu_words_product;

typedef void cpu_multiply_words_fn(const cpu_words_product *x);

/* The functions with which a tier (the kernels for one instruction set, device/tiers.h) packs and
 * multiplies words and digits. Arrays of CPU_WORD_KINDS elements are indexed by cpu_word_kind. For
 * a kind that the tier does not multiply, the elements of pack_a, pack_b and multiply are NULL. */
typedef struct cpu_words {
    const char *name;           /* name of the instructions, as the user sees it: "AMX" */
    bool (*is_permitted)(void); /* whether the system lets this process use the instructions; NULL:
                                   always */
    const struct cpu_words *otherwise; /* the table to use if is_permitted() is false; NULL: f32
                                          FMAs are used */
    int64_t steps[CPU_WORD_KINDS];     /* the usual number of steps of k in a block */
    double cycles[CPU_WORD_KINDS];     /* cycles per multiply-add of two elements (throughput),
                                          including the products of all their words */
    double fma_cycles;                 /* cycles per multiply-add by f32 FMAs (throughput) */
    bool rounds_to_odd; /* f32 sums are rounded to odd (BFMMLA, tier_neon_mm.c); else to nearest */
    cpu_pack_words_fn *pack_a[CPU_WORD_KINDS], *pack_b[CPU_WORD_KINDS];
    cpu_multiply_words_fn *multiply[CPU_WORD_KINDS];
    cpu_multiply_words_fn *multiply_fewer; /* multiplies digits without the products (middle digit
                                              of A) * (low digit of B) */

    /* multiply_unpacked: as multiply(), but reads A in place, from x->a. A must be contiguous along
     * k; its lines must be a multiple of CPU_WORDS_LINES, its k of tgl_cpu_word_steps(). NULL: A is
     * always packed. exponents: returns the range of the elements of a bf16 A that is read in
     * place. */
    cpu_multiply_words_fn *multiply_unpacked[CPU_WORD_KINDS];
    cpu_exponents (*exponents)(const cpu_words_source *a);

    /* Dot products for GEMV with a matrix of a short type (kernels.h), in place of
     * cpu_kernels.short_dot; NULL: cpu_kernels.short_dot is used. Called without begin(), end() and
     * is_permitted(). */
    cpu_dot_fn *short_dot[CPU_SHORTS];

    /* A thread must call begin() before multiply functions and end() after them. NULL: not
     * needed. */
    void (*begin)(void);
    void (*end)(void);
} cpu_words;

/* Upper bound of the bytes of a packed block of `lines` lines and k steps. */
static inline size_t tgl_cpu_words_bytes(cpu_word_kind kind, int64_t lines, int64_t k)
{
    static const int64_t element[] = {2, 6, 4, 2, CPU_DIGITS}; /* int8 may be stored as int16 */
    const int64_t whole_lines = (lines + CPU_WORDS_LINES - 1) / CPU_WORDS_LINES * CPU_WORDS_LINES;
    const int64_t whole_k = (k + CPU_WORDS_STEPS_I8 - 1) / CPU_WORDS_STEPS_I8 * CPU_WORDS_STEPS_I8;
    return (size_t)(whole_lines * (whole_k * element[kind] + (int64_t)sizeof(int32_t)));
}

/* Functions of pack_words.c, which use AVX512BW. The functions *_by_line pack a block that is
 * contiguous along k one line after the other, which is faster on Zen 4. tgl_pack_a_bf16() and
 * tgl_pack_b_bf16() do so only if the block has few lines. All other blocks are packed one tile
 * after the other, which is faster on a Xeon. */
cpu_pack_words_fn tgl_pack_a_bf16, tgl_pack_b_bf16, tgl_pack_a_bf16_by_line,
    tgl_pack_b_bf16_by_line, tgl_pack_a_f32, tgl_pack_b_f32, tgl_pack_a_f16, tgl_pack_b_f16;

/* The range of the elements of a bf16 block that is contiguous along k. k: a multiple of
 * CPU_WORDS_STEPS. */
cpu_exponents tgl_exponents_bf16(const cpu_words_source *source);

/* Functions of pack_i8.c, which use AVX512BW. tgl_pack_a_u8() stores a + 128, an unsigned byte,
 * because VPDPBUSD multiplies unsigned by signed bytes. tgl_pack_b_i8_with_offsets() appends to
 * each panel of B the int32 values -128 * (sum of column j), CPU_WORDS_OFFSETS bytes, which correct
 * the sums: sum((a + 128)*b) - 128*sum(b) = sum(a*b). */
enum { CPU_WORDS_OFFSETS = 4 * CPU_WORDS_LINES };
cpu_pack_words_fn tgl_pack_a_i8, tgl_pack_b_i8, tgl_pack_a_u8, tgl_pack_b_i8_with_offsets;

/* Functions of pack_digits.c, which use AVX512BW and AVX512-VNNI. */
cpu_pack_words_fn tgl_pack_a_digits, tgl_pack_b_digits;

/* Functions of tier_avx512_vnni.c for int8. The operands are packed by tgl_pack_a_u8() and
 * tgl_pack_b_i8_with_offsets(). CPU_CYCLES_VNNI: cycles per multiply-add. Zen 4 executes up to 64
 * multiply-adds a cycle; 56 are assumed, because of the loads. */
cpu_multiply_words_fn tgl_cpu_multiply_vnni;
cpu_dot_fn tgl_cpu_dot_vnni;
enum { CPU_STEPS_VNNI = 1024 };
#define CPU_CYCLES_VNNI (1 / 56.0)

/* Functions of pack_words_neon.c for aarch64. A and B have the same layout: panels of
 * CPU_NEON_LINES lines, cut along k into chunks, which contain CPU_NEON_CHUNK bytes of each line. A
 * chunk is stored in groups of 4 or 8 bytes, as the names say: group 0 of all lines, group 1 of all
 * lines, and so on. */
enum { CPU_NEON_LINES = 8, CPU_NEON_CHUNK = 16 };
cpu_pack_words_fn tgl_pack_bf16_by_8, tgl_pack_i8_by_4, tgl_pack_i8_by_8;

#endif
