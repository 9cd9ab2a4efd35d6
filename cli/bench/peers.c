/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds other libraries with dlopen() and calls their products.
 *
 * OpenBLAS, BLIS and MKL export the same names. Each but MKL is loaded with RTLD_LOCAL, so that the
 * other libraries do not see its symbols. RTLD_NOW resolves its references before the next library
 * is loaded.
 */
#include "peers.h"
#include "problem_options.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- What the libraries export --------------------------------------------------------------- */

typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *A, int lda, const float *B, int ldb, float beta, float *C,
                            int ldc);
typedef void dgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                            const double *A, int lda, const double *B, int ldb, double beta,
                            double *C, int ldc);
typedef void complex_function(int order, int trans_a, int trans_b, int m, int n, int k,
                              const void *alpha, const void *A, int lda, const void *B, int ldb,
                              const void *beta, void *C, int ldc);
typedef int dnnl_sgemm_function(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                                float alpha, const float *A, int64_t lda, const float *B,
                                int64_t ldb, float beta, float *C, int64_t ldc);

typedef void mkl_half_function(int order, int trans_a, int trans_b, int m, int n, int k,
                               float alpha, const uint16_t *A, int lda, const uint16_t *B, int ldb,
                               float beta, float *C, int ldc);
typedef int onednn_bf16_function(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                                 const void *A, const void *B, void *C, int result_is_f32);
/* oneDNN's product of two i8 matrices. MKL has no such product: it only multiplies i8 by u8. */
typedef int onednn_i8_function(char trans_a, char trans_b, char offset_c, int64_t m, int64_t n,
                               int64_t k, float alpha, const int8_t *A, int64_t lda,
                               int8_t offset_a, const int8_t *B, int64_t ldb, int8_t offset_b,
                               float beta, int32_t *C, int64_t ldc, const int32_t *offsets_c);

/* ---- Finding --------------------------------------------------------------------------------- */

static const struct {
    const char *name, *files[4];
} known[] = {
    {"openblas", {"libopenblas.so.0", "libopenblas.so"}},
    {"blis", {"libblis.so.4", "libblis.so"}},
    /* A library that is built from bench/peers/onednn.c: it links to oneDNN and adds bf16 products.
     * If it does not exist, oneDNN itself is used, without bf16. */
    {"onednn", {"libtegula_peer_onednn.so", "libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"}},
    {"eigen", {"libtegula_peer_eigen.so"}}, /* built from bench/peers/eigen.cpp, because Eigen
                                               consists of headers only */
    {"mkl", {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"}},
};
enum { KNOWN = sizeof known / sizeof known[0], FILES = 4 };

const char *peer_known(int index)
{
    return index < KNOWN ? known[index].name : NULL;
}

/* Makes BLIS use AVX-512 if the processor has it. On processors that it does not know, BLIS 0.9
 * selects AVX2 kernels. BLIS_ARCH_TYPE 0 is the AVX-512 configuration. */
static void help_blis_to_avx512(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) setenv("BLIS_ARCH_TYPE", "0", 0);
#endif
}

static void *load_library(const char *file)
{
    /* MKL later loads further libraries, which need the symbols of libmkl_rt. */
    const bool is_mkl = strstr(file, "libmkl_rt") != NULL;
    return dlopen(file, RTLD_NOW | (is_mkl ? RTLD_GLOBAL : RTLD_LOCAL));
}

/* Loads a library from the folder of this program, as in a build folder. NULL: it is not there. */
static void *load_beside_program(const char *file)
{
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return NULL;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL || strlen(file) >= sizeof path - (size_t)(slash + 1 - path)) return NULL;
    strcpy(slash + 1, file);
    return access(path, R_OK) == 0 ? load_library(path) : NULL;
}

/* Reloads OpenBLAS with newer kernels if it has selected those for Prescott (2004), as version
 * 0.3.21 does on processors that it does not know. OpenBLAS reads OPENBLAS_CORETYPE when it is
 * loaded, so it has to be loaded a second time. Returns the handle to use. */
static void *help_openblas(void *library, const char *file)
{
#ifdef __x86_64__
    const char *(*core)(void) = (const char *(*)(void))dlsym(library, "openblas_get_corename");
    if (core == NULL || strcmp(core(), "Prescott") != 0 || getenv("OPENBLAS_CORETYPE") != NULL)
        return library;
    if (!__builtin_cpu_supports("avx2")) return library;
    dlclose(library);
    setenv("OPENBLAS_CORETYPE", __builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell", 0);
    return load_library(file);
#else
    (void)file;
    return library;
#endif
}

static void *load_known(int index)
{
    void *library = NULL;
    if (strcmp(known[index].name, "blis") == 0) help_blis_to_avx512();
    const bool is_openblas = strcmp(known[index].name, "openblas") == 0;
    for (int i = 0; library == NULL && i < FILES && known[index].files[i] != NULL; i++) {
        const char *file = known[index].files[i];
        library = load_library(file);
        if (library == NULL) library = load_beside_program(file);
        if (library != NULL && is_openblas) library = help_openblas(library, file);
    }
    return library;
}

/* ---- Versions -------------------------------------------------------------------------------- */

typedef struct dnnl_version_info {
    int major, minor, patch;
} dnnl_version_info;

/* The text that a function of the library returns. NULL: the library has no function of this
 * name. */
static const char *text_of(const peer *p, const char *symbol)
{
    const char *(*function)(void) = (const char *(*)(void))dlsym(p->handle, symbol);
    return function != NULL ? function() : NULL;
}

static void read_version(peer *p)
{
    char *text = p->version;
    const size_t size = sizeof p->version;
    const char *openblas = text_of(p, "openblas_get_config");
    const char *blis = text_of(p, "bli_info_get_version_str");
    const char *other = text_of(p, "tegula_peer_version");
    const dnnl_version_info *(*dnnl)(void) =
        (const dnnl_version_info *(*)(void))dlsym(p->handle, "dnnl_version");
    void (*mkl)(char *, int) = (void (*)(char *, int))dlsym(p->handle, "MKL_Get_Version_String");
    int (*blis_query)(void) = (int (*)(void))dlsym(p->handle, "bli_arch_query_id");
    const char *(*blis_arch)(int) = (const char *(*)(int))dlsym(p->handle, "bli_arch_string");
    void (*blis_init)(void) = (void (*)(void))dlsym(p->handle, "bli_init");
    if (blis_init != NULL) blis_init(); /* before it, bli_arch_query_id() aborts */
    if (openblas != NULL)
        snprintf(text, size, "%s", openblas);
    else if (blis != NULL && blis_query != NULL && blis_arch != NULL)
        snprintf(text, size, "BLIS %s %s", blis, blis_arch(blis_query()));
    else if (dnnl != NULL)
        snprintf(text, size, "oneDNN %d.%d.%d", dnnl()->major, dnnl()->minor, dnnl()->patch);
    else if (mkl != NULL)
        mkl(text, (int)size - 1);
    else if (other != NULL)
        snprintf(text, size, "%s", other);
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--)
        text[end - 1] = '\0';
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The index of a name in `known`; KNOWN if the name is not there. */
static int index_of(const char *name)
{
    int index = 0;
    while (index < KNOWN && strcmp(known[index].name, name) != 0)
        index++;
    return index;
}

bool peer_is_name(const char *text)
{
    return strchr(text, '/') != NULL || index_of(text) < KNOWN;
}

/* Whether the bf16 product works on this processor; oneDNN does not support it on older
 * processors. */
static bool multiplies_bf16(void *function)
{
    const uint16_t a = 0, b = 0;
    float c;
    return ((onednn_bf16_function *)function)(0, 0, 1, 1, 1, &a, &b, &c, 1) == 0;
}

bool peer_open(const char *name, peer *p, char *message, size_t message_size)
{
    *p = (peer){0};
    const int index = index_of(name);
    if (index < KNOWN) {
        snprintf(p->name, sizeof p->name, "%s", name);
        p->handle = load_known(index);
    } else {
        snprintf(p->name, sizeof p->name, "%s", strrchr(name, '/') + 1);
        if (strstr(name, "libblis") != NULL) help_blis_to_avx512();
        p->handle = load_library(name);
    }
    if (p->handle == NULL) {
        const char *why = dlerror();
        if (index < KNOWN)
            snprintf(message, message_size, "%s was not found (%s)", name, known[index].files[0]);
        else
            snprintf(message, message_size, "cannot load it: %s", why != NULL ? why : name);
        return false;
    }
    p->sgemm = dlsym(p->handle, "cblas_sgemm");
    p->dgemm = dlsym(p->handle, "cblas_dgemm");
    p->cgemm = dlsym(p->handle, "cblas_cgemm");
    p->zgemm = dlsym(p->handle, "cblas_zgemm");
    p->onednn = p->sgemm == NULL ? dlsym(p->handle, "dnnl_sgemm") : NULL;
    p->mkl_bf16 = dlsym(p->handle, "cblas_gemm_bf16bf16f32");
    p->mkl_f16 = dlsym(p->handle, "cblas_gemm_f16f16f32");
    p->onednn_bf16 = dlsym(p->handle, "tegula_peer_bf16");
    p->onednn_i8 = dlsym(p->handle, "dnnl_gemm_s8s8s32");
    if (p->onednn_bf16 != NULL && !multiplies_bf16(p->onednn_bf16)) p->onednn_bf16 = NULL;
    if (p->sgemm == NULL && p->dgemm == NULL && p->onednn == NULL) {
        snprintf(message, message_size, "%s exports neither cblas_sgemm nor cblas_dgemm", name);
        return false;
    }
    read_version(p);
    return true;
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* Calls the library's function `symbol` with the argument `threads`, if the library has it. */
static void call_with(void *library, const char *symbol, int threads)
{
    void (*function)(int) = (void (*)(int))dlsym(library, symbol);
    if (function != NULL) function(threads);
}

static void set_openmp_threads(int threads)
{
    static const char *const runtimes[] = {"libgomp.so.1", "libiomp5.so", "libomp.so.5"};
    for (int i = 0; i < 3; i++) {
        void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime == NULL) continue;
        call_with(runtime, "omp_set_num_threads", threads);
        dlclose(runtime);
    }
}

void peers_set_threads(const peer *peers, int count, int threads)
{
    set_openmp_threads(threads);
    for (int i = 0; i < count; i++) {
        call_with(peers[i].handle, "openblas_set_num_threads", threads);
        call_with(peers[i].handle, "MKL_Set_Num_Threads", threads);
        call_with(peers[i].handle, "tegula_peer_set_num_threads", threads);
        void (*blis)(int64_t) = /* BLIS's dim_t has 64 bits */
            (void (*)(int64_t))dlsym(peers[i].handle, "bli_thread_set_num_threads");
        if (blis != NULL) blis(threads);
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

void peer_from_cublas(peer *p, cublas *lib, cublas_way way)
{
    *p = (peer){.cublas = lib, .way = way};
    snprintf(p->name, sizeof p->name, "%s", cublas_way_name(way));
    snprintf(p->version, sizeof p->version, "cuBLAS %s%s", cublas_version(lib),
             way == CUBLAS_LT_BEST ? ", the fastest of cuBLASLt's candidates" : "");
}

/* Whether the peer has a function for A and B of type `type` and C of type `result`. */
static bool has_function(const peer *p, tgl_type type, tgl_type result)
{
    switch (type) {
    case TGL_F32:
        return result == type && (p->sgemm != NULL || p->onednn != NULL);
    case TGL_F64:
        return result == type && p->dgemm != NULL;
    case TGL_C64:
        return result == type && p->cgemm != NULL;
    case TGL_C128:
        return result == type && p->zgemm != NULL;
    case TGL_BF16:
        return result == TGL_F32 ? p->mkl_bf16 != NULL || p->onednn_bf16 != NULL
                                 : result == type && p->onednn_bf16 != NULL;
    case TGL_F16:
        return result == TGL_F32 && p->mkl_f16 != NULL;
    case TGL_I8:
        return result == TGL_I32 && p->onednn_i8 != NULL;
    default:
        return false;
    }
}

bool peer_takes(const peer *p, const tgl_problem *problem)
{
    if (p->cublas != NULL) return true;
    return has_function(p, problem->type_a, problem_result_type(problem)) &&
           problem->m <= INT_MAX && problem->n <= INT_MAX && problem->k <= INT_MAX;
}

/* C := op(A)*op(B) for one product of the batch. */
static void run_one(const peer *p, const tgl_problem *problem, const void *A, const void *B,
                    void *C)
{
    const int m = (int)problem->m, n = (int)problem->n, k = (int)problem->k;
    const int trans_a = problem->trans_a, trans_b = problem->trans_b;
    const bool is_a = trans_a != TGL_NO_TRANS, is_b = trans_b != TGL_NO_TRANS; /* transposed */
    const int lda = is_a ? m : k, ldb = is_b ? k : n;
    const char letter_a = is_a ? 'T' : 'N', letter_b = is_b ? 'T' : 'N';
    static const int32_t no_offset = 0;
    static const float one[] = {1, 0}, zero[] = {0, 0};
    static const double wide_one[] = {1, 0}, wide_zero[] = {0, 0};
    if (problem->type_a == TGL_C64)
        ((complex_function *)p->cgemm)(TGL_ROW_MAJOR, trans_a, trans_b, m, n, k, one, A, lda, B,
                                       ldb, zero, C, n);
    else if (problem->type_a == TGL_C128)
        ((complex_function *)p->zgemm)(TGL_ROW_MAJOR, trans_a, trans_b, m, n, k, wide_one, A, lda,
                                       B, ldb, wide_zero, C, n);
    else if (problem->type_a == TGL_F64)
        ((dgemm_function *)p->dgemm)(TGL_ROW_MAJOR, trans_a, trans_b, m, n, k, 1.0, A, lda, B, ldb,
                                     0.0, C, n);
    else if (problem->type_a == TGL_I8)
        ((onednn_i8_function *)p->onednn_i8)(letter_a, letter_b, 'F', m, n, k, 1.0f, A, lda, 0, B,
                                             ldb, 0, 0.0f, C, n, &no_offset);
    else if (problem->type_a == TGL_BF16 && p->onednn_bf16 != NULL)
        ((onednn_bf16_function *)p->onednn_bf16)(is_a, is_b, m, n, k, A, B, C,
                                                 problem_result_type(problem) == TGL_F32);
    else if (problem->type_a == TGL_BF16 || problem->type_a == TGL_F16)
        ((mkl_half_function *)(problem->type_a == TGL_F16 ? p->mkl_f16 : p->mkl_bf16))(
            TGL_ROW_MAJOR, trans_a, trans_b, m, n, k, 1.0f, A, lda, B, ldb, 0.0f, C, n);
    else if (p->onednn != NULL)
        ((dnnl_sgemm_function *)p->onednn)(letter_a, letter_b, m, n, k, 1.0f, A, lda, B, ldb, 0.0f,
                                           C, n);
    else
        ((sgemm_function *)p->sgemm)(TGL_ROW_MAJOR, trans_a, trans_b, m, n, k, 1.0f, A, lda, B, ldb,
                                     0.0f, C, n);
}

void peer_run(const peer *p, const tgl_problem *problem, const void *A, const void *B, void *C)
{
    const int64_t element = (int64_t)tgl_type_size(problem->type_a);
    const int64_t result = (int64_t)tgl_type_size(problem_result_type(problem));
    for (int64_t i = 0; i < problem->batch; i++)
        run_one(p, problem, (const char *)A + i * problem->stride_a * element,
                (const char *)B + i * problem->stride_b * element,
                (char *)C + i * problem->stride_c * result);
}
