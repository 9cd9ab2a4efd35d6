/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that describe a product and where it runs, for all commands that have them: sizes,
 * types, compute mode, transposes, layout, epilogue, kernel, device. One module turns them into the
 * library's structs. timed_operands.h makes the matrices.
 */
#ifndef CLI_PROBLEM_OPTIONS_H
#define CLI_PROBLEM_OPTIONS_H

#include "cli.h"

typedef struct problem_options {
    int64_t least, most;    /* what -m, -n, -k and --batch accept */
    int64_t m, n, k, batch; /* -1: not given */
    tgl_type type;          /* of A and B; 0: not given */
    tgl_type type_c;        /* 0: not given */
    tgl_type type_d;        /* of a D other than C; 0: D is C */
    tgl_compute compute;
    bool has_compute; /* it was given */
    bool trans_a, trans_b;
    tgl_order order;
    int64_t lda, ldb, ldc; /* 0: tight */
    tgl_epilogue epilogue;
    const char *kernel; /* NULL: the planner's choice */
    const char *device; /* NULL: not given */
    int threads;        /* 0: the device's default */
} problem_options;

/* Nothing given; sizes from `least` to `most`. */
problem_options problem_options_start(int64_t least, int64_t most);

/* Rows for a command's table of long options. */
// clang-format off
#define OPTIONS_RUN                                                                                \
    {"device", required_argument, NULL, OPT_DEVICE},                                               \
        {"threads", required_argument, NULL, OPT_THREADS}
#define OPTIONS_COMPUTE {"compute", required_argument, NULL, OPT_COMPUTE}
#define OPTIONS_TYPES                                                                              \
    {"type", required_argument, NULL, OPT_TYPE}, {"type-c", required_argument, NULL, OPT_TYPE_C},  \
        {"type-d", required_argument, NULL, OPT_TYPE_D}, OPTIONS_COMPUTE
#define OPTIONS_TRANS                                                                              \
    {"trans-a", no_argument, NULL, OPT_TRANS_A}, {"trans-b", no_argument, NULL, OPT_TRANS_B}
#define OPTIONS_SHAPE OPTIONS_TRANS, {"batch", required_argument, NULL, OPT_BATCH}
#define OPTIONS_LAYOUT                                                                             \
    {"order", required_argument, NULL, OPT_ORDER}, {"lda", required_argument, NULL, OPT_LDA},      \
        {"ldb", required_argument, NULL, OPT_LDB}, {"ldc", required_argument, NULL, OPT_LDC}
#define OPTIONS_EPILOGUE                                                                           \
    {"bias", required_argument, NULL, OPT_BIAS},                                                   \
        {"activation", required_argument, NULL, OPT_ACTIVATION},                                   \
        {"residual", no_argument, NULL, OPT_RESIDUAL},                                             \
        {"epilogue", required_argument, NULL, OPT_EXPRESSION}
#define OPTIONS_KERNEL {"kernel", required_argument, NULL, OPT_KERNEL}
// clang-format on

/* Their lines in the help texts. */
#define HELP_COMPUTE                                                                               \
    "  --compute MODE    arithmetic: default, ieee, accurate, tf32, fast (default)\n"
#define HELP_TYPES                                                                                 \
    "  --type TYPE       type of A and B: f32, f64, f16, bf16, i8 (f32)\n"                         \
    "  --type-c TYPE     type of C (that of A and B; i32 for i8)\n"                                \
    "  --type-d TYPE     the result goes to another matrix than C, of this type\n" HELP_COMPUTE
#define HELP_EPILOGUE                                                                              \
    "  --bias row|column            epilogue: adds a bias,\n"                                      \
    "  --activation relu|gelu|silu  applies an activation,\n"                                      \
    "  --residual                   adds a matrix; or\n"                                           \
    "  --epilogue EXPR              evaluates C code over acc, c, bias, row, col\n"
#define HELP_THREADS "  --threads N       threads of the cpu (OMP_NUM_THREADS, or all)\n"

/* What an option was to this module. */
typedef enum option_taken { OPTION_TAKEN, OPTION_REFUSED, OPTION_UNKNOWN } option_taken;

/* Takes one of the options above, or -m, -n, -k; `optarg` is its value. REFUSED: reported. */
option_taken problem_take_option(int option, problem_options *o);

/* The value of an option that names a type. False: it does not, which is reported. */
bool parse_option_type(const char *option, const char *text, tgl_type *type);

/* Whether any of -m, -n, -k, --batch, --trans-a and --trans-b was given; and all of the first
 * three. */
bool problem_has_shape(const problem_options *o);
bool problem_has_sizes(const problem_options *o);

/* The problem that the options describe. Matrices of a batch lie one behind the other. */
tgl_problem problem_of_options(const problem_options *o);

/* Gives a problem of `type` for A and B the types of C and D and the compute mode that were asked
 * for. */
void problem_set_types(const problem_options *o, tgl_problem *p);

/* Strides of a batch whose matrices lie one behind the other. */
void problem_set_strides(tgl_problem *p);

/* The result's type unless another is asked for: that of A and B; i32 for i8. */
tgl_type problem_usual_result(tgl_type type);

/* "f32", "tf32" for f32 with TF32 arithmetic, "f16-f32" where the result has another type than the
 * usual one. */
enum { TYPE_LABEL_SIZE = 16 };
void problem_type_label(const tgl_problem *p, char text[TYPE_LABEL_SIZE]);

/* The type of the result: D's where that is another matrix, else C's. */
tgl_type problem_result_type(const tgl_problem *p);

bool epilogue_is_none(const tgl_epilogue *e);

/* NULL for an epilogue that does nothing. The bias is shared by a batch, the residual is tight. */
const tgl_epilogue *epilogue_for(tgl_epilogue *e, const tgl_problem *p);

#endif
