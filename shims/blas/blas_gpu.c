/* SPDX-License-Identifier: Apache-2.0
 *
 * Large products on a GPU, with TEGULA_BLAS_DEVICE=cuda. Their matrices are in host memory:
 * tgl_gemm_host() copies them. The GPU is opened by the first large product and never closed.
 *
 * A child process does not use the GPU of its parent, because CUDA does not work after fork(). It
 * computes on the CPU, even if the fork happens while another thread opens the GPU.
 */
#include "blas_shim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Estimates for the choice between CPU and GPU, used unless TEGULA_BLAS_GPU_SIZE is set.
 * FIXED_SECONDS: the time of a small product on the GPU without copies. It is more than the 0.05 to
 * 0.1 ms that an H200 takes. */
static const double CORE_FLOPS_F32 = 64e9; /* FLOP/s of a core: 32 per clock with AVX2, at 2 GHz */
static const double CORE_FLOPS_F64 = 32e9; /* FLOP/s of a core: 16 per clock */
static const double LINK_BYTES = 12e9;     /* bytes/s of the link to the GPU, PCIe 3.0 x16 */
static const double FIXED_SECONDS = 2e-4;

static char name[32]; /* name of the cuda device */
/* Products with at least this m*n*k run on the GPU. 0: is_worth_copying() decides. */
static double least;
static double threads; /* number of threads of the cpu device */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int owner; /* id of the process that has opened the GPU, or tried to; 0: none; -1:
                            this process is a child of that process */
static tgl_device *_Atomic gpu;

/* ---- Which products -------------------------------------------------------------------------- */

static void read_size(const char *text)
{
    char *end;
    const double size = strtod(text, &end);
    if (*end == '\0' && size >= 1 && size <= 1e9)
        least = size * size * size;
    else
        fprintf(stderr,
                "tegula_blas: TEGULA_BLAS_GPU_SIZE is \"%s\"; it must be a number from 1 on. The "
                "library chooses the products that run on the GPU.\n",
                text);
}

void blas_gpu_configure(const char *device, const tgl_device *cpu)
{
    const char *size = getenv("TEGULA_BLAS_GPU_SIZE");
    snprintf(name, sizeof name, "%s", device);
    if (size != NULL && *size != '\0') read_size(size);
    if (tgl_device_number(cpu, TGL_NUMBER_THREADS, &threads) != TGL_OK) threads = 1;
}

/* Whether the CPU would take longer than the GPU and the copies to and from it. */
static bool is_worth_copying(const blas_gemm *g)
{
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    const double core_flops = blas_is_single(g->type) ? CORE_FLOPS_F32 : CORE_FLOPS_F64;
    const double flops = blas_is_complex(g->type) ? 8 : 2;
    const double elements = m * k + k * n + m * n * (blas_has_beta(g) ? 2 : 1);
    const double bytes = elements * (double)tgl_type_size(g->type);
    return flops * m * n * k / (threads * core_flops) > bytes / LINK_BYTES + FIXED_SECONDS;
}

bool blas_is_for_gpu(const blas_gemm *g)
{
    if (blas_has_no_alpha(g)) return false;
    /* A product with one row or column (GEMV) uses each matrix element once: the copies alone would
     * take longer than the CPU. */
    if (g->m == 1 || g->n == 1) return false;
    if (least > 0) return (double)g->m * (double)g->n * (double)g->k >= least;
    return is_worth_copying(g);
}

/* ---- The GPU --------------------------------------------------------------------------------- */

/* Runs in a child after fork(), and marks it as a process that does not use the GPU. A comparison
 * of process ids would not suffice: in another PID namespace the child may have the id of its
 * parent. */
static void disown_gpu(void)
{
    atomic_store(&owner, -1);
}

/* Opens the GPU. If the process forks during this function, pthread_once() calls it again in the
 * child. */
static void open_gpu(void)
{
    int no_process = 0;
    if (!atomic_compare_exchange_strong(&owner, &no_process, (int)getpid())) return;
    pthread_atfork(NULL, NULL, disown_gpu);
    tgl_device *opened;
    if (tgl_device_open(name, NULL, &opened) == TGL_OK) {
        atomic_store(&gpu, opened);
        return;
    }
    char reason[500];
    tgl_last_error(reason, sizeof reason);
    fprintf(stderr, "tegula_blas: %s does not open: %s. Products run on the cpu device.\n", name,
            reason);
}

/* Whether a failure concerns only this product: for another product there may be enough memory, its
 * matrices may be aligned, or its sizes may be supported. */
static bool may_serve_others(tgl_status status)
{
    return status == TGL_NO_MEMORY || status == TGL_BAD_A || status == TGL_BAD_B ||
           status == TGL_BAD_C || status == TGL_TOO_LARGE || status == TGL_GRID_TOO_LARGE ||
           status == TGL_UNSUPPORTED;
}

/* Handles a failure on the GPU. If the failure is not limited to this product, the GPU is not used
 * any more. If C is undefined, the program is ended, because BLAS functions cannot report an
 * error. */
static void handle_failure(tgl_status status)
{
    char reason[500];
    if (may_serve_others(status)) return;
    tgl_last_error(reason, sizeof reason);
    atomic_store(&gpu, NULL);
    fprintf(stderr, "tegula_blas: the GPU has failed: %s. %s\n", reason,
            status == TGL_KERNEL_FAULT ? "C is undefined." : "Products run on the cpu device.");
    if (status == TGL_KERNEL_FAULT) abort();
}

bool blas_multiply_by_gpu(const blas_gemm *g)
{
    pthread_once(&once, open_gpu);
    tgl_device *device = atomic_load(&gpu);
    if (device == NULL || atomic_load(&owner) != (int)getpid()) return false;
    const tgl_problem problem = blas_problem_of(g);
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = g->alpha,
                                   .beta = g->beta,
                                   .A = g->A,
                                   .B = g->B,
                                   .C = g->C,
                                   .alpha_imag = g->alpha_imag,
                                   .beta_imag = g->beta_imag};
    const tgl_status status = tgl_gemm_host(device, &problem, &operands);
    if (status != TGL_OK) handle_failure(status);
    return status == TGL_OK;
}
