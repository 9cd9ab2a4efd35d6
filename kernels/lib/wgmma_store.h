/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the sums of a consumer (a warpgroup that multiplies). Results of 16 bits, if is_packed()
 * (C is not read), are stored by TMA (lib/wgmma_boxes.h) or by threads (lib/wgmma_spans.h), all
 * other results by threads (lib/wgmma_chunks.h).
 */
#ifndef TGL_WGMMA_STORE_H
#define TGL_WGMMA_STORE_H

#include "lib/wgmma_boxes.h"
#include "lib/wgmma_chunks.h"
#include "lib/wgmma_line_scales.h"

/* Shared memory of a consumer for results on their way to D: a chunk or a span of each warp, or
 * boxes for TMA. */
#define BOXES_BYTES   (TMA_STORES * BOX_BYTES)
#define RESULTS_BYTES (BOXES_BYTES > 4 * CHUNK_BYTES ? BOXES_BYTES : 4 * CHUNK_BYTES)

/* Stores the sums of consumer number `group`. results: RESULTS_BYTES of shared memory. d_map: the
 * tensor map of D, with TMA_STORES. factors: with STAGED_FACTORS. Each branch computes the address
 * of a warp's chunk: if it is computed only once, NVRTC 13.0 keeps it in registers, and spills sums
 * with tiles of 256x144.
 */
static __device__ __forceinline__ void wgmma_store_sums(const struct tgl_gemm_args *args,
                                                        accumulate_t (*acc)[ACC], char *results,
                                                        const struct tgl_tensor_map *d_map,
                                                        struct line_factors *factors,
                                                        const struct unit *u, int group)
{
    wait_until_results_are_read();
    struct epilogue_operands with = epilogue_operands(args, D_OF(args, u->batch), u->batch);
#if STAGED_FACTORS
    use_line_factors(&with, args, factors, u, group);
#endif
#if AMAX
    unsigned amax = 0;
    with.amax = &amax;
#endif
    const int warp = STORING_THREAD / 32 % 4;
    const int first_left = u->left + CONSUMER_ROW(group) + warp * 16;
#if HAS_PACKED
    if (is_packed(args, &with)) {
#if TMA_STORES
        store_by_tma(args, &with, acc, results, d_map, u, first_left);
#else
        store_spans(args, &with, acc, results, u, first_left);
#endif
        return;
    }
#endif
    (void)d_map, (void)factors;
    store_chunks(args, &with, acc, (accumulate_t *)(results + warp * CHUNK_BYTES), u, first_left);
#if AMAX
    epilogue_add_amax(args, amax);
#endif
}

#endif
