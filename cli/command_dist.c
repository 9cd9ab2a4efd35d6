/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula dist`: products that are distributed over ranks, which are processes that a launcher or
 * the program itself has started.
 */
#include "dist_bench.h"
#include "dist_gpus.h"
#include "dist_launched.h"
#include "dist_layouts.h"
#include "dist_mm.h"
#include "dist_world.h"
#include "problem_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "Usage: mpirun -n RANKS tegula dist bench -m M -n N -k K [OPTIONS]\n"
    "       tegula dist bench --gpus GPUS -m M -n N -k K [OPTIONS]\n"
    "       torchrun --no-python --nproc-per-node GPUS tegula dist bench -m M -n N -k K [OPTIONS]\n"
    "       srun tegula dist bench -m M -n N -k K [OPTIONS]\n"
    "       mpirun -n RANKS tegula dist mm A.npy B.npy -o C.npy\n"
    "\n"
    "Products of matrices that are distributed over the ranks of an MPI program. bench times a "
    "product\n"
    "beside the products that the ranks compute; mm multiplies matrices in files, of which every "
    "rank\n"
    "reads its part; explain says how the product would be divided, for ranks that need not "
    "exist.\n"
    "Ranks of mpirun are processors, those of --gpus, torchrun and srun (without MPI) have a GPU "
    "each.\n"
    "\n"
    "  --type TYPE       type of A and B: f32, f64, f16, bf16, i8 (f64)\n"
    "  --trans-a         A is stored transposed\n"
    "  --trans-b         B is stored transposed\n" HELP_LAYOUTS
    "  --gpus N          bench: a process for each of N GPUs of this host, without MPI\n"
    "  --repeats N       bench: runs (5)\n"
    "  --threads N       threads of a rank (OMP_NUM_THREADS, or all)\n"
    "  -o, --output FILE  mm: where C goes\n"
    "\n"
    "Examples:\n"
    "  mpirun -n 4 tegula dist bench -m 4096 -n 4096 -k 4096 --layouts 2x2:64,2x2:64,2x2:64\n";

typedef struct dist_options {
    problem_options common;
    const char *layouts, *output;
    int64_t repeats, gpus;
} dist_options;

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTIONS_SHAPE(0, INT64_MAX),
    OPTION_TYPE(problem_options, type, "type"),
    {.name = "threads", .kind = CLI_THREADS, .at = CLI_AT(int, problem_options, threads)},
    OPTION_TEXT(dist_options, layouts, "layouts"),
    OPTION_INT(dist_options, repeats, "repeats", 1, 1000),
    OPTION_INT(dist_options, gpus, "gpus", 1, 64),
    {"output", 'o', CLI_TEXT, CLI_AT(const char *, dist_options, output), 0, 0, NULL, NULL},
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table, .has_operands = true};

static int run_bench(const dist_options *o, const tgl_problem *problem, tgl_dist *dist,
                     tgl_device *dev)
{
    dist_layouts layouts;
    if (!dist_layouts_parse(o->layouts, problem, tgl_dist_ranks(dist), &layouts))
        return EXIT_MISUSE;
    return dist_bench(dist, dev, problem, &layouts, (int)o->repeats);
}

/* Runs what was requested on each rank that `mpirun` has started: `mm` with two files or, if
 * `files` is NULL, `bench`. Returns an exit code. */
static int run_on_ranks(const dist_options *o, const tgl_problem *problem, char **files)
{
    int code;
    tgl_device *dev = cli_open_device("cpu", o->common.threads, &code);
    if (dev == NULL) return code;
    tgl_dist *dist = dist_world_open(dev);
    if (dist == NULL)
        code = EXIT_FAILED;
    else
        code = files != NULL ? dist_mm(dist, files[0], files[1], o->output)
                             : run_bench(o, problem, dist, dev);
    tgl_dist_close(dist);
    tgl_device_close(dev);
    return code;
}

/* The arguments of run_on_gpu(). */
typedef struct gpu_job {
    const dist_options *options;
    const tgl_problem *problem;
} gpu_job;

static int run_on_gpu(tgl_dist *dist, tgl_device *dev, const void *given)
{
    const gpu_job *job = given;
    return run_bench(job->options, job->problem, dist, dev);
}

int command_dist(int argc, char **argv)
{
    dist_options o = {.common = problem_options_start(), .repeats = 5};
    const int code = cli_parse(argc, argv, &syntax, &o);
    if (code != PARSED) return code;
    const char *what = optind < argc ? argv[optind] : "";
    if (strcmp(what, "mm") == 0) {
        if (dist_is_launched()) return cli_misuse("mm runs on the ranks of mpirun only");
        if (argc - optind != 3 || o.output == NULL)
            return cli_misuse("give two files to multiply, and -o C.npy");
        return run_on_ranks(&o, NULL, argv + optind + 1);
    }
    if (strcmp(what, "bench") != 0 || argc - optind != 1)
        return cli_misuse("say what to do: bench or mm");
    if (!problem_has_sizes(&o.common)) return cli_misuse("give all of -m, -n and -k");
    if (o.common.batch >= 0) return cli_misuse("--batch is not for distributed products");
    if (o.common.type == 0) o.common.type = TGL_F64;
    tgl_problem problem = problem_of_options(&o.common);
    problem.lda = problem.ldb = problem.ldc = 0;
    const gpu_job job = {&o, &problem};
    if (o.gpus > 0) return dist_gpus_run((int)o.gpus, run_on_gpu, &job);
    if (dist_is_launched()) return dist_launched_run(run_on_gpu, &job);
    return run_on_ranks(&o, &problem, NULL);
}
