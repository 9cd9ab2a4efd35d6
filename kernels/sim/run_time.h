/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that a kernel compiled for the simulator calls: the functions behind CUDA's
 * keywords, and functions that the compiler calls for each access (-fsanitize=thread), each index
 * outside of an array (-fsanitize=bounds) and each basic block (-fsanitize-coverage=trace-pc), in
 * place of the sanitizers' run times. Most of these functions call the host. They are compiled
 * separately from the kernel, without these flags, and linked to it.
 */
#ifndef TGL_SIM_RUN_TIME_H
#define TGL_SIM_RUN_TIME_H

#include "sim/hooks.h"

#define TGL_SIM_PC __builtin_return_address(0)

typedef __SIZE_TYPE__ size_t;

/* The initial value of tgl_sim.loops, for code that runs while the object is loaded, before the
 * host has filled in the hooks. */
static tgl_sim_loops loops_at_load;

tgl_sim_hooks tgl_sim = {.loops = &loops_at_load};

/* The type of threadIdx, blockIdx, blockDim and gridDim. */
typedef struct uint3 {
    unsigned x, y, z;
} uint3;

uint3 tgl_sim_uint3(const unsigned *v)
{
    const uint3 r = {v[0], v[1], v[2]};
    return r;
}

/* Defines a function that passes its call on to the host: its name and parameters, the hook that it
 * calls, and the hook's arguments after the machine. */
#define TGL_SIM_CALL(name, parameters, hook, ...)                                                  \
    void name parameters                                                                           \
    {                                                                                              \
        tgl_sim.hook(tgl_sim.machine, ##__VA_ARGS__);                                              \
    }

/* ---- Accesses -------------------------------------------------------------------------------- */

void __tsan_init(void) {}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void) {}

/* Counts one more thread that passes the code address pc. */
static void visit(const char *pc)
{
    const unsigned long at = (unsigned long)pc - tgl_sim.code;
    if (at < tgl_sim.code_size) tgl_sim.visits[at]++;
}

#define TGL_SIM_ACCESS(name, bytes, is_write)                                                      \
    void name(void *address)                                                                       \
    {                                                                                              \
        visit(TGL_SIM_PC);                                                                         \
        tgl_sim.access(tgl_sim.machine, address, bytes, is_write, TGL_SIM_PC);                     \
    }
TGL_SIM_ACCESS(__tsan_read1, 1, 0)
TGL_SIM_ACCESS(__tsan_read2, 2, 0)
TGL_SIM_ACCESS(__tsan_read4, 4, 0)
TGL_SIM_ACCESS(__tsan_read8, 8, 0)
TGL_SIM_ACCESS(__tsan_read16, 16, 0)
TGL_SIM_ACCESS(__tsan_write1, 1, 1)
TGL_SIM_ACCESS(__tsan_write2, 2, 1)
TGL_SIM_ACCESS(__tsan_write4, 4, 1)
TGL_SIM_ACCESS(__tsan_write8, 8, 1)
TGL_SIM_ACCESS(__tsan_write16, 16, 1)
/* "unaligned": the compiler could not prove the alignment; the host checks the address. */
TGL_SIM_ACCESS(__tsan_unaligned_read2, 2, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read4, 4, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read8, 8, 0)
TGL_SIM_ACCESS(__tsan_unaligned_read16, 16, 0)
TGL_SIM_ACCESS(__tsan_unaligned_write2, 2, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write4, 4, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write8, 8, 1)
TGL_SIM_ACCESS(__tsan_unaligned_write16, 16, 1)

/* Accesses of other sizes (structs) are reported as accesses of 4 bytes, then of single bytes. */
static void access_range(const char *p, size_t bytes, int is_write, const void *pc)
{
    for (; bytes >= 4; p += 4, bytes -= 4)
        tgl_sim.access(tgl_sim.machine, p, 4, is_write, pc);
    for (; bytes > 0; p++, bytes--)
        tgl_sim.access(tgl_sim.machine, p, 1, is_write, pc);
}

void __tsan_read_range(void *p, size_t bytes)
{
    access_range(p, bytes, 0, TGL_SIM_PC);
}

void __tsan_write_range(void *p, size_t bytes)
{
    access_range(p, bytes, 1, TGL_SIM_PC);
}

/* clang replaces copies of structs by calls of these functions. The stores are volatile, because
 * otherwise the compiler would turn the loops into calls of memcpy() and memset(), that is, of
 * these functions themselves. */
void *memcpy(void *to, const void *from, size_t bytes)
{
    access_range(from, bytes, 0, TGL_SIM_PC);
    access_range(to, bytes, 1, TGL_SIM_PC);
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    access_range(to, bytes, 1, TGL_SIM_PC);
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = (char)value;
    return to;
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes) __attribute__((alias("memcpy")));
void *__tsan_memset(void *to, int value, size_t bytes) __attribute__((alias("memset")));

/* Called where an index lies outside of its array (-fsanitize=bounds). On a GPU such an access to
 * registers or shared memory reads or writes something else. */
void __ubsan_handle_out_of_bounds(void *where, void *index)
{
    (void)where, (void)index;
    tgl_sim.bad_index(tgl_sim.machine, TGL_SIM_PC);
}

/* ---- Atomics and fences ---------------------------------------------------------------------- */

/* An atomic operation is counted as a load and a store. No other thread runs between the two. */
#define TGL_SIM_ATOMIC(name, result)                                                               \
    unsigned name(unsigned *address, unsigned value)                                               \
    {                                                                                              \
        tgl_sim.atomic(tgl_sim.machine, address, TGL_SIM_PC);                                      \
        const unsigned old = *address;                                                             \
        *address = (result);                                                                       \
        return old;                                                                                \
    }
TGL_SIM_ATOMIC(atomicAdd, old + value)
TGL_SIM_ATOMIC(atomicOr, old | value)
TGL_SIM_ATOMIC(atomicAnd, old &value)
TGL_SIM_ATOMIC(atomicMax, old > value ? old : value)
TGL_SIM_ATOMIC(atomicExch, value)

TGL_SIM_CALL(__threadfence, (void), fence, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_wait_for_launches, (void), wait_for_launches)

/* ---- Loops ----------------------------------------------------------------------------------- */

/* Counts another iteration of the loop whose code begins at `begin` and extends at least to `end`.
 * If the loop is recorded already, it becomes the innermost one. Otherwise it is recorded, unless
 * TGL_SIM_LOOPS enclosing loops are. */
static void count_round(tgl_sim_loops *loops, const char *begin, const char *end)
{
    const unsigned long long mix =
        0x9e3779b97f4a7c15u; /* odd, so that the multiplication is invertible */
    if (--loops->rounds_left == 0) tgl_sim.endless(tgl_sim.machine, begin);
    while (loops->depth > 0 && loops->loop[loops->depth - 1].begin > begin)
        loops->depth--;
    if (loops->depth == 0 || loops->loop[loops->depth - 1].begin != begin) {
        if (loops->depth == TGL_SIM_LOOPS) return;
        tgl_sim_loop *loop = &loops->loop[loops->depth];
        loop->begin = loop->end = begin;
        loop->place = (tgl_sim_place_in_loops(loops) ^ (unsigned long long)begin) * mix;
        loops->depth++;
    }
    tgl_sim_loop *loop = &loops->loop[loops->depth - 1];
    if (end > loop->end) loop->end = end;
    loop->place = (loop->place + 1) * mix;
}

/* Called at the start of each basic block. At -O0 the blocks are in the order of the source: a
 * backward jump starts another iteration of a loop, and a jump past a loop's end leaves it. */
void __sanitizer_cov_trace_pc(void)
{
    tgl_sim_loops *loops = tgl_sim.loops;
    const char *pc = TGL_SIM_PC;
    visit(pc);
    if (pc <= loops->at) count_round(loops, pc, loops->at);
    while (loops->depth > 0 && pc > loops->loop[loops->depth - 1].end)
        loops->depth--;
    loops->at = pc;
}

/* ---- Threads that wait for each other -------------------------------------------------------- */

TGL_SIM_CALL(__syncthreads, (void), barrier, TGL_SIM_PC)

/* Passes the same code address for all callers, because the warps of a block may call
 * block_barrier() at different places in the code, and the host reports an error if threads wait at
 * barriers with different addresses. */
TGL_SIM_CALL(tgl_sim_block_barrier, (void), barrier, (const char *)tgl_sim_block_barrier + 1)
TGL_SIM_CALL(tgl_sim_cluster_barrier, (void), cluster_barrier, TGL_SIM_PC)

float tgl_sim_cluster_load(const float *shared, int rank)
{
    return tgl_sim.cluster_load(tgl_sim.machine, shared, rank, TGL_SIM_PC);
}

TGL_SIM_CALL(tgl_sim_syncwarp, (unsigned lanes), warp_barrier, lanes, TGL_SIM_PC)

unsigned tgl_sim_shuffle(unsigned lanes, unsigned value, int source)
{
    return tgl_sim.shuffle(tgl_sim.machine, lanes, value, source, TGL_SIM_PC);
}

int tgl_sim_lane(void)
{
    return (int)(tgl_sim.thread[0] % 32);
}

/* The lane to read from, within segments of `width` lanes. If `source` is outside the segment, the
 * lane reads its own value. */
int tgl_sim_in_segment(int source, int width)
{
    const int lane = tgl_sim_lane();
    return source >= 0 && source / width == lane / width ? source : lane;
}

/* ---- cp.async, for lib/async_copy.h ---------------------------------------------------------- */

TGL_SIM_CALL(tgl_sim_async_copy, (void *shared, const void *global, int bytes, int valid_bytes),
             async_copy, shared, global, bytes, valid_bytes, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_async_commit, (void), async_commit)
TGL_SIM_CALL(tgl_sim_async_wait, (int groups_pending), async_wait, groups_pending)

/* ---- lib/half.h ------------------------------------------------------------------------------ */

static unsigned bits_of(float x)
{
    const union {
        float value;
        unsigned bits;
    } word = {x};
    return word.bits;
}

static float float_of(unsigned bits)
{
    const union {
        unsigned bits;
        float value;
    } word = {bits};
    return word.value;
}

/* bits / 2^shift, rounded to nearest even. A fraction that overflows carries into the exponent. */
static unsigned shift_to_even(unsigned bits, int shift)
{
    const unsigned kept = bits >> shift, rest = bits & ((1u << shift) - 1),
                   half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && kept % 2 == 1));
}

unsigned short tgl_sim_float_to_bf16(float x)
{
    return (unsigned short)(x != x ? 0x7fff : shift_to_even(bits_of(x), 16));
}

/* Rounds to f16, whose fraction has 13 bits fewer. From 65520 on the result is Inf. Below 2^-14 it
 * is denormal, a multiple of 2^-24: adding 2^-1 to the magnitude rounds to this multiple, and
 * leaves it in the last bits of the fraction. */
unsigned short tgl_sim_float_to_f16(float x)
{
    const unsigned sign = bits_of(x) >> 16 & 0x8000, magnitude = bits_of(x) & 0x7fffffff;
    if (x != x) return 0x7fff;
    if (magnitude >= 0x477ff000) return (unsigned short)(sign | 0x7c00);
    if (magnitude < 0x38800000)
        return (unsigned short)(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
    return (unsigned short)(sign | (shift_to_even(magnitude, 13) - (112u << 10)));
}

float tgl_sim_f16_to_float(unsigned short bits)
{
    const unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31,
                   fraction = bits & 0x3ff;
    if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
        const float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

/* ---- lib/mbarrier.h and lib/tma.h ------------------------------------------------------------ */

TGL_SIM_CALL(tgl_sim_mbarrier_init, (const void *barrier, int arrivals), mbarrier_init, barrier,
             arrivals, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_mbarrier_fence, (void), mbarrier_fence)
TGL_SIM_CALL(tgl_sim_mbarrier_arrive, (const void *barrier, unsigned bytes), mbarrier_arrive,
             barrier, bytes, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_mbarrier_wait, (const void *barrier, unsigned parity), mbarrier_wait, barrier,
             parity, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_mbarrier_arrive_at, (const void *barrier, int rank), mbarrier_arrive_at,
             barrier, rank, TGL_SIM_PC)

void tgl_sim_tma_load(void *shared, const void *map, const int *at, int rank, const void *barrier)
{
    tgl_sim.tma_load(tgl_sim.machine, shared, map, at, rank, barrier, 0, TGL_SIM_PC);
}

void tgl_sim_tma_load_multicast(void *shared, const void *map, const int *at, int rank,
                                const void *barrier, unsigned mask)
{
    tgl_sim.tma_load(tgl_sim.machine, shared, map, at, rank, barrier, mask, TGL_SIM_PC);
}

TGL_SIM_CALL(tgl_sim_tma_store, (const void *map, const void *shared, const int *at, int rank),
             tma_store, map, shared, at, rank, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_tma_store_commit, (void), tma_store_commit)
TGL_SIM_CALL(tgl_sim_tma_store_wait, (int pending, int is_read_only), tma_store_wait, pending,
             is_read_only)
TGL_SIM_CALL(tgl_sim_fence_proxy_async, (void), fence_proxy_async)

/* ---- lib/named_barrier.h --------------------------------------------------------------------- */

TGL_SIM_CALL(tgl_sim_named_barrier, (int id, int threads), named_barrier, id, threads, TGL_SIM_PC)

/* ---- lib/mma.h and lib/ldmatrix.h ------------------------------------------------------------ */

enum { TYPE_F32 = 1, TYPE_F64, TYPE_F16, TYPE_BF16, TYPE_I8 = 7 }; /* values of tgl_type */

TGL_SIM_CALL(tgl_sim_mma_f16, (float *acc, const unsigned *a, const unsigned *b), mma, TYPE_F16,
             acc, a, b, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_mma_bf16, (float *acc, const unsigned *a, const unsigned *b), mma, TYPE_BF16,
             acc, a, b, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_mma_tf32, (float *acc, const unsigned *a, const unsigned *b), mma, TYPE_F32,
             acc, a, b, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_mma_f64, (double *acc, const double *a, const double *b), mma, TYPE_F64, acc,
             a, b, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_mma_s8, (unsigned *acc, const unsigned *a, const unsigned *b), mma, TYPE_I8,
             acc, a, b, TGL_SIM_PC)

unsigned tgl_sim_round_to_tf32(unsigned bits)
{
    const int is_finite = (bits >> 23 & 0xff) != 0xff;
    return is_finite ? (bits + 0x1000) & ~0x1fffu : bits;
}

TGL_SIM_CALL(tgl_sim_ldmatrix, (unsigned *to, const void *row, int count, int transposed), ldmatrix,
             to, row, count, transposed, TGL_SIM_PC)
TGL_SIM_CALL(tgl_sim_stmatrix, (void *row, const unsigned *from, int count, int transposed),
             stmatrix, row, from, count, transposed, TGL_SIM_PC)

/* ---- lib/mma_register_copies.h --------------------------------------------------------------- */

TGL_SIM_CALL(tgl_sim_wide_load, (const void *words, unsigned bytes), wide_load, words, bytes,
             TGL_SIM_PC)

/* ---- lib/wgmma.h ----------------------------------------------------------------------------- */

unsigned long long tgl_sim_wgmma_tile(const void *shared, int swizzle, int atom_bytes,
                                      int group_bytes)
{
    return tgl_sim.wgmma_tile(tgl_sim.machine, shared, swizzle, atom_bytes, group_bytes,
                              TGL_SIM_PC);
}

void tgl_sim_wgmma(float *acc, const unsigned *left_fragment, unsigned long long left,
                   unsigned long long right, int type, int right_type, int n, int left_k_major,
                   int right_k_major, int scale_d)
{
    tgl_sim.wgmma(tgl_sim.machine, acc, left_fragment, left, right, type, right_type, n,
                  left_k_major, right_k_major, scale_d, TGL_SIM_PC);
}

TGL_SIM_CALL(tgl_sim_wgmma_fence, (void), wgmma_fence)
TGL_SIM_CALL(tgl_sim_wgmma_commit, (void), wgmma_commit)
TGL_SIM_CALL(tgl_sim_wgmma_wait, (int pending), wgmma_wait, pending)
TGL_SIM_CALL(tgl_sim_set_registers, (int count), set_registers, count, TGL_SIM_PC)

#endif
