/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula explain`: prints which kernel the library's planner chooses for a problem, and why.
 */
#include "dist_layouts.h"
#include "explain_ranks.h"
#include "problem_options.h"
#include "timed_operands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: tegula explain -m M -n N -k K [OPTIONS]\n"
    "\n"
    "Says which kernel would run for C := alpha*op(A)*op(B) + beta*C, and why.\n"
    "op(A) is M x K, op(B) is K x N, C is M x N.\n"
    "On the simulator the product is also run once, and its memory accesses are counted.\n"
    "\n" HELP_TYPES "  --trans-a         A is stored transposed\n"
    "  --trans-b         B is stored transposed\n"
    "  --order row|col   order of the stored matrices (row)\n"
    "  --lda, --ldb, --ldc N   leading dimensions in elements (tight)\n"
    "  --batch N         products in the batch (1)\n" HELP_EPILOGUE
    "  --kernel KERNEL   ask for this kernel, such as simt_128x256x8:splits=4,strips=0;\n"
    "                    `tegula info` lists the names\n"
    "  --device NAME     auto, cpu, cuda:0, sim (auto)\n"
    "  --chip NAME       what a GPU that this machine lacks would run: h200, a100, ...\n"
    "  --threads N       threads of the cpu (OMP_NUM_THREADS, or all)\n"
    "  --ranks N         how the product would be divided over N ranks of an MPI program (up to\n"
    "                    4096, which need not exist), with the options below\n" HELP_LAYOUTS
    "  --flops X         FLOP/s of a rank in f64 (50e9)\n"
    "  --bandwidth X     bytes/s that a rank receives (4e9)\n"
    "  --latency X       seconds of a message (5e-6)\n"
    "\n"
    "Examples:\n"
    "  tegula explain -m 1000 -n 1000 -k 1000 --trans-b\n"
    "  tegula explain -m 16 -n 4096 -k 4096 --chip h200\n"
    "  tegula explain -m 20000 -n 20000 -k 20000 --type f64 --ranks 64\n";

typedef struct explain_options {
    problem_options common;
    tgl_problem problem;
    const char *chip;    /* NULL: not given */
    int64_t ranks;       /* 0: not given */
    const char *layouts; /* NULL: not given */
    tgl_dist_machine machine;
} explain_options;

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTIONS_RUN,
    OPTIONS_TYPES,
    OPTIONS_SHAPE(0, INT64_MAX),
    OPTIONS_LAYOUT,
    OPTIONS_EPILOGUE,
    OPTIONS_KERNEL,
    OPTION_TEXT(explain_options, chip, "chip"),
    OPTION_INT(explain_options, ranks, "ranks", 1, 4096),
    OPTION_TEXT(explain_options, layouts, "layouts"),
    OPTION_REAL(explain_options, machine.flops_per_s, "flops"),
    OPTION_REAL(explain_options, machine.bytes_per_s, "bandwidth"),
    OPTION_REAL(explain_options, machine.latency_s, "latency"),
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table};

static int parse(int argc, char **argv, explain_options *o)
{
    *o = (explain_options){.common = problem_options_start()};
    const int code = cli_parse(argc, argv, &syntax, o);
    if (code != PARSED) return code;
    if (!problem_has_sizes(&o->common)) return cli_misuse("give all of -m, -n and -k");
    if (o->chip != NULL && (o->common.device != NULL || o->common.threads > 0))
        return cli_misuse("--chip asks for no device: leave out --device and --threads");
    if (o->ranks == 0 && (o->layouts != NULL || o->machine.flops_per_s != 0 ||
                          o->machine.bytes_per_s != 0 || o->machine.latency_s != 0))
        return cli_misuse("--layouts, --flops, --bandwidth and --latency go with --ranks");
    if (o->ranks > 0 && (o->chip != NULL || o->common.device != NULL || o->common.kernel != NULL))
        return cli_misuse("--ranks plans with constants: leave out --device, --chip and --kernel");
    o->problem = problem_of_options(&o->common);
    return tgl_problem_check(&o->problem) == TGL_OK ? PARSED : cli_misuse_call();
}

/* Runs the plan once on random matrices, so that the simulator has counts to print. */
static tgl_status run_once(tgl_device *dev, const tgl_plan *plan, explain_options *o)
{
    operands matrices;
    const tgl_epilogue *e = epilogue_for(&o->common.epilogue, &o->problem);
    tgl_status status = operands_make(&matrices, dev, &o->problem, false);
    if (status == TGL_OK && e != NULL) status = operands_add_epilogue(&matrices, e);
    if (status == TGL_OK) status = operands_run(&matrices, plan, operands_for(&matrices, 0));
    operands_release(&matrices);
    return status;
}

/* Whether the simulator runs the product within seconds. It computes about 30 million
 * multiplications per second, and takes at least a millisecond for each thread block. `tegula
 * ladder` runs larger products, which take minutes. */
static bool is_quick(const tgl_problem *p)
{
    const double each = (double)p->m * (double)p->n * (double)p->k;
    return each * (double)p->batch <= 512.0 * 512 * 512 && p->batch <= 4096;
}

static tgl_plan_options plan_options_of(explain_options *o)
{
    return (tgl_plan_options){.size = sizeof(tgl_plan_options),
                              .kernel = o->common.kernel,
                              .epilogue = epilogue_for(&o->common.epilogue, &o->problem)};
}

static int explain(tgl_device *dev, explain_options *o)
{
    const tgl_plan_options plan_options = plan_options_of(o);
    tgl_plan *plan;
    tgl_status status = tgl_plan_create(dev, &o->problem, &plan_options, &plan);
    if (status != TGL_OK) return cli_fail_plan(dev, NULL, status);
    const bool is_sim = strcmp(tgl_device_name(dev), "sim") == 0;
    if (is_sim && is_quick(&o->problem)) status = run_once(dev, plan, o);
    if (status != TGL_OK) {
        tgl_plan_destroy(plan);
        return cli_fail_status(status);
    }
    char *text = cli_explain(plan);
    tgl_plan_destroy(plan);
    if (text == NULL) return cli_fail("no memory for the explanation");
    printf("device      %s\n%s", tgl_device_name(dev), text);
    if (is_sim && !is_quick(&o->problem))
        puts("not run, and so not counted: it would take minutes; products of up to 512^3 "
             "multiplications, in a batch of up to 4096, are run");
    free(text);
    return EXIT_DONE;
}

static int fail_chip(const char *chip)
{
    char names[512] = "";
    const char *name;
    for (int i = 0; (name = tgl_chip_name(i)) != NULL; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? ", " : "",
                 name);
    return cli_misuse("--chip: \"%s\" is not known; the chips are %s", chip, names);
}

static int explain_chip(explain_options *o)
{
    const tgl_plan_options plan_options = plan_options_of(o);
    const size_t size = 65536;
    char *text = malloc(size);
    if (text == NULL) return cli_fail("no memory for the explanation");
    const tgl_status status =
        tgl_chip_explain(o->chip, &o->problem, &plan_options, text, size, NULL);
    if (status == TGL_OK) fputs(text, stdout);
    free(text);
    if (status == TGL_OK) return EXIT_DONE;
    if (status != TGL_NO_DEVICE) return cli_fail_plan(NULL, NULL, status);
    return fail_chip(o->chip);
}

int command_explain(int argc, char **argv)
{
    explain_options options;
    int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    if (options.chip != NULL) return explain_chip(&options);
    if (options.ranks > 0)
        return explain_ranks(&options.problem, options.layouts, (int)options.ranks,
                             &options.machine,
                             epilogue_for(&options.common.epilogue, &options.problem));
    tgl_device *dev = problem_open_device(&options.common, &code);
    if (dev == NULL) return code;
    code = explain(dev, &options);
    tgl_device_close(dev);
    return code;
}
