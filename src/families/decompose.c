/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the steps of gemm/decompose.cu.
 */
#include "families/decompose.h"

#include "families/prepass.h"

#include "../../kernels/lib/decompose_args.h"

#include <stddef.h>

typedef struct tgl_decompose_args decompose_args;
typedef struct tgl_decompose_job decompose_job;
typedef struct tgl_panel panel;

/* Of gemm/decompose.cu. */
enum {
    THREADS = 256,
    LINES_OF_BLOCK = THREADS / 32, /* a warp each */
    SEGMENT = 1024,                /* elements of a line that a warp splits */
    MAXIMA_LINES = 128,            /* of a block, if lines are columns in memory */
    TILE = 64,                     /* edge of a tile of columns */
    PARTS_MAX = 32,
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

static int64_t word_bytes(const tgl_decompose *d)
{
    return d->count * 2 * d->lines * tgl_decompose_pitch(d) * WORD_BYTES;
}

static int64_t at_least(int64_t x, int64_t least)
{
    return x > least ? x : least;
}

/* Elements of a line that a block of the first launch reads: enough to be worth a block, and at
 * most PARTS_MAX parts, half of that of columns, whose maxima each tile reads again. */
static int64_t part_of(const tgl_decompose *d)
{
    enum { LEAST = 2048, LEAST_OF_COLUMNS = 64, WARP_COPY = 128, COLUMN_STEP = 16 };
    if (d->transposes)
        return at_least(tgl_round_up(tgl_ceil_div(d->length, PARTS_MAX / 2), COLUMN_STEP),
                        LEAST_OF_COLUMNS);
    return at_least(tgl_round_up(tgl_ceil_div(d->length, PARTS_MAX), WARP_COPY), LEAST);
}

static int64_t parts_of(const tgl_decompose *d)
{
    return tgl_ceil_div(d->length, part_of(d));
}

static int64_t padded_lines(const tgl_decompose *d)
{
    return tgl_round_up(d->lines, TGL_PANEL_LINES);
}

static int64_t maxima_bytes(const tgl_decompose *d)
{
    return d->count * parts_of(d) * d->lines * (int64_t)sizeof(unsigned);
}

static int64_t panel_bytes(const tgl_decompose *d)
{
    return d->count * (padded_lines(d) / TGL_PANEL_LINES) * (int64_t)sizeof(panel);
}

static int64_t exponent_bytes(const tgl_decompose *d)
{
    return d->count * padded_lines(d) * (int64_t)sizeof(int);
}

void tgl_decompose_place(tgl_decompose *d)
{
    d->words = 0;
    d->panels = tgl_round_up(word_bytes(d), TGL_WORKSPACE_ALIGNMENT);
    d->exponents = d->panels + panel_bytes(d);
    d->maxima = d->exponents + exponent_bytes(d);
    d->bytes = tgl_round_up(d->maxima + maxima_bytes(d), TGL_WORKSPACE_ALIGNMENT);
}

void tgl_decompose_patch(const tgl_decompose *d, size_t at, int64_t offset,
                         tgl_list_builder *builder)
{
    if (d->is_kept)
        tgl_list_patch_value(builder, TGL_VALUE_KEPT, (int)d->operand, at, offset);
    else
        tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0, at, d->at + offset);
}

/* ---- Grids ----------------------------------------------------------------------------------- */

static int64_t maxima_down(const tgl_decompose *d)
{
    return tgl_ceil_div(d->lines, d->transposes ? MAXIMA_LINES : LINES_OF_BLOCK);
}

static int64_t split_down(const tgl_decompose *d)
{
    return tgl_ceil_div(d->lines, d->transposes ? TILE : LINES_OF_BLOCK);
}

/* Four tiles for a block, which then reads the maxima of its columns once, if that leaves all SMs
 * with work. */
static int64_t span_of(const tgl_chip *chip, const tgl_decompose *d)
{
    enum { TILES = 4, BLOCKS_OF_SM = 4 };
    if (!d->transposes) return SEGMENT;
    const int64_t blocks = split_down(d) * tgl_ceil_div(d->length, TILES * TILE) * d->count;
    return blocks >= BLOCKS_OF_SM * chip->sms ? TILES * TILE : TILE;
}

static int64_t split_along(const tgl_chip *chip, const tgl_decompose *d)
{
    return tgl_ceil_div(d->length, span_of(chip, d));
}

static double maxima_blocks(const tgl_decompose *d)
{
    return (double)maxima_down(d) * (double)parts_of(d) * (double)d->count;
}

static double split_blocks(const tgl_chip *chip, const tgl_decompose *d)
{
    return (double)split_down(d) * (double)split_along(chip, d) * (double)d->count;
}

const char *tgl_decompose_fault(const tgl_chip *chip, const tgl_decompose both[BOTH])
{
    const double maxima = maxima_blocks(&both[0]) + maxima_blocks(&both[1]);
    const double split = split_blocks(chip, &both[0]) + split_blocks(chip, &both[1]);
    return maxima > TGL_GRID_X_MAX || split > TGL_GRID_X_MAX ? tgl_grid_too_large : NULL;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static double elements_of(const tgl_decompose *d)
{
    return (double)d->count * (double)d->lines * (double)d->length;
}

double tgl_decompose_seconds(const tgl_chip *chip, const tgl_decompose both[BOTH], int which)
{
    /* Fitted to products of 1024 to 8192 cubed on an H200. */
    static const double LAUNCH = 9e-6; /* of each launch, which the next one waits for */
    static const double SHARE = 0.67;  /* of a copy's rate */
    enum { ELEMENT_BYTES = 12 };       /* read twice, and written as two words */
    double elements = 0;
    for (int i = 0; i < BOTH; i++)
        if ((which >> i & 1) != 0) elements += elements_of(&both[i]);
    return 2 * LAUNCH + elements * ELEMENT_BYTES / (SHARE * chip->memory_rate);
}

/* ---- The steps ------------------------------------------------------------------------------- */

static const tgl_kernel *kernel_of(const tgl_decompose both[BOTH], const char *symbol,
                                   tgl_list_builder *builder)
{
    const tgl_kernel kernel = {.name = "decompose",
                               .file = "gemm/decompose.cu",
                               .symbol = symbol,
                               .parameters = "struct tgl_decompose_args"};
    tgl_list_macro(builder, "TRANSPOSED_0", both[0].transposes);
    tgl_list_macro(builder, "TRANSPOSED_1", both[1].transposes);
    return tgl_list_kernel(builder, &kernel);
}

static decompose_job job_of(const tgl_chip *chip, const tgl_decompose *d)
{
    return (decompose_job){.ld = d->ld,
                           .pitch = tgl_decompose_pitch(d),
                           .stride = d->stride,
                           .lines = (int)d->lines,
                           .length = (int)d->length,
                           .padded_lines = (int)padded_lines(d),
                           .part = (int)part_of(d),
                           .parts = (int)parts_of(d),
                           .maxima_down = (int)maxima_down(d),
                           .span = (int)span_of(chip, d),
                           .split_along = (int)split_along(chip, d),
                           .split_down = (int)split_down(d)};
}

static void patch_job(const tgl_decompose *d, int number, tgl_list_builder *builder)
{
    const size_t job = offsetof(decompose_args, jobs) + (size_t)number * sizeof(decompose_job);
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, (int)d->operand,
                         job + offsetof(decompose_job, from), d->offset * (int64_t)sizeof(float));
    tgl_decompose_patch(d, job + offsetof(decompose_job, to), d->words, builder);
    tgl_decompose_patch(d, job + offsetof(decompose_job, maxima), d->maxima, builder);
    tgl_decompose_patch(d, job + offsetof(decompose_job, exponents), d->exponents, builder);
    tgl_decompose_patch(d, job + offsetof(decompose_job, panels), d->panels, builder);
}

/* One of the two kernels, and its blocks for each operand. */
typedef struct pass {
    const char *what, *symbol;
    double blocks[BOTH];
} pass;

/* Adds the launch for these operands as an alternative of the latest step. */
static void add_launch(const tgl_partition *of, const tgl_decompose both[BOTH], const pass *with,
                       int which, decompose_args args, tgl_list_builder *builder)
{
    double blocks = 0;
    for (int i = 0; i < BOTH; i++)
        if ((which >> i & 1) != 0) blocks += with->blocks[i];
    tgl_launch launch =
        tgl_prepass_launch(of, kernel_of(both, with->symbol, builder), blocks, THREADS);
    for (int i = 0; i < BOTH; i++)
        if ((which >> i & 1) != 0 && both[i].is_kept)
            launch.conditions[launch.condition_count++] =
                (tgl_condition){.kind = TGL_IF_NOT_KEPT, .operand = both[i].operand};
    if ((which & TGL_DECOMPOSE_A) == 0) args.first_maxima = args.first_split = 0;
    tgl_list_launch(builder, &launch, &args, sizeof args);
    for (int i = 0; i < BOTH; i++)
        patch_job(&both[i], i, builder);
    if (of->shape->device_scalars)
        tgl_list_patch_value(builder, TGL_VALUE_OPERAND, TGL_AT_ALPHA,
                             offsetof(decompose_args, alpha_at), 0);
}

void tgl_decompose_add_steps(const tgl_partition *of, const tgl_decompose both[BOTH], int which,
                             tgl_list_builder *builder)
{
    const pass passes[] = {
        {which == TGL_DECOMPOSE_B ? "maxima of B" : "maxima of A and B",
         "decompose_maxima",
         {maxima_blocks(&both[0]), maxima_blocks(&both[1])}},
        {which == TGL_DECOMPOSE_B ? "words of B" : "words of A and B",
         "decompose_split",
         {split_blocks(of->chip, &both[0]), split_blocks(of->chip, &both[1])}},
    };
    const decompose_args args = {.jobs = {job_of(of->chip, &both[0]), job_of(of->chip, &both[1])},
                                 .first_maxima = (int)passes[0].blocks[0],
                                 .first_split = (int)passes[1].blocks[0]};
    for (int i = 0; i < 2; i++) {
        tgl_list_step(builder, passes[i].what);
        add_launch(of, both, &passes[i], which, args, builder);
        if (!both[0].is_kept) continue;
        add_launch(of, both, &passes[i], TGL_DECOMPOSE_A, args, builder);
        add_launch(of, both, &passes[i], TGL_DECOMPOSE_B, args, builder);
    }
}
