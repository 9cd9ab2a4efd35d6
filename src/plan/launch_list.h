/* SPDX-License-Identifier: Apache-2.0
 *
 * A launch list: everything that happens on a GPU for one product. It is made when a plan is made
 * and does not change. At each run a device fills in pointers and scalars and launches the kernels.
 * The executors (cuda/cuda_execute.c, sim/sim_execute.c) contain no code of a particular kernel
 * family and no planning.
 *
 * A list is a sequence of steps: pre-passes (kernels that convert an operand), main kernels, strips
 * (the last rows or columns of D, family.h), and reductions of split-K. A step has one launch or
 * several alternatives. A run takes the first alternative whose conditions hold, and skips the step
 * if none holds. A device may compile an alternative only when a run first takes it.
 *
 * A run has memory besides its operands, in one workspace (tgl_list_workspace()):
 *   counters   zero before and after each execution of the list
 *   scratch    undefined when the list starts
 *
 * The results of a pre-pass for A or B can be kept for later runs (tgl_operand_prepare()). A run
 * without kept results computes them in a block of memory behind the scratch. A run with kept
 * results needs no such block and skips the pre-pass. A run that prepares an operand takes only
 * launches with the condition TGL_IF_NOT_KEPT.
 */
#ifndef TGL_LAUNCH_LIST_H
#define TGL_LAUNCH_LIST_H

#include "base/text.h"
#include "plan/kernel_source.h"
#include "problem/run.h"

/* ---- Values that a run fills in -------------------------------------------------------------- */

/* A value that a run writes into the arguments of a launch. */
typedef enum tgl_value {
    TGL_VALUE_OPERAND,       /* pointer: run.at[index] + offset in bytes; NULL stays NULL */
    TGL_VALUE_SCRATCH,       /* pointer: scratch of the run + offset */
    TGL_VALUE_SCALARS,       /* pointer: scratch of the run + offset, for scalars that an earlier
                                step has written. A preparation of an operand skips that step and
                                gets NULL */
    TGL_VALUE_COUNTERS,      /* pointer: counters of the run + offset */
    TGL_VALUE_KEPT,          /* pointer: result of the pre-pass of operand `index` + offset:
                                run.kept[index], or else in the run's scratch */
    TGL_VALUE_ALPHA_F32,     /* float: alpha, or 0 without a product. In the list of a complex
                                product, this and the other scalars are those of the real product
                                (complex.h) */
    TGL_VALUE_BETA_F32,      /* float: beta */
    TGL_VALUE_ALPHA_F64,     /* double: alpha */
    TGL_VALUE_BETA_F64,      /* double: beta */
    TGL_VALUE_ALPHA_I32,     /* int32_t: alpha */
    TGL_VALUE_BETA_I32,      /* int32_t: beta */
    TGL_VALUE_COMPLEX_ALPHA, /* two doubles: run.alpha, run.alpha_imag */
    TGL_VALUE_COMPLEX_BETA,  /* two doubles: run.beta, run.beta_imag */
    TGL_VALUE_SAVED_C,       /* pointer: copy of C in the run's scratch; NULL if the run makes
                                none */
    TGL_VALUE_COUNT,      /* int: number of products of the batch that this repetition of the launch
                             computes */
    TGL_VALUE_BUNDLE,     /* struct tgl_bundle_table: run.bundle */
    TGL_VALUE_TENSOR_MAP, /* 128 bytes: list.maps[index], encoded for the pointers of the run */
} tgl_value;

typedef struct tgl_patch {
    tgl_value value;
    int index; /* a tgl_operand (with TGL_VALUE_KEPT only TGL_AT_A or TGL_AT_B), or the index of a
                  tensor map */
    int at;    /* byte offset of the value in the launch's arguments */
    int64_t offset; /* bytes to add to the base pointer (operand, scratch, counters or kept
                       result) */
    int64_t step;   /* bytes to add for each further repetition of the launch */
} tgl_patch;

/* ---- Tensor maps ----------------------------------------------------------------------------- */

/* A tensor map for TMA. The cuda backend encodes it with cuTensorMapEncodeTiled(); the sim backend
 * interprets it. Dimension 0 is contiguous. Elements outside the tensor are read as zero.
 *
 * The hardware requires that the tensor, and each copy along dimension 0, begins at a multiple of
 * 16 bytes. Hence no map can describe an unaligned operand. */
enum { TGL_TENSOR_RANK_MAX = 5, TGL_MAP_ALIGNMENT = 16 };
typedef struct tgl_tensor {
    tgl_value base;                      /* base pointer: TGL_VALUE_OPERAND, _SCRATCH or _KEPT */
    int operand;                         /* a tgl_operand: the matrix that the map describes */
    int64_t offset;                      /* byte offset from the base pointer */
    tgl_type type;                       /* type of the elements */
    bool round_to_tf32;                  /* TMA rounds F32 elements to TF32 */
    int rank;                            /* number of dimensions, 1 to 5 */
    int64_t size[TGL_TENSOR_RANK_MAX];   /* elements in each dimension */
    int64_t stride[TGL_TENSOR_RANK_MAX]; /* bytes between elements of each dimension; stride[0] is
                                            the element size, the others are multiples of 16 */
    int box[TGL_TENSOR_RANK_MAX];        /* size of a copy in elements, 1 to 256 per dimension */
    int swizzle_bytes;                   /* width of the swizzle: 0 (none), 32, 64 or 128 */
    bool is_optional; /* if the operand is unaligned, the kernel runs without the map */
} tgl_tensor;

/* ---- Launches -------------------------------------------------------------------------------- */

/* Runs in which the last step of a complex product computes D := alpha*D + beta*C + bias +
 * residual. The real product then has alpha = 1 and beta = 0. */
typedef enum tgl_combining {
    TGL_COMBINES_NEVER,
    TGL_COMBINES_IF_COMPLEX, /* if alpha or beta has an imaginary part */
    TGL_COMBINES_IF_BETA,    /* if alpha or beta has an imaginary part, or beta is not 0 */
    TGL_COMBINES_ALWAYS,
} tgl_combining;

static inline bool tgl_run_is_combined(const tgl_run *run, tgl_combining combining)
{
    if (combining == TGL_COMBINES_NEVER || combining == TGL_COMBINES_ALWAYS)
        return combining == TGL_COMBINES_ALWAYS;
    return run->alpha_imag != 0 || run->beta_imag != 0 ||
           (combining == TGL_COMBINES_IF_BETA && run->beta != 0);
}

/* A condition under which a run takes an alternative of a step (tgl_step). */
typedef enum tgl_condition_kind {
    TGL_IF_ALIGNED,    /* the operand's address + offset is a multiple of `alignment` bytes, or the
                          operand is NULL */
    TGL_IF_MISALIGNED, /* the opposite of TGL_IF_ALIGNED */
    TGL_IF_NO_PRODUCT, /* A and B are not read, because the host knows that alpha is 0 */
    TGL_IF_PRODUCT,    /* the opposite of TGL_IF_NO_PRODUCT */
    TGL_IF_NOT_KEPT,   /* the run executes the pre-pass of this operand (TGL_AT_A or TGL_AT_B) */
    TGL_IF_COMBINED,   /* the last step of a complex product is needed: tgl_run_is_combined() */
    TGL_IF_BETA,       /* C is read: tgl_run_has_beta() */
} tgl_condition_kind;

typedef struct tgl_condition {
    tgl_condition_kind kind;
    tgl_operand operand;
    int alignment;    /* in bytes */
    int64_t offset;   /* byte offset from the operand's address */
    bool is_in_block; /* for TGL_IF_ALIGNED and TGL_IF_MISALIGNED: the launch reads the result of
                         the operand's pre-pass (TGL_VALUE_KEPT, _SCRATCH), which begins aligned */
    tgl_combining combining; /* for TGL_IF_COMBINED */
} tgl_condition;

enum { TGL_CONDITIONS_MAX = 4 };

/* When a launch starts. */
typedef enum tgl_ordering {
    TGL_AFTER_ALL, /* starts when all earlier work in the stream has ended */
    TGL_WAITS,     /* programmatic dependent launch: may start while the previous launch runs; the
                      kernel waits for all earlier launches (griddepcontrol.wait) before it accesses
                      global memory */
    TGL_BESIDE,    /* may run concurrently with the previous launch, and depends only on launches
                      before that one. At its end it waits until the previous launch has ended */
} tgl_ordering;

/* A part of D: rows [row, row + m), columns [col, col + n). */
typedef struct tgl_rectangle {
    int64_t row, col, m, n;
} tgl_rectangle;

/* The shape of the product that computes only this part of D. */
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
    unsigned grid[3];
    unsigned cluster[3]; /* 1, 1, 1 without clusters */
    unsigned threads;    /* per block, in x */
    int dynamic_shared;  /* dynamic shared memory in bytes per block */
    /* The kernel's blocks loop over the work (persistent kernel). A device may reduce grid[0] to
     * the number of blocks, or whole clusters, that are resident at the same time according to the
     * driver. */
    bool is_persistent;
    bool is_bundle;   /* gridDim.x is the number of tiles of run.bundle */
    bool may_overlap; /* its blocks may start early in any number: tgl_family.may_overlap */
    tgl_ordering order;
    int flag; /* index in list.flags (tgl_flag); the kernel returns at once if the flag is not set,
                 but still waits for earlier launches (TGL_WAITS). -1: it always runs */
    tgl_rectangle part; /* the part of D that it writes; m == 0: it writes only workspace */

    /* For a batch larger than a grid, the launch is repeated `repeats` times, with `count` products
     * each and last_count in the last repetition. count_in_grid_z: grid[2] is the number of
     * products of a repetition. */
    int64_t repeats;
    int count, last_count;
    bool count_in_grid_z;

    unsigned char *arguments; /* the kernel's parameters, laid out as members of a C struct */
    int argument_bytes;
    tgl_patch *patches;
    int patch_count;
} tgl_launch;

/* A step: one launch, or several alternatives of which a run takes one or none. */
typedef struct tgl_step {
    const char *what; /* name for messages: "tiles", "strip of columns", "repack A" */
    tgl_launch *launches;
    int launch_count;
} tgl_step;

/* A 32-bit word in the counters that step set_by may set. Later steps test its bits in `mask`, and
 * step cleared_by sets it to 0. set_by, cleared_by: indices of steps. */
typedef struct tgl_flag {
    int64_t offset; /* byte offset in the counters */
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
    /* Bytes of scratch and counters, multiples of TGL_WORKSPACE_ALIGNMENT. scratch_bytes excludes
     * the results of pre-passes, which follow the scratch. kept_bytes: bytes of these results, for
     * TGL_AT_A and TGL_AT_B; 0: the operand has no pre-pass. */
    size_t scratch_bytes, counter_bytes;
    int64_t kept_bytes[TGL_KEPT_OPERANDS];
    /* Complex products (complex.h). complex_steps: number of pre-pass steps, which come first.
     * scalars_at: scratch offset of the real product's alpha and beta if they are in device memory.
     * saved_bytes: size of the copy of C, which is behind the results of the pre-passes. */
    bool is_complex;
    tgl_combining combining;
    int complex_steps;
    int64_t scalars_at;
    size_t saved_bytes;
    tgl_kernel **kernels; /* descriptions of the kernels, owned by the list; launches point to
                             them */
    int kernel_count;
} tgl_launch_list;

/* Bytes of scratch that a run needs, including the pre-pass results that it computes and the copy
 * of C. run: NULL for a run that needs all of these. */
size_t tgl_list_scratch_of(const tgl_launch_list *list, const tgl_run *run);

/* Maximum workspace of a run in bytes: the counters, followed by the scratch. */
static inline size_t tgl_list_workspace(const tgl_launch_list *list)
{
    return list->counter_bytes + tgl_list_scratch_of(list, NULL);
}

/* Frees everything that the list owns, but not the struct. */
void tgl_list_free(tgl_launch_list *list);

/* ---- Building (list_builder.c) --------------------------------------------------------------- */

/* Builds a launch list. After a failure (out of memory, or a bad argument) later calls do nothing,
 * and tgl_list_end() returns the failure. */
typedef struct tgl_list_builder {
    tgl_launch_list *list;
    tgl_status status;
    char *macros; /* macros given for the next kernel */
    size_t macro_length, macro_room;
} tgl_list_builder;

void tgl_list_begin(tgl_list_builder *builder, tgl_launch_list *list);

/* Gives the next kernel a macro, "NAME=value". */
void tgl_list_macro(tgl_list_builder *builder, const char *name, int64_t value);

/* Adds a kernel with the macros that were given since the last kernel, or finds an equal one in the
 * list. Copies all texts; kernel->macros is ignored. NULL after a failure. */
const tgl_kernel *tgl_list_kernel(tgl_list_builder *builder, const tgl_kernel *kernel);

/* Reserves workspace; returns its byte offset in the scratch or in the counters. */
int64_t tgl_list_scratch(tgl_list_builder *builder, int64_t bytes);
int64_t tgl_list_counters(tgl_list_builder *builder, int64_t bytes);

/* Reserves scratch for the result of a pre-pass of A or B, which later runs can reuse. */
void tgl_list_keep(tgl_list_builder *builder, tgl_operand operand, int64_t bytes);

/* Adds a step without launches. what: its name for messages, a static text. */
void tgl_list_step(tgl_list_builder *builder, const char *what);

/* Adds a launch to the latest step as a further alternative. Copies the arguments.
 * launch->arguments and launch->patches are ignored: add patches with the functions below. */
void tgl_list_launch(tgl_list_builder *builder, const tgl_launch *launch, const void *arguments,
                     size_t argument_bytes);

/* Adds a patch to the latest launch. */
void tgl_list_patch(tgl_list_builder *builder, const tgl_patch *patch);

/* Adds a patch with the same value in all repetitions. at: byte offset in the arguments. */
void tgl_list_patch_value(tgl_list_builder *builder, tgl_value value, int index, size_t at,
                          int64_t offset);

/* Adds a tensor map or a flag to the list; returns its index, or -1 after a failure. */
int tgl_list_tensor(tgl_list_builder *builder, const tgl_tensor *tensor);
int tgl_list_flag(tgl_list_builder *builder, const tgl_flag *flag);

/* Ends building and checks the list. Returns TGL_OK or the first failure, whose error message is
 * set. After a failure the list is freed. */
tgl_status tgl_list_end(tgl_list_builder *builder);

/* In launch_check.c: checks a list. Returns TGL_OK; TGL_GRID_TOO_LARGE; or TGL_BAD_ARGUMENT for a
 * mistake of a family, for example a patch outside the arguments, an alignment that is not a power
 * of two, or a flag that no earlier step sets. */
tgl_status tgl_list_check(const tgl_launch_list *list);

/* ---- At a run (launch_fill.c) ---------------------------------------------------------------- */

/* Whether the run can use the list: the matrix of each tensor map that its launches need (that is
 * not optional) begins at a multiple of TGL_MAP_ALIGNMENT bytes. */
bool tgl_list_takes(const tgl_launch_list *list, const tgl_run *run);

/* The alternative of a step that a run takes; NULL: the run skips the step. */
const tgl_launch *tgl_step_choose(const tgl_step *step, const tgl_run *run);

/* The alternative of a step that a run takes if it has a product and all operands are aligned. */
const tgl_launch *tgl_step_choose_aligned(const tgl_step *step);

/* Writes the tensor map list.maps[map], which describes *tensor, with the base address `address`,
 * to the 128 bytes at `to`. */
typedef tgl_status tgl_encode_fn(void *context, const tgl_tensor *tensor, int map,
                                 const void *address, void *to);

/* Writes the arguments of repetition `repeat` to `bytes`, launch->argument_bytes long. counters,
 * scratch: the two parts of the run's workspace. encode, context: encode the tensor maps; encode
 * may be NULL if the list has none. */
tgl_status tgl_launch_fill(const tgl_launch_list *list, const tgl_launch *launch,
                           const tgl_run *run, char *counters, char *scratch, int64_t repeat,
                           tgl_encode_fn *encode, void *context, unsigned char *bytes);

/* Number of products of the batch in repetition `repeat`. */
static inline int tgl_launch_count(const tgl_launch *launch, int64_t repeat)
{
    return repeat + 1 < launch->repeats ? launch->count : launch->last_count;
}

/* gridDim.x of a launch in this run. planned: gridDim.x of a launch that is not one of a bundle,
 * the same in all runs. */
unsigned tgl_launch_width(const tgl_launch *launch, const tgl_run *run, unsigned planned);

enum { TGL_ARGUMENT_BYTES_MAX = 4096 }; /* limit of CUDA before 12.1 */

#endif
