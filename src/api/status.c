/* SPDX-License-Identifier: Apache-2.0
 *
 * The one table of status names and texts.
 */
#include "tegula/tegula.h"

/* Indexed by status. Columns: identifier, sentence. */
static const struct {
    const char *name, *text;
} statuses[] = {
    [TGL_OK] = {"TGL_OK", "success"},
    [TGL_BAD_ARGUMENT] = {"TGL_BAD_ARGUMENT",
                          "an argument is NULL or out of range, or a struct has an invalid size"},
    [TGL_BAD_ORDER] = {"TGL_BAD_ORDER", "order is neither row-major nor column-major"},
    [TGL_BAD_TRANS_A] = {"TGL_BAD_TRANS_A", "trans_a is not a value of tgl_transpose"},
    [TGL_BAD_TRANS_B] = {"TGL_BAD_TRANS_B", "trans_b is not a value of tgl_transpose"},
    [TGL_BAD_TYPE] =
        {"TGL_BAD_TYPE",
         "an element type is not a value of tgl_type, or the types cannot be combined"},
    [TGL_BAD_COMPUTE] = {"TGL_BAD_COMPUTE", "compute is not a value of tgl_compute"},
    [TGL_BAD_M] = {"TGL_BAD_M", "m is negative"},
    [TGL_BAD_N] = {"TGL_BAD_N", "n is negative"},
    [TGL_BAD_K] = {"TGL_BAD_K", "k is negative"},
    [TGL_BAD_LDA] = {"TGL_BAD_LDA", "lda is smaller than a row of the stored matrix A"},
    [TGL_BAD_LDB] = {"TGL_BAD_LDB", "ldb is smaller than a row of the stored matrix B"},
    [TGL_BAD_LDC] = {"TGL_BAD_LDC", "ldc is smaller than a row of the stored matrix C"},
    [TGL_BAD_BATCH] = {"TGL_BAD_BATCH", "the batch count is negative"},
    [TGL_BAD_STRIDE_A] = {"TGL_BAD_STRIDE_A", "stride_a is negative"},
    [TGL_BAD_STRIDE_B] = {"TGL_BAD_STRIDE_B", "stride_b is negative"},
    [TGL_BAD_STRIDE_C] = {"TGL_BAD_STRIDE_C",
                          "stride_c is negative, or matrices C of the batch overlap"},
    [TGL_BAD_A] = {"TGL_BAD_A", "A is NULL or not aligned to its element size"},
    [TGL_BAD_B] = {"TGL_BAD_B", "B is NULL or not aligned to its element size"},
    [TGL_BAD_C] = {"TGL_BAD_C", "C is NULL or not aligned to its element size"},
    [TGL_TOO_LARGE] = {"TGL_TOO_LARGE", "a matrix is larger than 2^63 bytes"},
    [TGL_UNSUPPORTED] = {"TGL_UNSUPPORTED", "this device has no kernel for the request"},
    [TGL_NO_DEVICE] = {"TGL_NO_DEVICE", "there is no such device"},
    [TGL_NO_MEMORY] = {"TGL_NO_MEMORY", "memory is exhausted"},
    [TGL_NO_COMPILER] = {"TGL_NO_COMPILER", "no compiler for kernels was found"},
    [TGL_COMPILE] = {"TGL_COMPILE", "a kernel did not compile"},
    [TGL_GRID_TOO_LARGE] = {"TGL_GRID_TOO_LARGE",
                            "the kernel needs a larger grid than the device allows"},
    [TGL_DRIVER] = {"TGL_DRIVER", "a call to the CUDA driver or the operating system failed"},
    [TGL_DEVICE_LOST] = {"TGL_DEVICE_LOST", "a kernel faulted; the device can only be closed"},
    [TGL_KERNEL_FAULT] = {"TGL_KERNEL_FAULT", "a kernel was stopped because of an error in it"},
    [TGL_UNKNOWN_KERNEL] = {"TGL_UNKNOWN_KERNEL", "the device has no kernel of that name"},
    [TGL_BAD_SETTING] = {"TGL_BAD_SETTING", "an environment variable has an invalid value"},
    [TGL_BAD_BATCHING] = {"TGL_BAD_BATCHING",
                          "batching is not a value of tgl_batching, or does not match this call"},
    [TGL_BAD_ALIGNMENT] = {"TGL_BAD_ALIGNMENT", "alignment is neither 0 nor a power of two"},
    [TGL_BAD_EPILOGUE] = {"TGL_BAD_EPILOGUE", "a member of the epilogue is invalid"},
    [TGL_BAD_BIAS] = {"TGL_BAD_BIAS", "bias is NULL, not aligned, or not part of the epilogue"},
    [TGL_BAD_RESIDUAL] = {"TGL_BAD_RESIDUAL",
                          "residual is NULL, not aligned, or not part of the epilogue"},
    [TGL_BAD_LDD] = {"TGL_BAD_LDD", "ldd is smaller than a row of the stored matrix D"},
    [TGL_BAD_STRIDE_D] = {"TGL_BAD_STRIDE_D",
                          "stride_d is negative, or matrices D of the batch overlap"},
    [TGL_BAD_D] = {"TGL_BAD_D",
                   "D is NULL, not aligned to its element size, or not part of the problem"},
    [TGL_BAD_SCALAR] =
        {"TGL_BAD_SCALAR",
         "a pointer to alpha or beta is NULL, not aligned, or not part of the "
         "problem, or alpha or beta is not an integer of 32 bits in a product of i8, "
         "or not real in a product of real matrices"},
    [TGL_BAD_SCALE] = {"TGL_BAD_SCALE", "a scale is NULL, not aligned, or not part of the problem"},
    [TGL_BAD_WORKSPACE] = {"TGL_BAD_WORKSPACE",
                           "the workspace is too small or not aligned to 256 bytes"},
    [TGL_BAD_GROUPS] = {"TGL_BAD_GROUPS",
                        "the grouping is invalid, or the groups are missing or out of range"},
    [TGL_COMMUNICATION] = {"TGL_COMMUNICATION",
                           "another rank did not answer in time, or a link between ranks failed"},
};

static int is_known(tgl_status status)
{
    return (int)status >= 0 && (size_t)status < sizeof statuses / sizeof statuses[0];
}

const char *tgl_status_name(tgl_status status)
{
    return is_known(status) ? statuses[status].name : "TGL_UNKNOWN_STATUS";
}

const char *tgl_status_text(tgl_status status)
{
    return is_known(status) ? statuses[status].text : "not a status of this version";
}
