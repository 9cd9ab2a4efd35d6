/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch of gemm/decompose.cu: see decompose.h. A line is a row of op(A) or a column of op(B).
 * A block converts one or more lines to words of f16. If a line is too long for a block, each block
 * of a cluster converts a part of it. One launch converts both operands, so the blocks of both have
 * the same number of threads and clusters of the same size. In all functions both[0] is A, both[1]
 * is B, and `number` is an index in both[].
 */
#include "families/decompose.h"

#include "families/prepass.h"

#include "../../kernels/lib/decompose_args.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

typedef struct tgl_decompose_args decompose_args;
typedef struct tgl_decompose_job decompose_job;
typedef struct tgl_panel panel;

enum {
    VALUES = 32,     /* elements that a thread of gemm/decompose.cu holds */
    PART_UNIT = 32,  /* a block's part of a line begins at a multiple of this */
    LINE_FLOATS = 4, /* contiguous elements that a thread loads at once (float4) */
    WORD_BYTES = 2,
    BOTH = 2,
};

/* ---- Layout ---------------------------------------------------------------------------------- */

int64_t tgl_decompose_pitch(const tgl_decompose *d)
{
    enum { TMA_ALIGNMENT = 16, LINE_OF_L2 = 128, LONG = 1024 }; /* bytes */
    const int64_t bytes = d->length * WORD_BYTES;
    return tgl_round_up(bytes, bytes >= LONG ? LINE_OF_L2 : TMA_ALIGNMENT) / WORD_BYTES;
}

static int64_t padded_lines(const tgl_decompose *d)
{
    return tgl_round_up(d->lines, TGL_PANEL_LINES);
}

static int64_t panel_count(const tgl_decompose *d)
{
    return d->count * (padded_lines(d) / TGL_PANEL_LINES);
}

int64_t tgl_decompose_counter_bytes(const tgl_decompose *d)
{
    return panel_count(d) * (int64_t)sizeof(struct tgl_panel_counter);
}

void tgl_decompose_place(tgl_decompose *d)
{
    const int64_t words = d->count * 2 * d->lines * tgl_decompose_pitch(d) * WORD_BYTES;
    const int64_t exponents = d->count * padded_lines(d) * (int64_t)sizeof(int);
    d->words = 0;
    d->panels = tgl_round_up(words, TGL_WORKSPACE_ALIGNMENT);
    d->exponents = d->panels + panel_count(d) * (int64_t)sizeof(panel);
    d->bytes = tgl_round_up(d->exponents + exponents, TGL_WORKSPACE_ALIGNMENT);
}

void tgl_decompose_patch(const tgl_decompose *d, size_t at, int64_t offset,
                         tgl_list_builder *builder)
{
    if (d->is_kept)
        tgl_list_patch_value(builder, TGL_VALUE_KEPT, (int)d->operand, at, offset);
    else
        tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0, at, d->at + offset);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Threads per block: 256; but 512 if a cluster of 8 blocks of 256 threads cannot hold 8 lines. */
static int threads_of(const tgl_decompose *d)
{
    enum { SMALL = 256, LARGE = 512 };
    return d->length <= SMALL * VALUES ? SMALL : LARGE;
}

/* Whether every SM gets at least one of `blocks` blocks. */
static bool is_enough(const tgl_chip *chip, int64_t blocks)
{
    return blocks >= chip->sms;
}

/* The number of blocks or clusters of an operand, if each takes `lines` lines. */
static int64_t groups_of(const tgl_decompose *d, int lines)
{
    return d->count * tgl_ceil_div(d->lines, lines);
}

/* The number of lines that a block converts, if lines are columns of the stored matrix: as many as
 * a block can hold, or fewer if some SMs would be idle. At most TGL_BLOCK_LINES_MAX, and at least
 * 8, because 8 floats of a row in memory are a sector (32 bytes). The number is the same for both
 * operands. */
static int strip_of(const tgl_chip *chip, const tgl_decompose both[BOTH])
{
    enum { LINES_MIN = 8, LINES_MAX = TGL_BLOCK_LINES_MAX };
    const tgl_decompose *one = &both[both[0].transposes ? 0 : 1];
    const tgl_decompose *other = &both[both[1].transposes ? 1 : 0];
    int strip = LINES_MAX;
    while (strip > LINES_MIN && strip * one->length > threads_of(one) * VALUES)
        strip /= 2;
    while (strip > LINES_MIN && !is_enough(chip, groups_of(one, strip)) &&
           !is_enough(chip, groups_of(other, strip)))
        strip /= 2;
    return strip;
}

/* The number of lines that a block converts, if lines are contiguous in memory: as many as a block
 * can hold, at most TGL_BLOCK_LINES_MAX. If some SMs would be idle, fewer lines, as long as each
 * thread still has a float4 of a line. */
static int rows_of(const tgl_chip *chip, const tgl_decompose *d)
{
    const int threads = threads_of(d);
    int lines = TGL_BLOCK_LINES_MAX;
    while (lines > 1 && lines * d->length > threads * VALUES)
        lines /= 2;
    while (lines > 1 && threads / lines * 2 * LINE_FLOATS <= d->length &&
           !is_enough(chip, groups_of(d, lines)))
        lines /= 2;
    return lines;
}

static int block_lines(const tgl_chip *chip, const tgl_decompose both[BOTH], int number)
{
    return both[number].transposes ? strip_of(chip, both) : rows_of(chip, &both[number]);
}

/* The number of blocks, a power of two, that should divide a line of this operand among them.
 * Together they hold the whole line, so that it is read from memory once, unless this takes more
 * blocks than a cluster can have. */
static int wanted_parts(const tgl_chip *chip, const tgl_decompose both[BOTH], int number)
{
    const int64_t values = (int64_t)threads_of(&both[number]) * VALUES;
    const int64_t needed = block_lines(chip, both, number) * both[number].length;
    int parts = 1;
    while (2 * parts <= chip->cluster_max && parts * values < needed)
        parts *= 2;
    return parts;
}

/* The number of blocks of a cluster, which divide a line among them: the larger of what
 * wanted_parts() returns for the two operands. */
static int decompose_cluster_of(const tgl_chip *chip, const tgl_decompose both[BOTH])
{
    const int a = wanted_parts(chip, both, 0), b = wanted_parts(chip, both, 1);
    return a > b ? a : b;
}

static int parts_of(const tgl_chip *chip, const tgl_decompose both[BOTH], int number)
{
    return wanted_parts(chip, both, number) == 1 ? 1 : decompose_cluster_of(chip, both);
}

static int64_t part_of(const tgl_chip *chip, const tgl_decompose both[BOTH], int number)
{
    return tgl_round_up(tgl_ceil_div(both[number].length, parts_of(chip, both, number)), PART_UNIT);
}

/* The number of steps in which a block reads its part of the lines. If there is more than one step,
 * the block reads all elements twice. */
static int64_t steps_of(const tgl_chip *chip, const tgl_decompose both[BOTH], int number)
{
    const tgl_decompose *d = &both[number];
    return tgl_ceil_div(part_of(chip, both, number) * block_lines(chip, both, number),
                        (int64_t)threads_of(d) * VALUES);
}

/* The number of blocks for an operand, rounded up to whole clusters. */
static double blocks_of(const tgl_chip *chip, const tgl_decompose both[BOTH], int number)
{
    const tgl_decompose *d = &both[number];
    const double blocks =
        (double)groups_of(d, block_lines(chip, both, number)) * parts_of(chip, both, number);
    const int cluster = decompose_cluster_of(chip, both);
    return ceil(blocks / cluster) * cluster;
}

const char *tgl_decompose_fault(const tgl_chip *chip, const tgl_decompose both[BOTH])
{
    /* Maximum k. A 32-bit counter counts the listed elements of a panel: at most 64 lines of 2^26
     * elements. */
    enum { LENGTH_MAX = (1 << 26) - 1 };
    if (both[0].length > LENGTH_MAX) return "k is too long for the pre-pass";
    const double blocks = blocks_of(chip, both, 0) + blocks_of(chip, both, 1);
    return blocks > TGL_GRID_X_MAX ? tgl_grid_too_large : NULL;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static double elements_of(const tgl_decompose *d)
{
    return (double)d->count * (double)d->lines * (double)d->length;
}

double tgl_decompose_seconds(const tgl_chip *chip, const tgl_decompose both[BOTH], int which)
{
    static const double LAUNCH = 4.5e-6; /* seconds by which the launch delays the next launch */
    /* Fraction of tgl_chip.memory_rate that the pre-pass reaches: ROW_SHARE for lines that are rows
     * in memory (4.05 TB/s on an H200 for a matrix of 8192 x 8192), COLUMN_SHARE for lines that are
     * columns (2.95 TB/s). */
    static const double ROW_SHARE = 0.93, COLUMN_SHARE = 0.68;
    enum { READ_BYTES = 4, WRITTEN_BYTES = 4 };
    double bytes = 0; /* bytes that a plain copy would move in the time of the pre-pass */
    for (int i = 0; i < BOTH; i++)
        if ((which >> i & 1) != 0)
            bytes += elements_of(&both[i]) *
                     (READ_BYTES * (steps_of(chip, both, i) > 1 ? 2 : 1) + WRITTEN_BYTES) /
                     (both[i].transposes ? COLUMN_SHARE : ROW_SHARE);
    return LAUNCH + bytes / chip->memory_rate;
}

/* ---- The step -------------------------------------------------------------------------------- */

/* Local memory that is accepted, in bytes per thread (tgl_kernel.local_bytes); ..._OF_PAIRS: if B
 * is complex. A thread has 64 registers. NVRTC 13.5 spills one of them: a thread stores it once,
 * and loads it in each step of the loop in decompose.cu. Its 4 bytes are rounded up to 8.
 * NVRTC 13.0 spills one at most or, if B is complex, two. */
enum { LOCAL_BYTES = 8, LOCAL_BYTES_OF_PAIRS = 16 };

static const tgl_kernel *decompose_kernel_of(const tgl_chip *chip, const tgl_decompose both[BOTH],
                                             tgl_list_builder *builder)
{
    const tgl_kernel kernel = {.name = "decompose",
                               .file = "gemm/decompose.cu",
                               .symbol = "decompose",
                               .parameters = "struct tgl_decompose_args",
                               .needs = decompose_cluster_of(chip, both) > 1 ? TGL_HAS_CLUSTERS : 0,
                               .local_bytes =
                                   both[1].pairs != 0 ? LOCAL_BYTES_OF_PAIRS : LOCAL_BYTES};
    tgl_list_macro(builder, "TRANSPOSED_0", both[0].transposes);
    tgl_list_macro(builder, "TRANSPOSED_1", both[1].transposes);
    tgl_list_macro(builder, "THREADS", threads_of(&both[0]));
    if (both[1].pairs != 0) tgl_list_macro(builder, "PAIRS", both[1].pairs);
    if (both[0].transposes || both[1].transposes)
        tgl_list_macro(builder, "STRIP", strip_of(chip, both));
    return tgl_list_kernel(builder, &kernel);
}

static decompose_job decompose_job_of(const tgl_chip *chip, const tgl_decompose both[BOTH],
                                      int number)
{
    const tgl_decompose *d = &both[number];
    return (decompose_job){.ld = d->ld,
                           .pitch = tgl_decompose_pitch(d),
                           .stride = d->stride,
                           .words = d->lines * tgl_decompose_pitch(d),
                           .lines = (int)d->lines,
                           .length = (int)d->length,
                           .padded_lines = (int)padded_lines(d),
                           .count = (int)d->count,
                           .block_lines = block_lines(chip, both, number),
                           .parts = parts_of(chip, both, number),
                           .part = (int)part_of(chip, both, number),
                           .steps = (int)steps_of(chip, both, number)};
}

static void patch_job(const tgl_decompose *d, int number, tgl_list_builder *builder)
{
    const size_t job = offsetof(decompose_args, jobs) + (size_t)number * sizeof(decompose_job);
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)d->operand,
                         job + offsetof(decompose_job, from), d->offset * (int64_t)sizeof(float));
    tgl_decompose_patch(d, job + offsetof(decompose_job, to), d->words, builder);
    tgl_decompose_patch(d, job + offsetof(decompose_job, exponents), d->exponents, builder);
    tgl_decompose_patch(d, job + offsetof(decompose_job, panels), d->panels, builder);
    tgl_list_patch_value(builder, TGL_VALUE_COUNTERS, 0, job + offsetof(decompose_job, counters),
                         d->counters);
}

/* Adds one launch of the pre-pass to the list's latest step. The step may have several such
 * launches, of which a run chooses one. which: the operands that it reads, TGL_DECOMPOSE_A, _B or
 * _BOTH. */
static void decompose_add_launch(const tgl_partition *of, const tgl_decompose both[BOTH], int which,
                                 tgl_list_builder *builder)
{
    double blocks[BOTH];
    decompose_args args = {.first_blocks = 0};
    for (int i = 0; i < BOTH; i++) {
        blocks[i] = (which >> i & 1) != 0 ? blocks_of(of->chip, both, i) : 0;
        args.jobs[i] = decompose_job_of(of->chip, both, i);
    }
    args.first_blocks = (int)blocks[0];
    tgl_launch launch = tgl_prepass_launch(of, decompose_kernel_of(of->chip, both, builder),
                                           blocks[0] + blocks[1], threads_of(&both[0]));
    launch.cluster[0] = (unsigned)decompose_cluster_of(of->chip, both);
    for (int i = 0; i < BOTH; i++)
        if ((which >> i & 1) != 0 && both[i].is_kept)
            launch.conditions[launch.condition_count++] =
                (tgl_condition){.kind = TGL_IF_NOT_KEPT, .operand = both[i].operand};
    tgl_list_launch(builder, &launch, &args, sizeof args);
    for (int i = 0; i < BOTH; i++)
        patch_job(&both[i], i, builder);
    if (of->shape->device_scalars)
        tgl_list_patch_value(builder, TGL_VALUE_OPERAND, TGL_AT_ALPHA,
                             offsetof(decompose_args, alpha_at), 0);
}

void tgl_decompose_add_step(const tgl_partition *of, const tgl_decompose both[BOTH], int which,
                            tgl_list_builder *builder)
{
    tgl_list_step(builder, which == TGL_DECOMPOSE_B ? "words of B" : "words of A and B");
    decompose_add_launch(of, both, which, builder);
    if (!both[0].is_kept) return;
    decompose_add_launch(of, both, TGL_DECOMPOSE_A, builder);
    decompose_add_launch(of, both, TGL_DECOMPOSE_B, builder);
}
