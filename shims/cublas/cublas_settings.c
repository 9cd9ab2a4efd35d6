/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment, read by the first call:
 *   TEGULA_CUBLAS_TRACE      1: prints a line on stderr for each product; time: the line also has
 *                            the time of the product on the GPU
 *   TEGULA_CUBLAS_SERVE      faster (the default): products that Tegula is expected to compute
 *                            faster; measured: also those that it was measured to compute faster
 *                            than cuBLAS; all: every product that it can compute; none: no
 *                            product
 *   TEGULA_CUBLAS_WORKSPACE  maximum workspace of a product in MiB, if the caller's workspace
 *                            is smaller
 *   NVIDIA_TF32_OVERRIDE     0: no TF32, as for cuBLAS
 * This file also prints the lines of the trace.
 */
#include "../../cli/common/trace_line.h"
#include "../../cli/common/unknown_settings.h"
#include "cublas_shim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The environment ------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cublas_settings settings;

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && strcmp(value, "") != 0 && strcmp(value, "0") != 0;
}

/* In MiB. The default suffices for an FP32 product of 8192 cubed whose A and B are split into
 * 16-bit words, which take 512 MiB (docs/accuracy.md). */
enum { OWN_WORKSPACE_MIB = 1024, OWN_WORKSPACE_MIB_MAX = 1 << 20 };

static int64_t read_own_workspace(void)
{
    const char *text = getenv("TEGULA_CUBLAS_WORKSPACE");
    char *end;
    if (text == NULL || text[0] == '\0') return (int64_t)OWN_WORKSPACE_MIB << 20;
    const long mib = strtol(text, &end, 10);
    if (*end == '\0' && mib >= 0 && mib <= OWN_WORKSPACE_MIB_MAX) return (int64_t)mib << 20;
    fprintf(
        stderr,
        "tegula_cublas: TEGULA_CUBLAS_WORKSPACE is \"%s\"; it must be a number of MiB from 0 to "
        "%d. It is taken for %d.\n",
        text, OWN_WORKSPACE_MIB_MAX, OWN_WORKSPACE_MIB);
    return (int64_t)OWN_WORKSPACE_MIB << 20;
}

/* Prints the environment variables that begin with TEGULA_CUBLAS_ and that this library does not
 * know. They may be misspelt. */
static void report_unknown_settings(void)
{
    static const char *const known[] = {"TEGULA_CUBLAS_SERVE", "TEGULA_CUBLAS_TRACE",
                                        "TEGULA_CUBLAS_WORKSPACE", NULL};
    char **at = environ;
    const char *name;
    for (int length; (name = next_unknown_setting(&at, "TEGULA_CUBLAS_", known, &length)) != NULL;)
        fprintf(stderr, "tegula_cublas: there is no setting %.*s. It is ignored.\n", length, name);
}

static void read_settings(void)
{
    report_unknown_settings();
    const char *serve = getenv("TEGULA_CUBLAS_SERVE"), *tf32 = getenv("NVIDIA_TF32_OVERRIDE");
    const char *trace = getenv("TEGULA_CUBLAS_TRACE");
    settings.is_traced = is_set("TEGULA_CUBLAS_TRACE");
    settings.is_timed = trace != NULL && strcmp(trace, "time") == 0;
    settings.own_workspace = read_own_workspace();
    settings.forbids_tf32 = tf32 != NULL && strcmp(tf32, "0") == 0;
    if (serve == NULL || strcmp(serve, "") == 0 || strcmp(serve, "faster") == 0)
        settings.serve = SERVE_FASTER;
    else if (strcmp(serve, "measured") == 0)
        settings.serve = SERVE_MEASURED;
    else if (strcmp(serve, "all") == 0)
        settings.serve = SERVE_ALL;
    else if (strcmp(serve, "none") == 0)
        settings.serve = SERVE_NONE;
    else
        fprintf(stderr,
                "tegula_cublas: TEGULA_CUBLAS_SERVE is \"%s\"; it must be faster, measured, all or "
                "none. It "
                "is taken for faster.\n",
                serve);
}

const cublas_settings *cublas_get_settings(void)
{
    pthread_once(&once, read_settings);
    return &settings;
}

/* ---- Tracing --------------------------------------------------------------------------------- */

static const char *type_name(cudaDataType type, char text[16])
{
    static const struct {
        cudaDataType type;
        const char *name;
    } names[] = {{CUDA_R_32F, "f32"},      {CUDA_R_64F, "f64"},      {CUDA_R_16F, "f16"},
                 {CUDA_R_16BF, "bf16"},    {CUDA_C_32F, "c64"},      {CUDA_C_64F, "c128"},
                 {CUDA_R_8F_E4M3, "e4m3"}, {CUDA_R_8F_E5M2, "e5m2"}, {CUDA_R_8I, "i8"},
                 {CUDA_R_32I, "i32"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].type == type) return names[i].name;
    snprintf(text, 16, "type%d", type);
    return text;
}

static char letter_of(cublasOperation_t trans)
{
    return trans == CUBLAS_OP_N   ? 'N'
           : trans == CUBLAS_OP_T ? 'T'
           : trans == CUBLAS_OP_C ? 'C'
                                  : '?';
}

static const char *epilogue_name(cublasLtEpilogue_t epilogue, char text[24])
{
    switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
        return "";
    case CUBLASLT_EPILOGUE_RELU:
        return " relu";
    case CUBLASLT_EPILOGUE_BIAS:
        return " bias";
    case CUBLASLT_EPILOGUE_RELU_BIAS:
        return " bias,relu";
    case CUBLASLT_EPILOGUE_GELU:
        return " gelu";
    case CUBLASLT_EPILOGUE_GELU_BIAS:
        return " bias,gelu";
    default:
        snprintf(text, 24, " epilogue%d", epilogue);
        return text;
    }
}

static const char *scaling_name(tgl_scaling scaling)
{
    switch (scaling) {
    case TGL_SCALING_NONE:
        return "none";
    case TGL_SCALING_TENSOR:
        return "one";
    case TGL_SCALING_LINE:
        return "lines";
    case TGL_SCALING_LINE_128:
        return "1x128";
    case TGL_SCALING_BLOCK:
        return "128x128";
    case TGL_SCALING_GROUP:
        break; /* factors of weights, which cuBLAS does not have */
    }
    return "?";
}

/* The parts of the trace line that a plan depends on, beside sizes and types. */
static const char *details(const cublas_product *p, char text[200])
{
    char stride[96] = "", scales[40] = "";
    if (p->scaling_a != 0 || p->scaling_b != 0 || p->scaling_d != 0)
        snprintf(scales, sizeof scales, " scales=%s,%s,%s%s", scaling_name(p->scaling_a),
                 scaling_name(p->scaling_b), scaling_name(p->scaling_d),
                 p->amax_d != NULL ? " amax" : "");
    if (p->batch > 1 && !p->is_pointers)
        snprintf(stride, sizeof stride, " stride=%lld,%lld,%lld", (long long)p->stride_a,
                 (long long)p->stride_b, (long long)p->stride_d);
    snprintf(text, 200, "%s%s%s%s%s%s",
             p->mode == TGL_COMPUTE_IEEE   ? " mode=ieee"
             : p->mode == TGL_COMPUTE_TF32 ? " mode=tf32"
             : p->mode == TGL_COMPUTE_FAST ? " mode=fast"
                                           : "",
             scales, stride, p->is_pointers ? " pointers" : "",
             p->has_separate_c ? " separate-c" : "",
             p->has_device_scalars ? " device-scalars" : "");
    return text;
}

/* Prints a trace line with a single fprintf(), so that lines of several threads do not mix. `tegula
 * tune --trace` reads these lines. */
static void print(const cublas_product *p, const char *server, const char *detail)
{
    char a[16], b[16], d[16], epilogue[24], time[32] = "", more[200];
    if (p->seconds > 0) snprintf(time, sizeof time, ", %.1f us", 1e6 * p->seconds);
    fprintf(stderr,
            "%s%s %c%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld batch=%lld "
            "%s,%s,%s compute=%d%s%s: %s, %s%s\n",
            trace_line_start, p->routine, letter_of(p->trans_a), letter_of(p->trans_b),
            (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->lda, (long long)p->ldb,
            (long long)p->ldd, (long long)p->batch, type_name(p->type_a, a),
            type_name(p->type_b, b), type_name(p->type_d, d), p->compute, details(p, more),
            epilogue_name(p->epilogue, epilogue), server, detail, time);
}

void cublas_trace_served(const cublas_product *p, const char *kernel)
{
    if (cublas_get_settings()->is_traced) print(p, "tegula", kernel);
}

void cublas_trace_forwarded(const cublas_product *p, const char *function, bool is_found)
{
    if (!cublas_get_settings()->is_traced || cublas_is_inside()) return;
    if (!is_found)
        fprintf(stderr, "tegula_cublas: the process has no %s of cuBLAS\n", function);
    else if (p != NULL && p->reason != NULL)
        print(p, "cuBLAS", p->reason);
}

bool cublas_refuse(cublas_product *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->reason_text, sizeof p->reason_text, format, args);
    va_end(args);
    p->reason = p->reason_text;
    return false;
}
