/* SPDX-License-Identifier: Apache-2.0
 *
 * cp.async (sm_80 and later): asynchronous copies from global to shared memory that use no
 * registers. A thread commits the copies it has issued as a group with async_commit() and waits for
 * its older groups with ASYNC_WAIT(). Copies of other threads are visible only after a barrier that
 * follows the waits of these threads, or after a wait at an mbarrier (async_arrive()). Chips before
 * sm_80 copy synchronously, through registers.
 */
#ifndef TGL_ASYNC_COPY_H
#define TGL_ASYNC_COPY_H

#ifndef ASYNC_COPY_L2
#define ASYNC_COPY_L2 "" /* ".L2::128B": L2 fetches 128 bytes on a miss */
#endif

#ifdef TGL_SIM
/* The simulator's run time defines these. When the thread waits for the group of a copy, `bytes`
 * bytes are written to shared memory: the first `valid_bytes` from global memory, then zeros. */
void tgl_sim_async_copy(void *shared, const void *global, int bytes, int valid_bytes);
void tgl_sim_async_commit(void);
void tgl_sim_async_wait(int groups_pending);
#elif __CUDA_ARCH__ >= 800
#define TGL_CP_ASYNC(cache, bytes, shared, global, active)                                         \
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0;\n"                                         \
                 "@p cp.async." cache ".shared.global" ASYNC_COPY_L2 " [%0], [%1], " bytes         \
                 "; }" ::"r"((unsigned)__cvta_generic_to_shared(shared)),                          \
                 "l"(global), "r"((unsigned)(active)))
#define TGL_CP_ASYNC_OR_ZERO(cache, bytes, shared, global, valid_bytes)                            \
    asm volatile("cp.async." cache ".shared.global" ASYNC_COPY_L2 " [%0], [%1], " bytes            \
                 ", %2;" ::"r"((unsigned)__cvta_generic_to_shared(shared)),                        \
                 "l"(global), "r"(valid_bytes))
#endif

/* Copies `width` floats (1, 2 or 4, a constant) if `active`. Both addresses are multiples of 4 *
 * width bytes. 16-byte copies bypass L1. */
static __device__ __forceinline__ void async_copy(float *shared, const float *global,
                                                  const int width, bool active)
{
#ifdef TGL_SIM
    if (active) tgl_sim_async_copy(shared, global, 4 * width, 4 * width);
#elif __CUDA_ARCH__ >= 800
    if (width == 4)
        TGL_CP_ASYNC("cg", "16", shared, global, active);
    else if (width == 2)
        TGL_CP_ASYNC("ca", "8", shared, global, active);
    else
        TGL_CP_ASYNC("ca", "4", shared, global, active);
#else
    if (active && width == 4) *(float4 *)shared = *(const float4 *)global;
    if (active && width == 2) *(float2 *)shared = *(const float2 *)global;
    if (active && width == 1) *shared = *global;
#endif
}

/* Copies one float, or four floats, if `active`. A predicate instead of a branch lets the compiler
 * interleave copies with arithmetic. */
static __device__ __forceinline__ void async_copy_float(float *shared, const float *global,
                                                        bool active)
{
    async_copy(shared, global, 1, active);
}

static __device__ __forceinline__ void async_copy_float4(float *shared, const float *global,
                                                         bool active)
{
    async_copy(shared, global, 4, active);
}

/* As async_copy(), but writes zeros to shared memory if the floats are not valid, and then does not
 * read global memory. */
static __device__ __forceinline__ void async_copy_or_zero(float *shared, const float *global,
                                                          const int width, bool valid)
{
#ifdef TGL_SIM
    tgl_sim_async_copy(shared, global, 4 * width, valid ? 4 * width : 0);
#elif __CUDA_ARCH__ >= 800
    if (width == 4)
        TGL_CP_ASYNC_OR_ZERO("cg", "16", shared, global, valid ? 16 : 0);
    else if (width == 2)
        TGL_CP_ASYNC_OR_ZERO("ca", "8", shared, global, valid ? 8 : 0);
    else
        TGL_CP_ASYNC_OR_ZERO("ca", "4", shared, global, valid ? 4 : 0);
#else
    for (int i = 0; i < width; i++)
        shared[i] = valid ? global[i] : 0.0f;
#endif
}

/* Copies one float if it is valid, else writes zero. */
static __device__ __forceinline__ void async_copy_float_or_zero(float *shared, const float *global,
                                                                bool valid)
{
    async_copy_or_zero(shared, global, 1, valid);
}

/* Writes `bytes` bytes (4, 8 or 16, a constant) of any type to shared memory: the first
 * `valid_bytes` are copied, the others are zeros. Both addresses are aligned to `bytes`. Only the
 * valid bytes are read. If valid_bytes is either 0 or `bytes`, this takes one predicate, else four
 * instructions. */
static __device__ __forceinline__ void async_copy_bytes(void *shared, const void *global,
                                                        const int bytes, int valid_bytes)
{
#ifdef TGL_SIM
    tgl_sim_async_copy(shared, global, bytes, valid_bytes);
#elif __CUDA_ARCH__ >= 800
    if (bytes == 16)
        TGL_CP_ASYNC_OR_ZERO("cg", "16", shared, global, valid_bytes);
    else if (bytes == 8)
        TGL_CP_ASYNC_OR_ZERO("ca", "8", shared, global, valid_bytes);
    else
        TGL_CP_ASYNC_OR_ZERO("ca", "4", shared, global, valid_bytes);
#else
    for (int i = 0; i < bytes / 2; i++)
        ((unsigned short *)shared)[i] =
            2 * i < valid_bytes ? ((const unsigned short *)global)[i] : (unsigned short)0;
#endif
}

/* Commits the copies issued since the last call as a group, which may be empty. */
static __device__ __forceinline__ void async_commit(void)
{
#ifdef TGL_SIM
    tgl_sim_async_commit();
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* The thread arrives once at the mbarrier (lib/mbarrier.h) when all its earlier cp.async copies are
 * complete. It does not wait. The arrival is one of those that mbarrier_init() counts. */
#ifdef TGL_SIM
#define async_arrive(barrier)                                                                      \
    (tgl_sim_async_commit(), tgl_sim_async_wait(0), tgl_sim_mbarrier_arrive(barrier, 0))
#elif __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void async_arrive(unsigned long long *barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                     (unsigned)__cvta_generic_to_shared(barrier))
                 : "memory");
}
#endif

/* Waits until at most `groups_pending`, a constant, of this thread's groups are unfinished. */
#ifdef TGL_SIM
#define ASYNC_WAIT(groups_pending) tgl_sim_async_wait(groups_pending)
#elif __CUDA_ARCH__ >= 800
#define ASYNC_WAIT(groups_pending)                                                                 \
    asm volatile("cp.async.wait_group %0;" ::"n"(groups_pending) : "memory")
#else
#define ASYNC_WAIT(groups_pending) (void)0
#endif

#endif
