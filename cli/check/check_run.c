/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases through kernels.
 */
#include "check_run.h"
#include "cli.h"
#include "elements.h"
#include "kernel_names.h"
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
    pthread_mutex_t lock; /* guards all members below, and the results */
    int64_t next;         /* case to begin, counted from 0 */
    int64_t done;
    int code; /* EXIT_DONE, or why to stop */
    progress line;
} shared;

static atomic_int is_interrupted; /* no more cases, and no more kernels of a case, begin */

/* ---- The kernels under test ------------------------------------------------------------------ */

int check_find_kernel(const tgl_device *dev, const char *asked)
{
    const char *name;
    if (strcmp(asked, "auto") == 0) return EXIT_DONE;
    for (int i = 0; (name = tgl_kernel_name(dev, i)) != NULL; i++)
        if (kernel_is_asked(dev, asked, name)) return EXIT_DONE;
    return cli_unknown_kernel(dev, asked);
}

/* A kernel string is run as it is; a name gets random options. */
static check_subject subject_of(const char *asked, const char *name)
{
    if (strchr(asked, ':') != NULL) return (check_subject){.name = asked};
    return (check_subject){
        .name = name,
        .has_splits = kernel_has_option(name, "splits=2"),
        .has_whole = kernel_has_option(name, "splits=2,whole=1"),
        .has_depth = kernel_has_option(name, "splits=2,whole=1,depth=32"),
        .has_blocks = kernel_has_option(name, "blocks=1"),
        .has_strips = kernel_has_option(name, "strips=1"),
    };
}

/* Lists the kernels that were asked for; first the planner's choice, if it was asked for. */
static int list_subjects(const check_settings *s, check_results *results)
{
    int count = 1;
    while (tgl_kernel_name(s->dev, count - 1) != NULL)
        count++;
    results->subjects = calloc((size_t)count, sizeof *results->subjects);
    if (results->subjects == NULL) return cli_fail("no memory for %d kernels", count);
    if (kernel_is_auto_asked(s->dev, s->kernel))
        results->subjects[results->count++] = (check_subject){.name = "auto"};
    for (int i = 0; i < count - 1; i++) {
        const char *name = tgl_kernel_name(s->dev, i);
        if (kernel_is_asked(s->dev, s->kernel, name))
            results->subjects[results->count++] = subject_of(s->kernel, name);
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

/* The widest loads that an operand allows in all of its rows and matrices: 4, 2 or 1 elements (0,
 * 1, 2); 3: its leading dimension and stride allow 4, its base does not. */
static int alignment(const check_view *v, int64_t ld, int64_t batch)
{
    const int64_t rows = ld | (batch > 1 ? v->batch : 0), all = rows | v->offset;
    return all % 4 == 0 ? 0 : rows % 4 == 0 ? 3 : all % 2 == 0 ? 1 : 2;
}

/* In row-major terms: kernels get column-major problems with A and B exchanged. */
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

/* A plan for a case, and how it is run. */
typedef struct case_plan {
    tgl_plan *plan;  /* NULL: tgl_gemm() */
    bool has_strips; /* they were demanded */
    size_t needs;    /* bytes of workspace */
    void *workspace; /* the caller's, with a guard behind it; NULL: the device lends it */
} case_plan;

static void count_coverage(const check_case *c, const case_plan *plan, check_subject *s)
{
    const tgl_problem *p = &c->problem;
    const bool is_product = c->alpha != 0 && p->m > 0 && p->n > 0 && p->k > 0 && p->batch > 0;
    if (!is_product) return;
    s->cells[cell_of(c)] = true;
    s->batch += p->batch > 1;
    s->ten += c->again;
    s->strips += plan->has_strips;
    s->separate += c->d.size > 0;
    s->scalars += p->scalars == TGL_SCALARS_DEVICE;
    s->workspace += plan->workspace != NULL;
    if (!s->has_splits || c->splits < 2) return;
    s->split += p->k > 32;
    s->tail += p->k > 32 && s->has_whole && c->whole > 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { AT_A, AT_B, AT_C, AT_D, AT_BIAS, AT_RESIDUAL, BUFFERS, ARRAYS = AT_D + 1 };
enum { SCALAR_STEP = 8, WORKSPACE_GUARD = 256, WORKSPACE_NOISE = 1 << 20 };

/* A case's buffers in memory of the device, and room on the host for what comes back. */
typedef struct case_memory {
    void *at[BUFFERS];           /* NULL: the case has none */
    void *arrays[ARRAYS];        /* of pointers to the matrices of A, B, C and D */
    void *scalars;               /* alpha and beta, SCALAR_STEP bytes apart */
    unsigned char *back, *first; /* first: of ten results */
} case_memory;

static const check_buffer *buffer_of(const check_case *c, int i)
{
    const check_buffer *const all[BUFFERS] = {
        [AT_A] = &c->a, [AT_B] = &c->b,       [AT_C] = &c->c,
        [AT_D] = &c->d, [AT_BIAS] = &c->bias, [AT_RESIDUAL] = &c->residual,
    };
    return all[i];
}

static int result_of(const check_case *c)
{
    return c->d.size > 0 ? AT_D : AT_C;
}

static size_t greatest_bytes(const check_case *c)
{
    size_t greatest = 0;
    for (int i = 0; i < BUFFERS; i++)
        if (check_buffer_bytes(buffer_of(c, i)) > greatest)
            greatest = check_buffer_bytes(buffer_of(c, i));
    return greatest;
}

/* Memory of the device with a copy of host memory. On a GPU it is a multiple of 16 bytes long, and
 * ends with NaNs: cp.async with fewer bytes of source reads only these, but compute-sanitizer (CUDA
 * 13.0) checks all 16, and whether they have been written. One upload: the sanitizer counts a word
 * of which two uploads write a part each as not written. */
static tgl_status place_copy(tgl_device *dev, const void *host, size_t bytes, void **memory)
{
    const size_t room = cli_device_is_host(dev) ? bytes : (bytes + 15) / 16 * 16;
    tgl_status status = tgl_alloc(dev, room, memory);
    if (status != TGL_OK) return status;
    if (room == bytes) return tgl_upload(dev, *memory, host, bytes, NULL);
    unsigned char *padded = malloc(room);
    if (padded == NULL) return TGL_NO_MEMORY;
    memcpy(padded, host, bytes);
    memset(padded + bytes, 0xff, room - bytes);
    status = tgl_upload(dev, *memory, padded, room, NULL);
    free(padded);
    return status;
}

/* The pointers to the matrices of each buffer, in memory of the device. */
static tgl_status place_arrays(tgl_device *dev, const check_case *c, case_memory *memory)
{
    const size_t bytes = (size_t)c->problem.batch * sizeof(void *);
    void **pointers = malloc(bytes + 1);
    tgl_status status = pointers != NULL ? TGL_OK : TGL_NO_MEMORY;
    for (int i = 0; status == TGL_OK && i < ARRAYS; i++) {
        if (memory->at[i] == NULL) continue;
        const check_view *v = &buffer_of(c, i)->view;
        const size_t element = tgl_type_size(buffer_of(c, i)->type);
        for (int64_t b = 0; b < c->problem.batch; b++)
            pointers[b] = (char *)memory->at[i] + (size_t)(v->offset + b * v->batch) * element;
        status = place_copy(dev, pointers, bytes, &memory->arrays[i]);
    }
    free(pointers);
    return status;
}

static tgl_status place_scalars(tgl_device *dev, const check_case *c, case_memory *memory)
{
    unsigned char host[2 * SCALAR_STEP] = {0};
    const tgl_type type = element_accumulator(c->problem.type_a);
    element_set(type, host, 0, c->alpha);
    element_set(type, host + SCALAR_STEP, 0, c->beta);
    return place_copy(dev, host, sizeof host, &memory->scalars);
}

static tgl_status place(tgl_device *dev, const check_case *c, case_memory *memory)
{
    memory->back = malloc(greatest_bytes(c));
    memory->first = malloc(check_buffer_bytes(check_case_result(c)));
    if (memory->back == NULL || memory->first == NULL) return TGL_NO_MEMORY;
    tgl_status status = TGL_OK;
    for (int i = 0; i < BUFFERS && status == TGL_OK; i++) {
        const check_buffer *buffer = buffer_of(c, i);
        if (buffer->size > 0)
            status = place_copy(dev, buffer->image, check_buffer_bytes(buffer), &memory->at[i]);
    }
    if (status == TGL_OK && c->problem.scalars == TGL_SCALARS_DEVICE)
        status = place_scalars(dev, c, memory);
    if (status == TGL_OK && c->problem.batching == TGL_POINTERS)
        status = place_arrays(dev, c, memory);
    return status;
}

static void release(tgl_device *dev, case_memory *memory)
{
    for (int i = 0; i < BUFFERS; i++)
        tgl_free(dev, memory->at[i]);
    for (int i = 0; i < ARRAYS; i++)
        tgl_free(dev, memory->arrays[i]);
    tgl_free(dev, memory->scalars);
    free(memory->back);
    free(memory->first);
}

/* ---- The caller's workspace ------------------------------------------------------------------ */

/* The bytes behind a workspace, and in its first part before a run: a plan must not expect zeros.
 */
static void fill_guard(unsigned char *guard, size_t size)
{
    memset(guard, 0xa5, size);
}

/* Allocates the caller's workspace for a plan that needs one. */
static tgl_status add_workspace(tgl_device *dev, case_plan *plan)
{
    const size_t noise = plan->needs < WORKSPACE_NOISE ? plan->needs : WORKSPACE_NOISE;
    unsigned char *host = malloc(noise + WORKSPACE_GUARD);
    if (host == NULL) return TGL_NO_MEMORY;
    fill_guard(host, noise + WORKSPACE_GUARD);
    tgl_status status = tgl_alloc(dev, plan->needs + WORKSPACE_GUARD, &plan->workspace);
    if (status == TGL_OK) status = tgl_upload(dev, plan->workspace, host, noise, NULL);
    if (status == TGL_OK)
        status =
            tgl_upload(dev, (char *)plan->workspace + plan->needs, host, WORKSPACE_GUARD, NULL);
    free(host);
    return status;
}

/* Reports a write behind the workspace. */
static tgl_status compare_workspace(tgl_device *dev, const case_plan *plan, check_verdict *verdict)
{
    unsigned char guard[WORKSPACE_GUARD], after[WORKSPACE_GUARD];
    if (plan->workspace == NULL) return TGL_OK;
    fill_guard(guard, sizeof guard);
    const tgl_status status =
        tgl_download(dev, after, (const char *)plan->workspace + plan->needs, sizeof after, NULL);
    if (status == TGL_OK && verdict->text[0] == '\0' && memcmp(after, guard, sizeof guard) != 0)
        snprintf(verdict->text, sizeof verdict->text, "memory behind the workspace was written");
    return status;
}

/* ---- One case -------------------------------------------------------------------------------- */

/* The pointer that a product is given for a buffer. */
static void *base(const check_case *c, const case_memory *memory, int i)
{
    const check_buffer *buffer = buffer_of(c, i);
    if (buffer->null || memory->at[i] == NULL) return NULL;
    return (char *)memory->at[i] + (size_t)buffer->view.offset * tgl_type_size(buffer->type);
}

static void *array(const check_case *c, const case_memory *memory, int i)
{
    return buffer_of(c, i)->null ? NULL : memory->arrays[i];
}

static tgl_operands operands_of(const check_case *c, const case_plan *plan,
                                const case_memory *memory)
{
    tgl_operands o = {.size = sizeof o};
    o.bias = base(c, memory, AT_BIAS);
    o.residual = base(c, memory, AT_RESIDUAL);
    o.workspace = plan->workspace;
    o.workspace_bytes = plan->workspace != NULL ? plan->needs : 0;
    if (c->problem.scalars == TGL_SCALARS_DEVICE) {
        o.alpha_at = memory->scalars;
        if (!c->no_beta) o.beta_at = (const char *)memory->scalars + SCALAR_STEP;
    } else {
        o.alpha = c->alpha;
        o.beta = c->beta;
    }
    if (c->problem.batching == TGL_POINTERS) {
        o.A_array = array(c, memory, AT_A);
        o.B_array = array(c, memory, AT_B);
        o.C_array = array(c, memory, AT_C);
        o.D_array = array(c, memory, AT_D);
    } else {
        o.A = base(c, memory, AT_A);
        o.B = base(c, memory, AT_B);
        o.C = base(c, memory, AT_C);
        o.D = base(c, memory, AT_D);
    }
    return o;
}

/* Uploads the result's buffer, runs the product, and downloads the buffer to memory->back. */
static tgl_status multiply(tgl_device *dev, const check_case *c, const case_plan *plan,
                           const case_memory *memory)
{
    const tgl_operands o = operands_of(c, plan, memory);
    const check_buffer *result = check_case_result(c);
    void *place = memory->at[result_of(c)];
    tgl_status status = tgl_upload(dev, place, result->image, check_buffer_bytes(result), NULL);
    if (status != TGL_OK) return status;
    if (plan->plan != NULL)
        status = tgl_plan_run_operands(plan->plan, &o, NULL);
    else if (c->problem.batching == TGL_POINTERS)
        status = tgl_gemm_batched(dev, &c->problem, c->alpha, o.A_array, o.B_array, c->beta,
                                  o.C_array, NULL);
    else
        status = tgl_gemm(dev, &c->problem, c->alpha, o.A, o.B, c->beta, o.C, NULL);
    if (status != TGL_OK) return status;
    return tgl_download(dev, memory->back, place, check_buffer_bytes(result), NULL);
}

/* Reports an input that has changed. */
static tgl_status compare_inputs(tgl_device *dev, const check_case *c, const case_memory *memory,
                                 check_verdict *verdict)
{
    static const char *const names[BUFFERS] = {"A", "B", "C", "D", "bias", "residual"};
    tgl_status status = TGL_OK;
    for (int i = 0; i < BUFFERS && status == TGL_OK; i++) {
        const check_buffer *buffer = buffer_of(c, i);
        if (memory->at[i] == NULL || i == result_of(c)) continue;
        status = tgl_download(dev, memory->back, memory->at[i], check_buffer_bytes(buffer), NULL);
        if (status == TGL_OK && verdict->text[0] == '\0' &&
            memcmp(memory->back, buffer->image, check_buffer_bytes(buffer)) != 0)
            snprintf(verdict->text, sizeof verdict->text, "%s was written, and is an input",
                     names[i]);
    }
    return status;
}

/* Runs the product again, and reports bits that differ from the first run. */
static tgl_status repeat(tgl_device *dev, const check_case *c, const case_plan *plan,
                         const case_memory *memory, check_verdict *verdict)
{
    const size_t bytes = check_buffer_bytes(check_case_result(c));
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
static tgl_status judge(tgl_device *dev, const check_case *c, const case_plan *plan,
                        const case_memory *memory, check_subject *s, check_verdict *verdict)
{
    tgl_status status = multiply(dev, c, plan, memory);
    if (status != TGL_OK) return status;
    check_case_compare(c, memory->back, &s->errors, verdict);
    if (c->again) status = repeat(dev, c, plan, memory, verdict);
    if (status == TGL_OK) status = compare_inputs(dev, c, memory, verdict);
    if (status == TGL_OK) status = compare_workspace(dev, plan, verdict);
    return status;
}

/* Adds ",name=value", or ":name=value" if it is the first. */
static void add_option(char *text, size_t size, const char *name, int64_t value)
{
    const size_t length = strlen(text);
    snprintf(text + length, size - length, "%c%s=%" PRId64, strchr(text, ':') != NULL ? ',' : ':',
             name, value);
}

/* The kernel string for a case: the name, and the case's values of the options that the kernel has.
 */
static void make_kernel_string(const check_case *c, const check_subject *s, bool strips, char *text,
                               size_t size)
{
    snprintf(text, size, "%s", s->name);
    if (s->has_splits && c->splits > 0) add_option(text, size, "splits", c->splits);
    if (s->has_whole && c->whole > 0) add_option(text, size, "whole", c->whole);
    if (s->has_depth && c->depth > 0) add_option(text, size, "depth", c->depth);
    if (s->has_blocks && c->blocks > 0) add_option(text, size, "blocks", c->blocks);
    if (s->has_strips) add_option(text, size, "strips", strips);
}

/* Makes a plan for a case by a kernel string. */
static tgl_status make_plan_of(tgl_device *dev, const check_case *c, const char *kernel,
                               tgl_plan **plan)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = kernel,
                                      .epilogue = c->epilogue.size > 0 ? &c->epilogue : NULL};
    return tgl_plan_create(dev, &c->problem, &options, plan);
}

/* Plans a case with a named kernel. If strips are not possible, it is planned without. */
static tgl_status make_named_plan(tgl_device *dev, const check_case *c, const check_subject *s,
                                  case_plan *plan)
{
    char kernel[160];
    const bool wants_strips = s->has_strips && c->strips;
    make_kernel_string(c, s, wants_strips, kernel, sizeof kernel);
    const tgl_status status = make_plan_of(dev, c, kernel, &plan->plan);
    plan->has_strips = wants_strips && status == TGL_OK;
    if (!wants_strips || status != TGL_UNSUPPORTED) return status;
    make_kernel_string(c, s, false, kernel, sizeof kernel);
    return make_plan_of(dev, c, kernel, &plan->plan);
}

/* Whether the planner's choice needs a plan made by the caller, because tgl_gemm() does not support
 * the case. */
static bool needs_plan(const check_case *c)
{
    return c->epilogue.size > 0 || c->d.size > 0 || c->problem.scalars != TGL_SCALARS_HOST ||
           c->own_workspace;
}

static tgl_status make_plan(tgl_device *dev, const check_case *c, const check_subject *s,
                            case_plan *plan)
{
    tgl_status status = TGL_OK;
    if (strcmp(s->name, "auto") != 0)
        status = make_named_plan(dev, c, s, plan);
    else if (needs_plan(c))
        status = make_plan_of(dev, c, NULL, &plan->plan);
    plan->needs = tgl_plan_workspace_size(plan->plan);
    if (status == TGL_OK && c->own_workspace && plan->needs > 0) status = add_workspace(dev, plan);
    return status;
}

/* Makes a plan, runs it, checks its result and counts the variants it has covered. */
static tgl_status plan_and_judge(tgl_device *dev, const check_case *c, const case_memory *memory,
                                 check_subject *s, check_verdict *verdict)
{
    case_plan plan = {0};
    verdict->text[0] = '\0';
    tgl_status status = make_plan(dev, c, s, &plan);
    if (status == TGL_OK) status = judge(dev, c, &plan, memory, s, verdict);
    if (status != TGL_UNSUPPORTED) count_coverage(c, &plan, s);
    tgl_free(dev, plan.workspace);
    tgl_plan_destroy(plan.plan);
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
    into->separate += from->separate;
    into->scalars += from->scalars;
    into->workspace += from->workspace;
    for (int i = 0; i < CHECK_CELLS; i++)
        into->cells[i] = into->cells[i] || from->cells[i];
    error_merge(&into->errors, &from->errors);
}

/* Adds " --type f16", if it was asked for. */
static void add_type(char *text, size_t size, const char *option, tgl_type type)
{
    const size_t length = strlen(text);
    if (type != 0)
        snprintf(text + length, size - length, " --%s %s", option, element_type_name(type));
}

/* Keeps the failure of the first case that fails, with the command that reproduces it. The lock is
 * held. */
static void keep_failure(shared *all, const check_case *c, const check_subject *s, const char *what)
{
    check_results *results = all->results;
    const check_drawing *from = &all->settings->drawing;
    if (results->failed_case >= 0 && results->failed_case <= c->number) return;
    results->failed_case = c->number;
    char problem[512], type[64] = "", compute[32] = "";
    check_case_describe(c, problem, sizeof problem);
    if (from->compute != TGL_COMPUTE_DEFAULT)
        snprintf(compute, sizeof compute, " --compute %s", cli_compute_name(from->compute));
    add_type(type, sizeof type, "type", from->type);
    add_type(type, sizeof type, "type-c", from->type_c);
    add_type(type, sizeof type, "type-d", from->type_d);
    snprintf(results->failure, sizeof results->failure,
             "case %" PRId64 " failed in kernel %s: %s\n  %s\n  rerun: tegula check --seed %" PRIu64
             " --case %" PRId64 " --kernel %s --device %s%s%s%s%s%s",
             c->number, s->name, what, problem, from->seed, c->number, s->name,
             tgl_device_name(all->settings->dev), type, compute, from->plain ? " --plain" : "",
             from->scale == SCALE_SMALL ? " --small" : "", from->epilogues ? " --epilogues" : "");
}

/* Shows how far the case is: `part` of it is done. */
static void show_progress(shared *all, const check_case *c, const char *kernel, double part)
{
    char what[200];
    snprintf(what, sizeof what, "case %" PRId64 " of %" PRId64 ": %s",
             c->number - all->settings->first + 1, all->settings->count, kernel);
    pthread_mutex_lock(&all->lock);
    progress_update(&all->line, (double)all->done + part, what);
    pthread_mutex_unlock(&all->lock);
}

/* Runs one case with one kernel. Failures after an interrupt do not count, because the terminal
 * also interrupts a compiler that is running. */
static tgl_status try_subject(shared *all, const check_case *c, check_subject *s,
                              const case_memory *memory)
{
    check_subject now = {.name = s->name,
                         .has_splits = s->has_splits,
                         .has_whole = s->has_whole,
                         .has_depth = s->has_depth,
                         .has_blocks = s->has_blocks,
                         .has_strips = s->has_strips};
    check_verdict verdict;
    const tgl_status status = plan_and_judge(all->settings->dev, c, memory, &now, &verdict);
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
    add_counts(s, &now);
    if (now.unsupported)
        snprintf(all->results->unsupported, sizeof all->results->unsupported, "%s", verdict.text);
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

/* Whether a case goes on to its next kernel. On the simulator each kernel is compiled first. */
static bool goes_on(tgl_status status)
{
    return status != TGL_DEVICE_LOST && !atomic_load(&is_interrupted);
}

/* Runs the planner's choice, and the next of the other kernels that supports the case. */
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

/* False: the device is gone. */
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

/* Returns an exit code. */
static int try_case(shared *all, int64_t number)
{
    const check_settings *s = all->settings;
    check_case c;
    if (!check_case_make(&c, &s->drawing, number))
        return cli_fail("no memory for case %" PRId64, number);
    case_memory memory = {0};
    const tgl_status status = place(s->dev, &c, &memory);
    const bool has_device = status == TGL_OK && try_subjects(all, &c, &memory);
    release(s->dev, &memory);
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

/* A second Ctrl-C ends the process. A second SIGTERM does not: timeout(1) sends it twice, to the
 * process and to its group. */
static void on_interrupt(int number)
{
    atomic_store(&is_interrupted, 1);
    for (int i = 0; i < INTERRUPTS; i++)
        if (interrupts[i] == number && number != SIGTERM) sigaction(number, &usual[i], NULL);
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
    pthread_mutex_lock(&all->lock);
    const bool more =
        all->code == EXIT_DONE && all->next < s->count && !atomic_load(&is_interrupted);
    const int64_t number = more ? s->first + all->next++ : -1;
    pthread_mutex_unlock(&all->lock);
    return number;
}

static void *work(void *argument)
{
    shared *all = argument;
    for (int64_t number; (number = take_case(all)) >= 0;) {
        const int code = try_case(all, number);
        pthread_mutex_lock(&all->lock);
        all->done += !atomic_load(&is_interrupted); /* else it was cut short */
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
