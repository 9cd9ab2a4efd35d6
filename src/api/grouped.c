/* SPDX-License-Identifier: Apache-2.0
 *
 * The one-shot function of grouped products.
 */
#include "api/handles.h"

tgl_status tgl_grouped_gemm(tgl_device *dev, const tgl_problem *problem, double alpha,
                            const void *A, const void *B, double beta, void *C,
                            const int32_t *groups, void *stream)
{
    if (dev == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the device is NULL");
    tgl_shape shape;
    TGL_TRY(tgl_device_shape(dev, problem, true, &shape));
    if (shape.grouping == TGL_GROUPED_NONE)
        return tgl_fail(TGL_BAD_GROUPS, "the problem has no grouping: use tgl_gemm()");
    TGL_TRY(tgl_check_one_shot(&shape));
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = alpha,
                                   .beta = beta,
                                   .A = A,
                                   .B = B,
                                   .C = C,
                                   .groups = groups};
    return tgl_run_once(dev, &shape, &operands, stream);
}
