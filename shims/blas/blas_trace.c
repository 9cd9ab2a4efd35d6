/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints a line for each call if TEGULA_BLAS_TRACE=1.
 */
#include "blas_shim.h"

#include <stdarg.h>
#include <stdio.h>

void blas_trace(blas_server server, const char *format, ...)
{
    static const char *const names[] = {[BLAS_SERVER_NONE] = "nothing to do",
                                        [BLAS_SERVER_TEGULA] = "tegula",
                                        [BLAS_SERVER_GPU] = "tegula on the GPU",
                                        [BLAS_SERVER_NEXT] = "next BLAS",
                                        [BLAS_SERVER_LOOP] = "loop"};
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "tegula_blas: %s: %s\n", text, names[server]);
}

void blas_trace_gemm(blas_server server, const char *routine, const blas_gemm *g, int64_t batch)
{
    char of_batch[32] = "", alpha_imag[32] = "", beta_imag[32] = "";
    if (!blas_is_traced()) return;
    if (batch > 0) snprintf(of_batch, sizeof of_batch, " batch=%lld", (long long)batch);
    if (blas_is_complex(g->type)) {
        snprintf(alpha_imag, sizeof alpha_imag, "%+gi", g->alpha_imag);
        snprintf(beta_imag, sizeof beta_imag, "%+gi", g->beta_imag);
    }
    blas_trace(server,
               "%s %c%c m=%lld n=%lld k=%lld alpha=%g%s lda=%lld ldb=%lld beta=%g%s ldc=%lld%s",
               routine, blas_letter_of(g->trans_a), blas_letter_of(g->trans_b), (long long)g->m,
               (long long)g->n, (long long)g->k, g->alpha, alpha_imag, (long long)g->lda,
               (long long)g->ldb, g->beta, beta_imag, (long long)g->ldc, of_batch);
}
