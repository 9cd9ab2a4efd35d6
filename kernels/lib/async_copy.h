/* SPDX-License-Identifier: Apache-2.0
 *
 * cp.async (sm_80 and later): copies from global to shared memory that pass no register and finish
 * in the background. A thread closes the copies it has issued into a group with async_commit() and
 * waits for its older groups with async_wait(); what other threads copied is there only after a
 * __syncthreads() that follows everybody's wait.
 */
#ifndef TGL_ASYNC_COPY_H
#define TGL_ASYNC_COPY_H

#ifdef TGL_SIM
/* The simulator's run time supplies these: `bytes` are written to shared memory when the group is
 * waited for, the first `valid_bytes` of them from global memory, zeros after that. */
void tgl_sim_async_copy(void *shared, const void *global, int bytes, int valid_bytes);
void tgl_sim_async_commit(void);
void tgl_sim_async_wait(int groups_pending);
#endif

/* One float, if `active`; else nothing happens. A predicate, not a branch: the compiler can then
 * mix copies with arithmetic. */
static __device__ __forceinline__ void async_copy_float(float *shared, const float *global,
                                                        bool active)
{
#ifdef TGL_SIM
    if (active) tgl_sim_async_copy(shared, global, 4, 4);
#else
    asm volatile("{ .reg .pred active; setp.ne.u32 active, %2, 0;\n"
                 "@active cp.async.ca.shared.global [%0], [%1], 4; }" ::"r"(
                     (unsigned)__cvta_generic_to_shared(shared)),
                 "l"(global), "r"((unsigned)active));
#endif
}

/* Likewise four floats, both addresses on 16 bytes. They bypass L1. */
static __device__ __forceinline__ void async_copy_float4(float *shared, const float *global,
                                                         bool active)
{
#ifdef TGL_SIM
    if (active) tgl_sim_async_copy(shared, global, 16, 16);
#else
    asm volatile("{ .reg .pred active; setp.ne.u32 active, %2, 0;\n"
                 "@active cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(
                     (unsigned)__cvta_generic_to_shared(shared)),
                 "l"(global), "r"((unsigned)active));
#endif
}

/* One float if it is valid; else shared memory gets a 0 and global memory is not read. */
static __device__ __forceinline__ void async_copy_float_or_zero(float *shared, const float *global,
                                                                bool valid)
{
#ifdef TGL_SIM
    tgl_sim_async_copy(shared, global, 4, valid ? 4 : 0);
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(shared)),
                 "l"(global), "r"(valid ? 4 : 0));
#endif
}

/* Closes the group of copies issued since the last call; it may be empty. */
static __device__ __forceinline__ void async_commit(void)
{
#ifdef TGL_SIM
    tgl_sim_async_commit();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most `groups_pending`, a constant, of this thread's groups are unfinished. */
#ifdef TGL_SIM
#define ASYNC_WAIT(groups_pending) tgl_sim_async_wait(groups_pending)
#else
#define ASYNC_WAIT(groups_pending)                                                                 \
    asm volatile("cp.async.wait_group %0;" ::"n"(groups_pending) : "memory")
#endif

#endif
