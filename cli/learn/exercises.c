/* SPDX-License-Identifier: Apache-2.0
 *
 * The exercises in their order.
 */
#include "exercises.h"
#include "exercise_files.h"

#include <stdio.h>
#include <string.h>

#define GATES(...)                                                                                 \
    .gates = {__VA_ARGS__}, .gate_count = sizeof((learn_gate[]){__VA_ARGS__}) / sizeof(learn_gate)

#define HINTS(...) .hints = {__VA_ARGS__}

/* These macros set members of an exercise. rows, columns_: size of the part of C that a block
 * computes. threads_: number of threads of a block. The accesses that the gates count are those of
 * a product with m = n = 64 and this k. */
#define TILE_K(rows, columns_, threads_, k)                                                        \
    .block_m = (rows), .block_n = (columns_), .threads = (threads_), .gate_m = 64, .gate_k = (k)
#define TILE(rows, columns_, threads_) TILE_K(rows, columns_, threads_, 64)
#define SQUARE(side, threads_)         TILE(side, side, threads_)

static const exercise exercises[] = {
    {.name = "coalesce",
     .title = "adjacent lanes load adjacent elements",
     .rung = "coalesced",
     .type = TGL_F32,
     SQUARE(32, 1024),
     GATES({SECTORS_PER_LOAD, 4, false}),
     HINTS("Which elements of A and of B do the 32 lanes of warp 0 load at p = 0? In how many "
           "sectors of 32 bytes do they lie?",
           "The lanes of a warp are consecutive values of threadIdx.x. Which index of C changes "
           "from one lane to the next, and how far apart in memory are the elements of B and C "
           "that these lanes access? Exchange the division and the remainder.")},
    {.name = "shared_tile",
     .title = "a tile in shared memory",
     .rung = "shared_tile",
     .type = TGL_F32,
     SQUARE(32, 1024),
     GATES({LOADED_PER_NEEDED, 2, false}),
     HINTS("How often is one element of A loaded from global memory by the 1024 threads of a "
           "block? How often would once be enough?",
           "Two things order the threads: a tile must be complete before it is read, and read "
           "before it is overwritten. Where must the two barriers stand? What does a thread load "
           "whose row is outside?",
           "Thread (r, c) stores As[r][c] and Bs[r][c] and multiplies As[r][p] by Bs[p][c]. All "
           "threads of the block must reach both barriers, also those whose element of C is "
           "outside.")},
    {.name = "register_tile",
     .title = "a register tile",
     .rung = "thread_tile_2d",
     .type = TGL_F32,
     SQUARE(64, 256),
     GATES({WAVEFRONTS_PER_FFMA, 0.6, false}, {LOADED_PER_NEEDED, 2, false}),
     HINTS("A product of two numbers takes two loads from shared memory here. How many products "
           "can 4 numbers of A and 4 of B give?",
           "Make p the outermost of the three loops. Then As[row + 16 * i][p] depends on i only, "
           "and Bs[p][col + 16 * j] on j only: load each four of them once into arrays a and b.")},
    {.name = "bank_conflicts",
     .title = "a transposed tile without bank conflicts",
     .rung = "conflict_free",
     .type = TGL_F32,
     SQUARE(64, 256),
     GATES({CONFLICTS, 0, false}, {LOADED_PER_NEEDED, 2, false}),
     HINTS("Lane l stores to which bank? Write down the bank, index modulo 32, of the first "
           "lanes of a warp.",
           "A warp stores 8 values of p for each of 4 rows. Give the rows of As a length with "
           "which p * length + row, modulo 32, has 32 different values, and that is a multiple of "
           "4. The elements behind the first 64 of a row are not used.")},
    {.name = "ragged_float4",
     .title = "128-bit loads at ragged edges",
     .rung = "vectorised",
     .type = TGL_F32,
     SQUARE(64, 256),
     GATES({BYTES_PER_LANE, 12, true}),
     HINTS("When may a thread read 16 bytes at once: what must hold for the address, and what "
           "for the elements behind the end of a row?",
           "if (aligned && count >= 4) return *(const float4 *)p. Every row of a matrix is aligned "
           "if the first one is and if the distance between rows is a multiple of 4 floats: look "
           "at A and lda.")},
    {.name = "one_barrier",
     .title = "a double buffer with one barrier",
     .rung = "double_buffer",
     .type = TGL_F32,
     SQUARE(64, 256),
     GATES({BARRIERS_PER_BLOCK, 9, false}, {LOADED_PER_NEEDED, 2, false}),
     HINTS("Why are there two barriers in an iteration? Which of them is needed only because "
           "both tiles are in the same memory?",
           "Count tiles with a variable now that changes between 0 and 1 (now ^= 1). As[now] is "
           "read while As[now ^ 1] is stored. One barrier before the loop, one at the end of each "
           "iteration. Do not store a tile behind the last one.")},
    {.name = "async_groups",
     .title = "cp.async in groups",
     .rung = "multistage",
     .type = TGL_F32,
     SQUARE(64, 256),
     GATES({COPIED_BYTES, 1, true}, {BARRIERS_PER_BLOCK, 9, false}),
     HINTS("Which copies have arrived after ASYNC_WAIT(1), if each iteration has committed one "
           "group? Which iteration reads them?",
           "Commit one group in each iteration, even if it is empty. Issue two groups before the "
           "loop. In iteration t: wait until at most one group is unfinished, barrier, copy tile "
           "t + 2 into the buffer of tile t - 1, commit, multiply tile t.")},
    {.name = "split_k",
     .title = "split-K with repeatable sums",
     .rung = "split_k",
     .type = TGL_F32,
     .is_split = true,
     SQUARE(16, 256),
     GATES({SECTORS_PER_LOAD, 4, false}),
     HINTS("a + b + c depends on the order. Who decides here in which order the sums of the "
           "splits are added?",
           "The block that comes last has stored its own sums in the workspace, too. Which order "
           "of summation does not depend on who is last?")},
    {.name = "warp_sum",
     .title = "the sum over a warp",
     .type = TGL_F32,
     .columns = 1,
     TILE(8, 1, 256),
     GATES({LOADED_PER_NEEDED, 2.5, false}),
     HINTS("One thread reads a whole row. What do the other 31 lanes of its warp do at that "
           "time, and which sectors would adjacent lanes share?",
           "Lane l multiplies elements l, l + 32, l + 64 ... of the row. The loop over the "
           "distances 16, 8, 4, 2, 1 of __shfl_xor_sync stands outside of conditions that differ "
           "between lanes.")},
    {.name = "mma_fragments",
     .title = "fragments for mma.sync",
     .rung = "f16_fragments",
     .type = TGL_F16,
     SQUARE(64, 128),
     GATES({MMA_PER_NEEDED, 1, true}, {WAVEFRONTS_PER_FFMA, 0.06, false},
           {LOADED_PER_NEEDED, 2, false}),
     HINTS("Which two elements are in one register of a[]? Are they neighbours in the shared "
           "tile as it is stored here?",
           "*(const unsigned *)&As[r][2 * t] is a word of two neighbours in K. For a[] let r be "
           "row + 16 * i + g and r + 8; for b[] use Bs[col + 8 * j + g]. One mma_f16 for each i "
           "and j of a tile.")},
    {.name = "swizzle",
     .title = "ldmatrix with a swizzle",
     .rung = "f16_ldmatrix",
     .type = TGL_F16,
     SQUARE(64, 128),
     GATES({CONFLICTS, 0, false}, {LOADED_PER_NEEDED, 2, false}),
     HINTS("The 8 rows of one matrix of ldmatrix are 128 bytes apart. In which banks are their "
           "chunks of 16 bytes?",
           "XOR with a constant permutes the numbers 0 to 7. Which number differs in eight "
           "consecutive rows?")},
    {.name = "tma_boxes",
     .title = "TMA and the bytes that an mbarrier expects",
     .rung = "f16_wgmma",
     .type = TGL_F16,
     .maps = 2,
     TILE_K(64, 64, 128, 512),
     GATES({TMA_BYTES, 1, true}),
     HINTS("Who copies now, and how do the other threads learn that the bytes have arrived? How "
           "often may a phase of an mbarrier complete?",
           "x of A's box is the tile's first k, y the block's first row; x of B's box is the "
           "block's first column, y the first k. The bytes are those of both boxes, whatever part "
           "of them is outside. Tile number i is phase i of the mbarrier.")},
    {.name = "mbarrier_ring",
     .title = "a ring of mbarriers",
     .rung = "f16_specialised",
     .type = TGL_F16,
     .maps = 2,
     TILE_K(64, 64, 128, 512),
     GATES({BARRIERS_PER_BLOCK, 1, false}, {LOADED_PER_NEEDED, 2, false}),
     HINTS("Who must know that a stage has been read: all threads, or one?",
           "All threads arrive at empty[stage] after multiply(). Thread 0 then waits for the same "
           "phase of it, of the parity of this lap, and requests. The other lanes of its warp "
           "wait for it by __syncwarp().")},
    {.name = "wgmma_descriptors",
     .title = "wgmma and its descriptors",
     .rung = "f16_wgmma",
     .type = TGL_F16,
     .maps = 2,
     SQUARE(64, 128),
     GATES({WGMMA_PER_NEEDED, 1, true}),
     HINTS("A descriptor names a start address. How far from it, in bytes, are the next 16 "
           "elements along K: in the tile of A, and in that of B?",
           "A step of 16 along K is 16 elements further in each row of A, 32 bytes, and 16 rows "
           "further in B, 16 * 128 bytes. Four steps, one group. The zeros in acc are accesses "
           "that wgmma_fence() must order.")},
    {.name = "producer_consumers",
     .title = "a warp that copies, and warpgroups that multiply",
     .rung = "f16_specialised",
     .type = TGL_F16,
     .maps = 2,
     .dynamic_shared = 49184,
     .block_m = 128,
     .block_n = 64,
     .threads = 288,
     .gate_m = 128,
     .gate_k = 256,
     GATES({BARRIERS_PER_BLOCK, 1, false}, {TMA_BYTES, 1, true}, {WGMMA_PER_NEEDED, 1, true}),
     HINTS(
         "Which of the two waits does the producer need, and which the consumers? Can one barrier "
         "of all threads do both without making the fast side wait?",
         "Branch once, in front of the loops: the producer has a loop that only waits for empty "
         "and requests, a consumer one that waits for full, multiplies and arrives. Which parity "
         "does each of them wait for in lap 0 and in lap 1?",
         "The producer's lane 0 waits for &shared->empty[i % STAGES] with parity (i / STAGES + 1) "
         "% 2. Every thread of a consumer calls mbarrier_arrive(&shared->empty[stage]) after "
         "multiply().")},
    {.name = "multicast",
     .title = "one copy for both blocks of a cluster",
     .rung = "f16_persistent",
     .type = TGL_F16,
     .maps = 2,
     .cluster = 2,
     .block_m = 64,
     .block_n = 64,
     .threads = 128,
     .gate_m = 128,
     .gate_k = 512,
     GATES({LOADED_PER_NEEDED, 1.5, false}, {TMA_BYTES, 1, true}),
     HINTS("How many bytes of B does a cluster load for a tile, and how many different ones are "
           "there?",
           "Three things change: who copies which half, which threads must have read the tiles "
           "before the next copies, and what stays: how many bytes does each block receive?",
           "One tma_load_3d_multicast() of &Bs[rank * HALF * CHUNKS] from row i * BK + rank * HALF "
           "with mask 3. The expected bytes stay. __syncwarp() and cluster_sync() replace the "
           "barrier at the end of the loop.")},
    {.name = "tma_store",
     .title = "results through shared memory and TMA",
     .rung = "f16_persistent",
     .type = TGL_F16,
     .maps = 3,
     SQUARE(64, 128),
     GATES({TMA_STORED, 1, true}),
     HINTS(
         "Through which proxy do threads write shared memory, and through which does TMA read it? "
         "What must stand between, and who must execute it?",
         "Four steps: all threads write float_to_f16(...) to the place swizzle_128(r * 128 + c * "
         "2) of the tile; each executes the fence; a barrier; one thread stores, commits, waits.",
         "finish_half() of lib/load_store_half.h applies alpha and beta: outside of C call it "
         "with beta 0, so that it does not read C. fence_proxy_async() stands before "
         "__syncthreads().")},
    {.name = "persistent",
     .title = "blocks that stay for several tiles",
     .rung = "f16_persistent",
     .type = TGL_F16,
     .maps = 2,
     .blocks_max = 2,
     .block_m = 64,
     .block_n = 64,
     .threads = 128,
     .gate_m = 128,
     .gate_k = 128,
     GATES({BARRIERS_PER_BLOCK, 1, false}, {TMA_BYTES, 1, true}),
     HINTS("What does TMA do while the block stores its results, and what could it do?",
           "request() takes the number of a step, counted over all tiles of the block. When may "
           "step s + STAGES be requested, and what is the last step of all?",
           "Request the first STAGES steps once, before the loop over tiles. In it, the condition "
           "is s + STAGES < work.count * work.depth. Without the requests at the beginning of a "
           "tile, the barrier at its end protects nothing.")},
    {.name = "words",
     .title = "FP32 by products of TF32 words",
     .rung = "words_three",
     .type = TGL_F32,
     .error_max = 16,
     SQUARE(64, 128),
     GATES({TF32_PER_NEEDED, 3, true}, {LOADED_PER_NEEDED, 2, false}),
     HINTS("x has 24 bits and its first word 11. Where are the others, and how do you get them in "
           "FP32 without an error?",
           "(a_hi + a_lo) * (b_hi + b_lo) has four products. How large is each, relative to a * b, "
           "and which one may be left out?",
           "lo is round_to_tf32(__float_as_uint(x - __uint_as_float(hi))). Keep hi and lo of both "
           "operands, and call mma_tf32() three times: lo * hi, hi * lo, hi * hi.")},
    {.name = "mend_barrier",
     .title = "a broken kernel: a race",
     .rung = "shared_tile",
     .type = TGL_F32,
     SQUARE(16, 256),
     GATES({LOADED_PER_NEEDED, 4, false}),
     HINTS("The message names two accesses. Between which two lines does nothing order them?",
           "The line that writes belongs to the next iteration. What keeps its thread from "
           "getting there before the other thread has read?")},
    {.name = "mend_beta",
     .title = "a broken kernel: C at beta = 0",
     .rung = "naive",
     .type = TGL_F32,
     SQUARE(16, 256),
     GATES({SECTORS_PER_LOAD, 4, false}),
     HINTS("C may be uninitialised memory if beta is 0. What is 0 * NaN?",
           "Two cases: beta == 0, where C is only written, and the others. See store_float() in "
           "lib/load_store.h.")},
    {.name = "mend_alias",
     .title = "a broken kernel: an alias in shared memory",
     .rung = "conflict_free",
     .type = TGL_F32,
     SQUARE(64, 256),
     GATES({CONFLICTS, 0, false}, {LOADED_PER_NEEDED, 2, false}),
     HINTS("How many floats does the tile of A have, and how many lie before the tile of B?",
           "As[p * PITCH + r] for p = BK - 1 and r = BM - 1 has the index BK * PITCH - 5. Where "
           "does Bs begin?")},
    {.name = "mend_phase",
     .title = "a broken kernel: a wrong phase",
     .rung = "f16_specialised",
     .type = TGL_F16,
     .maps = 2,
     TILE_K(64, 64, 128, 512),
     GATES({BARRIERS_PER_BLOCK, 1, false}, {LOADED_PER_NEEDED, 2, false}),
     HINTS("A wait for a phase that is already complete returns at once. Which phase of its "
           "mbarrier is tile 2?",
           "With two stages, tiles 0 and 1 are both the first phase of their mbarriers, tiles 2 "
           "and 3 the second.")},
    {.name = "mend_fence",
     .title = "a broken kernel: a missing fence",
     .rung = "f16_wgmma",
     .type = TGL_F16,
     SQUARE(64, 128),
     GATES({WGMMA_PER_NEEDED, 1, true}),
     HINTS("Who writes the tiles, and through which proxy does wgmma read them? What orders the "
           "two?",
           "fence_proxy_async() works for the writes of the thread that calls it, and the others "
           "must know that it has been called: between the copies and the barrier.")},
};
enum { EXERCISES = sizeof exercises / sizeof exercises[0] };

const exercise *exercise_at(int index)
{
    return index >= 0 && index < EXERCISES ? &exercises[index] : NULL;
}

const exercise *exercise_find(const char *name)
{
    for (int i = 0; i < EXERCISES; i++)
        if (strcmp(exercises[i].name, name) == 0) return &exercises[i];
    return NULL;
}

static const char *text_of(const char *format, const exercise *e)
{
    char name[128];
    snprintf(name, sizeof name, format, e->name);
    const exercise_file *file = exercise_files;
    while (strcmp(file->name, name) != 0)
        file++;
    return file->text;
}

const char *exercise_starter(const exercise *e)
{
    return text_of("%s.cu", e);
}

const char *exercise_solution(const exercise *e)
{
    return text_of("solutions/%s_solution.cu", e);
}
