/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiling ahead, into the disk cache, for chips that need not be there.
 */
#include "cuda/compile.h"
#include "cuda/cubin.h"
#include "device.h"
#include "plan/gemm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All that one call works with. */
typedef struct warm_job {
    const tgl_warm_options *options;
    tgl_nvrtc nvrtc;
    tgl_cache *cache;
    int capabilities[TGL_ARCHS_MAX];
    int count;
} warm_job;

/* Writes the sentence of detail, if it is wanted, and returns the status. */
static tgl_status tell(const tgl_warm_options *options, tgl_status status, const char *format, ...)
    TGL_PRINTF(3, 4);

static tgl_status tell(const tgl_warm_options *options, tgl_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (options->message != NULL && options->message_size > 0)
        vsnprintf(options->message, options->message_size, format, args);
    va_end(args);
    return status;
}

/* ---- Architectures --------------------------------------------------------------------------- */

static bool is_known(const tgl_nvrtc *nvrtc, long capability)
{
    for (int i = 0; i < nvrtc->arch_count; i++)
        if (nvrtc->archs[i] == capability) return true;
    return false;
}

/* "sm_90a", "sm_90" and "90" are 90; anything else 0. */
static long parse_arch(const char *name, size_t length)
{
    char text[16], *end;
    if (length >= sizeof text) return 0;
    memcpy(text, name, length);
    text[length] = '\0';
    const char *digits = strncmp(text, "sm_", 3) == 0 ? text + 3 : text;
    if (digits[0] < '1' || digits[0] > '9') return 0;
    long value = strtol(digits, &end, 10);
    return strcmp(end, "") == 0 || strcmp(end, "a") == 0 ? value : 0;
}

static void add_arch(warm_job *job, int capability)
{
    for (int i = 0; i < job->count; i++)
        if (job->capabilities[i] == capability) return;
    if (job->count < TGL_ARCHS_MAX) job->capabilities[job->count++] = capability;
}

static tgl_status add_named_arch(warm_job *job, const char *name, size_t length)
{
    const tgl_nvrtc *nvrtc = &job->nvrtc;
    const int newest = nvrtc->archs[nvrtc->arch_count - 1];
    if (length == strlen("all") && memcmp(name, "all", length) == 0) {
        for (int i = 0; i < nvrtc->arch_count; i++)
            add_arch(job, nvrtc->archs[i]);
    } else if (length == strlen("newest") && memcmp(name, "newest", length) == 0) {
        add_arch(job, newest);
    } else {
        long capability = parse_arch(name, length);
        if (!is_known(nvrtc, capability))
            return tell(job->options, TGL_UNSUPPORTED,
                        "\"%.*s\" is no architecture that NVRTC %d.%d compiles for: sm_%d to sm_%d",
                        (int)length, name, nvrtc->version / 1000, nvrtc->version / 10 % 100,
                        nvrtc->archs[0], newest);
        add_arch(job, (int)capability);
    }
    return TGL_OK;
}

static tgl_status parse_archs(warm_job *job)
{
    const char *list = job->options->archs != NULL ? job->options->archs : "all";
    for (const char *name = list;; name++) {
        size_t length = strcspn(name, ",");
        TGL_TRY(add_named_arch(job, name, length));
        name += length;
        if (*name == '\0') return TGL_OK;
    }
}

/* ---- Kernels --------------------------------------------------------------------------------- */

/* Whether all FFMAs of the kernel's main loop are there: a compiler that leaves a loop of them as
 * it is says nothing, and the kernel is many times slower. */
static bool is_unrolled(const tgl_binary *binary, const tgl_kernel *kernel)
{
    const size_t ffmas = tgl_cubin_ffmas(binary->image, binary->size, kernel->symbol);
    return ffmas == 0 || ffmas >= (size_t)kernel->loop_ffmas;
}

/* A cache that is off is not meant to keep it; else *error says why this fails. */
static tgl_status check_kept(const warm_job *job, const tgl_binary *binary, const char *name,
                             const char *arch, char **error)
{
    if (binary->is_kept || tgl_cache_state_of(job->cache) == TGL_CACHE_OFF) return TGL_OK;
    if (asprintf(error, "%s was compiled for %s, but could not be kept in %s", name, arch,
                 tgl_cache_describe(job->cache)) < 0)
        *error = NULL;
    return TGL_DRIVER;
}

/* Compiles one kernel for one architecture and reports it under this name. */
static tgl_status warm_one(const warm_job *job, const tgl_kernel *kernel, const char *name,
                           int capability)
{
    const tgl_arch arch = tgl_nvrtc_arch_name(&job->nvrtc, capability);
    const double start = tgl_clock();
    tgl_binary binary;
    char *error;
    tgl_status status =
        tgl_cuda_compile(&job->nvrtc, job->cache, kernel, arch.name, true, &binary, &error);
    if (status == TGL_OK) status = check_kept(job, &binary, name, arch.name, &error);
    const tgl_resources *uses = &binary.uses;
    const bool is_within = uses->local_bytes >= 0 && uses->local_bytes <= kernel->local_bytes &&
                           (uses->spill_bytes == 0 || kernel->local_bytes > 0);
    const tgl_warm_report report = {
        .size = sizeof report,
        .kernel = name,
        .arch = arch.name,
        .status = status,
        .message = error != NULL ? error : "",
        .seconds = tgl_clock() - start,
        .from_cache = binary.from_cache,
        .is_clean = status == TGL_OK && is_within,
        .is_unrolled = status == TGL_OK && is_unrolled(&binary, kernel),
        .registers = uses->registers,
        .shared_bytes = uses->shared_bytes,
        .local_bytes = uses->local_bytes,
        .spill_bytes = uses->spill_bytes,
    };
    if (job->options->report != NULL) job->options->report(&report, job->options->user);
    if (status != TGL_OK) tell(job->options, status, "%s", report.message);
    free(binary.image);
    free(error);
    return status;
}

/* One kernel for all architectures that it is made for; the latest failure counts. */
static tgl_status warm_kernel(const warm_job *job, const tgl_kernel *kernel, const char *name)
{
    tgl_status result = TGL_OK;
    for (int i = 0; i < job->count; i++) {
        if (job->capabilities[i] < kernel->min_arch) continue;
        tgl_status status = warm_one(job, kernel, name, job->capabilities[i]);
        if (status != TGL_OK) result = status;
    }
    return result;
}

/* A configuration of the production families as problems of each transposition ask for it, with
 * matrices that allow the widest copies: "gemm/simt_128x128x8 NT". */
static tgl_status warm_gemm(const warm_job *job, const tgl_gemm_row *row)
{
    static const char *const layouts[] = {"NN", "TT", "NT", "TN"};
    tgl_status result = TGL_OK;
    for (int i = 0; i < 4; i++) {
        const int64_t side = 4096;
        const bool is_small = row->family == TGL_SMALL_BATCH;
        const int64_t m = is_small ? row->small_batch.bm : row->count > 0 ? row->count : side;
        const tgl_gemm_shape shape = {.m = m,
                                      .n = is_small ? row->small_batch.bn : side,
                                      .k = side,
                                      .lda = side,
                                      .ldb = side,
                                      .ldc = side,
                                      .batch = 1,
                                      .trans_a = layouts[i][0] == 'T',
                                      .trans_b = layouts[i][1] == 'T'};
        char name[64];
        tgl_gemm_plan plan;
        tgl_gemm_variant variant;
        snprintf(name, sizeof name, "%s %s", row->name, layouts[i]);
        const tgl_gemm_split whole = {.splits = 1};
        if (tgl_gemm_plan_make(row, &shape, &whole, &plan) != NULL) continue;
        tgl_gemm_variant_make(&plan, &shape, TGL_GEMM_ALIGNED, &variant);
        tgl_status status = warm_kernel(job, &variant.kernel, name);
        if (status != TGL_OK) result = status;
    }
    return result;
}

static tgl_status warm_all(const warm_job *job)
{
    tgl_status result = TGL_OK, status;
    const tgl_kernel *kernel;
    const tgl_gemm_row *row;
    for (int i = 0; (kernel = tgl_kernel_at(i)) != NULL; i++)
        if ((status = warm_kernel(job, kernel, kernel->name)) != TGL_OK) result = status;
    for (int i = 0; (row = tgl_gemm_row_at(i)) != NULL; i++)
        if ((status = warm_gemm(job, row)) != TGL_OK) result = status;
    for (int i = 0; (kernel = tgl_measure_kernel_at(i)) != NULL; i++)
        if ((status = warm_kernel(job, kernel, kernel->name)) != TGL_OK) result = status;
    return result;
}

static tgl_status warm(warm_job *job)
{
    const char *name = job->options->kernel;
    TGL_TRY(parse_archs(job));
    if (name == NULL) return warm_all(job);
    const tgl_gemm_row *row = tgl_gemm_row_find(name);
    if (row != NULL) return warm_gemm(job, row);
    const tgl_kernel *kernel = tgl_kernel_find(name);
    if (kernel == NULL) kernel = tgl_measure_kernel_find(name);
    if (kernel == NULL)
        return tell(job->options, TGL_UNKNOWN_KERNEL, "no kernel is called \"%s\"", name);
    return warm_kernel(job, kernel, kernel->name);
}

/* That nothing is kept is no failure if the user wants it so: compiling tells something, too. */
static tgl_status warm_cache(warm_job *job)
{
    const char *folder = tgl_cache_describe(job->cache);
    const tgl_cache_state state = tgl_cache_state_of(job->cache);
    if (state == TGL_CACHE_UNUSABLE)
        return tell(job->options, TGL_DRIVER,
                    "nothing would be kept, as the cache is %s; TEGULA_CACHE=off compiles all the "
                    "same",
                    folder);
    TGL_TRY(warm(job));
    if (state == TGL_CACHE_OFF)
        tell(job->options, TGL_OK, "nothing was kept, as the cache is %s", folder);
    return TGL_OK;
}

tgl_status tgl_warm(const tgl_warm_options *options)
{
    char message[512];
    if (options == NULL || options->size != sizeof *options) return TGL_BAD_ARGUMENT;
    tell(options, TGL_OK, "%s", "");
    warm_job *job = calloc(1, sizeof *job);
    if (job == NULL) return tell(options, TGL_NO_MEMORY, "no memory to compile");
    job->options = options;
    tgl_status status = tgl_nvrtc_open(&job->nvrtc, message, sizeof message);
    if (status != TGL_OK) {
        free(job);
        return tell(options, status, "%s", message);
    }
    job->cache = tgl_cache_open();
    status = warm_cache(job);
    tgl_cache_close(job->cache);
    tgl_nvrtc_close(&job->nvrtc);
    free(job);
    return status;
}
