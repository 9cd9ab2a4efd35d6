/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns the scaled sums of gemm/accurate.cu into FP32 sums: divides each sum by the scale of its
 * row and that of its column. Then adds the products of the listed elements, which two f16 words
 * cannot represent, sorted by line and then by k (docs/accuracy.md). A line is a row of op(A) or a
 * column of op(B). A panel is a group of 64 lines that share a list. A consumer is a warpgroup that
 * multiplies; `group` is its number.
 */
#ifndef TGL_ACCURATE_LISTED_H
#define TGL_ACCURATE_LISTED_H

#include "lib/accurate_tiles.h"
#include "lib/shuffle.h"

/* Puts the s of the tile's BN columns, and the masks of its single columns, into the consumer's
 * shared memory. */
static __device__ __forceinline__ void bring_exponents(struct accurate_shared *shared,
                                                       const struct tgl_gemm_args *args,
                                                       const struct lines *lines,
                                                       const struct unit *u, int group)
{
    consumer_barrier(group); /* the exponents of the previous unit have been read */
    for (int i = (int)threadIdx.x % 128; i < BN; i += 128) {
        const int exponent = lines->right_exponents[at_most(u->right + i, args->n - 1)];
        const unsigned singles = lanes_where(is_single_line(exponent));
        shared->exponents[group][i] = scale_exponent(exponent);
        if (i % 32 == 0) shared->singles[group][i / 32] = singles;
    }
    consumer_barrier(group);
}

/* sum := sum / (scale of its row * scale of its column), where a scale is 2^s. is_wide: some |s|
 * exceeds TGL_MODEST_EXPONENT. If none does, a sum is multiplied by one inverse scale and then by
 * the other: the first product is a normal number and therefore exact. Returns whether one of the
 * thread's two rows is a single line. */
static __device__ __forceinline__ bool unscale(float *sum, const struct tgl_gemm_args *args,
                                               const struct lines *lines, const struct unit *u,
                                               int group, struct accurate_shared *shared,
                                               bool is_wide)
{
    const struct fragment f = fragment_of(group);
    const int left[2] = {lines->left_exponents[at_most(u->left + f.row, args->m - 1)],
                         lines->left_exponents[at_most(u->left + f.row + 8, args->m - 1)]};
    const int own[2] = {scale_exponent(left[0]), scale_exponent(left[1])};
    const bool has_single_rows = is_single_line(left[0]) || is_single_line(left[1]);
    const int *exponents = shared->exponents[group];
    bring_exponents(shared, args, lines, u, group);
    if (is_wide) {
#pragma unroll
        for (int i = 0; i < ACC; i++)
            sum[i] = unscaled(sum[i], own[i / 2 % 2] + exponents[f.col + i / 4 * 8 + i % 2]);
        return has_single_rows;
    }
    const float rows[2] = {power_of_two(-own[0]), power_of_two(-own[1])};
#pragma unroll
    for (int i = 0; i < ACC; i += 4) {
        const int2 s = *(const int2 *)&exponents[f.col + i / 4 * 8];
        const float columns[2] = {power_of_two(-s.x), power_of_two(-s.y)};
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[i + j] = sum[i + j] * rows[j / 2] * columns[j % 2];
    }
    return has_single_rows;
}

/* Sorts a panel's list by line, then by k. order[i] := the index in the list of the element that is
 * number i in this order. */
static __device__ __forceinline__ void sort_list(int *order, const struct tgl_panel *panel,
                                                 int group)
{
    const int own = (int)threadIdx.x % 128, count = (int)panel->count;
    consumer_barrier(group); /* the previous order has been read */
    if (own < count) {
        const int line = panel->listed[own].line, k = panel->listed[own].k;
        int before = 0;
        for (int i = 0; i < count; i++) {
            const int other = panel->listed[i].line;
            before += other < line || (other == line && panel->listed[i].k < k);
        }
        order[before] = own;
    }
    consumer_barrier(group);
}

/* sum += the products of the listed elements of op(A). The consumer's 64 rows are one panel. met:
 * BN floats of shared memory, for the row of op(B) that a listed element multiplies. order: shared
 * memory for sort_list(). */
static __device__ __forceinline__ void
add_listed_of_left(float *sum, const struct tgl_gemm_args *args, const struct tgl_panel *panel,
                   const struct unit *u, int group, float *met, int *order)
{
    const float *B = B_OF(args, u->batch);
    const struct fragment f = fragment_of(group);
    sort_list(order, panel, group);
#pragma unroll 1
    for (int n = 0; n < (int)panel->count; n++) {
        const struct tgl_listed *x = &panel->listed[order[n]];
        consumer_barrier(group); /* all threads have read the previous element's row of op(B) */
        for (int i = (int)threadIdx.x % 128; i < BN; i += 128)
            met[i] = element_of_b(args, B, x->k, at_most(u->right + i, args->n - 1));
        consumer_barrier(group);
        const int line = x->line + group * WM - f.row; /* 0 or 8: one of the thread's two rows */
        if (line != 0 && line != 8) continue;
        const float value = x->value;
#pragma unroll
        for (int i = 0; i < ACC; i++)
            if (i / 2 % 2 == line / 8) sum[i] = fmaf(value, met[f.col + i / 4 * 8 + i % 2], sum[i]);
    }
}

/* sum += the products of the listed elements of op(B) with op(A). Listed elements of op(A) are left
 * out, because add_listed_of_left() has added their products with all of op(B). first_column: the
 * first column of the panel. order: shared memory for sort_list(). */
static __device__ __forceinline__ void
add_listed_of_right(float *sum, const struct tgl_gemm_args *args, const struct tgl_panel *panel,
                    const int *left_exponents, int first_column, const struct unit *u, int group,
                    int *order)
{
    const float *A = A_OF(args, u->batch);
    const struct fragment f = fragment_of(group);
    sort_list(order, panel, group);
#pragma unroll 1
    for (int n = 0; n < (int)panel->count; n++) {
        const struct tgl_listed *x = &panel->listed[order[n]];
        const int col = first_column + x->line - u->right;
        if (col < 0 || col >= BN || col % 8 / 2 * 2 != f.col) continue;
        float met[2]; /* the elements of op(A) that x multiplies, in the thread's two rows */
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = at_most(u->left + f.row + 8 * i, args->m - 1);
            const struct scale scale = scale_of(scale_exponent(left_exponents[row]));
            met[i] = element_of_a(args, A, row, x->k);
            if (is_below_words(met[i], scaled(met[i], scale))) met[i] = 0.0f;
        }
#pragma unroll
        for (int i = 0; i < ACC; i++)
            if (i / 4 == col / 8 && i % 2 == col % 2)
                sum[i] = fmaf(met[i / 2 % 2], x->value, sum[i]);
    }
}

/* sum += the products of all listed elements in the consumer's 64 rows and in the columns of the
 * unit's tile. */
static __device__ __forceinline__ void add_listed(float *sum, const struct tgl_gemm_args *args,
                                                  const struct lines *lines, const struct unit *u,
                                                  int group, struct accurate_shared *shared)
{
    const int first = u->left + group * WM, end = at_most(u->right + BN, args->n);
    int *order = shared->orders[group];
    if (first < args->m)
        add_listed_of_left(sum, args, &lines->left_panels[first / TGL_PANEL_LINES], u, group,
                           (float *)shared->exponents[group], order);
#pragma unroll 1
    for (int p = u->right / TGL_PANEL_LINES; p * TGL_PANEL_LINES < end; p++)
        add_listed_of_right(sum, args, &lines->right_panels[p], lines->left_exponents,
                            p * TGL_PANEL_LINES, u, group, order);
}

#endif
