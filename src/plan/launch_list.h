/* SPDX-License-Identifier: Apache-2.0
 *
 * A launch list: everything that happens on a GPU for one product. It is made once, when a plan is
 * made, and does not change; at each run a device fills in pointers and scalars and launches. The
 * executors (cuda/cuda_execute.c, sim/sim_execute.c) know no kernel family and decide nothing but
 * what the list leaves to a run.
 *
 * A list is a sequence of steps: pre-passes, main kernels, strips, reductions. A step has one
 * launch or several alternatives, of which a run takes the first whose conditions hold; if none
 * holds, the step is left out. All kernels of all alternatives are compiled when the plan is made.
 *
 * Memory of a run besides its operands:
 *   scratch    workspace whose content is undefined when the list begins
 *   counters   workspace that is zero when the list begins, and that the list leaves zero
 * Both come from one workspace, counters first: see tgl_list_workspace().
 */
#ifndef TGL_LAUNCH_LIST_H
#define TGL_LAUNCH_LIST_H

#include "api/shape.h"
#include "base/text.h"
#include "plan/kernel_source.h"

/* ---- Values that a run fills in -------------------------------------------------------------- */

/* What an argument of a launch becomes at a run. */
typedef enum tgl_value {
    TGL_VALUE_OPERAND,    /* pointer: run.at[index] + offset bytes; a NULL stays NULL */
    TGL_VALUE_SCRATCH,    /* pointer: the run's scratch + offset */
    TGL_VALUE_COUNTERS,   /* pointer: the run's counters + offset */
    TGL_VALUE_ALPHA_F32,  /* float: run.alpha; 0 without a product */
    TGL_VALUE_BETA_F32,   /* float: run.beta */
    TGL_VALUE_ALPHA_F64,  /* double */
    TGL_VALUE_BETA_F64,   /* double */
    TGL_VALUE_COUNT,      /* int: problems of the batch that this repeat of the launch computes */
    TGL_VALUE_TENSOR_MAP, /* 128 bytes: list.maps[index], encoded for the run's pointers */
} tgl_value;

typedef struct tgl_patch {
    tgl_value value;
    int index;      /* a tgl_operand, or a tensor map of the list */
    int at;         /* where the value goes, in the launch's argument bytes */
    int64_t offset; /* bytes from the base of the operand, scratch or counters */
    int64_t step;   /* bytes more for each repeat of the launch */
} tgl_patch;

/* ---- Tensor maps ----------------------------------------------------------------------------- */

/* A tensor map in neutral terms; cuda encodes it with cuTensorMapEncodeTiled(), sim interprets it.
 * Dimension 0 is the one that is contiguous. Elements outside the tensor are read as zero. */
enum { TGL_TENSOR_RANK_MAX = 5 };
typedef struct tgl_tensor {
    tgl_value base;                      /* TGL_VALUE_OPERAND or TGL_VALUE_SCRATCH */
    int operand;                         /* a tgl_operand */
    int64_t offset;                      /* bytes from the base */
    tgl_type type;                       /* of the elements */
    bool round_to_tf32;                  /* F32 elements become TF32 on the way */
    int rank;                            /* 1..5 */
    int64_t size[TGL_TENSOR_RANK_MAX];   /* elements */
    int64_t stride[TGL_TENSOR_RANK_MAX]; /* bytes; stride[0] is the element's size. Others:
                                            multiples of 16 */
    int box[TGL_TENSOR_RANK_MAX];        /* elements of a copy, 1..256 each */
    int swizzle_bytes;                   /* 0, 32, 64 or 128 */
} tgl_tensor;

/* ---- Launches -------------------------------------------------------------------------------- */

/* A condition of an alternative. */
typedef enum tgl_condition_kind {
    TGL_IF_ALIGNED,    /* the operand's address + offset is a multiple of `alignment` bytes; NULL is
                        * aligned
                        */
    TGL_IF_MISALIGNED, /* it is not */
    TGL_IF_NO_PRODUCT, /* alpha is known to the host to be 0: A and B are not read */
    TGL_IF_PRODUCT,    /* the opposite */
} tgl_condition_kind;

typedef struct tgl_condition {
    tgl_condition_kind kind;
    tgl_operand operand;
    int alignment;  /* bytes */
    int64_t offset; /* bytes, of a part of the operand */
} tgl_condition;

enum { TGL_CONDITIONS_MAX = 4 };

/* What a launch has to wait for. */
typedef enum tgl_ordering {
    TGL_AFTER_ALL, /* starts when all that came before in the stream is complete */
    TGL_WAITS,     /* may start while the launch before it runs, and waits itself for all that came
                      before (griddepcontrol.wait) before it touches global memory */
    TGL_BESIDE, /* may run beside the launch before it, on whose results it does not depend: only on
                   what came before that launch. It waits for that launch before it ends */
} tgl_ordering;

/* A part of D: rows [row, row + m), columns [col, col + n). */
typedef struct tgl_rectangle {
    int64_t row, col, m, n;
} tgl_rectangle;

/* The shape of the problem that computes such a part alone. */
static inline tgl_shape tgl_part_shape(const tgl_shape *shape, const tgl_rectangle *part)
{
    tgl_shape own = *shape;
    own.m = part->m;
    own.n = part->n;
    return own;
}

typedef struct tgl_launch {
    const tgl_kernel *kernel;
    tgl_condition conditions[TGL_CONDITIONS_MAX]; /* all must hold */
    int condition_count;
    unsigned grid[3], cluster[3], threads; /* cluster: 1, 1, 1 without; threads: of a block, in x */
    int dynamic_shared;                    /* bytes of a block */
    /* The kernel takes its work from a loop over blocks: a device may make grid[0] smaller, down to
     * the blocks (or whole clusters) that are resident at once, by its driver's occupancy. */
    bool is_persistent;
    tgl_ordering order;
    int flag; /* of list.flags: the kernel returns at once unless it is set; -1: it always runs. A
                 launch that returns at once still waits for what came before (TGL_WAITS) */
    tgl_rectangle part; /* of D, that it writes; m == 0: it writes none of D, only workspace */

    /* A batch that is larger than a grid: `repeats` launches, of `count` problems each but the
     * last, which has last_count. count_in_grid_z: grid[2] is that number. */
    int64_t repeats;
    int count, last_count;
    bool count_in_grid_z;

    unsigned char *arguments; /* laid out as a C struct of the kernel's parameters */
    int argument_bytes;
    tgl_patch *patches;
    int patch_count;
} tgl_launch;

/* Alternatives. */
typedef struct tgl_step {
    const char *what; /* "tiles", "strip of columns", "repack A": for people */
    tgl_launch *launches;
    int launch_count;
} tgl_step;

/* A word of the counters that one step may set and others look at. Steps by their index. */
typedef struct tgl_flag {
    int64_t offset; /* bytes, in the counters */
    unsigned mask;
    int set_by, cleared_by;
} tgl_flag;

typedef struct tgl_launch_list {
    tgl_step *steps;
    int step_count;
    tgl_tensor *maps;
    int map_count;
    tgl_flag *flags;
    int flag_count;
    size_t scratch_bytes, counter_bytes; /* multiples of TGL_WORKSPACE_ALIGNMENT */
    tgl_kernel **kernels;                /* owned; launches point to them */
    int kernel_count;
} tgl_launch_list;

/* Bytes of workspace that a run needs: counters, then scratch. */
static inline size_t tgl_list_workspace(const tgl_launch_list *list)
{
    return list->counter_bytes + list->scratch_bytes;
}

/* Releases what a list holds; the struct itself is the caller's. */
void tgl_list_free(tgl_launch_list *list);

/* ---- Building -------------------------------------------------------------------------------- */

/* A failure (no memory, an argument out of range) sticks: later calls do nothing, and
 * tgl_list_end() returns it. */
typedef struct tgl_list_builder {
    tgl_launch_list *list;
    tgl_status status;
    char *macros; /* of the kernel that is being described */
    size_t macro_length, macro_room;
} tgl_list_builder;

void tgl_list_begin(tgl_list_builder *builder, tgl_launch_list *list);

/* Adds a macro to the description of the next kernel: " NAME=value". */
void tgl_list_macro(tgl_list_builder *builder, const char *name, int64_t value);

/* Adds a kernel with the macros since the last one (kernel->macros is ignored), or finds the same
 * one in the list. Texts are copied. NULL after a failure. */
const tgl_kernel *tgl_list_kernel(tgl_list_builder *builder, const tgl_kernel *kernel);

/* Reserves workspace; returns its offset. */
int64_t tgl_list_scratch(tgl_list_builder *builder, int64_t bytes);
int64_t tgl_list_counters(tgl_list_builder *builder, int64_t bytes);

/* Adds a step without launches; what: static text. */
void tgl_list_step(tgl_list_builder *builder, const char *what);

/* Adds an alternative to the latest step, with a copy of the arguments and without patches.
 * launch->arguments and launch->patches are ignored. */
void tgl_list_launch(tgl_list_builder *builder, const tgl_launch *launch, const void *arguments,
                     size_t argument_bytes);

/* Adds a patch to the latest launch. */
void tgl_list_patch(tgl_list_builder *builder, const tgl_patch *patch);

/* Adds a tensor map or a flag; returns its index. */
int tgl_list_tensor(tgl_list_builder *builder, const tgl_tensor *tensor);
int tgl_list_flag(tgl_list_builder *builder, const tgl_flag *flag);

/* TGL_OK, or the failure that stuck, with its sentence; the list is then freed. Also checks the
 * list: TGL_GRID_TOO_LARGE, and TGL_BAD_ARGUMENT for what only a wrong family can have built (a
 * patch outside the arguments, an alignment that is no power of two, a flag that nothing sets
 * before it is looked at). */
tgl_status tgl_list_end(tgl_list_builder *builder);

/* ---- At a run -------------------------------------------------------------------------------- */

/* The alternative of a step for a run; NULL: the step is left out. */
const tgl_launch *tgl_step_choose(const tgl_step *step, const tgl_run *run);

/* Writes the arguments of repeat number `repeat` to `bytes` (launch->argument_bytes of room).
 * encode: writes the 128 bytes of a tensor map; may be NULL if the list has none. */
typedef tgl_status tgl_encode_fn(void *context, const tgl_tensor *tensor, int map,
                                 const void *address, void *to);
tgl_status tgl_launch_fill(const tgl_launch_list *list, const tgl_launch *launch,
                           const tgl_run *run, char *counters, char *scratch, int64_t repeat,
                           tgl_encode_fn *encode, void *context, unsigned char *bytes);

/* Problems of the batch in a repeat. */
static inline int tgl_launch_count(const tgl_launch *launch, int64_t repeat)
{
    return repeat + 1 < launch->repeats ? launch->count : launch->last_count;
}

enum { TGL_ARGUMENT_BYTES_MAX = 1024 };

#endif
