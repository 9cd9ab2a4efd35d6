/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel file is compiled through a wrapper that includes it inside extern "C", so that its
 * symbol has the plain name; the file and all headers under kernels/ are handed to NVRTC from
 * memory.
 */
#include "cuda/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCES_MAX = 64, OPTIONS_MAX = 32, OPTION_SIZE = 64 };

/* All that goes into a compilation: what is hashed is what is compiled. */
typedef struct compilation {
    char wrapper[160];
    const char *names[SOURCES_MAX], *texts[SOURCES_MAX]; /* the kernel file, then the headers */
    int sources;
    char option_text[OPTIONS_MAX][OPTION_SIZE];
    const char *options[OPTIONS_MAX];
    int option_count;
} compilation;

/* ---- Inputs ---------------------------------------------------------------------------------- */

static bool add_text(compilation *job, const char *name, const char *text)
{
    if (text == NULL || job->sources == SOURCES_MAX) return false;
    job->names[job->sources] = name;
    job->texts[job->sources++] = text;
    return true;
}

static bool add_source(compilation *job, const char *name)
{
    unsigned long size;
    return add_text(job, name, tgl_kernel_source(name, &size));
}

static bool add_headers(compilation *job)
{
    const char *name;
    for (int i = 0; (name = tgl_kernel_source_name(i)) != NULL; i++) {
        size_t length = strlen(name);
        if (length > 2 && strcmp(name + length - 2, ".h") == 0 && !add_source(job, name))
            return false;
    }
    return true;
}

static bool add_option(compilation *job, const char *prefix, const char *text, size_t length)
{
    if (job->option_count == OPTIONS_MAX) return false;
    char *option = job->option_text[job->option_count];
    int need = snprintf(option, OPTION_SIZE, "%s%.*s", prefix, (int)length, text);
    job->options[job->option_count++] = option;
    return need < OPTION_SIZE;
}

/* "BM=128 BN=64" -> -DBM=128 -DBN=64 */
static bool add_defines(compilation *job, const char *defines)
{
    while (*defines != '\0') {
        size_t length = strcspn(defines, " ");
        if (length > 0 && !add_option(job, "-D", defines, length)) return false;
        defines += length;
        defines += strspn(defines, " ");
    }
    return true;
}

/* False: the registry names a file that is not embedded, or a limit above is too small. */
static bool describe(compilation *job, const tgl_kernel *kernel, const char *arch)
{
    *job = (compilation){.sources = 0};
    int length = snprintf(job->wrapper, sizeof job->wrapper, "extern \"C\" {\n#include \"%s\"\n}\n",
                          kernel->file);
    return length < (int)sizeof job->wrapper && add_source(job, kernel->file) && add_headers(job) &&
           (kernel->expression == NULL || add_text(job, "lib/expression.h", kernel->expression)) &&
           add_option(job, "--gpu-architecture=", arch, strlen(arch)) &&
           add_option(job, "-lineinfo", "", 0) && add_option(job, "--ptxas-options=-v", "", 0) &&
           add_defines(job, kernel->defines);
}

static tgl_cache_key key_of(const compilation *job, int compiler_version)
{
    tgl_cache_key key;
    tgl_cache_key_start(&key, "cuda");
    tgl_cache_key_add(&key, &compiler_version, sizeof compiler_version);
    tgl_cache_key_add_text(&key, job->wrapper);
    for (int i = 0; i < job->option_count; i++)
        tgl_cache_key_add_text(&key, job->options[i]);
    for (int i = 0; i < job->sources; i++) {
        tgl_cache_key_add_text(&key, job->names[i]);
        tgl_cache_key_add_text(&key, job->texts[i]);
    }
    return key;
}

/* ---- The compiler ---------------------------------------------------------------------------- */

/* The log of the last compilation; NULL: no memory. */
static char *copy_log(const tgl_nvrtc *nvrtc, nvrtcProgram program)
{
    size_t size = 0;
    nvrtc->nvrtcGetProgramLogSize(program, &size);
    char *log = calloc(size + 1, 1);
    if (log != NULL && size > 0) nvrtc->nvrtcGetProgramLog(program, log);
    return log;
}

/* The number before `words` in the log, as in "48 bytes stack frame"; -1: not there. */
static int number_before(const char *log, const char *words)
{
    const char *at = strstr(log, words);
    if (at == NULL) return -1;
    while (at > log && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return atoi(at);
}

static tgl_resources read_resources(const char *log)
{
    const char *used = strstr(log, "Used ");
    int stores = number_before(log, " bytes spill stores");
    int loads = number_before(log, " bytes spill loads");
    int shared = number_before(log, " bytes smem");
    return (tgl_resources){
        .registers = used != NULL ? atoi(used + strlen("Used ")) : -1,
        .shared_bytes = used != NULL && shared < 0 ? 0 : shared, /* none is not mentioned */
        .local_bytes = number_before(log, " bytes stack frame"),
        .spill_bytes = stores < 0 || loads < 0 ? -1 : stores + loads,
    };
}

static tgl_status copy_image(const tgl_nvrtc *nvrtc, nvrtcProgram program, bool is_ptx,
                             tgl_binary *binary)
{
    nvrtcResult result = is_ptx ? nvrtc->nvrtcGetPTXSize(program, &binary->size)
                                : nvrtc->nvrtcGetCUBINSize(program, &binary->size);
    if (result != NVRTC_SUCCESS || binary->size == 0) return TGL_COMPILE;
    binary->image = malloc(binary->size);
    if (binary->image == NULL) return TGL_NO_MEMORY;
    result = is_ptx ? nvrtc->nvrtcGetPTX(program, binary->image)
                    : nvrtc->nvrtcGetCUBIN(program, binary->image);
    if (result == NVRTC_SUCCESS) return TGL_OK;
    free(binary->image);
    binary->image = NULL;
    return TGL_COMPILE;
}

static char *explain_failure(const tgl_nvrtc *nvrtc, const tgl_kernel *kernel, const char *arch,
                             nvrtcResult result, const char *log)
{
    char *text = NULL;
    if (asprintf(&text, "%s did not compile for %s: %s\n%s", kernel->file, arch,
                 nvrtc->nvrtcGetErrorString(result), log != NULL ? log : "") < 0)
        return NULL;
    return text;
}

static tgl_status compile(const tgl_nvrtc *nvrtc, const compilation *job, const tgl_kernel *kernel,
                          const char *arch, tgl_binary *binary, char **error)
{
    nvrtcProgram program;
    nvrtcResult result = nvrtc->nvrtcCreateProgram(&program, job->wrapper, kernel->symbol,
                                                   job->sources, job->texts, job->names);
    if (result != NVRTC_SUCCESS) {
        *error = explain_failure(nvrtc, kernel, arch, result, NULL);
        return TGL_COMPILE;
    }
    tgl_status status = TGL_COMPILE;
    result = nvrtc->nvrtcCompileProgram(program, job->option_count, job->options);
    char *log = copy_log(nvrtc, program);
    if (result == NVRTC_SUCCESS) {
        binary->uses = read_resources(log != NULL ? log : "");
        status = copy_image(nvrtc, program, strncmp(arch, "compute_", 8) == 0, binary);
    }
    if (status != TGL_OK) *error = explain_failure(nvrtc, kernel, arch, result, log);
    free(log);
    nvrtc->nvrtcDestroyProgram(&program);
    return status;
}

/* ---- The cache: an entry is the resources, then the image ------------------------------------ */

static bool load(const tgl_cache *cache, const tgl_cache_key *key, tgl_binary *binary)
{
    void *data;
    size_t size;
    if (!tgl_cache_load(cache, key, &data, &size)) return false;
    if (size <= sizeof binary->uses) {
        free(data);
        return false;
    }
    memcpy(&binary->uses, data, sizeof binary->uses);
    binary->size = size - sizeof binary->uses;
    memmove(data, (char *)data + sizeof binary->uses, binary->size);
    binary->image = data;
    binary->from_cache = binary->is_kept = true;
    return true;
}

static bool store(const tgl_cache *cache, const tgl_cache_key *key, const tgl_binary *binary)
{
    const size_t size = sizeof binary->uses + binary->size;
    char *data = malloc(size);
    if (data == NULL) return false;
    memcpy(data, &binary->uses, sizeof binary->uses);
    memcpy(data + sizeof binary->uses, binary->image, binary->size);
    const bool is_kept = tgl_cache_store(cache, key, data, size);
    free(data);
    return is_kept;
}

tgl_status tgl_cuda_compile(const tgl_nvrtc *nvrtc, const tgl_cache *cache,
                            const tgl_kernel *kernel, const char *arch, bool look,
                            tgl_binary *binary, char **error)
{
    *binary = (tgl_binary){.image = NULL};
    *error = NULL;
    compilation job;
    if (!describe(&job, kernel, arch)) {
        *error = explain_failure(nvrtc, kernel, arch, NVRTC_SUCCESS,
                                 "the file is not embedded, or has too many headers or macros");
        return TGL_COMPILE;
    }
    const tgl_cache_key key = key_of(&job, nvrtc->version);
    if (look && load(cache, &key, binary)) return TGL_OK;
    tgl_status status = compile(nvrtc, &job, kernel, arch, binary, error);
    if (status == TGL_OK) binary->is_kept = store(cache, &key, binary);
    return status;
}
