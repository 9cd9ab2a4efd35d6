/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16 words, by instructions that multiply bf16 and add in f32. A bf16 number is one
 * word. An f32 number is the sum of three words,
 *
 *     x = high + middle + low        high := x, middle := x - high, low := x - high - middle
 *
 * each rounded to the 8 significant bits of bf16, which together hold the 24 bits of x exactly.
 *
 * Packed operands consist of panels of CPU_WORDS_LINES lines (rows of op(A), columns of op(B)),
 * padded with zeros. A panel has all its steps of k, CPU_WORDS_STEPS at a time, for each of these
 * its words, and for each word two tiles of 1 KB.
 */
#ifndef TGL_CPU_WORDS_H
#define TGL_CPU_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_WORDS_LINES = 32, CPU_WORDS_STEPS = 32, CPU_WORDS_BYTES = 2 * 1024, CPU_WORDS_MAX = 3 };

/* The exponents of a block's elements, biased as in f32. No element other than 0: least > most. */
typedef struct cpu_exponents {
    int least; /* of the elements other than 0; 0: a denormal number */
    int most;  /* 255: Inf or NaN */
} cpu_exponents;

/* A block of op(A) or op(B), which is not packed. */
typedef struct cpu_words_source {
    const void *from;
    int64_t ld;        /* elements between two lines, or two steps of k */
    bool k_contiguous; /* the steps of a line are contiguous; else the lines of a step are */
    int64_t lines, k;
} cpu_words_source;

/* Memory that is used next: `rows` rows of `bytes`, `step` bytes apart. */
typedef struct cpu_words_next {
    const char *at;
    int64_t step, bytes, rows;
} cpu_words_next;

/* [0]: bf16, one word; [1]: f32, three words, NULL where they are not used. */
typedef struct cpu_words {
    const char *name;           /* of the instructions, for people: "AMX" */
    bool (*is_permitted)(void); /* whether the system lets this process use them; NULL: always */
    int64_t steps[2];           /* of k in a block of A or B */
    double cycles[2];           /* of a multiply-add of two elements */
    double fma_cycles;          /* the same by an f32 FMA */

    cpu_exponents (*pack_a[2])(void *to, const cpu_words_source *source);
    cpu_exponents (*pack_b[2])(void *to, const cpu_words_source *source);

    /* C := a*b, or C += a*b, for packed operands of m x k and k x n. Of three words the products
     * low*middle, middle*low and low*low are left out. next: may be prefetched, of A and of B. */
    void (*multiply[2])(int64_t m, int64_t n, int64_t k, const void *a, const void *b, float *c,
                        int64_t ldc, bool add, const cpu_words_next next[2]);

    /* Around the calls of multiply() of a thread; NULL: nothing is to be done. */
    void (*begin)(void);
    void (*end)(void);
} cpu_words;

/* pack_words.c, by AVX512BW. by_line: one line after the other where k is contiguous, which is
 * faster on Zen 4. The others do so for few lines only; tile after tile was faster on a Xeon. */
cpu_exponents tgl_pack_a_bf16(void *to, const cpu_words_source *source);
cpu_exponents tgl_pack_b_bf16(void *to, const cpu_words_source *source);
cpu_exponents tgl_pack_a_bf16_by_line(void *to, const cpu_words_source *source);
cpu_exponents tgl_pack_b_bf16_by_line(void *to, const cpu_words_source *source);
cpu_exponents tgl_pack_a_f32(void *to, const cpu_words_source *source);
cpu_exponents tgl_pack_b_f32(void *to, const cpu_words_source *source);

#endif
