/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_nvrtc.so (see fake_cuda.h). The image of a program contains the name of its kernel and
 * the values of a few macros.
 */
#include "cuda/nvrtc.h"
#include "fake_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct nvrtcProgram_st {
    char name[64], arch[32], image[192], log[512];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static int compilations, latest_options;

/* Reads FAKE_NVRTC_ARCHS into archs, which may be NULL. Returns the number of architectures. */
static int read_archs(int *archs)
{
    const char *list = getenv("FAKE_NVRTC_ARCHS");
    int count = 0;
    if (list == NULL) list = "75,80,86,90,100,120";
    for (; list != NULL; list = strchr(list, ',') != NULL ? strchr(list, ',') + 1 : NULL, count++)
        if (archs != NULL) archs[count] = atoi(list);
    return count;
}

FAKE_CUDA_API nvrtcResult nvrtcVersion(int *major, int *minor)
{
    const char *version = getenv("FAKE_NVRTC_VERSION");
    const int number = version != NULL ? atoi(version) : 13000;
    *major = number / 1000;
    *minor = number / 10 % 100;
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    *count = read_archs(NULL);
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
    read_archs(archs);
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS";
}

FAKE_CUDA_API nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source,
                                             const char *name, int header_count,
                                             const char *const *headers,
                                             const char *const *header_names)
{
    char include[160];
    if (header_count < 1) return NVRTC_ERROR_COMPILATION;
    snprintf(include, sizeof include, "#include \"%s\"", header_names[0]);
    if (strstr(source, include) == NULL || strstr(headers[0], name) == NULL)
        return NVRTC_ERROR_COMPILATION;
    *program = calloc(1, sizeof **program);
    snprintf((*program)->name, sizeof(*program)->name, "%s", name);
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

/* The value of a macro among the options, as in "-DBM=128"; 0: it is not defined. */
static int number_of(int option_count, const char *const *options, const char *macro)
{
    const size_t length = strlen(macro);
    for (int i = 0; i < option_count; i++)
        if (strncmp(options[i], "-D", 2) == 0 && strncmp(options[i] + 2, macro, length) == 0 &&
            options[i][2 + length] == '=')
            return atoi(options[i] + 2 + length + 1);
    return 0;
}

/* Creates the file that FAKE_NVRTC_MARK names. */
static void leave_mark(void)
{
    const char *path = getenv("FAKE_NVRTC_MARK");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) fclose(file);
}

/* Counts a compilation. False: it should have waited for others (FAKE_NVRTC_JOINT), and they did
 * not begin within 20 s. */
static bool begin(int option_count)
{
    const char *joint = getenv("FAKE_NVRTC_JOINT");
    const int others = joint != NULL ? atoi(joint) : 0;
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&lock);
    compilations++;
    latest_options = option_count;
    pthread_cond_broadcast(&begun);
    while (compilations < others && error == 0)
        error = pthread_cond_timedwait(&begun, &lock, &until);
    pthread_mutex_unlock(&lock);
    return error == 0;
}

FAKE_CUDA_API nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count,
                                              const char *const *options)
{
    static const char flag[] = "--gpu-architecture=";
    const char *error = getenv("FAKE_NVRTC_ERROR"), *output = getenv("FAKE_NVRTC_OUTPUT");
    const char *spill = getenv("FAKE_NVRTC_SPILL"), *delay = getenv("FAKE_NVRTC_DELAY");
    leave_mark();
    if (!begin(option_count)) error = "it is compiled alone";
    if (delay != NULL) usleep((useconds_t)atoi(delay) * 1000);
    if (error != NULL) {
        snprintf(program->log, sizeof program->log, "%s", error);
        return NVRTC_ERROR_COMPILATION;
    }
    for (int i = 0; i < option_count; i++)
        if (strncmp(options[i], flag, sizeof flag - 1) == 0)
            snprintf(program->arch, sizeof program->arch, "%s", options[i] + sizeof flag - 1);
    int length = snprintf(program->image, sizeof program->image, "fake cubin %s %s",
                          output != NULL ? output : program->arch, program->name);
    for (int i = 0; i < FAKE_MACROS; i++)
        length += snprintf(program->image + length, sizeof program->image - (size_t)length, " %d",
                           number_of(option_count, options, fake_macros[i]));
    if (spill == NULL) spill = "0";
    snprintf(program->log, sizeof program->log,
             "ptxas info    : Function properties for %s\n"
             "ptxas         .     %s bytes stack frame, %s bytes spill stores, %s bytes spill "
             "loads\nptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem\n",
             program->name, spill, spill, spill);
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    *size = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    memcpy(log, program->log, strlen(program->log) + 1);
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    /* There is no machine code for a virtual architecture. */
    *size = strncmp(program->arch, "sm_", 3) == 0 ? strlen(program->image) + 1 : 0;
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    memcpy(cubin, program->image, strlen(program->image) + 1);
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size)
{
    *size = strlen(program->image) + 1;
    return NVRTC_SUCCESS;
}

FAKE_CUDA_API nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx)
{
    memcpy(ptx, program->image, strlen(program->image) + 1);
    return NVRTC_SUCCESS;
}

fake_number_function fake_nvrtc_count, fake_nvrtc_options;

FAKE_CUDA_API int fake_nvrtc_count(void)
{
    pthread_mutex_lock(&lock);
    int result = compilations;
    pthread_mutex_unlock(&lock);
    return result;
}

FAKE_CUDA_API int fake_nvrtc_options(void)
{
    pthread_mutex_lock(&lock);
    int result = latest_options;
    pthread_mutex_unlock(&lock);
    return result;
}
