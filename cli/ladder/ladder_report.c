/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the ladder's tables, CSV file and chart. A rung is one of the kernels of the ladder.
 */
#include "ladder_report.h"
#include "csv.h"
#include "problem_options.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static double ratio(int64_t x, int64_t y)
{
    return y > 0 ? (double)x / (double)y : 0;
}

/* Whether there are figures to show for a rung: the simulator's counts, or a time. */
static bool has_figures(const ladder_report *r, const rung *x)
{
    return x->note[0] == '\0' && (r->settings->has_counters ? x->plan != NULL : x->seconds > 0);
}

/* ---- Counts of the simulator ------------------------------ */

/* Figures of memory traffic. cp.async reads global memory and writes shared memory, so it counts as
 * a load of global memory and as a store to shared memory. So does a TMA load, whose wavefronts are
 * not counted. */
typedef struct traffic {
    double load_sectors, store_sectors; /* sectors of 32 bytes of global memory per request */
    double loads_per_ffma;              /* load requests of global memory / FFMA instructions, both
                                           by warps */
    double moved; /* bytes of all global-memory sectors accessed / minimum bytes that the product
                     must move */
    double shared_loads_per_ffma; /* load requests of shared memory / FFMA instructions, both
                                     by warps */
    double load_wavefronts, store_wavefronts; /* wavefronts of shared memory per request */
    int64_t conflicts;
    double barriers; /* mean number of barriers that a block waits at */
} traffic;

static traffic traffic_of(const ladder_size *s, const tgl_counters *t)
{
    const tgl_problem *p = &s->problem;
    const int64_t ffmas = p->m * p->n * p->k / 32; /* FFMA instructions of warps, all of whose 32
                                                      lanes are active */
    const int64_t loads = t->global_load_requests + t->async_copy_requests;
    const int64_t sectors = t->global_load_sectors + t->async_copy_sectors;
    return (traffic){
        .load_sectors = ratio(sectors, loads),
        .store_sectors = ratio(t->global_store_sectors, t->global_store_requests),
        .loads_per_ffma = ratio(loads, ffmas),
        .moved = ratio(32 * (sectors + t->global_store_sectors), t->needed_bytes),
        .shared_loads_per_ffma = ratio(t->shared_load_requests, ffmas),
        .load_wavefronts = ratio(t->shared_load_wavefronts, t->shared_load_requests),
        .store_wavefronts = ratio(t->shared_store_wavefronts + t->async_copy_wavefronts,
                                  t->shared_store_requests + t->async_copy_requests),
        .conflicts = t->shared_load_conflicts + t->shared_store_conflicts + t->async_copy_conflicts,
        .barriers = ratio(t->barriers, t->blocks),
    };
}

/* ---- Start ----------------------------------------------------------------------------------- */

static const char timed_columns[] =
    "date,tegula,device,chip,driver,nvrtc,cublas,m,n,k,rung,seconds,seconds_q1,seconds_q3,repeats,"
    "tflops,ffma_tflops,percent_ffma,percent_cublas,percent_cublaslt,max_error,rms_error,"
    "exact_elements,others_compared_with";

const char ladder_counted_columns[] =
    "date,tegula,device,m,n,k,rung,max_error,blocks,threads,shared_bytes,barriers,"
    "global_load_requests,global_load_sectors,global_load_bytes,global_store_requests,"
    "global_store_sectors,global_store_bytes,shared_load_requests,shared_load_wavefronts,"
    "shared_load_conflicts,shared_load_bytes,shared_store_requests,shared_store_wavefronts,"
    "shared_store_conflicts,shared_store_bytes,async_copy_requests,async_copy_sectors,"
    "async_copy_bytes,async_copy_wavefronts,async_copy_conflicts,needed_bytes,mma_requests,"
    "wgmma_requests,wgmma_bytes,tma_load_requests,tma_load_sectors,tma_load_bytes,"
    "tma_multicast_bytes,tma_store_requests,tma_store_sectors,tma_store_bytes,mbarrier_waits";

/* Opens the CSV file and the plot, before any rung runs. False: failed, and the error has been
 * printed. */
static bool open_files(ladder_report *r, const char *csv_path, const char *plot_path)
{
    if (!output_file_open(&r->csv, csv_path)) return false;
    if (!output_file_open(&r->plot, plot_path)) {
        output_file_close(&r->csv);
        return false;
    }
    if (r->csv.stream != NULL) {
        csv_put_origin(r->csv.stream, r->settings->dev);
        fprintf(r->csv.stream, "%s\n",
                r->settings->has_counters ? ladder_counted_columns : timed_columns);
    }
    return true;
}

static void print_heading(const ladder_report *r, const char *no_cublas)
{
    const ladder_settings *s = r->settings;
    if (s->has_counters) {
        printf("%s: %s\n"
               "C := A*B, %s, row-major; counted exactly. A load or store is an instruction of a "
               "warp;\ncp.async is a global load and a shared store.\n",
               tgl_device_name(s->dev), cli_device_property(r->settings->dev, "model"),
               s->chapter->what);
        return;
    }
    printf("%s: %s, driver %s, NVRTC %s\n", tgl_device_name(s->dev),
           cli_device_property(r->settings->dev, "chip"),
           cli_device_property(r->settings->dev, "driver"),
           cli_device_property(r->settings->dev, "NVRTC"));
    if (!s->timed) return;
    if (s->cublas != NULL)
        printf("cuBLAS %s, as it comes and by the fastest of cuBLASLt's candidates, with%s TF32\n",
               cublas_version(s->cublas), s->chapter->compute == TGL_COMPUTE_TF32 ? "" : "out");
    else
        printf("without cuBLAS: %s\n", no_cublas);
    printf("C := A*B, %s, row-major, random in (-1,1); medians of interleaved repeats; the "
           "matrices change\nfrom call to call and do not stay in the cache",
           s->chapter->what);
    if (r->ffma > 0) printf("; FFMA: %.1f TFLOP/s, measured", r->ffma * 1e-12);
    putchar('\n');
}

bool ladder_report_start(ladder_report *r, const char *csv_path, const char *plot_path,
                         const char *no_cublas)
{
    const time_t now = time(NULL);
    struct tm utc;
    strftime(r->date, sizeof r->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    if (!open_files(r, csv_path, plot_path)) return false;
    print_heading(r, no_cublas);
    return true;
}

/* ---- A size ---------------------------------------------------------------------------------- */

static void format_time(double seconds, char text[16])
{
    const double scale = seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;
    const char *unit = seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s";
    snprintf(text, 16, "%.*f %s", seconds * scale < 100 ? 2 : 1, seconds * scale, unit);
}

/* Prints a number, or "-" for 0, which stands for an unknown value or a count of 0. */
static void print_number(int width, int digits, double value)
{
    if (value > 0)
        printf(" %*.*f", width, digits, value);
    else
        printf(" %*s", width, "-");
}

static void print_timed(const ladder_report *r, const ladder_size *s, const rung *x)
{
    const double rate = x->seconds > 0 ? problem_flops(&s->problem) / x->seconds : 0;
    char time_text[16];
    format_time(x->seconds, time_text);
    if (x->number > 0)
        printf("%4d %-18s", x->number, x->name);
    else
        printf("     %-18s", x->name);
    if (x->note[0] != '\0' || rate == 0) {
        printf(" %s\n", x->note[0] != '\0' ? x->note : "not timed at this size");
        return;
    }
    printf(" %10s %*.*f", time_text, 9, rate < 1e11 ? 4 : 2, rate * 1e-12);
    print_number(9, 1, r->ffma > 0 && x->low > 0 ? 100 * (rate / r->ffma) : 0);
    for (int way = 0; way < CUBLAS_WAYS; way++)
        print_number(9, 1, 100 * x->of_peer[way]);
    if (x->verdict.right)
        printf(" %9.2f\n", x->verdict.max_error);
    else
        printf(" %9s\n", "-");
}

static void print_counted(const ladder_size *s, const rung *x)
{
    if (x->note[0] != '\0') {
        printf("%4d %-18s %s\n", x->number, x->name, x->note);
        return;
    }
    const traffic t = traffic_of(s, &x->counters);
    printf("%4d %-17s", x->number, x->name);
    print_number(7, 2, t.load_sectors);
    print_number(7, 2, t.store_sectors);
    print_number(8, 4, t.loads_per_ffma);
    print_number(8, 2, t.moved);
    print_number(8, 4, t.shared_loads_per_ffma);
    print_number(7, 2, t.load_wavefronts);
    print_number(7, 2, t.store_wavefronts);
    printf(" %9" PRId64, t.conflicts);
    print_number(8, 0, t.barriers);
    printf(" %6.2f\n", x->verdict.max_error);
}

static void print_columns(const ladder_report *r, const ladder_size *s)
{
    const tgl_problem *p = &s->problem;
    printf("\n%" PRId64 " x %" PRId64 " x %" PRId64 ", ", p->m, p->n, p->k);
    if (truth_is_whole(s->truth))
        puts("all elements checked in double precision");
    else if (truth_peer(s->truth) != NULL)
        printf("some rows and columns checked in double precision, and all elements against %s\n",
               truth_peer(s->truth));
    else
        puts("not checked");
    if (r->settings->has_counters)
        printf("     %-17s %7s %7s %8s %8s %8s %7s %7s %9s %8s %6s\n"
               "     %-17s %7s %7s %8s %8s %8s %7s %7s %9s %8s %6s\n",
               "", "sectors", "sectors", "global", "bytes", "shared", "wavefr.", "wavefr.", "bank",
               "barriers", "max", "rung", "a load", "a store", "ld/FFMA", "/ needed", "ld/FFMA",
               "a load", "a store", "conflicts", "a block", "error");
    else if (r->settings->timed)
        printf("     %-18s %10s %9s %9s %9s %9s %9s\n", "rung", "time", "TFLOP/s", "% FFMA",
               "% cuBLAS", "% Lt best", "max error");
}

/* Prints the table of a size. The reference and cuBLAS have no number in it. */
static void print_size(const ladder_report *r, const ladder_size *s)
{
    print_columns(r, s);
    for (int i = 0; i < s->count; i++) {
        const rung *x = &s->rungs[i];
        if (r->settings->has_counters) {
            if (x->plan != NULL || x->note[0] != '\0') print_counted(s, x);
        } else if (r->settings->timed) {
            print_timed(r, s, x);
        } else if (x->plan != NULL || x->note[0] != '\0') {
            printf("%4d %-18s %s\n", x->number, x->name, x->note[0] != '\0' ? x->note : "right");
        }
    }
    fflush(stdout);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* Writes a CSV field with a value, or an empty field if the value is 0, which means unknown. */
static void put_known(FILE *csv, double value, const char *format)
{
    fputc(',', csv);
    if (value > 0) fprintf(csv, format, value); // NOLINT(clang-diagnostic-format-nonliteral)
}

static void write_timed(const ladder_report *r, const ladder_size *s, const rung *x)
{
    const tgl_problem *p = &s->problem;
    const double rate = problem_flops(p) / x->seconds;
    FILE *csv = r->csv.stream;
    fprintf(csv, "%s,%s,%s,%s,%s,%s,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%.9g", r->date,
            tgl_version(), tgl_device_name(r->settings->dev),
            cli_device_property(r->settings->dev, "chip"),
            cli_device_property(r->settings->dev, "driver"),
            cli_device_property(r->settings->dev, "NVRTC"),
            r->settings->cublas != NULL ? cublas_version(r->settings->cublas) : "", p->m, p->n,
            p->k, x->name, x->seconds);
    put_known(csv, x->low, "%.9g");
    put_known(csv, x->high, "%.9g");
    fprintf(csv, ",%d,%.6g", x->low > 0 ? x->repeats : 1, rate * 1e-12);
    put_known(csv, r->ffma * 1e-12, "%.6g");
    put_known(csv, r->ffma > 0 && x->low > 0 ? 100 * rate / r->ffma : 0, "%.2f");
    for (int way = 0; way < CUBLAS_WAYS; way++)
        put_known(csv, 100 * x->of_peer[way], "%.2f");
    put_known(csv, x->verdict.max_error, "%.4g");
    put_known(csv, x->verdict.rms_error, "%.4g");
    put_known(csv, (double)x->verdict.exact, "%.0f");
    fprintf(csv, ",%s", truth_is_whole(s->truth) ? "" : truth_peer(s->truth));
}

/* Writes the values of ladder_counted_columns: date to max_error, then the counts, which are all
 * members of tgl_counters from `blocks` on in their order. */
void ladder_report_put_counts(const ladder_report *r, const ladder_size *s, const rung *x, FILE *to)
{
    const tgl_problem *p = &s->problem;
    const tgl_counters *t = &x->counters;
    int64_t counts[(sizeof *t - offsetof(tgl_counters, blocks)) / sizeof(int64_t)];
    memcpy(counts, (const char *)t + offsetof(tgl_counters, blocks), sizeof counts);
    fprintf(to, "%s,%s,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%.4g", r->date, tgl_version(),
            tgl_device_name(r->settings->dev), p->m, p->n, p->k, x->name, x->verdict.max_error);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        fprintf(to, ",%" PRId64, counts[i]);
}

static void write_csv(ladder_report *r, const ladder_size *s)
{
    if (r->csv.stream == NULL) return;
    for (int i = 0; i < s->count; i++) {
        const rung *x = &s->rungs[i];
        if (!has_figures(r, x)) continue;
        if (r->settings->has_counters)
            ladder_report_put_counts(r, s, x, r->csv.stream);
        else
            write_timed(r, s, x);
        fputc('\n', r->csv.stream);
    }
    output_file_flush(&r->csv); /* a run that is stopped keeps the rows it has written so far */
}

/* ---- Chart ----------------------------------------------------------------------------------- */

/* Adds the figures of a size to the chart. The reference is left out, because its value would be
 * near 0. */
static void add_to_chart(ladder_report *r, const ladder_size *s)
{
    svg_chart *chart = &r->chart;
    if (r->plot.stream == NULL || chart->series_count == SVG_SERIES_MAX) return;
    svg_series *line = &chart->series[chart->series_count++];
    const tgl_problem *p = &s->problem;
    *line = (svg_series){0};
    snprintf(line->name, sizeof line->name, "%" PRId64 " x %" PRId64 " x %" PRId64, p->m, p->n,
             p->k);
    chart->category_count = s->count - 1;
    for (int i = 1; i < s->count; i++) {
        const rung *x = &s->rungs[i];
        chart->categories[i - 1] = x->name;
        if (!x->is_peer) chart->joined_count = i;
        if (!has_figures(r, x)) continue;
        line->values[i - 1] = r->settings->has_counters ? traffic_of(s, &x->counters).moved
                                                        : problem_flops(p) / x->seconds * 1e-12;
    }
}

/* Writes the chart. False: failed, and the error has been printed. */
static bool write_chart(ladder_report *r)
{
    svg_chart *chart = &r->chart;
    if (r->plot.stream == NULL || chart->series_count == 0) return output_file_close(&r->plot);
    const bool counted = r->settings->has_counters;
    snprintf(r->title, sizeof r->title, "The ladder, chapter %d, %s, %s",
             r->settings->chapter->number, r->settings->chapter->what,
             counted ? "counted by the simulator" : cli_device_property(r->settings->dev, "chip"));
    chart->title = r->title;
    chart->unit = counted ? "bytes moved / bytes needed" : "TFLOP/s";
    chart->ceiling = counted ? 0 : r->ffma * 1e-12;
    chart->ceiling_name = "FFMA, measured";
    svg_write(r->plot.stream, chart);
    return output_file_commit(&r->plot);
}

void ladder_report_add(ladder_report *r, const ladder_size *s)
{
    bool any = false;
    for (int i = 0; i < s->count; i++)
        any = any || has_figures(r, &s->rungs[i]);
    print_size(r, s);
    if (!any) return; /* no rung has figures, so the files get no row */
    write_csv(r, s);
    add_to_chart(r, s);
}

int ladder_report_finish(ladder_report *r)
{
    const bool has_chart = write_chart(r), has_csv = output_file_close(&r->csv);
    return has_chart && has_csv ? EXIT_DONE : EXIT_FAILED;
}
