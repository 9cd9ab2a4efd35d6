/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches for fast schedules of kernels/gemm/simt.cu for the layout and alignment of a shape. A
 * schedule says at which points of its main loop a kernel issues its copies from global memory and
 * its loads from shared memory. Prints rows of src/families/simt_schedules.inc.
 *
 * The order in which ptxas puts the instructions cannot be predicted from a schedule, but it can be
 * read from the machine code: each instruction has a stall count, the number of cycles until its
 * warp may issue the next one. For 372 builds of the two largest tiles, timed on an H200, the sum
 * of these counts over the main loop correlates with the time by 0.74, both relative to the median
 * of the tile and layout (docs/notes/2026-11-22-gpu-fp32.md). This program compiles many schedules,
 * which needs no GPU, and prints those with the smallest sums. With --time it also times these and
 * sorts them by time. Among the smallest sums the correlation is weak, so if a GPU is available,
 * time all schedules.
 */
#include "cubin.h"
#include "cuda/nvrtc_compile.h"
#include "families/cost.h"
#include "options.h"
#include "plan/measured_choice.h"
#include "random.h"
#include "stopwatch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char help[] =
    "Usage: schedules --kernel NAME [--layout NN] [-m M] [-n N] [-k K] [OPTIONS]\n"
    "\n"
    "Compiles a configuration of gemm/simt.cu with many schedules of its copies and loads, into\n"
    "the cache, and prints those with the smallest sums of stall counts, as rows for\n"
    "src/families/simt_schedules.inc. The first line is the schedule that the configuration\n"
    "has now. Needs a GPU only for --time.\n"
    "\n"
    "  --kernel NAME   simt_128x256x8 and so on\n"
    "  --layout XY     NN, NT, TN or TT (NN)\n"
    "  -m M, -n N, -k K  the shape; odd sizes need scalar copies (4096 each)\n"
    "  --chip NAME     the chip to compile and plan for (h200)\n"
    "  --count N       schedules (100)\n"
    "  --seed S        of the schedules drawn (1)\n"
    "  --best N        to print, and to time (20)\n"
    "  --workers N     processes that compile (as many as processors)\n"
    "  --time          time them on the device \"cuda\", which must be that chip\n"
    "\n"
    "Example:\n"
    "  schedules --kernel simt_256x128x8 --layout TN -m 4095 -n 4097 -k 4093 --time\n";

enum { SAMPLES = 5, WORKERS_MAX = 256, FEW_COPIES = 4 };

static const double sample_seconds = 5e-3;

typedef struct schedules_options {
    const char *kernel, *layout, *chip_name;
    int64_t m, n, k, count, seed, best, workers;
    const tgl_chip *chip;
    bool times;
} schedules_options;

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTION_TEXT(schedules_options, kernel, "kernel"),
    OPTION_TEXT(schedules_options, layout, "layout"),
    OPTION_LETTER(schedules_options, m, 'm', 1, INT32_MAX),
    OPTION_LETTER(schedules_options, n, 'n', 1, INT32_MAX),
    OPTION_LETTER(schedules_options, k, 'k', 1, INT32_MAX),
    OPTION_TEXT(schedules_options, chip_name, "chip"),
    OPTION_INT(schedules_options, count, "count", 1, 1000000),
    OPTION_INT(schedules_options, seed, "seed", 0, INT64_MAX),
    OPTION_INT(schedules_options, best, "best", 1, 1000000),
    OPTION_INT(schedules_options, workers, "workers", 1, WORKERS_MAX),
    OPTION_FLAG(schedules_options, times, "time"),
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table};

/* The options of simt.cu that form a schedule. */
enum { COPY_FROM, COPY_EVERY, LOAD_FROM, LOAD_EVERY, COLUMN_ORDER, SCHEDULE_OPTIONS };
static const char *const schedule_options[SCHEDULE_OPTIONS] = {
    "copy_from", "copy_every", "load_from", "load_every", "column_order"};

/* A schedule and its results. */
typedef struct trial {
    int value[SCHEDULE_OPTIONS];
    size_t cycles;  /* sum of the stall counts in the main loop; 0: unknown */
    double seconds; /* 0: not timed, or the product was wrong */
} trial;

/* The properties of a configuration on which its schedules depend: macros of its kernel, and
 * threads per block. */
typedef struct tile {
    int bm, bn, bk, tm, tn, slices, threads;
    int vec_a, vec_b, vec_d; /* elements per copy of A and of B, and per store of D */
} tile;

/* The search: parameters that all trials share, and the trials. */
typedef struct search {
    const schedules_options *asked;
    tgl_shape shape;
    tgl_candidate choice;
    tile tile;
    trial *trials;
    tgl_nvrtc nvrtc;
    tgl_cache *cache;
    tgl_arch arch;
} search;

/* The index of an option of the family; -1: the family has no option of this name. */
static int option_of(const tgl_family *family, const char *name)
{
    for (int i = 0; family->options[i] != NULL; i++)
        if (strcmp(family->options[i], name) == 0) return i;
    return -1;
}

static bool has_schedules(const char *kernel)
{
    tgl_choice choice;
    return tgl_configuration_find(kernel, strlen(kernel), &choice) &&
           option_of(choice.family, schedule_options[0]) >= 0;
}

static int parse(int argc, char **argv, schedules_options *s)
{
    *s = (schedules_options){.layout = "NN",
                             .chip_name = "h200",
                             .m = 4096,
                             .n = 4096,
                             .k = 4096,
                             .count = 100,
                             .seed = 1,
                             .best = 20,
                             .workers = sysconf(_SC_NPROCESSORS_ONLN)};
    const int code = cli_parse(argc, argv, &syntax, s);
    if (code != PARSED) return code;
    if (s->kernel == NULL) return cli_misuse("--kernel is missing");
    if (!has_schedules(s->kernel))
        return cli_misuse("--kernel: \"%s\" is not a configuration of gemm/simt.cu", s->kernel);
    if (strlen(s->layout) != 2 || strspn(s->layout, "NT") != 2)
        return cli_misuse("--layout: \"%s\" is not NN, NT, TN or TT", s->layout);
    s->chip = tgl_chip_find(s->chip_name);
    return s->chip != NULL ? PARSED : cli_misuse("--chip: \"%s\" is not known", s->chip_name);
}

/* ---- Schedules ------------------------------------------------------------------------------- */

/* The number of copies that a thread makes for a tile of A and of B (BK of K). */
static int copies_of(const tile *t)
{
    const int threads = t->threads / t->slices;
    return (int)(tgl_ceil_div(t->bk * t->bm / t->vec_a, threads) +
                 tgl_ceil_div(t->bk * t->bn / t->vec_b, threads));
}

static int between(random_state *r, int min, int max)
{
    return (int)random_int(r, min, max > min ? max : min);
}

/* Draws a schedule that the kernel accepts. If there are many copies, they are spread over the main
 * loop, because close together they would delay the loads after them, which stall counts do not
 * show. */
static void draw(random_state *r, const tile *t, int value[SCHEDULE_OPTIONS])
{
    const int copies = copies_of(t), loads = (t->tm + t->tn) / 4;
    const int step = t->tm * t->tn,
              last = (t->bk - 1) * t->tm - 1; /* FFMAs per step of K; last row to issue a copy */
    const int min = copies <= FEW_COPIES ? 0 : 2 * copies <= last ? 2 : 1;
    const int copy_every = between(r, min, copies > 1 ? last / (copies - 1) : 0);
    const int copy_from = between(r, 0, last - (copies - 1) * copy_every);
    const int load_from = between(r, 0, step / loads < 10 ? step / loads - 1 : 9);
    int load_every = between(r, 1, (step - 1 - load_from) / (loads > 1 ? loads - 1 : 1));
    if (load_every > 6) load_every = between(r, 1, 6);
    value[COPY_FROM] = copy_from;
    value[COPY_EVERY] = copy_every;
    value[LOAD_FROM] = load_from;
    value[LOAD_EVERY] = load_every;
    value[COLUMN_ORDER] = between(r, 0, 1);
}

/* Draws all schedules but number 0, which is the one that the configuration has now. */
static void draw_all(search *s)
{
    random_state r;
    random_seed(&r, (uint64_t)s->asked->seed, 0);
    for (int64_t i = 1; i <= s->asked->count; i++)
        draw(&r, &s->tile, s->trials[i].value);
}

/* The choice of the configuration with the trial's schedule. */
static tgl_candidate choice_of(const search *s, const trial *t)
{
    tgl_candidate candidate = s->choice;
    const tgl_family *family = candidate.choice.family;
    for (int i = 0; i < SCHEDULE_OPTIONS && t != s->trials; i++)
        candidate.choice.option[option_of(family, schedule_options[i])] = t->value[i];
    return candidate;
}

/* ---- Machine code ---------------------------------------------------------------------------- */

/* The value of a macro of a kernel; 0: the kernel has no macro of this name. */
static int macro_of(const tgl_kernel *kernel, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = kernel->macros; *at != '\0';) {
        if (strncmp(at, name, length) == 0 && at[length] == '=') return atoi(at + length + 1);
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return 0;
}

static tgl_status read_tile(search *s)
{
    tgl_launch_list list;
    TGL_TRY(tgl_planner_list(s->asked->chip, &s->shape, &s->choice, &list));
    const tgl_launch *launch = &list.steps[0].launches[0]; /* the kernel for aligned matrices */
    const tgl_kernel *kernel = launch->kernel;
    s->tile = (tile){
        .bm = macro_of(kernel, "BM"),
        .bn = macro_of(kernel, "BN"),
        .bk = macro_of(kernel, "BK"),
        .tm = macro_of(kernel, "TM"),
        .tn = macro_of(kernel, "TN"),
        .slices = macro_of(kernel, "SLICES"),
        .threads = (int)launch->threads,
        .vec_a = macro_of(kernel, "VEC_A"),
        .vec_b = macro_of(kernel, "VEC_B"),
        .vec_d = tgl_store_width(&s->shape),
    };
    tgl_list_free(&list);
    return TGL_OK;
}

static tgl_status compile(const search *s, const trial *t, tgl_binary *binary)
{
    const tgl_candidate choice = choice_of(s, t);
    tgl_launch_list list;
    tgl_status status = tgl_planner_list(s->asked->chip, &s->shape, &choice, &list);
    if (status == TGL_OK) {
        const tgl_kernel *kernel = list.steps[0].launches[0].kernel;
        status = tgl_cuda_compile(&s->nvrtc, s->cache, kernel, s->arch.name, true, binary);
        tgl_list_free(&list);
    }
    if (status != TGL_OK) cli_fail_status(status);
    return status;
}

/* Compiles the schedules first, first + workers, first + 2*workers and so on. Runs in a process of
 * its own. Error messages are written as a whole, so that those of several processes do not mix. */
static int compile_share(const search *s, int64_t first)
{
    int code = EXIT_DONE;
    setvbuf(stderr, NULL, _IOFBF, BUFSIZ);
    for (int64_t i = first; i <= s->asked->count && code == EXIT_DONE; i += s->asked->workers) {
        tgl_binary binary;
        if (compile(s, &s->trials[i], &binary) == TGL_OK)
            free(binary.image);
        else
            code = EXIT_FAILED;
    }
    fflush(stderr);
    return code;
}

/* Compiles all schedules in several processes, because NVRTC compiles for one thread of a process
 * at a time. */
static int compile_all(const search *s)
{
    int started = 0, failed = 0, status;
    for (; started < s->asked->workers; started++) {
        const pid_t child = fork();
        if (child == 0) _exit(compile_share(s, started));
        if (child < 0) break;
    }
    const bool all_run = started == s->asked->workers;
    for (; started > 0; started--)
        failed += wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_DONE;
    if (!all_run) return cli_fail("cannot start a process: %s", strerror(errno));
    return failed == 0 ? EXIT_DONE : EXIT_FAILED;
}

/* Reads the machine code of all trials from the cache. */
static int read_all(const search *s)
{
    const tile *t = &s->tile;
    for (int64_t i = 0; i <= s->asked->count; i++) {
        tgl_binary binary;
        if (compile(s, &s->trials[i], &binary) != TGL_OK) return EXIT_FAILED;
        s->trials[i].cycles = tgl_cubin_cycles(binary.image, binary.size, "sgemm_simt",
                                               (size_t)t->bk * t->tm * t->tn);
        free(binary.image);
    }
    return EXIT_DONE;
}

static int by_cycles(const void *x, const void *y)
{
    const trial *a = x, *b = y;
    return a->cycles < b->cycles ? -1 : a->cycles > b->cycles;
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* *is_same := whether the product is bitwise equal to that of the first trial, in `first`. It must
 * be, because a schedule does not change the order of additions. */
static tgl_status compare(const operands *o, const tgl_plan *plan, bool is_first, void *first,
                          void *now, bool *is_same)
{
    const operand_set set = operands_for(o, 0);
    tgl_status status = tgl_plan_run(plan, 1, set.A, set.B, 0, set.C, NULL);
    if (status == TGL_OK)
        status = tgl_download(o->dev, is_first ? first : now, set.C, o->size_c, NULL);
    *is_same = is_first || memcmp(first, now, o->size_c) == 0;
    return status;
}

static tgl_status time_one(const search *s, stopwatch *watch, trial *t, void *first, void *now)
{
    const operands *o = watch->operands;
    char kernel[TGL_KERNEL_STRING_SIZE];
    const tgl_candidate choice = choice_of(s, t);
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = tgl_candidate_string(&choice, kernel, sizeof kernel)};
    tgl_plan *plan;
    bool is_same = false;
    tgl_status status = tgl_plan_create(o->dev, &o->problem, &options, &plan);
    if (status != TGL_OK) return status;
    status = compare(o, plan, t == s->trials, first, now, &is_same);
    if (status == TGL_OK && is_same)
        status = stopwatch_median(watch, plan, sample_seconds, SAMPLES, &t->seconds);
    tgl_plan_destroy(plan);
    return status;
}

static int time_on(tgl_device *dev, const search *s, const tgl_problem *problem, int64_t best)
{
    operands o;
    stopwatch watch = {0};
    tgl_status status = operands_make(&o, dev, problem, true);
    void *first = malloc(o.size_c), *now = malloc(o.size_c);
    if (status == TGL_OK && (first == NULL || now == NULL)) status = TGL_NO_MEMORY;
    if (status == TGL_OK) status = stopwatch_make(&watch, &o);
    for (int64_t i = 0; i <= best && status == TGL_OK; i++)
        status = time_one(s, &watch, &s->trials[i], first, now);
    const int code = status == TGL_OK ? EXIT_DONE : cli_fail_status(status);
    stopwatch_release(&watch);
    operands_release(&o);
    free(first);
    free(now);
    return code;
}

static int time_best(const search *s, const tgl_problem *problem, int64_t best)
{
    int code;
    tgl_device *dev = cli_open_device("cuda", 0, &code);
    if (dev == NULL) return code;
    const char *chip = cli_device_property(dev, "planned as");
    code = strcmp(chip, s->asked->chip->name) == 0
               ? time_on(dev, s, problem, best)
               : cli_misuse("--chip: the device is planned as %s", chip);
    tgl_device_close(dev);
    return code;
}

static int by_seconds(const void *x, const void *y)
{
    const trial *a = x, *b = y;
    if (a->seconds == 0 || b->seconds == 0) return (a->seconds == 0) - (b->seconds == 0);
    return a->seconds < b->seconds ? -1 : a->seconds > b->seconds;
}

/* ---- The search ------------------------------------------------------------------------------ */

static void print_trial(const search *s, const trial *t)
{
    const int width = s->shape.trans_a    ? s->tile.vec_a
                      : !s->shape.trans_b ? s->tile.vec_b
                                          : s->tile.vec_d;
    if (t == s->trials)
        printf("as it is:");
    else
        printf("{\"%s\", \"%s\", %d, %d, %d, %d, %d, %d},", tgl_choice_name(&s->choice.choice),
               s->asked->layout, width, t->value[COPY_FROM], t->value[COPY_EVERY],
               t->value[LOAD_FROM], t->value[LOAD_EVERY], t->value[COLUMN_ORDER]);
    if (t->cycles > 0)
        printf(" /* %zu cycles", t->cycles);
    else
        printf(" /* cycles not known");
    if (t->seconds > 0)
        printf(", %.2f us", 1e6 * t->seconds);
    else if (s->asked->times)
        printf(", WRONG");
    printf(" */\n");
}

static int rank(search *s, const tgl_problem *problem)
{
    const int64_t count = s->asked->count;
    const int64_t best = s->asked->best < count ? s->asked->best : count;
    draw_all(s);
    int code = compile_all(s);
    if (code == EXIT_DONE) code = read_all(s);
    if (code != EXIT_DONE) return code;
    qsort(&s->trials[1], (size_t)count, sizeof s->trials[1], by_cycles);
    if (s->asked->times) code = time_best(s, problem, best);
    if (code != EXIT_DONE) return code;
    if (s->asked->times) qsort(&s->trials[1], (size_t)best, sizeof s->trials[1], by_seconds);
    for (int64_t i = 0; i <= best; i++)
        print_trial(s, &s->trials[i]);
    return EXIT_DONE;
}

/* The planner's choice among the options of the configuration, without strips. */
static tgl_status choose(search *s, const tgl_problem *problem)
{
    char kernel[TGL_KERNEL_STRING_SIZE];
    tgl_request request;
    snprintf(kernel, sizeof kernel, "%s:strips=0", s->asked->kernel);
    TGL_TRY(tgl_shape_make(problem, true, &s->shape));
    TGL_TRY(tgl_request_make(kernel, 0, &request));
    TGL_TRY(tgl_planner_choose(s->asked->chip, &s->shape, &request, &s->choice));
    return read_tile(s);
}

static int run(const schedules_options *asked, const tgl_problem *problem)
{
    search s = {.asked = asked};
    tgl_status status = choose(&s, problem);
    if (status == TGL_OK) status = tgl_nvrtc_open(&s.nvrtc);
    if (status != TGL_OK) return cli_fail_status(status);
    s.arch = tgl_nvrtc_arch_name(&s.nvrtc, asked->chip->capability);
    s.cache = tgl_cache_open();
    const char *folder = tgl_cache_describe(s.cache);
    s.trials = calloc((size_t)asked->count + 1, sizeof *s.trials);
    int code = EXIT_FAILED;
    if (s.trials == NULL || folder == NULL)
        cli_fail("no memory for %" PRId64 " schedules", asked->count);
    else if (strncmp(folder, "off", 3) == 0)
        cli_fail("what is compiled goes through the cache, which is %s", folder);
    else
        code = rank(&s, problem);
    free(s.trials);
    tgl_cache_close(s.cache);
    tgl_nvrtc_close(&s.nvrtc);
    return code;
}

int main(int argc, char **argv)
{
    schedules_options options;
    cli_set_command("schedules");
    int code = parse(argc, argv, &options);
    if (code != PARSED) return cli_finish(code);
    tgl_problem problem = cli_problem(TGL_F32, options.m, options.n, options.k);
    if (options.layout[0] == 'T') problem.trans_a = TGL_TRANS;
    if (options.layout[1] == 'T') problem.trans_b = TGL_TRANS;
    code = run(&options, &problem);
    return cli_finish(code);
}
