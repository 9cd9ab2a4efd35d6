/* SPDX-License-Identifier: Apache-2.0
 *
 * tgl_warm(): compiles kernels ahead of time into the disk cache or an archive, also for chips that
 * are not present. A configuration is a kernel family with its tile sizes, such as simt_128x128x8.
 * A layout says whether A and B are transposed: NN, NT, TN or TT.
 */
#include "base/clock.h"
#include "base/no_cancel.h"
#include "cuda/archive_build.h"
#include "cuda/nvrtc_compile.h"
#include "plan/planner.h"
#include "problem/shape.h"
#include "problem/struct_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of one call of tgl_warm(). */
typedef struct warm_job {
    const tgl_warm_options *options;
    tgl_nvrtc nvrtc;
    tgl_cache *cache;
    int capabilities[TGL_ARCHS_MAX];
    int count;
} warm_job;

/* ---- Architectures --------------------------------------------------------------------------- */

static bool is_known(const tgl_nvrtc *nvrtc, long capability)
{
    for (int i = 0; i < nvrtc->arch_count; i++)
        if (nvrtc->archs[i] == capability) return true;
    return false;
}

/* The compute capability in an architecture's name: 90 for "sm_90a", "sm_90" and "90"; 0 for other
 * texts. */
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
            return tgl_fail(
                TGL_UNSUPPORTED,
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

/* ---- One kernel ------------------------------------------------------------------------------ */

/* Returns an error if the cache is on, but the kernel could not be stored in it. */
static tgl_status check_kept(const warm_job *job, const tgl_binary *binary, const char *name,
                             const char *arch)
{
    if (binary->is_kept || tgl_cache_state_of(job->cache) == TGL_CACHE_OFF) return TGL_OK;
    return tgl_fail(TGL_DRIVER, "%s was compiled for %s, but could not be kept in %s", name, arch,
                    tgl_cache_describe(job->cache));
}

/* Calls the report function of the caller, and then restores the error message. */
static void report(const warm_job *job, const tgl_warm_report *what)
{
    if (job->options->report == NULL) return;
    job->options->report(what, job->options->user);
    if (what->status != TGL_OK) tgl_set_error("%s", what->message);
}

/* Compiles one kernel for one architecture and reports the result under `name`. */
static tgl_status warm_one(const warm_job *job, const tgl_kernel *kernel, const char *name,
                           int capability)
{
    const tgl_arch arch = tgl_nvrtc_arch_name(&job->nvrtc, capability);
    const double start = tgl_clock();
    tgl_binary binary;
    tgl_status status = tgl_cuda_compile(&job->nvrtc, job->cache, kernel, arch.name, true, &binary);
    if (status == TGL_OK) status = check_kept(job, &binary, name, arch.name);
    char *message = status != TGL_OK ? strdup(tgl_error()) : NULL;
    const tgl_resources *uses = &binary.uses;
    const bool is_within = uses->local_bytes >= 0 && uses->local_bytes <= kernel->local_bytes &&
                           (uses->spill_bytes == 0 || kernel->local_bytes > 0);
    const tgl_warm_report what = {
        .size = sizeof what,
        .kernel = name,
        .arch = arch.name,
        .status = status,
        .message = message != NULL ? message : "",
        .seconds = tgl_clock() - start,
        .from_cache = binary.from_cache,
        .is_clean = status == TGL_OK && is_within && !uses->serialises,
        .registers = uses->registers,
        .shared_bytes = uses->shared_bytes,
        .local_bytes = uses->local_bytes,
        .spill_bytes = uses->spill_bytes,
        .symbol = kernel->symbol,
        .image = status == TGL_OK ? binary.image : NULL,
        .image_size = status == TGL_OK ? binary.size : 0,
    };
    report(job, &what);
    free(message);
    free(binary.image);
    return status;
}

/* ---- Configurations -------------------------------------------------------------------------- */

/* Compiles the kernels that the list launches when all operands are aligned. name: the
 * configuration's name in reports. */
static tgl_status warm_list(const warm_job *job, const tgl_launch_list *list, const char *name,
                            const tgl_chip *chip)
{
    tgl_status result = TGL_OK;
    for (int i = 0; i < list->step_count; i++) {
        const tgl_launch *launch = tgl_step_choose_aligned(&list->steps[i]);
        if (launch == NULL || (launch->kernel->needs & ~chip->features) != 0) continue;
        tgl_status status = warm_one(job, launch->kernel, name, chip->capability);
        if (status != TGL_OK) result = status;
    }
    return result;
}

/* Compiles a configuration with default options for one compute capability, unless the
 * configuration does not support the capability. */
static tgl_status warm_shape(const warm_job *job, const tgl_choice *choice, const tgl_shape *shape,
                             const char *name, int capability)
{
    const tgl_chip chip = tgl_chip_of_capability(capability);
    tgl_candidate candidate = {.choice = *choice};
    tgl_launch_list list;
    if (choice->family->unsupported_reason(shape, &chip) != NULL) return TGL_OK;
    choice->family->predict(&chip, shape, &candidate);
    if (candidate.rejected != NULL) return TGL_OK;
    TGL_TRY(tgl_planner_list(&chip, shape, &candidate, &list));
    tgl_status status = warm_list(job, &list, name, &chip);
    tgl_list_free(&list);
    return status;
}

/* Compiles the kernels of one layout for all architectures. Returns TGL_OK or the latest
 * failure. */
static tgl_status warm_layout(const warm_job *job, const tgl_choice *choice, const tgl_shape *shape,
                              const char *name)
{
    tgl_status result = TGL_OK;
    for (int i = 0; i < job->count; i++) {
        tgl_status status = warm_shape(job, choice, shape, name, job->capabilities[i]);
        if (status != TGL_OK) result = status;
    }
    return result;
}

/* The layouts for which a configuration has a kernel, with an example problem for each. */
enum { LAYOUTS = 4 };
static const char *const layout_names[LAYOUTS] = {"NN", "TT", "NT", "TN"};
typedef struct examples {
    int count;
    bool has[LAYOUTS];
    tgl_shape shapes[LAYOUTS];
} examples;

/* Finds the example problems of a configuration for a type. Returns whether there are any. */
static bool find_examples(const tgl_choice *choice, tgl_type type, examples *of)
{
    of->count = 0;
    for (int i = 0; i < LAYOUTS; i++) {
        of->has[i] = choice->family->example(choice->configuration, type, layout_names[i][0] == 'T',
                                             layout_names[i][1] == 'T', &of->shapes[i]);
        of->count += of->has[i];
    }
    return of->count > 0;
}

/* Finds the examples for the requested type or, if no type is requested, for the first of F32, BF16
 * and F64 that has examples. */
static bool choose_examples(const warm_job *job, const tgl_choice *choice, examples *of)
{
    const tgl_type asked = job->options->type;
    if (asked != 0) return find_examples(choice, asked, of);
    return find_examples(choice, TGL_F32, of) || find_examples(choice, TGL_BF16, of) ||
           find_examples(choice, TGL_F64, of);
}

/* Compiles a kernel for each layout of the configuration. Reports name each kernel, as in
 * "simt_128x128x8 NT" or "skinny_8 NT bf16". The name has no layout if the configuration has only
 * one, and no type if the type is F32. */
static tgl_status warm_configuration(const warm_job *job, const tgl_choice *choice)
{
    examples of;
    tgl_status result = TGL_OK;
    if (!choose_examples(job, choice, &of)) return TGL_OK;
    for (int i = 0; i < LAYOUTS; i++) {
        char name[80];
        if (!of.has[i]) continue;
        const tgl_type type = of.shapes[i].type_a;
        snprintf(name, sizeof name, "%s%s%s%s%s", tgl_choice_name(choice), of.count > 1 ? " " : "",
                 of.count > 1 ? layout_names[i] : "", type != TGL_F32 ? " " : "",
                 type != TGL_F32 ? tgl_type_name(type) : "");
        tgl_status status = warm_layout(job, choice, &of.shapes[i], name);
        if (status != TGL_OK) result = status;
    }
    return result;
}

static tgl_status warm_measure_kernel(const warm_job *job, const tgl_kernel *kernel)
{
    tgl_status result = TGL_OK;
    for (int i = 0; i < job->count; i++) {
        if ((kernel->needs & ~tgl_chip_features(job->capabilities[i])) != 0) continue;
        tgl_status status = warm_one(job, kernel, kernel->name, job->capabilities[i]);
        if (status != TGL_OK) result = status;
    }
    return result;
}

/* ---- All configurations ---------------------------------------------------------------------- */

/* Compiles the configurations of a family (NULL: of all families). *found := whether there are
 * any. */
static tgl_status warm_family(const warm_job *job, const char *family, bool *found)
{
    tgl_status result = TGL_OK, status;
    tgl_choice choice;
    *found = false;
    for (int i = 0; tgl_configuration_at(i, &choice); i++) {
        if (family != NULL && strcmp(choice.family->name, family) != 0) continue;
        *found = true;
        if ((status = warm_configuration(job, &choice)) != TGL_OK) result = status;
    }
    return result;
}

static tgl_status warm_all(const warm_job *job)
{
    bool found;
    tgl_status result = warm_family(job, NULL, &found), status;
    const tgl_kernel *kernel;
    for (int i = 0; (kernel = tgl_measure_kernel_at(i)) != NULL; i++)
        if ((status = warm_measure_kernel(job, kernel)) != TGL_OK) result = status;
    return result;
}

static tgl_status warm_archive(const warm_job *job)
{
    const tgl_warm_options *options = job->options;
    if (job->count != 1)
        return tgl_fail(TGL_BAD_ARGUMENT, "an archive is for one architecture, not for %d",
                        job->count);
    if (options->kernel != NULL)
        return tgl_fail(TGL_BAD_ARGUMENT,
                        "options.kernel is \"%s\", but the kernels of an archive "
                        "are those that plans choose",
                        options->kernel);
    return tgl_archive_build(&job->nvrtc, job->cache, options, job->capabilities[0]);
}

static tgl_status warm(warm_job *job)
{
    const char *name = job->options->kernel;
    tgl_choice choice;
    TGL_TRY(parse_archs(job));
    if (job->options->archive != NULL) return warm_archive(job);
    if (name == NULL) return warm_all(job);
    if (tgl_configuration_find(name, strlen(name), &choice))
        return warm_configuration(job, &choice);
    const tgl_kernel *kernel = tgl_measure_kernel_find(name);
    if (kernel != NULL) return warm_measure_kernel(job, kernel);
    bool found;
    tgl_status status = warm_family(job, name, &found);
    return found ? status
                 : tgl_fail(TGL_UNKNOWN_KERNEL, "no kernel or family is called \"%s\"", name);
}

/* Returns an error if the cache is on, but has no usable folder. With TEGULA_CACHE=off the kernels
 * are compiled, but not stored. */
static tgl_status warm_cache(warm_job *job)
{
    if (tgl_cache_state_of(job->cache) == TGL_CACHE_UNUSABLE)
        return tgl_fail(TGL_DRIVER,
                        "nothing would be kept, as the cache is %s; TEGULA_CACHE=off compiles all "
                        "the same",
                        tgl_cache_describe(job->cache));
    return warm(job);
}

static tgl_status warm_with(warm_job *job)
{
    TGL_TRY(tgl_nvrtc_open(&job->nvrtc));
    job->cache = tgl_cache_open();
    tgl_status status = warm_cache(job);
    tgl_cache_close(job->cache);
    tgl_nvrtc_close(&job->nvrtc);
    return status;
}

static tgl_status check_type(tgl_type type)
{
    if (type == TGL_I4)
        return tgl_fail(TGL_UNSUPPORTED, "options.type is the type of A, and only B can have i4");
    if (type == 0 || tgl_type_size(type) > 0) return TGL_OK;
    return tgl_fail(TGL_BAD_TYPE, "options.type is %d, which is not a tgl_type", (int)type);
}

tgl_status tgl_warm(const tgl_warm_options *options)
{
    TGL_NO_CANCEL;
    static const size_t least_size = TGL_SIZE_UP_TO(tgl_warm_options, type);
    tgl_warm_options copy;
    const void *read;
    TGL_TRY(tgl_struct_read(options, sizeof copy, least_size, "options", &copy, &read));
    warm_job *job = calloc(1, sizeof *job);
    if (job == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory to compile");
    job->options = read;
    tgl_status status = check_type(job->options->type);
    if (status == TGL_OK) status = warm_with(job);
    free(job);
    return status;
}
