/* SPDX-License-Identifier: Apache-2.0
 *
 * Fails to compile if today's header has changed a value or an offset of version 0.2.
 */
#include "tegula/tegula.h"

#include "pinned_abi.h"

/* Parts of the release 0.2.0 that tegula_0_2.h, an earlier header, does not have. */
PIN(TGL_SIDE_A, 1);
PIN(TGL_SIDE_B, 2);
PIN(offsetof(tgl_operands, prepared_a), 160);
PIN(offsetof(tgl_operands, prepared_b), 168);
AT(tgl_counters, mma_requests, 200, 8);
AT(tgl_counters, wgmma_requests, 208, 8);
AT(tgl_counters, wgmma_bytes, 216, 8);
AT(tgl_counters, tma_load_requests, 224, 8);
AT(tgl_counters, tma_load_sectors, 232, 8);
AT(tgl_counters, tma_load_bytes, 240, 8);
AT(tgl_counters, tma_multicast_bytes, 248, 8);
AT(tgl_counters, tma_store_requests, 256, 8);
AT(tgl_counters, tma_store_sectors, 264, 8);
AT(tgl_counters, tma_store_bytes, 272, 8);
AT(tgl_counters, mbarrier_waits, 280, 8);

/* Complex types, which were added after 0.2.0. */
PIN(TGL_C64, 9);
PIN(TGL_C128, 10);
PIN(TGL_CONJ_NO_TRANS, 114);
AT(tgl_operands, alpha_imag, 176, 8);
AT(tgl_operands, beta_imag, 184, 8);

/* Groups and factors of blocks, which were added after 0.2.0. */
PIN(TGL_SCALING_LINE_128, 4);
PIN(TGL_BAD_GROUPS, 44);
PIN(TGL_GROUPED_ROWS, 1);
PIN(TGL_GROUPED_DEPTH, 2);
PIN(TGL_GROUPED_MASKED, 3);
PIN(TGL_GROUP_SIZES, 1);
AT(tgl_problem, grouping, 176, 4);
AT(tgl_problem, group_form, 180, 4);
AT(tgl_problem, ld_scale_a, 184, 8);
AT(tgl_problem, ld_scale_b, 192, 8);
AT(tgl_operands, groups, 192, 8);

/* The largest magnitude of D, which was added after 0.2.0. */
AT(tgl_epilogue, amax, 64, 4);
AT(tgl_operands, amax_d, 200, 8);

extern const int abi_is_pinned;
const int abi_is_pinned = 1;

/* Weights, which were added after 0.2.0. */
PIN(TGL_I4, 11);
PIN(TGL_SCALING_GROUP, 5);
AT(tgl_problem, scale_group, 200, 4);
AT(tgl_problem, type_zero_b, 204, 4);
PIN(offsetof(tgl_problem, stride_scale_b), sizeof(tgl_problem) - 8);
PIN(offsetof(tgl_operands, zero_b), sizeof(tgl_operands) - 8);
