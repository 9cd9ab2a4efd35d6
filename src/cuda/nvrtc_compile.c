/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a kernel with NVRTC, or finds it in the disk cache. A wrapper includes the kernel file
 * within extern "C", so that its symbol has no C++ mangling. The file and all headers under
 * kernels/ are passed to NVRTC from memory.
 */
#include "cuda/nvrtc_compile.h"
#include "plan/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All inputs of a compilation. The cache key is the hash of these. */
typedef struct compilation {
    char *wrapper;
    const char **names, **texts; /* the kernel file, the headers, the expression if any */
    const char **keys;           /* tgl_kernel_source_key() of each text */
    int sources;
    const char **options;
    int option_count;
    char *option_text; /* memory of the options that are not constants */
} compilation;

/* ---- Inputs ---------------------------------------------------------------------------------- */

static void free_compilation(compilation *job)
{
    free(job->wrapper);
    free(job->names);
    free(job->texts);
    free(job->keys);
    free(job->options);
    free(job->option_text);
}

static void add_source(compilation *job, const char *name, const char *text, const char *key)
{
    job->names[job->sources] = name;
    job->texts[job->sources] = text;
    job->keys[job->sources++] = key;
}

/* Adds the kernel's file, which has the text `text`, the headers and the expression to the job.
 * Returns false if there is no memory. */
static bool add_sources(compilation *job, const tgl_kernel *kernel, const char *text)
{
    const tgl_source_file *file;
    size_t count = 2; /* the kernel's file, and the expression if the kernel has one */
    for (file = tgl_source_files; file->name != NULL; file++)
        count++;
    job->names = calloc(count, sizeof *job->names);
    job->texts = calloc(count, sizeof *job->texts);
    job->keys = calloc(count, sizeof *job->keys);
    if (job->names == NULL || job->texts == NULL || job->keys == NULL) return false;
    add_source(job, kernel->file, text, tgl_kernel_source_key(text));
    for (file = tgl_source_files; file->name != NULL; file++)
        if (tgl_source_is_header(file)) add_source(job, file->name, file->text, file->digest);
    if (kernel->expression != NULL)
        add_source(job, "lib/expression.h", kernel->expression, kernel->expression);
    return true;
}

/* Appends an option, prefix + text, to job->options, and stores it at `to`. Returns the address for
 * the next option. */
static char *add_option(compilation *job, char *to, const char *prefix, const char *text,
                        size_t length)
{
    job->options[job->option_count++] = to;
    to = stpcpy(to, prefix);
    memcpy(to, text, length);
    to[length] = '\0';
    return to + length + 1;
}

/* Adds the options that all kernels have, and the macros: "BM=128 BN=64" becomes -DBM=128 -DBN=64.
 * Returns false if there is no memory. */
static bool add_options(compilation *job, const char *macros, const char *arch, bool has_lines)
{
    static const char arch_option[] = "--gpu-architecture=";
    size_t count = 4;
    for (const char *at = macros; *at != '\0'; at++)
        count += *at == ' ';
    job->options = calloc(count, sizeof *job->options);
    job->option_text =
        malloc(sizeof arch_option + strlen(arch) + strlen(macros) + (strlen("-D") + 1) * count);
    if (job->options == NULL || job->option_text == NULL) return false;
    char *to = add_option(job, job->option_text, arch_option, arch, strlen(arch));
    if (has_lines) job->options[job->option_count++] = "-lineinfo";
    job->options[job->option_count++] = "--ptxas-options=-v";
    for (size_t length; macros += strspn(macros, " "), *macros != '\0'; macros += length) {
        length = strcspn(macros, " ");
        to = add_option(job, to, "-D", macros, length);
    }
    return true;
}

/* Fills *job with all inputs of the compilation. has_lines: the code contains source line numbers,
 * for profilers. The caller frees *job, also after a failure. */
static tgl_status describe(compilation *job, const tgl_kernel *kernel, const char *arch,
                           bool has_lines)
{
    *job = (compilation){.sources = 0};
    const char *text = kernel->source != NULL ? kernel->source : tgl_kernel_source(kernel->file);
    if (text == NULL)
        return tgl_fail(TGL_COMPILE, "%s cannot be compiled: the file is not embedded",
                        kernel->file);
    if (asprintf(&job->wrapper, "extern \"C\" {\n#include \"%s\"\n}\n", kernel->file) < 0) {
        job->wrapper = NULL;
        return tgl_fail(TGL_NO_MEMORY, "no memory to compile %s", kernel->file);
    }
    if (!add_sources(job, kernel, text) || !add_options(job, kernel->macros, arch, has_lines))
        return tgl_fail(TGL_NO_MEMORY, "no memory to compile %s", kernel->file);
    return TGL_OK;
}

/* Adds to the key all inputs that determine the machine code, except the compiler. */
static void add_inputs(tgl_cache_key *key, const compilation *job, const char *symbol)
{
    tgl_cache_key_add_text(key, symbol);
    tgl_cache_key_add_text(key, job->wrapper);
    for (int i = 0; i < job->option_count; i++)
        tgl_cache_key_add_text(key, job->options[i]);
    for (int i = 0; i < job->sources; i++) {
        tgl_cache_key_add_text(key, job->names[i]);
        tgl_cache_key_add_text(key, job->keys[i]);
    }
}

/* The cache key of a compilation. symbol: the kernel's name, which is also the name of the NVRTC
 * program. */
static tgl_cache_key key_of(const compilation *job, const char *symbol, const tgl_nvrtc *nvrtc)
{
    tgl_cache_key key;
    /* "image first" separates these entries from those of earlier versions of the library, in which
     * the resources came first. */
    tgl_cache_key_start(&key, "cuda, image first");
    tgl_cache_key_add(&key, &nvrtc->version, sizeof nvrtc->version);
    /* The size of tgl_resources is part of the key, because an entry ends with a tgl_resources. */
    tgl_cache_key_add(&key, &(size_t){sizeof(tgl_resources)}, sizeof(size_t));
    tgl_cache_key_add(&key, nvrtc->build_id, nvrtc->build_id_size);
    add_inputs(&key, job, symbol);
    return key;
}

/* ---- The compiler ---------------------------------------------------------------------------- */

/* The log of the compilation; the caller frees it. NULL: no memory. */
static char *copy_log(const tgl_nvrtc *nvrtc, nvrtcProgram program)
{
    size_t size = 0;
    nvrtc->nvrtcGetProgramLogSize(program, &size);
    char *log = calloc(size + 1, 1);
    if (log != NULL && size > 0) nvrtc->nvrtcGetProgramLog(program, log);
    return log;
}

/* The number before `words` in the log, as in "48 bytes stack frame"; -1: not found. */
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
        .shared_bytes =
            used != NULL && shared < 0 ? 0 : shared, /* the log does not mention 0 bytes */
        .local_bytes = number_before(log, " bytes stack frame"),
        .spill_bytes = stores < 0 || loads < 0 ? -1 : stores + loads,
        /* C7510 to C7519: ptxas has serialised wgmmas or added waits; the number says why. */
        .serialises = strstr(log, "(C751") != NULL,
    };
}

static tgl_status fail(const tgl_nvrtc *nvrtc, const tgl_kernel *kernel, const char *arch,
                       nvrtcResult result, const char *log)
{
    return tgl_fail(TGL_COMPILE, "%s did not compile for %s: %s\n%s", kernel->file, arch,
                    nvrtc->nvrtcGetErrorString(result), log != NULL ? log : "");
}

/* Copies the image to binary->image. If there is no memory, returns NVRTC_SUCCESS, and
 * binary->image is NULL. */
static nvrtcResult copy_image(const tgl_nvrtc *nvrtc, nvrtcProgram program, bool is_ptx,
                              tgl_binary *binary)
{
    nvrtcResult result = is_ptx ? nvrtc->nvrtcGetPTXSize(program, &binary->size)
                                : nvrtc->nvrtcGetCUBINSize(program, &binary->size);
    if (result != NVRTC_SUCCESS) return result;
    if (binary->size == 0) return NVRTC_ERROR_COMPILATION;
    binary->image = malloc(binary->size);
    if (binary->image == NULL) return NVRTC_SUCCESS;
    return is_ptx ? nvrtc->nvrtcGetPTX(program, binary->image)
                  : nvrtc->nvrtcGetCUBIN(program, binary->image);
}

static tgl_status compile(const tgl_nvrtc *nvrtc, const compilation *job, const tgl_kernel *kernel,
                          const char *arch, tgl_binary *binary)
{
    nvrtcProgram program;
    nvrtcResult result = nvrtc->nvrtcCreateProgram(&program, job->wrapper, kernel->symbol,
                                                   job->sources, job->texts, job->names);
    if (result != NVRTC_SUCCESS) return fail(nvrtc, kernel, arch, result, NULL);
    result = nvrtc->nvrtcCompileProgram(program, job->option_count, job->options);
    char *log = copy_log(nvrtc, program);
    if (result == NVRTC_SUCCESS) {
        binary->uses = read_resources(log != NULL ? log : "");
        result = copy_image(nvrtc, program, strncmp(arch, "compute_", 8) == 0, binary);
    }
    tgl_status status = TGL_OK;
    if (result != NVRTC_SUCCESS) {
        free(binary->image);
        binary->image = NULL;
        status = fail(nvrtc, kernel, arch, result, log);
    } else if (binary->image == NULL) {
        status = tgl_fail(TGL_NO_MEMORY, "no memory for the code of %s", kernel->file);
    }
    free(log);
    nvrtc->nvrtcDestroyProgram(&program);
    return status;
}

/* ---- The cache: an entry is the image, then the resources ------------------------------------ */

static bool load(const tgl_cache *cache, const tgl_cache_key *key, tgl_binary *binary)
{
    void *data;
    size_t size;
    if (!tgl_cache_load(cache, key, &data, &size)) return false;
    if (size <= sizeof binary->uses) {
        free(data);
        return false;
    }
    binary->size = size - sizeof binary->uses;
    memcpy(&binary->uses, (char *)data + binary->size, sizeof binary->uses);
    binary->image = data;
    binary->from_cache = binary->is_kept = true;
    return true;
}

static bool store(tgl_cache *cache, const tgl_cache_key *key, const tgl_binary *binary)
{
    const size_t size = sizeof binary->uses + binary->size;
    char *data = malloc(size);
    if (data == NULL) return false;
    memcpy(data, binary->image, binary->size);
    memcpy(data + binary->size, &binary->uses, sizeof binary->uses);
    const bool is_kept = tgl_cache_store(cache, key, data, size);
    free(data);
    return is_kept;
}

static tgl_status compile_or_load(const tgl_nvrtc *nvrtc, tgl_cache *cache,
                                  const tgl_kernel *kernel, const char *arch, bool has_lines,
                                  bool look, tgl_binary *binary)
{
    compilation job;
    *binary = (tgl_binary){.image = NULL};
    tgl_status status = describe(&job, kernel, arch, has_lines);
    if (status == TGL_OK) {
        const tgl_cache_key key = key_of(&job, kernel->symbol, nvrtc);
        if (!look || !load(cache, &key, binary)) {
            status = compile(nvrtc, &job, kernel, arch, binary);
            if (status == TGL_OK) binary->is_kept = store(cache, &key, binary);
        }
    }
    free_compilation(&job);
    return status;
}

tgl_status tgl_cuda_compile(const tgl_nvrtc *nvrtc, tgl_cache *cache, const tgl_kernel *kernel,
                            const char *arch, bool look, tgl_binary *binary)
{
    return compile_or_load(nvrtc, cache, kernel, arch, true, look, binary);
}

tgl_status tgl_cuda_compile_small(const tgl_nvrtc *nvrtc, tgl_cache *cache,
                                  const tgl_kernel *kernel, const char *arch, tgl_binary *binary)
{
    return compile_or_load(nvrtc, cache, kernel, arch, false, true, binary);
}

bool tgl_cuda_is_cached(const tgl_nvrtc *nvrtc, const tgl_cache *cache, const tgl_kernel *kernel,
                        const char *arch)
{
    compilation job;
    bool is_cached = false;
    if (describe(&job, kernel, arch, true) == TGL_OK) {
        const tgl_cache_key key = key_of(&job, kernel->symbol, nvrtc);
        is_cached = tgl_cache_has(cache, &key);
    }
    free_compilation(&job);
    return is_cached;
}

tgl_status tgl_cuda_kernel_key(const tgl_kernel *kernel, const char *arch, tgl_kernel_key *key)
{
    compilation job;
    tgl_status status = describe(&job, kernel, arch, false);
    if (status == TGL_OK) {
        tgl_cache_key hash;
        tgl_cache_key_start(&hash, "kernel");
        add_inputs(&hash, &job, kernel->symbol);
        tgl_sha256_finish(&hash.hash, key->digest);
    }
    free_compilation(&job);
    return status;
}
