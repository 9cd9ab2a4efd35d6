/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up the counts of the kernel's instructions (tgl_site, tally.h) and formats them.
 */
#include "sim/report.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Adding up ------------------------------------------------------------------------------- */

/* The totals that each kind of access adds to, as offsets in tgl_counters; 0: none. A TMA load also
 * counts as an asynchronous copy, and a TMA store as a global store. */
#define AT(member) offsetof(tgl_counters, member)
static const struct {
    tgl_access_kind kind;
    size_t requests, sectors, bytes, wavefronts, conflicts;
} totals_of[] = {
    {TGL_GLOBAL_LOAD, AT(global_load_requests), AT(global_load_sectors), AT(global_load_bytes), 0,
     0},
    {TGL_GLOBAL_STORE, AT(global_store_requests), AT(global_store_sectors), AT(global_store_bytes),
     0, 0},
    {TGL_SHARED_LOAD, AT(shared_load_requests), 0, AT(shared_load_bytes),
     AT(shared_load_wavefronts), AT(shared_load_conflicts)},
    {TGL_SHARED_STORE, AT(shared_store_requests), 0, AT(shared_store_bytes),
     AT(shared_store_wavefronts), AT(shared_store_conflicts)},
    {TGL_ASYNC_COPY, AT(async_copy_requests), AT(async_copy_sectors), AT(async_copy_bytes),
     AT(async_copy_wavefronts), AT(async_copy_conflicts)},
    {TGL_TMA_LOAD, AT(async_copy_requests), AT(async_copy_sectors), AT(async_copy_bytes), 0, 0},
    {TGL_TMA_LOAD, AT(tma_load_requests), AT(tma_load_sectors), AT(tma_load_bytes), 0, 0},
    {TGL_TMA_STORE, AT(global_store_requests), AT(global_store_sectors), AT(global_store_bytes), 0,
     0},
    {TGL_TMA_STORE, AT(tma_store_requests), AT(tma_store_sectors), AT(tma_store_bytes), 0, 0},
    {TGL_TENSOR_LOAD, AT(wgmma_requests), 0, AT(wgmma_bytes), 0, 0},
    {TGL_TENSOR_MMA, AT(mma_requests), 0, 0, 0, 0},
};

static void add_to_total(tgl_counters *t, size_t member, int64_t count)
{
    if (member != 0) *(int64_t *)(void *)((char *)t + member) += count;
}

static void add_to_totals(tgl_counters *t, const tgl_site *s)
{
    for (size_t i = 0; i < sizeof totals_of / sizeof totals_of[0]; i++) {
        if (totals_of[i].kind != s->kind) continue;
        add_to_total(t, totals_of[i].requests, s->requests);
        add_to_total(t, totals_of[i].sectors, s->sectors);
        add_to_total(t, totals_of[i].bytes, s->bytes);
        add_to_total(t, totals_of[i].wavefronts, s->wavefronts);
        add_to_total(t, totals_of[i].conflicts, s->conflicts);
    }
}

static bool is_same_line(const tgl_report_line *a, const tgl_report_line *b)
{
    return a->line == b->line && a->kind == b->kind && strcmp(a->target, b->target) == 0;
}

static void add_to_lines(tgl_report *report, const tgl_site *s, const tgl_sim_launch *launch)
{
    const bool is_global =
        s->kind == TGL_GLOBAL_LOAD || s->kind == TGL_GLOBAL_STORE || s->kind == TGL_TMA_STORE;
    const tgl_sim_module *module = launch->module;
    tgl_report_line fresh = {.line = tgl_sim_line(module, s->pc), .kind = s->kind};
    if (s->kind != TGL_TENSOR_MMA)
        snprintf(fresh.target, sizeof fresh.target, "%.15s",
                 is_global ? launch->regions[s->target].label : module->arrays[s->target].name);
    int i = 0;
    while (i < report->count && !is_same_line(&report->lines[i], &fresh))
        i++;
    if (i == TGL_REPORT_LINES) return;
    if (i == report->count) report->lines[report->count++] = fresh;
    tgl_report_line *l = &report->lines[i];
    l->requests += s->requests;
    l->bytes += s->bytes;
    l->sectors += s->sectors;
    l->wavefronts += s->wavefronts;
    l->conflicts += s->conflicts;
}

static int by_line(const void *x, const void *y)
{
    const tgl_report_line *a = x, *b = y;
    if (a->line != b->line) return a->line - b->line;
    return a->kind != b->kind ? (int)a->kind - (int)b->kind : strcmp(a->target, b->target);
}

int64_t tgl_report_needed_bytes(const tgl_sim_region regions[TGL_SIM_REGIONS])
{
    static const int needed[] = {TGL_SIM_A, TGL_SIM_B,    TGL_SIM_C,
                                 TGL_SIM_D, TGL_SIM_BIAS, TGL_SIM_RESIDUAL};
    int64_t bytes = 0;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        const tgl_sim_region *x = &regions[needed[i]];
        const bool is_strided = x->bases != NULL || x->stride_bytes > 0;
        const int64_t once =
            x->extent > 0 ? x->rows * x->row_bytes * (is_strided ? x->batch : 1) : 0;
        const bool is_result = needed[i] == TGL_SIM_D;
        bytes += (x->forbidden == NULL ? once : 0) + (is_result ? once : 0);
    }
    return bytes;
}

void tgl_report_begin(tgl_report *report, const tgl_sim_module *module, unsigned threads)
{
    *report = (tgl_report){.module = module,
                           .totals = {.size = sizeof(tgl_counters),
                                      .threads = threads,
                                      .shared_bytes = (int64_t)module->shared_bytes}};
}

void tgl_report_add(tgl_report *report, const tgl_machine *machine)
{
    const tgl_sim_launch *l = machine->launch;
    report->totals.blocks += (int64_t)l->grid[0] * l->grid[1] * l->grid[2];
    report->totals.barriers += machine->barriers;
    report->totals.tma_multicast_bytes += machine->multicast_bytes;
    report->totals.mbarrier_waits += machine->mbarrier_waits;
    for (size_t i = 0; i < machine->tally.slots; i++) {
        const tgl_site *site = &machine->tally.sites[i];
        if (site->pc == NULL) continue;
        add_to_totals(&report->totals, site);
        if (l->module == report->module) add_to_lines(report, site, l);
    }
    qsort(report->lines, (size_t)report->count, sizeof *report->lines, by_line);
}

/* ---- Laying out ------------------------------------------------------------------------------ */

static double ratio(int64_t x, int64_t y)
{
    return y > 0 ? (double)x / (double)y : 0;
}

static void write_global(tgl_text *out, const char *name, int64_t requests, int64_t sectors,
                         int64_t bytes)
{
    tgl_text_add(out, "  %-14s %11lld requests %11lld sectors    %5.2f per request %11lld bytes\n",
                 name, (long long)requests, (long long)sectors, ratio(sectors, requests),
                 (long long)bytes);
}

static void write_shared(tgl_text *out, const char *name, int64_t requests, int64_t wavefronts,
                         int64_t conflicts, int64_t bytes)
{
    tgl_text_add(out,
                 "  %-14s %11lld requests %11lld wavefronts %5.2f per request %11lld bytes, "
                 "%lld conflicts\n",
                 name, (long long)requests, (long long)wavefronts, ratio(wavefronts, requests),
                 (long long)bytes, (long long)conflicts);
}

static void write_count(tgl_text *out, const char *name, int64_t count, const char *unit)
{
    if (count > 0) tgl_text_add(out, "  %-14s %11lld%s", name, (long long)count, unit);
}

/* Writes the counts of tensor-core instructions and mbarriers, which most kernels do not have. */
static void write_instructions(tgl_text *out, const tgl_counters *t)
{
    write_count(out, "mma.sync", t->mma_requests, " requests\n");
    write_count(out, "wgmma", t->wgmma_requests, " requests");
    if (t->wgmma_requests > 0)
        tgl_text_add(out, " %11lld bytes of shared memory\n", (long long)t->wgmma_bytes);
    write_count(out, "mbarrier waits", t->mbarrier_waits, " by threads\n");
}

static void write_copies(tgl_text *out, const tgl_counters *t)
{
    const int64_t by_threads = t->async_copy_requests - t->tma_load_requests;
    const int64_t bytes = t->async_copy_bytes - t->tma_load_bytes;
    if (by_threads > 0) {
        write_global(out, "cp.async", by_threads, t->async_copy_sectors - t->tma_load_sectors,
                     bytes);
        write_shared(out, "  into shared", by_threads, t->async_copy_wavefronts,
                     t->async_copy_conflicts, bytes);
    }
    if (t->tma_load_requests > 0)
        write_global(out, "TMA loads", t->tma_load_requests, t->tma_load_sectors,
                     t->tma_load_bytes);
    write_count(out, "  multicast", t->tma_multicast_bytes, " bytes to further blocks\n");
}

static void write_totals(tgl_text *out, const tgl_counters *t)
{
    const int64_t moved =
        32 * (t->global_load_sectors + t->global_store_sectors + t->async_copy_sectors);
    tgl_text_add(out, "counted in the last run\n");
    write_global(out, "global loads", t->global_load_requests, t->global_load_sectors,
                 t->global_load_bytes);
    write_global(out, "global stores", t->global_store_requests, t->global_store_sectors,
                 t->global_store_bytes);
    if (t->tma_store_requests > 0)
        write_global(out, "  by TMA", t->tma_store_requests, t->tma_store_sectors,
                     t->tma_store_bytes);
    write_copies(out, t);
    write_shared(out, "shared loads", t->shared_load_requests, t->shared_load_wavefronts,
                 t->shared_load_conflicts, t->shared_load_bytes);
    write_shared(out, "shared stores", t->shared_store_requests, t->shared_store_wavefronts,
                 t->shared_store_conflicts, t->shared_store_bytes);
    write_instructions(out, t);
    tgl_text_add(out, "  barriers       %11lld, %.1f per block\n", (long long)t->barriers,
                 ratio(t->barriers, t->blocks));
    tgl_text_add(out, "  global bytes   %11lld moved, %.1f times the %lld needed\n",
                 (long long)moved, ratio(moved, t->needed_bytes), (long long)t->needed_bytes);
}

static void write_lines(tgl_text *out, const tgl_report *report)
{
    tgl_text_add(
        out,
        "by line                               requests  sectors/request  wavefronts/request\n");
    for (int i = 0; i < report->count; i++) {
        const tgl_report_line *l = &report->lines[i];
        tgl_text_add(out, "  %4d %-12s %-15s%11lld", l->line, tgl_access_name(l->kind), l->target,
                     (long long)l->requests);
        if (l->sectors > 0)
            tgl_text_add(out, "%17.2f", ratio(l->sectors, l->requests));
        else
            tgl_text_add(out, "%17s", "");
        if (l->wavefronts > 0) tgl_text_add(out, "%20.2f", ratio(l->wavefronts, l->requests));
        if (l->conflicts > 0)
            tgl_text_add(out, "  (%.2f by bank conflicts)", ratio(l->conflicts, l->requests));
        tgl_text_add(out, "\n");
    }
}

void tgl_report_write(const tgl_report *report, tgl_text *out)
{
    if (report->module == NULL) {
        tgl_text_add(out, "counts      none before the first run\n");
        return;
    }
    write_totals(out, &report->totals);
    write_lines(out, report);
}
