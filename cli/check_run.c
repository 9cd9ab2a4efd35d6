/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases through kernels.
 */
#include "check_run.h"
#include "cli.h"
#include "progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 64, RUNS = 10 };

/* What the workers share. */
typedef struct shared {
    const check_settings *settings;
    check_results *results;
    pthread_mutex_t lock; /* of all below, and of the results */
    int64_t next;         /* case to begin, counted from 0 */
    int64_t done;
    int code; /* EXIT_DONE, or why to stop */
    progress line;
} shared;

/* ---- The kernels under test ------------------------------------------------------------------ */

bool check_is_asked(const char *asked, const char *name)
{
    const size_t length = strlen(asked);
    return strcmp(asked, "all") == 0 || strcmp(asked, name) == 0 ||
           (strncmp(asked, name, length) == 0 && name[length] == '/');
}

int check_find_kernel(const tgl_device *dev, const char *asked)
{
    const char *name = "auto";
    for (int i = 0; name != NULL; name = tgl_kernel_name(dev, i++))
        if (check_is_asked(asked, name)) return EXIT_DONE;
    return cli_misuse("%s has no kernel \"%s\"; `tegula info` lists them", tgl_device_name(dev),
                      asked);
}

/* Lists the kernels that were asked for, after the planner's choice unless that was not. */
static int list_subjects(const check_settings *s, check_results *results)
{
    int count = 1;
    while (tgl_kernel_name(s->dev, count - 1) != NULL)
        count++;
    results->subjects = calloc((size_t)count, sizeof *results->subjects);
    if (results->subjects == NULL) return cli_fail("no memory for %d kernels", count);
    for (int i = 0; i < count; i++) {
        const char *name = i == 0 ? "auto" : tgl_kernel_name(s->dev, i - 1);
        if (check_is_asked(s->kernel, name) || (i == 0 && strchr(s->kernel, '/') == NULL))
            results->subjects[results->count++].name = name;
    }
    return EXIT_DONE;
}

int check_cells_seen(const check_subject *s)
{
    int seen = 0;
    for (int i = 0; i < CHECK_CELLS; i++)
        seen += s->cells[i];
    return seen;
}

/* How wide the copies are that an operand allows, in all of its rows and matrices: of 4, 2 or 1
 * elements (0, 1, 2); or of 4 if only its base lay right (3). */
static int alignment(const check_view *v, int64_t ld, int64_t batch)
{
    const int64_t rows = ld | (batch > 1 ? v->batch : 0), all = rows | v->offset;
    return all % 4 == 0 ? 0 : rows % 4 == 0 ? 3 : all % 2 == 0 ? 1 : 2;
}

/* In row-major terms, which is how kernels see it. */
static int cell_of(const check_case *c)
{
    const tgl_problem *p = &c->problem;
    const bool swapped = p->order == TGL_COL_MAJOR;
    const bool trans[] = {p->trans_a != TGL_NO_TRANS, p->trans_b != TGL_NO_TRANS};
    const int of_a = alignment(&c->a.view, c->a.view.row * c->a.view.column, p->batch);
    const int of_b = alignment(&c->b.view, c->b.view.row * c->b.view.column, p->batch);
    const int layout = trans[swapped] * 2 + trans[!swapped];
    return (layout * 4 + (swapped ? of_b : of_a)) * 4 + (swapped ? of_a : of_b);
}

static void count_coverage(const check_case *c, bool has_strips, check_subject *s)
{
    const tgl_problem *p = &c->problem;
    const bool is_product = c->alpha != 0 && p->m > 0 && p->n > 0 && p->k > 0 && p->batch > 0;
    if (!is_product) return;
    s->cells[cell_of(c)] = true;
    s->batch += p->batch > 1;
    s->ten += c->again;
    s->strips += has_strips;
    if (strcmp(s->name, "auto") == 0 || c->splits < 2) return;
    s->split += p->k > 32;
    s->tail += p->k > 32 && c->whole_tiles > 0;
}

/* ---- One case -------------------------------------------------------------------------------- */

/* A case's buffers in memory of the device, and room on the host for what comes back. */
typedef struct case_memory {
    void *A, *B, *C, *bias, *residual;
    void *pointers[3];           /* arrays of them, to A, B and C */
    unsigned char *back, *first; /* first: of ten results */
} case_memory;

static size_t bytes_of(const check_case *c, const check_buffer *buffer)
{
    return (size_t)buffer->size * tgl_type_size(c->problem.type_c);
}

static size_t greatest_bytes(const check_case *c)
{
    const check_buffer *buffers[] = {&c->a, &c->b, &c->c, &c->bias, &c->residual};
    size_t greatest = 0;
    for (int i = 0; i < 5; i++)
        if (bytes_of(c, buffers[i]) > greatest) greatest = bytes_of(c, buffers[i]);
    return greatest;
}

/* The pointers to the matrices of each buffer, in memory of the device. */
static tgl_status place_pointers(tgl_device *dev, const check_case *c, case_memory *memory)
{
    const check_buffer *buffers[] = {&c->a, &c->b, &c->c};
    void *const bases[] = {memory->A, memory->B, memory->C};
    const size_t element = tgl_type_size(c->problem.type_c);
    const size_t bytes = (size_t)c->problem.batch * sizeof(void *);
    void **pointers = malloc(bytes + 1);
    tgl_status status = pointers != NULL ? TGL_OK : TGL_NO_MEMORY;
    for (int i = 0; status == TGL_OK && i < 3; i++) {
        const check_view *v = &buffers[i]->view;
        for (int64_t b = 0; b < c->problem.batch; b++)
            pointers[b] = (char *)bases[i] + (size_t)(v->offset + b * v->batch) * element;
        status = tgl_alloc(dev, bytes, &memory->pointers[i]);
        if (status == TGL_OK) status = tgl_upload(dev, memory->pointers[i], pointers, bytes);
    }
    free(pointers);
    return status;
}

static tgl_status place(tgl_device *dev, const check_case *c, case_memory *memory)
{
    const check_buffer *buffers[] = {&c->a, &c->b, &c->c, &c->bias, &c->residual};
    void **places[] = {&memory->A, &memory->B, &memory->C, &memory->bias, &memory->residual};
    memory->back = malloc(greatest_bytes(c));
    memory->first = malloc(bytes_of(c, &c->c));
    if (memory->back == NULL || memory->first == NULL) return TGL_NO_MEMORY;
    for (int i = 0; i < 5; i++) {
        if (buffers[i]->size == 0) continue;
        tgl_status status = tgl_alloc(dev, bytes_of(c, buffers[i]), places[i]);
        if (status == TGL_OK)
            status = tgl_upload(dev, *places[i], buffers[i]->image, bytes_of(c, buffers[i]));
        if (status != TGL_OK) return status;
    }
    return c->problem.batching == TGL_POINTERS ? place_pointers(dev, c, memory) : TGL_OK;
}

static void release(tgl_device *dev, case_memory *memory)
{
    tgl_free(dev, memory->A);
    tgl_free(dev, memory->B);
    tgl_free(dev, memory->C);
    tgl_free(dev, memory->bias);
    tgl_free(dev, memory->residual);
    for (int i = 0; i < 3; i++)
        tgl_free(dev, memory->pointers[i]);
    free(memory->back);
    free(memory->first);
}

/* The pointer that a product is given for a buffer. */
static void *base(const check_case *c, const check_buffer *buffer, void *memory)
{
    if (buffer->null) return NULL;
    return (char *)memory + (size_t)buffer->view.offset * tgl_type_size(c->problem.type_c);
}

static tgl_operands operands_of(const check_case *c, const case_memory *memory)
{
    tgl_operands o = {.size = sizeof o};
    if (c->bias.size > 0) o.bias = base(c, &c->bias, memory->bias);
    if (c->residual.size > 0) o.residual = base(c, &c->residual, memory->residual);
    if (c->problem.batching == TGL_POINTERS) {
        if (!c->a.null) o.A_array = memory->pointers[0];
        if (!c->b.null) o.B_array = memory->pointers[1];
        if (!c->c.null) o.C_array = memory->pointers[2];
        return o;
    }
    o.A = base(c, &c->a, memory->A);
    o.B = base(c, &c->b, memory->B);
    o.C = base(c, &c->c, memory->C);
    return o;
}

/* C from its image, the product, C to memory->back. plan NULL: in one call. */
static tgl_status multiply(tgl_device *dev, const check_case *c, const tgl_plan *plan,
                           const case_memory *memory)
{
    const tgl_operands o = operands_of(c, memory);
    tgl_status status = tgl_upload(dev, memory->C, c->c.image, bytes_of(c, &c->c));
    if (status != TGL_OK) return status;
    if (plan != NULL)
        status = tgl_plan_run_operands(plan, c->alpha, c->beta, &o, NULL);
    else if (c->problem.batching == TGL_POINTERS)
        status = tgl_gemm_batched(dev, &c->problem, c->alpha, o.A_array, o.B_array, c->beta,
                                  o.C_array, NULL);
    else
        status = tgl_gemm(dev, &c->problem, c->alpha, o.A, o.B, c->beta, o.C, NULL);
    if (status != TGL_OK) return status;
    return tgl_download(dev, memory->back, memory->C, bytes_of(c, &c->c));
}

/* Notes it if an input is not what it was. */
static tgl_status compare_input(tgl_device *dev, const check_case *c, const check_buffer *buffer,
                                const void *memory, const char *name, const case_memory *room,
                                check_verdict *verdict)
{
    if (buffer->size == 0) return TGL_OK;
    tgl_status status = tgl_download(dev, room->back, memory, bytes_of(c, buffer));
    if (status == TGL_OK && verdict->text[0] == '\0' &&
        memcmp(room->back, buffer->image, bytes_of(c, buffer)) != 0)
        snprintf(verdict->text, sizeof verdict->text, "%s was written, and is an input", name);
    return status;
}

/* Notes it if the same product does not give the same bits each time. */
static tgl_status repeat(tgl_device *dev, const check_case *c, const tgl_plan *plan,
                         const case_memory *memory, check_verdict *verdict)
{
    const size_t bytes = bytes_of(c, &c->c);
    tgl_status status = TGL_OK;
    memcpy(memory->first, memory->back, bytes);
    for (int i = 1; status == TGL_OK && i < RUNS; i++) {
        status = multiply(dev, c, plan, memory);
        if (status == TGL_OK && verdict->text[0] == '\0' &&
            memcmp(memory->back, memory->first, bytes) != 0)
            snprintf(verdict->text, sizeof verdict->text,
                     "run %d of the same product gives other bits than the first", i + 1);
    }
    return status;
}

/* Runs one kernel and judges it. */
static tgl_status judge(tgl_device *dev, const check_case *c, const tgl_plan *plan,
                        const case_memory *memory, check_subject *s, check_verdict *verdict)
{
    tgl_status status = multiply(dev, c, plan, memory);
    if (status != TGL_OK) return status;
    check_case_compare(c, memory->back, &s->errors, verdict);
    if (c->again) status = repeat(dev, c, plan, memory, verdict);
    if (status == TGL_OK) status = compare_input(dev, c, &c->a, memory->A, "A", memory, verdict);
    if (status == TGL_OK) status = compare_input(dev, c, &c->b, memory->B, "B", memory, verdict);
    if (status == TGL_OK)
        status = compare_input(dev, c, &c->bias, memory->bias, "bias", memory, verdict);
    if (status == TGL_OK)
        status = compare_input(dev, c, &c->residual, memory->residual, "residual", memory, verdict);
    return status;
}

/* The case's plan by a kernel that is named. A case that wants strips gets them if it can;
 * *has_strips says so. */
static tgl_status make_plan(tgl_device *dev, const check_case *c, const char *kernel,
                            bool *has_strips, tgl_plan **plan)
{
    tgl_plan_options options = {.size = sizeof options,
                                .kernel = kernel,
                                .splits = c->splits,
                                .whole_tiles = c->whole_tiles,
                                .split_depth = c->split_depth,
                                .strips = c->strips ? TGL_STRIPS_ALWAYS : TGL_STRIPS_NEVER,
                                .epilogue = c->epilogue.size > 0 ? &c->epilogue : NULL};
    tgl_status status = tgl_plan_create(dev, &c->problem, &options, plan);
    *has_strips = c->strips && status == TGL_OK && strncmp(kernel, "gemm/", 5) == 0;
    if (!c->strips || status != TGL_UNSUPPORTED) return status;
    options.strips = TGL_STRIPS_NEVER;
    return tgl_plan_create(dev, &c->problem, &options, plan);
}

static tgl_status plan_and_judge(tgl_device *dev, const check_case *c, const case_memory *memory,
                                 check_subject *s, bool *has_strips, check_verdict *verdict)
{
    const tgl_plan_options by_itself = {.size = sizeof by_itself, .epilogue = &c->epilogue};
    tgl_plan *plan = NULL;
    tgl_status status = TGL_OK;
    verdict->text[0] = '\0';
    *has_strips = false;
    if (strcmp(s->name, "auto") != 0)
        status = make_plan(dev, c, s->name, has_strips, &plan);
    else if (c->epilogue.size > 0)
        status = tgl_plan_create(dev, &c->problem, &by_itself, &plan);
    if (status == TGL_OK) status = judge(dev, c, plan, memory, s, verdict);
    tgl_plan_destroy(plan);
    return status;
}

/* ---- Results --------------------------------------------------------------------------------- */

static void add_counts(check_subject *into, const check_subject *from)
{
    into->passed += from->passed;
    into->failed += from->failed;
    into->unsupported += from->unsupported;
    into->split += from->split;
    into->tail += from->tail;
    into->strips += from->strips;
    into->batch += from->batch;
    into->ten += from->ten;
    for (int i = 0; i < CHECK_CELLS; i++)
        into->cells[i] = into->cells[i] || from->cells[i];
    error_merge(&into->errors, &from->errors);
}

/* Keeps what failed, if no case before has, with the way to run it alone. The lock is held. */
static void keep_failure(shared *all, const check_case *c, const check_subject *s, const char *what)
{
    check_results *results = all->results;
    const check_drawing *from = &all->settings->drawing;
    if (results->failed_case >= 0 && results->failed_case <= c->number) return;
    results->failed_case = c->number;
    char problem[512], type[16] = "";
    check_case_describe(c, problem, sizeof problem);
    if (from->type != 0) snprintf(type, sizeof type, " --type %s", cli_type_name(from->type));
    snprintf(results->failure, sizeof results->failure,
             "case %" PRId64 " failed in kernel %s: %s\n  %s\n  rerun: tegula check --seed %" PRIu64
             " --case %" PRId64 " --kernel %s --device %s%s%s%s%s",
             c->number, s->name, what, problem, from->seed, c->number, s->name,
             tgl_device_name(all->settings->dev), type, from->plain ? " --plain" : "",
             from->scale == SCALE_SMALL ? " --small" : "", from->epilogues ? " --epilogues" : "");
}

/* Takes one case through one kernel. */
static tgl_status try_subject(shared *all, const check_case *c, check_subject *s,
                              const case_memory *memory)
{
    check_subject now = {.name = s->name};
    check_verdict verdict;
    const tgl_device *dev = all->settings->dev;
    bool has_strips;
    const tgl_status status =
        plan_and_judge(all->settings->dev, c, memory, &now, &has_strips, &verdict);
    if (status != TGL_OK) {
        char detail[200] = "";
        tgl_last_error(dev, detail, sizeof detail);
        snprintf(verdict.text, sizeof verdict.text, "%s, %s", tgl_status_name(status), detail);
    }
    now.unsupported = status == TGL_UNSUPPORTED;
    now.passed = verdict.text[0] == '\0';
    now.failed = !now.passed && !now.unsupported;
    if (!now.unsupported) count_coverage(c, has_strips, &now);
    pthread_mutex_lock(&all->lock);
    add_counts(s, &now);
    if (now.failed) keep_failure(all, c, s, verdict.text);
    pthread_mutex_unlock(&all->lock);
    return status;
}

/* The i-th of `count` kernels for a case. The order changes from case to case, so that workers that
 * begin together do not all wait for the same kernel to be compiled. */
static int in_turn(const check_case *c, int i, int count)
{
    return (int)((c->number % count + i) % count); /* the last number may be INT64_MAX */
}

/* The planner's choice, and one of the other kernels that takes the case. */
static tgl_status try_in_turn(shared *all, const check_case *c, const case_memory *memory)
{
    check_results *results = all->results;
    const int others = results->count - 1;
    tgl_status status = try_subject(all, c, &results->subjects[0], memory);
    for (int i = 0; i < others && status != TGL_DEVICE_LOST; i++) {
        status = try_subject(all, c, &results->subjects[1 + in_turn(c, i, others)], memory);
        if (status != TGL_UNSUPPORTED) break;
    }
    return status;
}

/* False: the device is gone. */
static bool try_subjects(shared *all, const check_case *c, const case_memory *memory)
{
    check_results *results = all->results;
    tgl_status status = TGL_OK;
    if (all->settings->in_turn) return try_in_turn(all, c, memory) != TGL_DEVICE_LOST;
    for (int i = 0; i < results->count && status != TGL_DEVICE_LOST; i++)
        status = try_subject(all, c, &results->subjects[in_turn(c, i, results->count)], memory);
    return status != TGL_DEVICE_LOST;
}

/* Returns an exit code. */
static int try_case(shared *all, int64_t number)
{
    const check_settings *s = all->settings;
    check_case c;
    if (!check_case_make(&c, &s->drawing, number))
        return cli_fail("no memory for case %" PRId64, number);
    case_memory memory = {0};
    const tgl_status status = place(s->dev, &c, &memory);
    const bool goes_on = status == TGL_OK && try_subjects(all, &c, &memory);
    release(s->dev, &memory);
    check_case_free(&c);
    if (status != TGL_OK) return cli_fail_status(s->dev, status);
    return goes_on ? EXIT_DONE : EXIT_FAILED;
}

/* ---- Interrupts ------------------------------------------------------------------------------ */

static const int interrupts[] = {SIGINT, SIGTERM};
enum { INTERRUPTS = sizeof interrupts / sizeof interrupts[0] };
static struct sigaction usual[INTERRUPTS];
static atomic_int is_interrupted; /* no more cases begin */

static void let_interrupts_be(void)
{
    for (int i = 0; i < INTERRUPTS; i++)
        sigaction(interrupts[i], &usual[i], NULL);
}

static void on_interrupt(int number)
{
    (void)number;
    atomic_store(&is_interrupted, 1);
    let_interrupts_be();
}

/* What the caller ignores (nohup) stays ignored. */
static void catch_interrupts(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    for (int i = 0; i < INTERRUPTS; i++)
        sigaction(interrupts[i], NULL, &usual[i]);
    for (int i = 0; i < INTERRUPTS; i++)
        if (usual[i].sa_handler != SIG_IGN) sigaction(interrupts[i], &action, NULL);
}

/* ---- All cases ------------------------------------------------------------------------------- */

/* The next case's number; -1: there is none. */
static int64_t take_case(shared *all)
{
    const check_settings *s = all->settings;
    char what[64];
    pthread_mutex_lock(&all->lock);
    const bool more =
        all->code == EXIT_DONE && all->next < s->count && !atomic_load(&is_interrupted);
    const int64_t number = more ? s->first + all->next++ : -1;
    snprintf(what, sizeof what, "case %" PRId64 " of %" PRId64, all->next, s->count);
    if (more) progress_update(&all->line, (double)all->done, what);
    pthread_mutex_unlock(&all->lock);
    return number;
}

static void *work(void *argument)
{
    shared *all = argument;
    for (int64_t number; (number = take_case(all)) >= 0;) {
        const int code = try_case(all, number);
        pthread_mutex_lock(&all->lock);
        all->done++;
        if (code != EXIT_DONE) all->code = code;
        pthread_mutex_unlock(&all->lock);
    }
    return NULL;
}

/* On this thread, and as many more as start. */
static void work_together(shared *all)
{
    pthread_t threads[WORKERS_MAX];
    int started = 0;
    const int64_t wanted = all->settings->workers < all->settings->count ? all->settings->workers
                                                                         : all->settings->count;
    while (started < WORKERS_MAX && started + 1 < wanted &&
           pthread_create(&threads[started], NULL, work, all) == 0)
        started++;
    work(all);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

int check_run(const check_settings *settings, check_results *results)
{
    *results = (check_results){.failed_case = -1};
    const int code = list_subjects(settings, results);
    if (code != EXIT_DONE) return code;
    shared all = {.settings = settings, .results = results, .code = EXIT_DONE};
    pthread_mutex_init(&all.lock, NULL);
    progress_start(&all.line, (double)settings->count);
    catch_interrupts();
    work_together(&all);
    let_interrupts_be();
    results->cases = all.next;
    progress_clear(&all.line);
    pthread_mutex_destroy(&all.lock);
    return all.code;
}

void check_results_free(check_results *results)
{
    free(results->subjects);
    *results = (check_results){.count = 0};
}
