/* SPDX-License-Identifier: Apache-2.0
 *
 * ldmatrix (sm_75 and later): a warp loads 8 x 8 matrices of 16-bit elements from shared memory and
 * distributes them over the lanes as mma.sync needs them. stmatrix (sm_90 and later) is the
 * reverse.
 *
 * A matrix has 8 rows of 16 bytes, each at any 16-byte aligned address of shared memory. Four
 * matrices are loaded or stored at once (x4): lane i provides the address of row i % 8 of matrix
 * i / 8. Register number m of a lane receives elements of matrix number m:
 *
 *     ldmatrix         lane 4r + c:  elements [r][2c], [r][2c+1]     row r, in the low half first
 *     ldmatrix_trans   lane 4r + c:  elements [2c][r], [2c+1][r]     of the transposed matrix
 *
 * Without the transpose a lane receives the 32-bit word c of row r, so that ldmatrix also loads 8 x
 * 4 matrices of 32-bit elements. A matrix takes one wavefront if its rows are in different banks.
 */
#ifndef TGL_LDMATRIX_H
#define TGL_LDMATRIX_H

#ifdef TGL_SIM
/* row: the address that this lane gives; to, from: `count` registers (2 or 4) of this lane. */
void tgl_sim_ldmatrix(unsigned *to, const void *row, int count, int transposed);
void tgl_sim_stmatrix(void *row, const unsigned *from, int count, int transposed);

/* These are macros, so that the simulator can report the source line of the call. */
#define ldmatrix_x4(to, row)         tgl_sim_ldmatrix(to, row, 4, 0)
#define ldmatrix_x4_trans(to, row)   tgl_sim_ldmatrix(to, row, 4, 1)
#define stmatrix_x4(row, from)       tgl_sim_stmatrix(row, from, 4, 0)
#define stmatrix_x4_trans(row, from) tgl_sim_stmatrix(row, from, 4, 1)

#else

/* `volatile` and the memory clobber keep the compiler from moving the load across barriers and
 * waits for copies. */
#define TGL_LDMATRIX_X4(trans, to, row)                                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];"       \
                 : "=r"((to)[0]), "=r"((to)[1]), "=r"((to)[2]), "=r"((to)[3])                      \
                 : "r"((unsigned)__cvta_generic_to_shared(row))                                    \
                 : "memory")

static __device__ __forceinline__ void ldmatrix_x4(unsigned *to, const void *row)
{
    TGL_LDMATRIX_X4("", to, row);
}

static __device__ __forceinline__ void ldmatrix_x4_trans(unsigned *to, const void *row)
{
    TGL_LDMATRIX_X4(".trans", to, row);
}

#if __CUDA_ARCH__ >= 900

#define TGL_STMATRIX_X4(trans, row, from)                                                          \
    asm volatile(                                                                                  \
        "stmatrix.sync.aligned.m8n8.x4" trans                                                      \
        ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"((unsigned)__cvta_generic_to_shared(row)),      \
        "r"((from)[0]), "r"((from)[1]), "r"((from)[2]), "r"((from)[3])                             \
        : "memory")

static __device__ __forceinline__ void stmatrix_x4(void *row, const unsigned *from)
{
    TGL_STMATRIX_X4("", row, from);
}

static __device__ __forceinline__ void stmatrix_x4_trans(void *row, const unsigned *from)
{
    TGL_STMATRIX_X4(".trans", row, from);
}

#endif
#endif

#endif
