/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that describe a product and where it runs, for all commands that have these options:
 * sizes, types, compute mode, transposes, layout, epilogue, kernel, device. The functions below
 * convert these options to the library's structs; timed_operands.h allocates the matrices.
 */
#ifndef CLI_PROBLEM_OPTIONS_H
#define CLI_PROBLEM_OPTIONS_H

#include "options.h"

typedef struct problem_options {
    int64_t m, n, k, batch; /* -1: not given */
    tgl_type type;          /* type of A and B; 0: not given */
    tgl_type type_c;        /* type of C; 0: not given */
    tgl_type type_d;        /* type of a matrix D other than C; 0: the result goes to C */
    tgl_compute compute;
    bool has_compute; /* whether the option --compute was given */
    bool trans_a, trans_b;
    tgl_order order;
    int64_t lda, ldb, ldc; /* leading dimensions; 0: tight, that is, the smallest possible */
    tgl_epilogue epilogue;
    const char *kernel; /* NULL: the planner's choice */
    const char *device; /* NULL: not given */
    int threads;        /* 0: the device's default */
} problem_options;

/* The values that the options have before the command line is parsed. */
problem_options problem_options_start(void);

/* Opens the requested device; "auto" if none was requested. Returns NULL after a failure, which has
 * been printed; *code is then an exit code. */
tgl_device *problem_open_device(const problem_options *o, int *code);

/* Rows of option tables, for a command whose struct of options begins with a problem_options. */
// clang-format off
#define OPTIONS_RUN                                                                                \
    OPTION_TEXT(problem_options, device, "device"),                                                \
        {.name = "threads", .kind = CLI_THREADS, .at = CLI_AT(int, problem_options, threads)}
#define OPTIONS_COMPUTE OPTION_TAKE("compute", take_compute)
#define OPTIONS_TYPES                                                                              \
    OPTION_TYPE(problem_options, type, "type"), OPTION_TYPE(problem_options, type_c, "type-c"),    \
        OPTION_TYPE(problem_options, type_d, "type-d"), OPTIONS_COMPUTE
#define OPTIONS_TRANS                                                                              \
    OPTION_FLAG(problem_options, trans_a, "trans-a"),                                              \
        OPTION_FLAG(problem_options, trans_b, "trans-b")
#define OPTIONS_SHAPE(min, max)                                                                 \
    OPTION_LETTER(problem_options, m, 'm', min, max),                                           \
        OPTION_LETTER(problem_options, n, 'n', min, max),                                       \
        OPTION_LETTER(problem_options, k, 'k', min, max),                                       \
        OPTION_INT(problem_options, batch, "batch", min, max), OPTIONS_TRANS
#define OPTIONS_LAYOUT                                                                             \
    OPTION_CHOICE(tgl_order, problem_options, order, "order", order_names, TGL_ROW_MAJOR),         \
        OPTION_INT(problem_options, lda, "lda", 1, INT64_MAX),                                     \
        OPTION_INT(problem_options, ldb, "ldb", 1, INT64_MAX),                                     \
        OPTION_INT(problem_options, ldc, "ldc", 1, INT64_MAX)
#define OPTIONS_EPILOGUE                                                                           \
    OPTION_CHOICE(tgl_bias, problem_options, epilogue.bias, "bias", bias_names, TGL_BIAS_NONE),    \
        OPTION_CHOICE(tgl_activation, problem_options, epilogue.activation, "activation",          \
                      activation_names, TGL_ACTIVATION_NONE),                                      \
        {.name = "residual", .kind = CLI_ONE, .at = CLI_AT(int, problem_options, epilogue.residual)}, \
        OPTION_TEXT(problem_options, epilogue.expression, "epilogue")
#define OPTIONS_KERNEL OPTION_TEXT(problem_options, kernel, "kernel")
// clang-format on
extern const char *const order_names[], *const bias_names[], *const activation_names[];
bool take_compute(const char *text, void *options);

/* The name of a compute mode, such as "default" or "ieee". */
const char *compute_name(tgl_compute compute);

/* Parts of the texts of --help: HELP_TYPES describes the options of OPTIONS_TYPES, HELP_EPILOGUE
 * those of OPTIONS_EPILOGUE. */
#define HELP_TYPES                                                                                 \
    "  --type TYPE       type of A and B: f32, f64, f16, bf16, e4m3, e5m2, i8, c64,\n"             \
    "                    c128 (f32)\n"                                                             \
    "  --type-c TYPE     type of C (that of A and B; i32 for i8)\n"                                \
    "  --type-d TYPE     the result goes to another matrix than C, of this type\n"                 \
    "  --compute MODE    arithmetic: default, ieee, accurate, tf32, fast (default)\n"
#define HELP_EPILOGUE                                                                              \
    "  --bias row|column            epilogue: adds a bias,\n"                                      \
    "  --activation relu|gelu|silu  applies an activation,\n"                                      \
    "  --residual                   adds a matrix; or\n"                                           \
    "  --epilogue EXPR              evaluates C code over acc, c, bias, row, col\n"

/* problem_has_shape(): whether any of -m, -n, -k, --batch, --trans-a and --trans-b was given.
 * problem_has_sizes(): whether all of -m, -n and -k were given. */
bool problem_has_shape(const problem_options *o);
bool problem_has_sizes(const problem_options *o);

/* The problem that the options describe. The matrices of a batch follow each other without gaps. */
tgl_problem problem_of_options(const problem_options *o);

/* Sets the types of C and D and the compute mode, if the options give them, and the batch strides
 * of a batch. The other members of the problem must be set. */
void problem_set_types(const problem_options *o, tgl_problem *p);

/* Sets the batch strides so that the matrices of a batch follow each other without gaps. */
void problem_set_strides(tgl_problem *p);

/* The default type of the result: i32 if A and B are i8, else the type of A and B. */
tgl_type problem_usual_result(tgl_type type);

/* A short text for the types of a problem: "f32"; "tf32" for f32 with TF32 arithmetic; "f16-f32"
 * for A and B of f16 with a result of f32 (the default result would be f16). */
typedef struct type_label {
    char text[16];
} type_label;
type_label problem_type_label(const tgl_problem *p);

/* The transposes of A and B, as two letters: "NN", "NT", "TN" or "TT". */
const char *problem_layout(const tgl_problem *p);

/* A short text for the transposes and sizes m, n and k of a product: "NT 1024x512x64". */
typedef struct shape_label {
    char text[96];
} shape_label;
shape_label problem_shape_label(const tgl_problem *p);

/* The number of floating-point operations: 2*m*n*k for each product of the batch, or 8*m*n*k for
 * complex types. */
double problem_flops(const tgl_problem *p);

/* The type of the result: the type of D if D is another matrix than C, else the type of C. */
tgl_type problem_result_type(const tgl_problem *p);

bool epilogue_is_none(const tgl_epilogue *e);

/* Completes the epilogue for a problem: all products of a batch use the same bias, and the residual
 * is a tight m x n matrix for each of them. Returns `e`, or NULL if the epilogue does nothing. */
const tgl_epilogue *epilogue_for(tgl_epilogue *e, const tgl_problem *p);

#endif
