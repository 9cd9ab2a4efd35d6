/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker threads take the cases, which are random problems, one after another and run each with the
 * kernels.
 */
#include "check_run.h"
#include "check_product.h"
#include "cli.h"
#include "elements.h"
#include "problem_options.h"
#include "progress.h"
#include "workers.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of all workers. */
typedef struct shared {
    const check_settings *settings;
    check_results *results;
    pthread_mutex_t lock; /* guards the members below and *results */
    int64_t next;         /* index of the next case to start, from 0 */
    int64_t done;
    int code; /* an exit code; if it is not EXIT_DONE, the workers start no further case */
    progress line;
} shared;

static atomic_int is_interrupted; /* set by a signal: no further case starts, and running cases
                                     start no further kernel */

/* ---- Results --------------------------------------------------------------------------------- */

/* Appends the option, as " --type f16", to the text, unless type is 0. */
static void add_type(char *text, size_t size, const char *option, tgl_type type)
{
    const size_t length = strlen(text);
    if (type != 0)
        snprintf(text + length, size - length, " --%s %s", option, element_type_name(type));
}

/* Keeps the failure of the failed case with the lowest number, and a command that reproduces it.
 * The caller holds the lock. */
static void keep_failure(shared *all, const check_case *c, const check_subject *s, const char *what)
{
    check_results *results = all->results;
    const check_drawing *from = &all->settings->drawing;
    if (results->failed_case >= 0 && results->failed_case <= c->number) return;
    results->failed_case = c->number;
    char problem[512], type[64] = "", compute[32] = "";
    check_case_describe(c, problem, sizeof problem);
    if (from->compute != TGL_COMPUTE_DEFAULT)
        snprintf(compute, sizeof compute, " --compute %s", compute_name(from->compute));
    add_type(type, sizeof type, "type", from->type);
    add_type(type, sizeof type, "type-c", from->type_c);
    add_type(type, sizeof type, "type-d", from->type_d);
    snprintf(results->failure, sizeof results->failure,
             "case %" PRId64 " failed in kernel %s: %s\n  %s\n  rerun: tegula check --seed %" PRIu64
             " --case %" PRId64 " --kernel %s --device %s%s%s%s%s%s%s",
             c->number, s->name, what, problem, from->seed, c->number, s->name,
             tgl_device_name(all->settings->dev), type, compute, from->plain ? " --plain" : "",
             from->scale == SCALE_SMALL ? " --small" : "", from->epilogues ? " --epilogues" : "",
             from->grouped ? " --grouped" : "");
}

/* Updates the progress line. part: the fraction of the current case that is done. */
static void show_progress(shared *all, const check_case *c, const char *kernel, double part)
{
    char what[200];
    snprintf(what, sizeof what, "case %" PRId64 " of %" PRId64 ": %s",
             c->number - all->settings->first + 1, all->settings->count, kernel);
    pthread_mutex_lock(&all->lock);
    progress_update(&all->line, (double)all->done + part, what);
    pthread_mutex_unlock(&all->lock);
}

/* Runs one case with one kernel, and counts the result. A product that cannot be computed after an
 * interrupt does not count: the signal that a terminal sends also interrupts a compiler that is
 * running. */
static tgl_status try_subject(shared *all, const check_case *c, check_subject *s,
                              const case_memory *memory)
{
    check_tally now = {0};
    check_verdict verdict;
    const tgl_status status = check_product(all->settings->dev, c, memory, s, &now, &verdict);
    if (status != TGL_OK) {
        char detail[200] = "";
        tgl_last_error(detail, sizeof detail);
        snprintf(verdict.text, sizeof verdict.text, "%s, %s", tgl_status_name(status), detail);
    }
    if (status != TGL_OK && status != TGL_UNSUPPORTED && atomic_load(&is_interrupted))
        return status;
    now.unsupported = status == TGL_UNSUPPORTED;
    now.passed = verdict.text[0] == '\0';
    now.failed = !now.passed && !now.unsupported;
    pthread_mutex_lock(&all->lock);
    check_tally_add(&s->tally, &now);
    if (now.unsupported)
        snprintf(all->results->unsupported, sizeof all->results->unsupported, "%s", verdict.text);
    if (now.failed) keep_failure(all, c, s, verdict.text);
    pthread_mutex_unlock(&all->lock);
    return status;
}

/* The index of the kernel that a case runs in place i, where 0 <= i < count. Different cases run
 * the kernels in different orders. Otherwise workers that start together would all wait for the
 * first kernel to be compiled. */
static int in_turn(const check_case *c, int i, int count)
{
    return (int)((c->number % count + i) % count); /* adding first would overflow if the number is
                                                      INT64_MAX */
}

/* Whether a case goes on with its next kernel after one with this status. After an interrupt it
 * does not, because on the simulator the next kernel must first be compiled, which takes long. */
static bool goes_on(tgl_status status)
{
    return status != TGL_DEVICE_LOST && !atomic_load(&is_interrupted);
}

/* Runs the case with the planner's choice and with one of the other kernels: the first one that
 * supports the case, in the order of in_turn(). */
static tgl_status try_in_turn(shared *all, const check_case *c, const case_memory *memory)
{
    check_results *results = all->results;
    const int others = results->count - 1;
    tgl_status status = try_subject(all, c, &results->subjects[0], memory);
    for (int i = 0; i < others && goes_on(status); i++) {
        status = try_subject(all, c, &results->subjects[1 + in_turn(c, i, others)], memory);
        if (status != TGL_UNSUPPORTED) break;
    }
    return status;
}

/* Runs the case with all kernels or, if settings->in_turn, as try_in_turn() does. False: the device
 * is lost. */
static bool try_subjects(shared *all, const check_case *c, const case_memory *memory)
{
    check_results *results = all->results;
    tgl_status status = TGL_OK;
    if (all->settings->in_turn) return try_in_turn(all, c, memory) != TGL_DEVICE_LOST;
    for (int i = 0; i < results->count && goes_on(status); i++) {
        check_subject *s = &results->subjects[in_turn(c, i, results->count)];
        show_progress(all, c, s->name, (double)i / results->count);
        status = try_subject(all, c, s, memory);
    }
    return status != TGL_DEVICE_LOST;
}

/* Makes case `number` and runs it with the kernels. Returns an exit code. */
static int try_case(shared *all, int64_t number)
{
    const check_settings *s = all->settings;
    check_case c;
    if (!check_case_make(&c, &s->drawing, number))
        return cli_fail("no memory for case %" PRId64, number);
    case_memory memory = {0};
    const tgl_status status = case_memory_make(s->dev, &c, &memory);
    const bool has_device = status == TGL_OK && try_subjects(all, &c, &memory);
    case_memory_release(s->dev, &memory);
    check_case_free(&c);
    if (status != TGL_OK) return cli_fail_status(status);
    return has_device ? EXIT_DONE : EXIT_FAILED;
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static const int interrupts[] = {SIGINT, SIGTERM};
enum { INTERRUPTS = sizeof interrupts / sizeof interrupts[0] };
static struct sigaction usual[INTERRUPTS];

static void let_interrupts_be(void)
{
    for (int i = 0; i < INTERRUPTS; i++)
        sigaction(interrupts[i], &usual[i], NULL);
}

/* Sets is_interrupted. A second Ctrl-C then ends the process. A second SIGTERM does not, because
 * timeout(1) sends the signal twice, to the process and to its group. */
static void on_interrupt(int number)
{
    atomic_store(&is_interrupted, 1);
    for (int i = 0; i < INTERRUPTS; i++)
        if (interrupts[i] == number && number != SIGTERM) sigaction(number, &usual[i], NULL);
}

/* Installs on_interrupt(). Signals that the caller of this program ignores, as nohup(1) makes them,
 * stay ignored. */
static void catch_interrupts(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    for (int i = 0; i < INTERRUPTS; i++)
        sigaction(interrupts[i], NULL, &usual[i]);
    for (int i = 0; i < INTERRUPTS; i++)
        if (usual[i].sa_handler != SIG_IGN) sigaction(interrupts[i], &action, NULL);
}

/* ---- All cases ------------------------------------------------------------------------------- */

/* Takes the next case and returns its number; -1: there is none. */
static int64_t take_case(shared *all)
{
    const check_settings *s = all->settings;
    pthread_mutex_lock(&all->lock);
    const bool more =
        all->code == EXIT_DONE && all->next < s->count && !atomic_load(&is_interrupted);
    const int64_t number = more ? s->first + all->next++ : -1;
    pthread_mutex_unlock(&all->lock);
    return number;
}

static void *work_on_cases(void *argument)
{
    shared *all = argument;
    for (int64_t number; (number = take_case(all)) >= 0;) {
        const int code = try_case(all, number);
        pthread_mutex_lock(&all->lock);
        all->done += !atomic_load(&is_interrupted); /* after an interrupt the case is incomplete */
        if (code != EXIT_DONE) all->code = code;
        pthread_mutex_unlock(&all->lock);
    }
    return NULL;
}

int check_run(const check_settings *settings, check_results *results)
{
    *results = (check_results){.failed_case = -1};
    const int code =
        check_list_subjects(settings->dev, settings->kernel, &results->subjects, &results->count);
    if (code != EXIT_DONE) return code;
    shared all = {.settings = settings, .results = results, .code = EXIT_DONE};
    pthread_mutex_init(&all.lock, NULL);
    progress_start(&all.line, (double)settings->count);
    catch_interrupts();
    run_workers(settings->workers < settings->count ? settings->workers : settings->count,
                work_on_cases, &all);
    let_interrupts_be();
    results->cases = all.done;
    progress_clear(&all.line);
    pthread_mutex_destroy(&all.lock);
    return all.code;
}

void check_results_free(check_results *results)
{
    free(results->subjects);
    *results = (check_results){.count = 0};
}
