/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench`: compares the speed of Tegula with that of other libraries, in one process.
 */
#include "bench_report.h"
#include "cli.h"
#include "cliffs.h"
#include "compile_ahead.h"
#include "contest.h"
#include "overhead.h"
#include "peers.h"
#include "problem_options.h"
#include "progress.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "Usage: tegula bench [--suite FILE | -m M -n N -k K] [OPTIONS]\n"
    "\n"
    "Times Tegula and the other libraries at hand on the same random matrices, in turn, after "
    "checking\n"
    "that each is right; prints GFLOP/s by the median time, the percentage of the FMA rate, and "
    "the\n"
    "ratio of the best peer's time to Tegula's. Rows whose samples vary much end in \"unstable\".\n"
    "\n"
    "  --suite FILE      shapes to run, a line each: type,m,n,k,layout,batch (a few squares);\n"
    "                    type also tf32, for f32 with --compute tf32. With --type only its\n"
    "                    shapes of that type\n"
    "  -m, -n, -k N      one shape instead\n" HELP_TYPES
    "  --trans-a, --trans-b   A or B of the shape is stored transposed\n"
    "  --batch N         products in the batch of the shape (1)\n" HELP_EPILOGUE
    "  --peer NAME|PATH  a library to compare with, as often as needed: openblas, blis, onednn,\n"
    "                    eigen, mkl, or a path to any that exports cblas_sgemm; on CUDA devices\n"
    "                    cublas, cublaslt; none for none (all that are found)\n"
    "  --time S          seconds to spend on a shape, about (1)\n"
    "  --repeat N        samples of each library, instead\n"
    "  --kernel KERNEL   Tegula by this kernel, such as simt_128x256x8:splits=4,strips=0\n"
    "  --prepared a|b|ab  prepare A, B or both once, outside of the timing\n"
    "  --one-shot        time tgl_gemm() instead of a kept plan\n"
    "  --cpu-time        by processor time, for one thread on a machine that others use too\n"
    "  --device NAME     auto, cpu, cuda:0 (auto)\n"
    "  --threads N       threads of every library (OMP_NUM_THREADS, or all)\n"
    "  --csv FILE        write a line for each shape and library\n"
    "  --cliffs          Tegula alone: where one more row, column or step of k costs much\n"
    "  --host-overhead   what a call costs the host, beside cuBLAS\n"
    "\n"
    "Example:\n"
    "  tegula bench --suite bench/suites/cpu.csv --threads 1 --csv cpu.csv\n";

typedef struct bench_options {
    problem_options common;
    const char *suite, *csv;
    bool prepares[2]; /* whether A (index 0) and B (index 1) are prepared before the timing */
    bool one_shot, cpu_time, cliffs, host_overhead;
    const char *peers[PEERS_MAX];
    int peer_count;
    double time;
    int64_t repeat;
} bench_options;

static bool take_peer(const char *name, void *options)
{
    bench_options *o = options;
    if (o->peer_count == PEERS_MAX) return cli_misuse_false("--peer: at most %d", PEERS_MAX);
    o->peers[o->peer_count++] = name;
    return true;
}

static bool take_time(const char *text, void *options)
{
    double *seconds = &((bench_options *)options)->time;
    if (!cli_parse_real("--time", text, seconds)) return false;
    return (*seconds > 0 && *seconds <= 1e6) ||
           cli_misuse_false("--time: %s is not a time in seconds above 0", text);
}

static bool take_prepared(const char *text, void *options)
{
    bool *prepares = ((bench_options *)options)->prepares;
    prepares[0] = strcmp(text, "a") == 0 || strcmp(text, "ab") == 0;
    prepares[1] = strcmp(text, "b") == 0 || strcmp(text, "ab") == 0;
    return prepares[0] || prepares[1] ||
           cli_misuse_false("--prepared: \"%s\" is none of a, b and ab", text);
}

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTIONS_RUN,
    OPTIONS_TYPES,
    OPTIONS_SHAPE(1, INT32_MAX),
    OPTIONS_EPILOGUE,
    OPTIONS_KERNEL,
    OPTION_TEXT(bench_options, csv, "csv"),
    OPTION_TEXT(bench_options, suite, "suite"),
    OPTION_TAKE("peer", take_peer),
    OPTION_TAKE("time", take_time),
    OPTION_INT(bench_options, repeat, "repeat", 1, 101),
    OPTION_TAKE("prepared", take_prepared),
    OPTION_FLAG(bench_options, one_shot, "one-shot"),
    OPTION_FLAG(bench_options, cpu_time, "cpu-time"),
    OPTION_FLAG(bench_options, cliffs, "cliffs"),
    OPTION_FLAG(bench_options, host_overhead, "host-overhead"),
    {0},
};

static const cli_mode modes[] = {
    {"cliffs",
     {"device", "threads", "type", "type-c", "type-d", "compute", "trans-a", "trans-b", "suite",
      "batch", "m", "n", "k"}},
    {"host-overhead", {"device", "threads"}},
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table, .modes = modes};

/* Whether this peer (another library) takes part: it was requested by name, or no peer was. */
static bool is_wanted(const bench_options *o, const char *name)
{
    for (int i = 0; i < o->peer_count; i++)
        if (strcmp(o->peers[i], name) == 0) return true;
    return o->peer_count == 0;
}

static int parse(int argc, char **argv, bench_options *o)
{
    *o = (bench_options){.common = problem_options_start(), .time = 1};
    const int code = cli_parse(argc, argv, &syntax, o);
    if (code != PARSED) return code;
    if (o->peer_count > 1 && is_wanted(o, "none"))
        return cli_misuse("--peer none leaves no room for other peers");
    if (o->csv != NULL && o->suite != NULL && output_file_is_same(o->csv, o->suite))
        return cli_misuse("--csv: %s is the suite", o->csv);
    if (problem_has_shape(&o->common) && o->suite != NULL)
        return cli_misuse("give either --suite or one shape by -m, -n and -k");
    if (problem_has_shape(&o->common) && !problem_has_sizes(&o->common))
        return cli_misuse("give all of -m, -n and -k");
    if (o->one_shot && (o->prepares[0] || o->prepares[1]))
        return cli_misuse("--one-shot: tgl_gemm() takes no prepared operands");
    if (o->one_shot && !epilogue_is_none(&o->common.epilogue))
        return cli_misuse("--one-shot: tgl_gemm() has no epilogue");
    if (o->one_shot && o->common.kernel != NULL)
        return cli_misuse("--one-shot: tgl_gemm() plans for itself");
    if (o->one_shot && o->common.type_d != 0)
        return cli_misuse("--one-shot: tgl_gemm() has no D other than C");
    return PARSED;
}

static bool add_shapes(const problem_options *o, const char *path, suite *s)
{
    if (path != NULL) return suite_read(s, path, o->type);
    if (!problem_has_shape(o)) return suite_add_default(s, o->type);
    const tgl_problem problem = problem_of_options(o);
    return suite_add(s, &problem);
}

/* Makes the suite that the options describe. Returns PARSED, or an exit code. */
static int make_suite(const bench_options *o, suite *s)
{
    if (!add_shapes(&o->common, o->suite, s)) return EXIT_FAILED;
    for (int i = 0; i < s->count; i++) {
        problem_set_types(&o->common, &s->problems[i]);
        if (tgl_problem_check(&s->problems[i]) != TGL_BAD_TYPE) continue;
        return cli_misuse_call();
    }
    return PARSED;
}

/* ---- Peers ----------------------------------------------------------------------------------- */

static int unknown_peer(const char *asked)
{
    char names[128] = "";
    for (int i = 0; peer_known(i) != NULL; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s, ", peer_known(i));
    return cli_misuse("--peer: there is no peer \"%s\"; the peers are %snone, and any library that "
                      "is given by a path, such as ./libmine.so",
                      asked, names);
}

static int open_host_peers(const bench_options *o, peer peers[PEERS_MAX], int *count)
{
    char message[512];
    for (int i = 0; i < o->peer_count; i++) {
        if (!peer_is_name(o->peers[i])) return unknown_peer(o->peers[i]);
        if (!peer_open(o->peers[i], &peers[i], message, sizeof message))
            return cli_fail("%s", message);
        ++*count;
    }
    if (o->peer_count > 0) return PARSED;
    for (int i = 0; peer_known(i) != NULL; i++)
        if (peer_open(peer_known(i), &peers[*count], message, sizeof message)) ++*count;
    return PARSED;
}

/* Opens cuBLAS for a CUDA device, and adds it to the peers: as cublas, cublaslt or both. The caller
 * closes *lib after the last use of the peers. Returns PARSED, or an exit code. */
static int open_cuda_peers(const bench_options *o, tgl_device *dev, peer peers[PEERS_MAX],
                           int *count, cublas **lib)
{
    char message[512];
    for (int i = 0; i < o->peer_count; i++)
        if (strcmp(o->peers[i], "cublas") != 0 && strcmp(o->peers[i], "cublaslt") != 0)
            return cli_misuse("--peer: the peers of a CUDA device are cublas and cublaslt");
    *lib = cublas_open(dev, message, sizeof message);
    if (*lib == NULL)
        return o->peer_count > 0 ? cli_fail("%s", message)
                                 : (fprintf(stderr, "without cuBLAS: %s\n", message), PARSED);
    for (cublas_way way = 0; way < CUBLAS_WAYS; way++)
        if (is_wanted(o, cublas_way_name(way))) peer_from_cublas(&peers[(*count)++], *lib, way);
    return PARSED;
}

/* Opens the peers, the libraries that Tegula is compared with. Those that were requested must be
 * installed; without --peer, all that are installed are opened, with `--peer none` no library.
 * Returns PARSED, or an exit code. */
static int open_peers(const bench_options *o, tgl_device *dev, peer peers[PEERS_MAX], int *count,
                      cublas **lib)
{
    *count = 0;
    *lib = NULL;
    if (o->peer_count == 1 && strcmp(o->peers[0], "none") == 0) return PARSED;
    if (strcmp(tgl_device_name(dev), "cpu") == 0) return open_host_peers(o, peers, count);
    if (!cli_device_is_host(dev)) return open_cuda_peers(o, dev, peers, count, lib);
    return o->peer_count == 0
               ? PARSED
               : cli_misuse("--peer: there are none for the device %s", tgl_device_name(dev));
}

/* The number of host threads that the device computes with. The peers use the same number. */
static int device_threads(const tgl_device *dev)
{
    const int threads = (int)cli_device_number(dev, TGL_NUMBER_THREADS);
    return cli_device_is_host(dev) && threads > 0 ? threads : 1;
}

/* ---- The suite ------------------------------------------------------------------------------- */

/* The estimated time for a shape, in an arbitrary unit: a constant part, and a part in proportion
 * to the operations of all libraries. */
static double cost(const contest_settings *s, const tgl_problem *p)
{
    return s->time + problem_flops(p) * 2e-11 * (s->peer_count + 1);
}

static int run_suite(const contest_settings *settings, const suite *s, bench_report *report)
{
    double total = 0, done = 0;
    for (int i = 0; i < s->count; i++)
        total += cost(settings, &s->problems[i]);
    progress line;
    progress_start(&line, total);
    if (!cli_device_is_host(settings->dev)) {
        progress_update(&line, 0, "compiling");
        compile_ahead(settings, s);
    }
    int code = EXIT_DONE, unsupported = 0;
    for (int i = 0; i < s->count; i++) {
        char shape[64];
        report_shape(&s->problems[i], shape, sizeof shape);
        progress_update(&line, done, shape);
        contest t;
        tgl_status status = contest_run(&t, settings, &s->problems[i]);
        progress_clear(&line);
        if (status == TGL_OK && t.error[0] == '\0')
            report_add(report, &t);
        else if (status == TGL_OK)
            code = cli_fail("%s: the product is wrong: %s", shape, t.error);
        else if (status == TGL_UNSUPPORTED && ++unsupported < s->count)
            cli_fail("%s is left out: %s", shape, tgl_status_text(status));
        else
            code = cli_fail_plan(settings->dev, shape, status);
        contest_release(&t);
        done += cost(settings, &s->problems[i]);
        /* With TGL_UNKNOWN_KERNEL or TGL_DEVICE_LOST every other shape would fail too. */
        if (status == TGL_UNKNOWN_KERNEL || status == TGL_DEVICE_LOST) break;
    }
    return code;
}

static int bench_with(const bench_options *o, tgl_device *dev, const suite *s, const peer *peers,
                      int peer_count)
{
    double best_fma[2] = {0, 0};
    kept_matrices kept = {0};
    const contest_settings settings = {
        .dev = dev,
        .peers = peers,
        .peer_count = peer_count,
        .threads = device_threads(dev),
        .time = o->time,
        .repeat = (int)o->repeat,
        .one_shot = o->one_shot,
        .prepares = {o->prepares[0], o->prepares[1]},
        .plan = {.size = sizeof(tgl_plan_options), .kernel = o->common.kernel},
        .epilogue = o->common.epilogue,
        .best_fma = best_fma,
        .kept = &kept,
        .cpu_time = o->cpu_time};
    if (o->cpu_time && (settings.threads != 1 || strcmp(tgl_device_name(dev), "cpu") != 0))
        return cli_misuse("--cpu-time needs --device cpu and --threads 1");
    if (cli_device_is_host(dev)) peers_set_threads(peers, peer_count, settings.threads);
    bench_report report;
    if (!report_start(&report, &settings, o->csv)) return EXIT_FAILED;
    const int code = run_suite(&settings, s, &report);
    kept_matrices_free(&kept);
    const int finished = report_finish(&report);
    return code != EXIT_DONE ? code : finished;
}

static int bench(const bench_options *o, tgl_device *dev, const suite *s)
{
    peer peers[PEERS_MAX];
    int peer_count;
    cublas *lib;
    if (o->cliffs) return cliffs_find(dev, s);
    if (o->host_overhead) return overhead_measure(dev);
    int code = open_peers(o, dev, peers, &peer_count, &lib);
    if (code == PARSED) code = bench_with(o, dev, s, peers, peer_count);
    cublas_close(lib);
    return code;
}

int command_bench(int argc, char **argv)
{
    bench_options options;
    int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    suite s = {0};
    code = make_suite(&options, &s);
    if (code == PARSED) {
        tgl_device *dev = problem_open_device(&options.common, &code);
        if (dev != NULL) code = bench(&options, dev, &s);
        tgl_device_close(dev);
    }
    suite_free(&s);
    return code;
}
