/* SPDX-License-Identifier: Apache-2.0
 *
 * The table and the CSV file of a benchmark. A peer is another library that Tegula is compared
 * with.
 */
#include "bench_report.h"
#include "cli.h"
#include "csv.h"
#include "problem_options.h"

#include <inttypes.h>
#include <string.h>

/* The name of the device's processor or chip, such as "Intel(R) Xeon(R) ..."; "" if the device does
 * not tell it. */
static const char *chip(const tgl_device *dev)
{
    static const char *const keys[] = {"processor", "chip", "model"}; /* the keys of cpu, cuda and
                                                                         sim devices */
    const char *text = "";
    for (int i = 0; i < 3 && text[0] == '\0'; i++)
        text = cli_device_property(dev, keys[i]);
    return text;
}

void report_shape(const tgl_problem *p, char *text, size_t size)
{
    char batch[32] = "";
    if (p->batch != 1) snprintf(batch, sizeof batch, " x%" PRId64, p->batch);
    snprintf(text, size, "%s %" PRId64 "x%" PRId64 "x%" PRId64 " %s%s", problem_type_label(p).text,
             p->m, p->n, p->k, problem_layout(p), batch);
}

/* ---- Start ----------------------------------------------------------------------------------- */

static void print_heading(const contest_settings *s)
{
    printf("%s: %s", tgl_device_name(s->dev), chip(s->dev));
    if (cli_device_is_host(s->dev)) printf(", %d thread%s", s->threads, s->threads == 1 ? "" : "s");
    static const char *const prepared[] = {"", ", A prepared", ", B prepared",
                                           ", A and B prepared"};
    printf("\ntegula: %s%s%s%s\n", tgl_version(), s->one_shot ? ", tgl_gemm()" : ", a kept plan",
           prepared[s->prepares[0] + 2 * s->prepares[1]],
           epilogue_is_none(&s->epilogue) ? "" : ", with an epilogue that its peers have not");
    for (int i = 0; i < s->peer_count; i++)
        printf("%s: %s\n", s->peers[i].name, s->peers[i].version);
    printf("GFLOP/s by the median %s; ratio: the best peer's time over Tegula's, above 1 where "
           "Tegula is faster\n\n",
           s->cpu_time ? "processor time" : "time");
    printf("%-28s %8s %9s %6s", "type m x n x k layout", "FMA", "tegula", "% FMA");
    for (int i = 0; i < s->peer_count; i++)
        printf(" %9.9s", s->peers[i].name);
    printf("  %6s\n", s->peer_count > 0 ? "ratio" : "");
}

bool report_start(bench_report *r, const contest_settings *settings, const char *csv_path)
{
    *r = (bench_report){.settings = settings};
    if (!output_file_open(&r->csv, csv_path)) return false;
    if (r->csv.stream != NULL) {
        csv_put_origin(r->csv.stream, settings->dev);
        fputs("device,chip,threads,type,layout,m,n,k,batch,library,version,kernel,seconds,gflops,"
              "time_over_tegula,rounds,clock,fma_gflops,spread\n",
              r->csv.stream);
    }
    print_heading(settings);
    return true;
}

/* ---- A shape --------------------------------------------------------------------------------- */

static void write_csv_rows(bench_report *r, const contest *t)
{
    const contest_settings *s = r->settings;
    const tgl_problem *p = &t->problem;
    const double gflop = problem_flops(p) * 1e-9;
    FILE *csv = r->csv.stream;
    for (int i = 0; i <= s->peer_count; i++) {
        const contestant *c = &t->all[i];
        if (!c->right) continue;
        fprintf(csv, "%s,", tgl_device_name(s->dev));
        csv_put_text(csv, chip(s->dev));
        fprintf(csv, ",%d,%s,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,", s->threads,
                problem_type_label(p).text, problem_layout(p), p->m, p->n, p->k, p->batch,
                i == 0 ? "tegula" : c->peer->name);
        csv_put_text(csv, i == 0 ? tgl_version() : c->peer->version);
        fputc(',', csv);
        csv_put_text(csv, i == 0 ? tgl_plan_kernel(t->plan) : "");
        fprintf(csv, ",%.9g,%.6g,%.4f,%d,%s,", c->seconds, gflop / c->seconds, c->ratio, t->rounds,
                s->cpu_time                  ? "processor"
                : cli_device_is_host(s->dev) ? "wall"
                                             : "device");
        if (t->fma > 0) fprintf(csv, "%.6g", t->fma * 1e-9);
        fprintf(csv, ",%.3f\n", c->spread);
    }
    output_file_flush(&r->csv); /* a benchmark that is stopped keeps the rows it has written so
                                   far */
}

/* Returns the index in r->types of the problem's element types, and adds them if they are new.
 * Returns -1 if they are new and r->types is full. */
static int report_type(bench_report *r, const tgl_problem *p)
{
    const type_label label = problem_type_label(p);
    for (int i = 0; i < REPORT_TYPES; i++) {
        if (r->types[i].text[0] == '\0') r->types[i] = label;
        if (strcmp(r->types[i].text, label.text) == 0) return i;
    }
    return -1;
}

static void add_to_means(bench_report *r, const contest *t, const char *shape)
{
    const int type = report_type(r, &t->problem);
    if (type < 0) return;
    for (int i = 0; i < r->settings->peer_count; i++)
        if (t->all[i + 1].right) geometric_mean_add(&r->peers[type][i], t->all[i + 1].ratio);
    const contestant *best = contest_best_peer(t);
    if (best == NULL) return;
    if (r->best[type].count == 0 || best->ratio < r->worst[type]) {
        r->worst[type] = best->ratio;
        snprintf(r->worst_shape[type], sizeof r->worst_shape[type], "%s", shape);
    }
    geometric_mean_add(&r->best[type], best->ratio);
}

/* Whether an f32 or f64 product on the CPU with m, n, k >= LARGE runs at less than `plausible`
 * times the FMA rate. On one thread, 0.53 to 0.95 of that rate were measured (bench/results, the
 * files cpu.csv). The FMA rate is the best of several samples, so other programs that run for a
 * short time do not lower it. */
static bool is_far_below_fma(const contest *t, double flops)
{
    enum { LARGE = 512 };
    static const double plausible = 0.5;
    const tgl_problem *p = &t->problem;
    return cli_device_is_host(t->settings->dev) && t->fma > 0 && flops < plausible * t->fma &&
           (p->type_a == TGL_F32 || p->type_a == TGL_F64) && p->m >= LARGE && p->n >= LARGE &&
           p->k >= LARGE;
}

void report_add(bench_report *r, const contest *t)
{
    char shape[64];
    report_shape(&t->problem, shape, sizeof shape);
    const double gflop = problem_flops(&t->problem) * 1e-9;
    const double ours = gflop / t->all[0].seconds;
    if (t->fma > 0)
        printf("%-28s %8.1f %9.1f %6.1f", shape, t->fma * 1e-9, ours, 100 * ours * 1e9 / t->fma);
    else
        printf("%-28s %8s %9.1f %6s", shape, "-", ours, "-");
    for (int i = 1; i <= r->settings->peer_count; i++)
        if (t->all[i].right)
            printf(" %9.1f", gflop / t->all[i].seconds);
        else
            printf(" %9s", "-");
    const contestant *best = contest_best_peer(t);
    if (best != NULL) printf("  %6.3f  %s", best->ratio, best->peer->name);
    if (contest_spread(t) > CONTEST_UNSTABLE_SPREAD) {
        printf("  unstable: %.0f %%", 100 * contest_spread(t));
        r->unstable++;
    }
    if (is_far_below_fma(t, ours * 1e9)) r->slow++;
    putchar('\n');
    fflush(stdout);
    add_to_means(r, t, shape);
    if (r->csv.stream != NULL) write_csv_rows(r, t);
}

/* ---- End ------------------------------------------------------------------------------------- */

static void print_means(const bench_report *r, int type)
{
    if (r->best[type].count == 0) return;
    printf("\n%s: the best peer's time over Tegula's: geometric mean %.3f over %d shape%s, least "
           "%.3f at %s\n",
           r->types[type].text, geometric_mean_value(&r->best[type]), r->best[type].count,
           r->best[type].count == 1 ? "" : "s", r->worst[type], r->worst_shape[type]);
    for (int i = 0; i < r->settings->peer_count; i++)
        if (r->peers[type][i].count > 0)
            printf("     %s alone: %.3f\n", r->settings->peers[i].name,
                   geometric_mean_value(&r->peers[type][i]));
}

int report_finish(bench_report *r)
{
    for (int type = 0; type < REPORT_TYPES; type++)
        print_means(r, type);
    if (r->unstable > 0)
        printf("\n%d row%s unstable: a quarter of some library's samples took longer than its "
               "fastest by more than the share shown.\nOther programs may be running. More time "
               "(--time), fewer threads or --cpu-time may help.\n",
               r->unstable, r->unstable == 1 ? " is" : "s are");
    if (r->slow > 0)
        printf(
            "\nThe machine was busy: %d row%s less than half of the FMA rate, and large products "
            "reach more where nothing else runs.\nThese numbers are not Tegula's speed.\n",
            r->slow, r->slow == 1 ? " is" : "s are");
    return output_file_close(&r->csv) ? EXIT_DONE : EXIT_FAILED;
}
