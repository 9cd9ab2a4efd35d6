/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula ladder`: checks the kernels of the ladder (teaching kernels, from a naive one up), and
 * times them beside cuBLAS. A rung is one of these kernels; a chapter is the rungs of one element
 * type and compute mode.
 */
#include "ladder.h"
#include "ladder_page.h"
#include "ladder_report.h"
#include "options.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "Usage: tegula ladder [--chapter N] [--size N ... | -m M -n N -k K] [OPTIONS]\n"
    "\n"
    "Runs a chapter of the ladder's kernels, C := A*B: 1, f32 from the naive kernel up; 2, f16 on\n"
    "tensor cores; 3, f32 by products of TF32 on tensor cores. Each kernel is checked against "
    "double\n"
    "precision, then timed in turn with the others and with cuBLAS, where that is found: time,\n"
    "TFLOP/s, percentage of the FFMA rate measured beside it, of cuBLAS, and of the fastest of\n"
    "cuBLASLt's candidates, and the greatest error in units of 2^-24 |A||B|.\n"
    "On the simulator it counts instead what each does to memory.\n"
    "\n"
    "  --chapter N       1, 2 or 3 (1)\n"
    "  --size N          N x N x N, as often as needed (256 to 8192 and 2048 x 2048 x 1024; on "
    "the\n"
    "                    simulator 128)\n"
    "  -m, -n, -k N      one shape instead\n"
    "  --device NAME     cuda:0, sim (a CUDA device if there is one, else sim)\n"
    "  --once            run every kernel exactly once, checked and not timed: for profilers\n"
    "  --csv FILE        write a line for each rung and size\n"
    "  --plot FILE.svg   draw a chart\n"
    "  --html FILE.html  on the simulator: write a page that shows the source of every rung, of "
    "all\n"
    "                    chapters without --chapter, with counts beside the lines and drawings of "
    "what\n"
    "                    the lanes of a warp access\n"
    "\n"
    "Examples:\n"
    "  tegula ladder --csv ladder.csv --plot ladder.svg\n"
    "  tegula ladder --chapter 2 --size 8192\n"
    "  tegula ladder --device sim --html ladder.html\n"
    "  ncu --clock-control none tegula ladder --size 4096 --once\n";

enum { SIZES_MAX = 16 };

typedef struct shape {
    int64_t m, n, k;
} shape;

typedef struct ladder_options {
    const char *device, *csv, *plot, *html;
    int64_t chapter; /* 0: not given: the first chapter or, with --html, all chapters */
    bool once;
    shape one;            /* the size that -m, -n and -k give */
    shape all[SIZES_MAX]; /* the sizes that are run, of which `count` are set */
    int count;
} ladder_options;

/* ---- Options --------------------------------------------------------------------------------- */

static bool take_size(const char *text, void *options)
{
    ladder_options *o = options;
    int64_t n;
    if (!cli_parse_int("--size", text, 1, 65536, &n)) return false;
    if (o->count == SIZES_MAX) return cli_misuse_false("--size: at most %d of them", SIZES_MAX);
    o->all[o->count++] = (shape){n, n, n};
    return true;
}

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTION_LETTER(ladder_options, one.m, 'm', 1, INT32_MAX),
    OPTION_LETTER(ladder_options, one.n, 'n', 1, INT32_MAX),
    OPTION_LETTER(ladder_options, one.k, 'k', 1, INT32_MAX),
    OPTION_TEXT(ladder_options, csv, "csv"),
    OPTION_TEXT(ladder_options, device, "device"),
    OPTION_TAKE("size", take_size),
    OPTION_INT(ladder_options, chapter, "chapter", 1, CHAPTERS),
    OPTION_FLAG(ladder_options, once, "once"),
    OPTION_TEXT(ladder_options, plot, "plot"),
    OPTION_TEXT(ladder_options, html, "html"),
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table};

static int parse(int argc, char **argv, ladder_options *o)
{
    *o = (ladder_options){.device = "auto"};
    const int code = cli_parse(argc, argv, &syntax, o);
    if (code != PARSED) return code;
    const bool some = o->one.m > 0 || o->one.n > 0 || o->one.k > 0;
    if (some && o->count > 0) return cli_misuse("give either --size or one shape by -m, -n and -k");
    if (some && (o->one.m == 0 || o->one.n == 0 || o->one.k == 0))
        return cli_misuse("give all of -m, -n and -k");
    if (o->csv != NULL && o->plot != NULL && output_file_is_same(o->csv, o->plot))
        return cli_misuse("--csv and --plot are the same file, %s", o->plot);
    if (o->once && (o->csv != NULL || o->plot != NULL))
        return cli_misuse("--once measures nothing that --csv or --plot could show");
    if (o->html != NULL && (o->once || o->csv != NULL || o->plot != NULL))
        return cli_misuse(
            "--html goes without --csv, --plot and --once: run the ladder again for them");
    if (o->html != NULL && o->count > 1)
        return cli_misuse("--html shows one size, not %d", o->count);
    if (some) o->all[o->count++] = o->one;
    return PARSED;
}

static void choose_sizes(ladder_options *o, bool is_sim)
{
    static const shape usual[] = {{256, 256, 256},    {512, 512, 512},    {1024, 1024, 1024},
                                  {2048, 2048, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
                                  {8192, 8192, 8192}};
    if (o->count > 0) return;
    if (is_sim) {
        o->all[o->count++] = (shape){128, 128, 128};
        return;
    }
    memcpy(o->all, usual, sizeof usual);
    o->count = sizeof usual / sizeof usual[0];
}

/* ---- Devices --------------------------------------------------------------------------------- */

/* Opens the device. NULL: failed, and *code is an exit code. "auto" means a CUDA device, or the
 * simulator if there is none, because the cpu device has no ladder. */
static tgl_device *open_device(const char *name, int *code)
{
    if (strcmp(name, "auto") != 0) return cli_open_device(name, 0, code);
    tgl_device *dev;
    const tgl_status status = tgl_device_open("cuda", NULL, &dev);
    if (status == TGL_OK) return dev;
    return cli_open_device(status == TGL_NO_DEVICE ? "sim" : "cuda", 0, code);
}

static bool has_ladder(const tgl_device *dev)
{
    const char *name;
    for (int i = 0; (name = tgl_kernel_name(dev, i)) != NULL; i++)
        if (strncmp(name, "ladder/", 7) == 0) return true;
    return false;
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

typedef struct steps {
    progress line;
    double done;
    char size[64];
} steps;

static void show_step(void *user, const char *name)
{
    steps *s = user;
    char what[128];
    snprintf(what, sizeof what, "%s: %s", s->size, name);
    progress_update(&s->line, s->done, what);
}

/* The estimated time for a size, in an arbitrary unit: a constant part, and a part in proportion to
 * the operations. */
static double cost(const shape *x)
{
    return 4 + 1e-11 * (double)x->m * (double)x->n * (double)x->k;
}

static bool any_failed(const ladder_size *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->rungs[i].failed) return true;
    return false;
}

static int run_size(ladder_report *r, ladder_page *page, const shape *x, steps *s)
{
    const ladder_chapter *chapter = r->settings->chapter;
    tgl_problem problem = cli_problem(chapter->type, x->m, x->n, x->k);
    problem.compute = chapter->compute;
    ladder_size size;
    snprintf(s->size, sizeof s->size, "%" PRId64 " x %" PRId64 " x %" PRId64, x->m, x->n, x->k);
    const tgl_status status = ladder_run(&size, r->settings, &problem, show_step, s);
    progress_clear(&s->line);
    int code = EXIT_DONE;
    if (status != TGL_OK) {
        code = cli_fail_at(s->size, status);
    } else {
        ladder_report_add(r, &size);
        if (any_failed(&size)) code = cli_fail("at %s a rung failed", s->size);
        if (page != NULL && !ladder_page_add(page, r, &size)) code = EXIT_FAILED;
    }
    ladder_release(&size);
    s->done += cost(x);
    return code;
}

/* Runs all sizes. page: the page that the results are added to; NULL: none. Returns an exit
 * code. */
static int run_sizes(const ladder_options *o, const ladder_settings *settings, double ffma,
                     const char *no_cublas, ladder_page *page)
{
    ladder_report report = {.settings = settings, .ffma = ffma};
    if (!ladder_report_start(&report, o->csv, o->plot, no_cublas)) return EXIT_FAILED;
    double total = 0;
    for (int i = 0; i < o->count; i++)
        total += cost(&o->all[i]);
    steps s = {.done = 0};
    progress_start(&s.line, total);
    int code = EXIT_DONE;
    for (int i = 0; i < o->count; i++) {
        const int one = run_size(&report, page, &o->all[i], &s);
        if (one != EXIT_DONE) code = one;
    }
    const int finished = ladder_report_finish(&report);
    return code != EXIT_DONE ? code : finished;
}

/* Runs the requested chapter, or all chapters, on the simulator up to the first failure, and writes
 * the page if there was none. Returns an exit code. */
static int run_page(const ladder_options *o, ladder_settings *settings)
{
    ladder_page page;
    if (!ladder_page_open(&page, o->html)) return EXIT_FAILED;
    const int first = o->chapter > 0 ? (int)o->chapter : 1;
    const int last = o->chapter > 0 ? (int)o->chapter : CHAPTERS;
    int code = EXIT_DONE;
    for (int i = first; i <= last && code == EXIT_DONE; i++) {
        if (i > first) putchar('\n');
        settings->chapter = ladder_chapter_number(i);
        code = run_sizes(o, settings, 0, "", &page);
    }
    return ladder_page_finish(&page, code);
}

static int run_ladder(ladder_options *o, tgl_device *dev)
{
    const bool is_sim = strcmp(tgl_device_name(dev), "sim") == 0;
    if (!has_ladder(dev))
        return cli_fail("the %s has no ladder of kernels; use --device cuda or --device sim",
                        tgl_device_name(dev));
    if (o->html != NULL && !is_sim)
        return cli_misuse("--html shows what the simulator counts: add --device sim");
    choose_sizes(o, is_sim);
    const int chapter = o->chapter > 0 ? (int)o->chapter : 1;
    ladder_settings settings = {.dev = dev,
                                .chapter = ladder_chapter_number(chapter),
                                .timed = !is_sim && !o->once,
                                .has_counters = is_sim};
    if (o->html != NULL) return run_page(o, &settings);
    char no_cublas[400] = "";
    double ffma = 0;
    if (settings.timed) {
        settings.cublas = cublas_open(dev, no_cublas, sizeof no_cublas);
        const tgl_status status = tgl_device_measure(dev, TGL_CEILING_FMA_F32, &ffma);
        if (status != TGL_OK) cli_fail_status(status);
    }
    const int code = run_sizes(o, &settings, ffma, no_cublas, NULL);
    cublas_close(settings.cublas);
    return code;
}

int command_ladder(int argc, char **argv)
{
    ladder_options options;
    int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    tgl_device *dev = open_device(options.device, &code);
    if (dev == NULL) return code;
    code = run_ladder(&options, dev);
    tgl_device_close(dev);
    return code;
}
