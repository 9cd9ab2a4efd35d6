/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the products of a suite or trace. The library measures the candidates of a product and
 * stores their times in the wisdom, a file from which later plans take the fastest candidate. A
 * product that is in the wisdom already is not measured again.
 */
#include "tune_plans.h"
#include "cli.h"
#include "contest.h"
#include "problem_options.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tuner {
    tgl_device *dev;
    const suite *products;
    const tune_settings *settings;
    peer peer; /* cuBLAS, if settings->has_peer */
    kept_matrices kept;
    char wrong[256]; /* what is wrong with Tegula's product; empty: it is right, or was not compared
                      */
} tuner;

/* ---- The peer -------------------------------------------------------------------------------- */

static void swap(int64_t *x, int64_t *y)
{
    const int64_t z = *x;
    *x = *y;
    *y = z;
}

/* *p if it is row-major; else the row-major problem for the same matrices in memory. */
static tgl_problem row_major_of(const tgl_problem *p)
{
    tgl_problem row = *p;
    if (p->order == TGL_ROW_MAJOR) return row;
    row.order = TGL_ROW_MAJOR;
    row.trans_a = p->trans_b, row.trans_b = p->trans_a;
    row.type_a = p->type_b, row.type_b = p->type_a;
    swap(&row.m, &row.n);
    swap(&row.lda, &row.ldb);
    swap(&row.stride_a, &row.stride_b);
    return row;
}

static bool is_ld(int64_t ld, int64_t tight)
{
    return ld == 0 || ld == tight;
}

/* *tight := the row-major problem with tight matrices, which is the only form that cuBLAS gets in
 * this program. False: the matrices of *p have padding or other batch strides, so *tight is another
 * problem. */
static bool make_tight(const tgl_problem *p, tgl_problem *tight)
{
    const tgl_problem row = row_major_of(p);
    *tight = row;
    tight->lda = tight->ldb = tight->ldc = 0;
    if (tight->batch > 1) problem_set_strides(tight);
    return is_ld(row.lda, row.trans_a == TGL_NO_TRANS ? row.k : row.m) &&
           is_ld(row.ldb, row.trans_b == TGL_NO_TRANS ? row.n : row.k) && is_ld(row.ldc, row.n) &&
           row.stride_a == tight->stride_a && row.stride_b == tight->stride_b &&
           row.stride_c == tight->stride_c;
}

/* Times cuBLAS and the plan in turn, and stores their ratio in the wisdom. *ratio := time of cuBLAS
 * / time of the plan; 0: cuBLAS does not support the product, or one of the results was wrong. A
 * wrong result of the plan is described in t->wrong. */
static tgl_status compare(tuner *t, const tgl_problem *p, double *ratio)
{
    double best_fma[2] = {0};
    const contest_settings settings = {.dev = t->dev,
                                       .peers = &t->peer,
                                       .peer_count = 1,
                                       .threads = 1,
                                       .time = 0.1,
                                       .plan = {.size = sizeof settings.plan},
                                       .best_fma = best_fma,
                                       .kept = &t->kept};
    contest c;
    *ratio = 0;
    tgl_status status = contest_run(&c, &settings, p);
    if (status == TGL_OK && c.error[0] == '\0' && c.all[1].right) *ratio = c.all[1].ratio;
    if (*ratio > 0) status = tgl_plan_set_peer(c.plan, *ratio);
    if (status == TGL_OK) snprintf(t->wrong, sizeof t->wrong, "%s", c.error);
    contest_release(&c);
    return status;
}

/* ---- A product ------------------------------------------------------------------------------- */

/* Prints the kernel of a plan and what was measured for it, without the end of the line. False: out
 * of memory, and the error has been printed. */
static bool print_plan(const tgl_problem *p, const tgl_plan *plan)
{
    static const char key[] = "\nmeasured    ";
    char *text = cli_explain(plan);
    if (text == NULL) return cli_fail_false("no memory for the explanation");
    const char *found = strstr(text, key);
    const char *measured = found != NULL ? found + strlen(key) : "not measured";
    printf("%s %s batch %" PRId64 ": %s, %.*s", problem_type_label(p).text,
           problem_shape_label(p).text, p->batch, tgl_plan_kernel(plan),
           (int)strcspn(measured, "\n"), measured);
    free(text);
    return true;
}

static tgl_status measure(tuner *t, int i)
{
    const suite *s = t->products;
    const tgl_problem *p = &s->problems[i];
    const tgl_epilogue *epilogue = s->epilogues != NULL ? &s->epilogues[i] : NULL;
    const bool has_epilogue = epilogue != NULL && !epilogue_is_none(epilogue);
    const tgl_plan_options options = {.size = sizeof options,
                                      .epilogue = has_epilogue ? epilogue : NULL,
                                      .effort = TGL_EFFORT_MEASURE,
                                      .measure_seconds = t->settings->seconds};
    tgl_plan *plan;
    tgl_problem tight;
    double ratio = 0;
    t->wrong[0] = '\0';
    CLI_TRY(tgl_plan_create(t->dev, p, &options, &plan));
    const bool is_printed = print_plan(p, plan);
    const bool has_peer = t->settings->has_peer && !has_epilogue &&
                          p->scalars == TGL_SCALARS_HOST && make_tight(p, &tight);
    const bool is_known = has_peer && tgl_plan_peer(plan, &ratio) == TGL_OK;
    tgl_plan_destroy(plan);
    if (!is_printed) return TGL_NO_MEMORY;
    const tgl_status status = has_peer && !is_known ? compare(t, &tight, &ratio) : TGL_OK;
    if (ratio > 0) printf("; cuBLAS takes %.3f times as long", ratio);
    putchar('\n');
    fflush(stdout); /* show the line now, because the next product takes seconds */
    return status;
}

/* ---- All products ---------------------------------------------------------------------------- */

/* Returns whether the library can store measured times in the wisdom. If not, prints why. */
static bool check_wisdom(const tgl_device *dev)
{
    const char *wisdom = cli_device_property(dev, "wisdom");
    if (wisdom[0] == '\0')
        return cli_fail_false("the plans of %s are not measured", tgl_device_name(dev));
    if (strncmp(wisdom, "off", 3) == 0 || strstr(wisdom, ", read-only)") != NULL)
        return cli_fail_false("the wisdom cannot be written: %s", wisdom);
    return true;
}

static int tune_all(tuner *t)
{
    const suite *s = t->products;
    const double end = cli_clock() + 60 * t->settings->minutes;
    int code = EXIT_DONE, left = 0;
    progress line;
    progress_start(&line, s->count);
    for (int i = 0; i < s->count; i++) {
        if (cli_clock() > end) {
            left = s->count - i;
            break;
        }
        const shape_label what = problem_shape_label(&s->problems[i]);
        progress_update(&line, i, what.text);
        const tgl_status status = measure(t, i);
        progress_clear(&line);
        if (status == TGL_OK && t->wrong[0] == '\0') continue;
        code = status != TGL_OK ? cli_fail_at(what.text, status)
                                : cli_fail("%s: the product is wrong: %s", what.text, t->wrong);
        if (status == TGL_DEVICE_LOST) break;
    }
    progress_clear(&line);
    if (left > 0)
        printf("time is up: %d shapes are left; the same command goes on with them\n", left);
    return code;
}

int tune_plans(tgl_device *dev, const suite *s, const tune_settings *settings)
{
    char message[1024];
    tuner t = {.dev = dev, .products = s, .settings = settings};
    if (!check_wisdom(dev)) return EXIT_FAILED;
    if (!settings->has_peer) return tune_all(&t);
    cublas *library = cublas_open(dev, message, sizeof message);
    if (library == NULL) return cli_fail("--peer: %s", message);
    peer_from_cublas(&t.peer, library, CUBLAS_DEFAULT);
    const int code = tune_all(&t);
    kept_matrices_free(&t.kept);
    cublas_close(library);
    return code;
}
