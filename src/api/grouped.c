/* SPDX-License-Identifier: Apache-2.0
 *
 * The one-shot functions of grouped products and of lists of products.
 */
#include "api/handles.h"
#include "problem/struct_size.h"

#include <stdlib.h>

/* ---- One product ----------------------------------------------------------------------------- */

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

/* ---- A list ---------------------------------------------------------------------------------- */

/* Element i of a caller's array of structs. The first member of each struct is its size, which may
 * be the size in an older version. */
static const void *element_at(const void *array, int64_t i)
{
    const size_t *first = array;
    return (const char *)array + (size_t)i * *first;
}

static tgl_status plan_list(tgl_device *dev, int64_t count, const tgl_problem *problems,
                            const tgl_operands *operands, void *stream, tgl_plan **plans)
{
    for (int64_t i = 0; i < count; i++) {
        tgl_shape shape;
        tgl_run run;
        TGL_TRY(tgl_device_shape(dev, element_at(problems, i), true, &shape));
        TGL_TRY(tgl_run_make(&shape, element_at(operands, i), &run));
        TGL_TRY(tgl_plan_find(dev, &shape, stream, &plans[i]));
    }
    return TGL_OK;
}

tgl_status tgl_grouped_list(tgl_device *dev, int64_t count, const tgl_problem *problems,
                            const tgl_operands *operands, void *stream)
{
    if (dev == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the device is NULL");
    if (count < 0) return tgl_fail(TGL_BAD_ARGUMENT, "count is %lld", (long long)count);
    if (count == 0) return TGL_OK;
    if (problems == NULL || operands == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "%s is NULL", problems == NULL ? "problems" : "operands");
    tgl_plan **plans = calloc((size_t)count, sizeof(void *));
    if (plans == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for %lld plans", (long long)count);
    tgl_status status = plan_list(dev, count, problems, operands, stream, plans);
    for (int64_t i = 0; i < count && status == TGL_OK; i++)
        status = tgl_plan_run_operands(plans[i], element_at(operands, i), stream);
    for (int64_t i = 0; i < count; i++)
        tgl_plan_release(plans[i]);
    free(plans);
    return status;
}
