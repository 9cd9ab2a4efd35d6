/* SPDX-License-Identifier: Apache-2.0
 *
 * Records a run, and writes it as JSON. Names are C identifiers and names of kernel files, which
 * need no escapes. Addresses are written as offsets. An address in a matrix is relative to the
 * first byte of the launch's partition, rounded down to a multiple of 128, so that sectors and
 * cache lines begin where they do in memory. An address in shared memory is relative to its start.
 */
#include "sim/record.h"

#include "problem/shape.h"
#include "sim/warp_mma.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 128 /* bytes of a cache line */ };

/* ---- Recording ------------------------------------------------------------------------------- */

void tgl_record_begin(tgl_record *record, tgl_sim_module *module)
{
    *record = (tgl_record){.module = module};
    memset(module->visits, 0, module->code_size * sizeof *module->visits);
}

tgl_trace *tgl_record_launch(tgl_record *record, const tgl_sim_launch *launch)
{
    if (launch->module != record->module || record->threads > 0) return NULL;
    record->threads = launch->threads;
    memcpy(record->grid, launch->grid, sizeof record->grid);
    memcpy(record->regions, launch->regions, sizeof record->regions);
    return &record->trace;
}

/* Raises a line's count to `threads` if it is lower: the count of a line is the maximum over its
 * basic blocks and accesses. at: a return address, relative to load_address. */
static bool count_line(tgl_record *record, size_t at, unsigned threads)
{
    const int line = tgl_sim_line_at(record->module, at);
    if (line >= record->lines) {
        const size_t count = 2 * (size_t)line + 64;
        unsigned *executions = realloc(record->executions, count * sizeof *executions);
        if (executions == NULL) return false;
        memset(executions + record->lines, 0, (count - (size_t)record->lines) * sizeof *executions);
        record->executions = executions;
        record->lines = (int)count;
    }
    if (threads > record->executions[line]) record->executions[line] = threads;
    return true;
}

/* Counts the lines of a basic block. The block ends where the next one begins, at the call of
 * __sanitizer_cov_trace_pc(), an instruction of 5 bytes on x86-64 and 4 on aarch64. 5 serves for
 * both, because addresses of instructions on aarch64 are multiples of 4. */
static bool count_block(tgl_record *record, size_t block)
{
    enum { CALL = 5 };
    const tgl_sim_module *module = record->module;
    const uint64_t begin = module->blocks[block];
    const uint64_t end = block + 1 < module->block_count ? module->blocks[block + 1] - CALL
                                                         : (uint64_t)module->code_size;
    if (begin >= module->code_size || module->visits[begin] == 0) return true;
    for (uint64_t row = tgl_line_table_next(&module->lines, begin); row < end;
         row = tgl_line_table_next(&module->lines, row))
        if (!count_line(record, (size_t)row + 1, module->visits[begin])) return false;
    return true;
}

bool tgl_record_end(tgl_record *record)
{
    const tgl_sim_module *module = record->module;
    for (size_t at = 0; at < module->code_size; at++)
        if (module->visits[at] > 0 && !count_line(record, at, module->visits[at])) return false;
    for (size_t block = 0; block < module->block_count; block++)
        if (!count_block(record, block)) return false;
    tgl_trace_sort(&record->trace);
    return true;
}

void tgl_record_free(tgl_record *record)
{
    tgl_trace_free(&record->trace);
    free(record->executions);
    *record = (tgl_record){.module = NULL};
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The region that contains an address; NULL: none. If D and C are the same matrix, returns the
 * region of D. */
static const tgl_sim_region *region_of(const tgl_record *record, uintptr_t address)
{
    if (tgl_region_has(&record->regions[TGL_SIM_D], address, 1)) return &record->regions[TGL_SIM_D];
    for (int i = 0; i < TGL_SIM_REGIONS; i++)
        if (tgl_region_has(&record->regions[i], address, 1)) return &record->regions[i];
    return NULL;
}

static void write_memory(const tgl_record *record, tgl_text *out)
{
    const char *separator = "";
    tgl_text_add(out, "\"matrices\":[");
    for (int i = 0; i < TGL_SIM_REGIONS; i++) {
        const tgl_sim_region *x = &record->regions[i];
        if (x->extent == 0) continue;
        tgl_text_add(out,
                     "%s{\"name\":\"%s\",\"element\":%d,\"rows\":%lld,\"row_bytes\":%lld,"
                     "\"ld_bytes\":%lld,\"begin\":%d}",
                     separator, x->label, x->element, (long long)x->rows, (long long)x->row_bytes,
                     (long long)x->ld_bytes, (int)(x->base % LINE));
        separator = ",";
    }
    separator = "";
    tgl_text_add(out, "],\n\"arrays\":[");
    for (int i = 0; i < record->module->array_count; i++) {
        const tgl_shared_array *x = &record->module->arrays[i];
        tgl_text_add(out, "%s{\"name\":\"%s\",\"begin\":%zu,\"end\":%zu}", separator, x->name,
                     x->begin, x->end);
        separator = ",";
    }
    tgl_text_add(out, "],\n");
}

static void write_lines(const tgl_record *record, const tgl_report *report, tgl_text *out)
{
    const char *separator = "";
    tgl_text_add(out, "\"executions\":[");
    for (int line = 1; line < record->lines; line++)
        if (record->executions[line] > 0) {
            tgl_text_add(out, "%s[%d,%u]", separator, line, record->executions[line]);
            separator = ",";
        }
    tgl_text_add(out, "],\n\"lines\":[");
    for (int i = 0; i < report->count; i++) {
        const tgl_report_line *l = &report->lines[i];
        tgl_text_add(out,
                     "%s\n{\"line\":%d,\"kind\":\"%s\",\"target\":\"%s\",\"requests\":%lld,"
                     "\"bytes\":%lld,\"sectors\":%lld,\"wavefronts\":%lld,\"conflicts\":%lld}",
                     i > 0 ? "," : "", l->line, tgl_access_name(l->kind), l->target,
                     (long long)l->requests, (long long)l->bytes, (long long)l->sectors,
                     (long long)l->wavefronts, (long long)l->conflicts);
    }
    tgl_text_add(out, "],\n");
}

/* Writes the offset that each lane accesses; null for an inactive lane. */
static void write_lanes(const tgl_warp_access *access, uintptr_t base, tgl_text *out)
{
    for (int lane = 0; lane < TGL_WARP; lane++) {
        tgl_text_add(out, "%s", lane > 0 ? "," : "[");
        if ((access->lanes >> lane & 1) != 0)
            tgl_text_add(out, "%lld", (long long)(access->address[lane] - base));
        else
            tgl_text_add(out, "null");
    }
    tgl_text_add(out, "]");
}

static uintptr_t first_address(const tgl_warp_access *access)
{
    return access->address[__builtin_ctz(access->lanes)];
}

static void write_global(const tgl_record *record, const tgl_trace_step *step, tgl_text *out)
{
    const tgl_sim_region *region = region_of(record, first_address(&step->global));
    if (region == NULL) return;
    tgl_text_add(out, ",\"matrix\":\"%s\",\"global\":", region->label);
    write_lanes(&step->global, region->base - region->base % LINE, out);
    if (step->rows == 0) tgl_text_add(out, ",\"sectors\":%d", tgl_count_sectors(&step->global));
}

static void write_shared(const tgl_record *record, const tgl_trace_step *step, tgl_text *out)
{
    int least;
    tgl_text_add(out, ",\"shared\":");
    write_lanes(&step->shared, record->module->shared_base, out);
    if (step->rows > 0) return;
    const int wavefronts = tgl_count_wavefronts(&step->shared, &least);
    tgl_text_add(out, ",\"together\":%d,\"wavefronts\":%d,\"conflicts\":%d",
                 tgl_count_lanes_together(&step->shared), wavefronts, wavefronts - least);
}

static void write_step(const tgl_record *record, const tgl_trace_step *step, tgl_text *out)
{
    const tgl_warp_access *access = step->global.lanes != 0 ? &step->global : &step->shared;
    tgl_text_add(out, "{\"line\":%d,\"kind\":\"%s\",\"warp\":%d",
                 tgl_sim_line(record->module, step->pc), tgl_access_name(step->kind), step->warp);
    if (access->lanes != 0) tgl_text_add(out, ",\"bytes\":%u", access->bytes);
    if (step->rows > 0)
        tgl_text_add(out, ",\"rows\":%lld,\"row_bytes\":%lld", (long long)step->rows,
                     (long long)step->row_bytes);
    if (step->global.lanes != 0) write_global(record, step, out);
    if (step->shared.lanes != 0) write_shared(record, step, out);
    if (step->m > 0)
        tgl_text_add(out, ",\"type\":\"%s\",\"m\":%d,\"n\":%d,\"k\":%d",
                     step->type == TGL_F32 ? "tf32" : tgl_type_name((tgl_type)step->type), step->m,
                     step->n, step->k);
    if (step->kind == TGL_TENSOR_LOAD)
        tgl_text_add(out, ",\"tiles\":[%lld,%lld]",
                     (long long)(step->tiles[0] - record->module->shared_base),
                     (long long)(step->tiles[1] - record->module->shared_base));
    tgl_text_add(out, "}");
}

static void write_numbers(const char *name, const uint32_t *numbers, int count, tgl_text *out)
{
    tgl_text_add(out, ",\"%s\":", name);
    for (int i = 0; i < count; i++)
        tgl_text_add(out, "%s%u", i > 0 ? "," : "[", numbers[i]);
    tgl_text_add(out, "]");
}

/* Writes which lane holds which element of the operands of mma.sync; null if the trace contains no
 * mma.sync, or one of F64. */
static void write_fragments(const tgl_record *record, tgl_text *out)
{
    const tgl_trace_step *step = NULL;
    for (size_t i = 0; i < record->trace.count && step == NULL; i++)
        if (record->trace.steps[i].kind == TGL_TENSOR_MMA) step = &record->trace.steps[i];
    tgl_text_add(out, "\"fragments\":");
    if (step == NULL || step->type == TGL_F64) {
        tgl_text_add(out, "null,\n");
        return;
    }
    tgl_fragments x;
    tgl_warp_mma_fragments(step->type, &x);
    tgl_text_add(out, "{\"m\":%d,\"n\":%d,\"k\":%d", step->m, step->n, step->k);
    write_numbers("a", x.a, step->m * step->k, out);
    write_numbers("b", x.b, step->k * step->n, out);
    write_numbers("sums", x.sums, step->m * step->n, out);
    tgl_text_add(out, "},\n");
}

void tgl_record_write(const tgl_record *record, const tgl_report *report, tgl_text *out)
{
    const tgl_kernel *kernel = record->module->kernel;
    tgl_text_add(out, "{\"kernel\":\"%s\",\"file\":\"%s\",\"grid\":[%u,%u,%u],\"threads\":%u,\n",
                 kernel->name, kernel->file, record->grid[0], record->grid[1], record->grid[2],
                 record->threads);
    write_memory(record, out);
    write_lines(record, report, out);
    write_fragments(record, out);
    tgl_text_add(out, "\"steps\":[");
    for (size_t i = 0; i < record->trace.count; i++) {
        tgl_text_add(out, "%s\n", i > 0 ? "," : "");
        write_step(record, &record->trace.steps[i], out);
    }
    tgl_text_add(out, "]}\n");
}
