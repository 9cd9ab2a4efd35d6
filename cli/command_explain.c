/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula explain`: which kernel would run for a problem, and why.
 */
#include "cli.h"
#include "epilogue_options.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: tegula explain -m M -n N -k K [OPTIONS]\n"
    "\n"
    "Says which kernel would run for C := alpha*op(A)*op(B) + beta*C, and why.\n"
    "op(A) is M x K, op(B) is K x N, C is M x N.\n"
    "On the simulator the product is also run once, and what it does is counted.\n"
    "\n"
    "  --type f32|f64    type of the elements (f32)\n"
    "  --trans-a         A is stored transposed\n"
    "  --trans-b         B is stored transposed\n"
    "  --order row|col   order of the stored matrices (row)\n"
    "  --lda, --ldb, --ldc N   leading dimensions in elements (tight)\n"
    "  --batch N         products in the batch (1)\n" CLI_HELP_EPILOGUE
    "  --compute MODE    arithmetic: default, ieee, accurate, tf32 (default)\n"
    "  --kernel KERNEL   ask for this kernel, such as simt_128x256x8:splits=4,strips=0;\n"
    "                    `tegula info` lists the names\n"
    "  --device NAME     auto, cpu, cuda:0, sim (auto)\n"
    "  --chip NAME       what a GPU that is not there would run: h200, a100, ...\n"
    "  --threads N       threads of the cpu (OMP_NUM_THREADS, or all)\n"
    "\n"
    "Example:\n"
    "  tegula explain -m 1000 -n 1000 -k 1000 --trans-b\n"
    "  tegula explain -m 16 -n 4096 -k 4096 --chip h200\n";

enum { OPT_ORDER = OPT_EPILOGUE_END, OPT_LDA, OPT_LDB, OPT_LDC, OPT_BATCH, OPT_KERNEL, OPT_CHIP };

static const struct option option_table[] = {
    CLI_OPTION_HELP,
    CLI_OPTION_DEVICE,
    CLI_OPTION_THREADS,
    CLI_OPTION_TYPE,
    CLI_OPTION_COMPUTE,
    CLI_OPTION_TRANS_A,
    CLI_OPTION_TRANS_B,
    CLI_OPTIONS_EPILOGUE,
    {"order", required_argument, NULL, OPT_ORDER},
    {"lda", required_argument, NULL, OPT_LDA},
    {"ldb", required_argument, NULL, OPT_LDB},
    {"ldc", required_argument, NULL, OPT_LDC},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"kernel", required_argument, NULL, OPT_KERNEL},
    {"chip", required_argument, NULL, OPT_CHIP},
    {0},
};

typedef struct explain_options {
    tgl_problem problem;
    tgl_epilogue epilogue;
    tgl_type type;
    const char *device, *kernel, *chip; /* NULL: not given */
    int threads;
} explain_options;

static bool parse_order(const char *text, tgl_order *order)
{
    if (strcmp(text, "row") == 0)
        *order = TGL_ROW_MAJOR;
    else if (strcmp(text, "col") == 0)
        *order = TGL_COL_MAJOR;
    else {
        cli_misuse("--order: \"%s\" is neither row nor col", text);
        return false;
    }
    return true;
}

/* One option's value; false: reported. */
static bool take_option(int option, explain_options *o)
{
    tgl_problem *p = &o->problem;
    switch (option) {
    case 'm':
        return cli_parse_int("-m", optarg, 0, INT64_MAX, &p->m);
    case 'n':
        return cli_parse_int("-n", optarg, 0, INT64_MAX, &p->n);
    case 'k':
        return cli_parse_int("-k", optarg, 0, INT64_MAX, &p->k);
    case OPT_LDA:
        return cli_parse_int("--lda", optarg, 1, INT64_MAX, &p->lda);
    case OPT_LDB:
        return cli_parse_int("--ldb", optarg, 1, INT64_MAX, &p->ldb);
    case OPT_LDC:
        return cli_parse_int("--ldc", optarg, 1, INT64_MAX, &p->ldc);
    case OPT_BATCH:
        return cli_parse_int("--batch", optarg, 0, INT64_MAX, &p->batch);
    case OPT_ORDER:
        return parse_order(optarg, &p->order);
    case OPT_TYPE:
        return cli_parse_type(optarg, &o->type);
    case OPT_COMPUTE:
        return cli_parse_compute(optarg, &p->compute);
    case OPT_THREADS:
        return cli_parse_threads(optarg, &o->threads);
    case OPT_TRANS_A:
        p->trans_a = TGL_TRANS;
        return true;
    case OPT_TRANS_B:
        p->trans_b = TGL_TRANS;
        return true;
    case OPT_DEVICE:
        o->device = optarg;
        return true;
    case OPT_KERNEL:
        o->kernel = optarg;
        return true;
    case OPT_CHIP:
        o->chip = optarg;
        return true;
    case OPT_BIAS:
    case OPT_ACTIVATION:
    case OPT_RESIDUAL:
    case OPT_EXPRESSION:
        return epilogue_take_option(option, &o->epilogue);
    default:
        return false;
    }
}

/* A batch's matrices lie one behind the other. */
static void set_strides(tgl_problem *p)
{
    const bool row = p->order == TGL_ROW_MAJOR;
    const int64_t a_rows = p->trans_a == TGL_NO_TRANS ? p->m : p->k;
    const int64_t b_rows = p->trans_b == TGL_NO_TRANS ? p->k : p->n;
    const int64_t a_lines = row ? a_rows : p->m + p->k - a_rows;
    const int64_t b_lines = row ? b_rows : p->k + p->n - b_rows;
    const int64_t a_tight = p->m + p->k - a_lines, b_tight = p->k + p->n - b_lines;
    const int64_t c_lines = row ? p->m : p->n, c_tight = row ? p->n : p->m;
    if (__builtin_mul_overflow(a_lines, p->lda != 0 ? p->lda : a_tight, &p->stride_a) ||
        __builtin_mul_overflow(b_lines, p->ldb != 0 ? p->ldb : b_tight, &p->stride_b) ||
        __builtin_mul_overflow(c_lines, p->ldc != 0 ? p->ldc : c_tight, &p->stride_c))
        p->stride_a = p->stride_b = p->stride_c = INT64_MAX; /* tgl_problem_check() refuses it */
}

static int parse(int argc, char **argv, explain_options *o)
{
    *o = (explain_options){.type = TGL_F32};
    o->problem = cli_problem(TGL_F32, -1, -1, -1);
    for (int option; (option = cli_next_option(argc, argv, "m:n:k:h", option_table)) != -1;) {
        if (option == OPT_HELP || option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (!take_option(option, o)) return EXIT_MISUSE;
    }
    if (optind < argc) return cli_misuse("\"%s\" is not an option", argv[optind]);
    tgl_problem *p = &o->problem;
    if (p->m < 0 || p->n < 0 || p->k < 0) return cli_misuse("give all of -m, -n and -k");
    if (o->chip != NULL && (o->device != NULL || o->threads > 0))
        return cli_misuse("--chip asks for no device: leave out --device and --threads");
    p->type_a = p->type_b = p->type_c = o->type;
    if (p->batch > 1) set_strides(p);
    if (tgl_problem_check(p) == TGL_OK) return PARSED;
    char message[256];
    tgl_last_error(message, sizeof message);
    return cli_misuse("%s", message);
}

/* Elements that the stored matrices of a batch span: op(X) is rows x cols. */
static int64_t span(const tgl_problem *p, tgl_transpose trans, int64_t rows, int64_t cols,
                    int64_t ld, int64_t stride)
{
    const bool flip = (trans != TGL_NO_TRANS) != (p->order == TGL_COL_MAJOR);
    const int64_t lines = flip ? cols : rows, line = flip ? rows : cols;
    if (lines == 0 || p->batch == 0) return 0;
    return (p->batch - 1) * stride + (lines - 1) * (ld != 0 ? ld : line) + line;
}

/* Random elements on a device that uses the host's memory. */
static tgl_status fill(tgl_device *dev, tgl_type type, int64_t count, void **memory)
{
    random_state r;
    random_seed(&r, 1, (uint64_t)count);
    tgl_status status = tgl_alloc(dev, (size_t)count * tgl_type_size(type), memory);
    if (status == TGL_OK) random_fill(&r, type, *memory, count);
    return status;
}

/* Runs the plan once, so that the simulator has something to count. */
static tgl_status run_once(tgl_device *dev, const tgl_plan *plan, const tgl_problem *p,
                           const tgl_epilogue *e)
{
    void *A = NULL, *B = NULL, *C = NULL, *bias = NULL, *residual = NULL;
    tgl_status status =
        fill(dev, p->type_a, span(p, p->trans_a, p->m, p->k, p->lda, p->stride_a), &A);
    if (status == TGL_OK)
        status = fill(dev, p->type_b, span(p, p->trans_b, p->k, p->n, p->ldb, p->stride_b), &B);
    if (status == TGL_OK)
        status = fill(dev, p->type_c, span(p, TGL_NO_TRANS, p->m, p->n, p->ldc, p->stride_c), &C);
    if (status == TGL_OK && e->bias != TGL_BIAS_NONE)
        status = fill(dev, p->type_c, e->bias == TGL_BIAS_ROW ? p->m : p->n, &bias);
    if (status == TGL_OK && e->residual)
        status = fill(dev, p->type_c, p->m * p->n * p->batch, &residual);
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = 1,
                                   .A = A,
                                   .B = B,
                                   .C = C,
                                   .bias = bias,
                                   .residual = residual};
    if (status == TGL_OK) status = tgl_plan_run_operands(plan, &operands, NULL);
    tgl_free(dev, bias);
    tgl_free(dev, residual);
    tgl_free(dev, A);
    tgl_free(dev, B);
    tgl_free(dev, C);
    return status;
}

/* The simulator makes some thirty million multiplications a second, and a block of threads takes a
 * millisecond however little it does: more than this is for who means it, with `tegula ladder`. */
static bool is_quick(const tgl_problem *p)
{
    const double each = (double)p->m * (double)p->n * (double)p->k;
    return each * (double)p->batch <= 512.0 * 512 * 512 && p->batch <= 4096;
}

static tgl_plan_options plan_options_of(explain_options *o)
{
    return (tgl_plan_options){.size = sizeof(tgl_plan_options),
                              .kernel = o->kernel,
                              .epilogue = epilogue_for(&o->epilogue, &o->problem)};
}

static int explain(tgl_device *dev, explain_options *o)
{
    const tgl_plan_options plan_options = plan_options_of(o);
    tgl_plan *plan;
    tgl_status status = tgl_plan_create(dev, &o->problem, &plan_options, &plan);
    if (status != TGL_OK) return cli_fail_status(status);
    const bool is_sim = strcmp(tgl_device_name(dev), "sim") == 0;
    if (is_sim && is_quick(&o->problem)) status = run_once(dev, plan, &o->problem, &o->epilogue);
    if (status != TGL_OK) {
        tgl_plan_destroy(plan);
        return cli_fail_status(status);
    }
    char *text = cli_explain(plan);
    tgl_plan_destroy(plan);
    if (text == NULL) return cli_fail("no memory for the explanation");
    printf("device  %s\n%s", tgl_device_name(dev), text);
    if (is_sim && !is_quick(&o->problem))
        puts(
            "not run, and so not counted: it would take minutes; up to 512^3 multiplications, in a "
            "batch of up to 4096, are run");
    free(text);
    return EXIT_DONE;
}

static int explain_chip(explain_options *o)
{
    const tgl_plan_options plan_options = plan_options_of(o);
    const size_t size = 65536;
    char message[512];
    char *text = malloc(size);
    if (text == NULL) return cli_fail("no memory for the explanation");
    const tgl_status status =
        tgl_chip_explain(o->chip, &o->problem, &plan_options, text, size, NULL);
    if (status == TGL_OK) fputs(text, stdout);
    free(text);
    if (status == TGL_OK) return EXIT_DONE;
    if (status != TGL_NO_DEVICE && status != TGL_UNKNOWN_KERNEL) return cli_fail_status(status);
    tgl_last_error(message, sizeof message);
    return cli_misuse("%s", message);
}

int command_explain(int argc, char **argv)
{
    explain_options options;
    int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    if (options.chip != NULL) return explain_chip(&options);
    const char *name = options.device != NULL ? options.device : "auto";
    tgl_device *dev = cli_open_device(name, options.threads);
    if (dev == NULL) return EXIT_FAILED;
    code = explain(dev, &options);
    tgl_device_close(dev);
    return code;
}
