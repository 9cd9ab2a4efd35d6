/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of processor models. docs/notes/2026-11-26-cpu-planner.md has the measurements by which
 * the values were chosen; docs/adding-a-microkernel.md says how a model is added. The comment above
 * a row names the files in bench/results/ with the row's measurements, or the row that it was
 * copied from.
 */
#include "cpu/plan/cpu_models.h"

#include <stdio.h>

/* Tiers by the bytes of their vectors. All tiers with AVX-512 have the kernels of avx512. */
enum { ANY = 0, AVX2 = 32, AVX512 = 64 };

#define NEVER CPU_NEVER
#define L2    CPU_BEYOND_L2
#define L3    CPU_BEYOND_L3

/* The first row that matches is used: rows of a model and tier come before rows for all tiers of
 * the model, and these before rows for all models of the vendor. Columns: the members of cpu_model
 * (cpu_models.h), in order: model, vector_bytes, few_row_steps, bands, strip_steps, a_block,
 * a_block_min_kb, a_one_block, a_block_max_rows, copies_few_sets, copy_min_columns, batches,
 * batch_min_kb, and the measured blocking {kc, mc} of f32 and of f64. */
// clang-format off
const cpu_model tgl_cpu_models[] = {

    /* Zen 3: epyc-zen3/cpu.csv, cpu_random.csv */
    {"AuthenticAMD 25.1",  AVX2,   {6, 128}, L3,    96, {2, 7}, 160, {3, 5}, 512, false, 400, L2,  8, {0, 0}, {0, 0}},
    /* Zen 4: epyc-zen4/cpu-avx2.csv, cpu_random-avx2.csv */
    {"AuthenticAMD 25.17", AVX2,   {6, 128}, L3,     0, {2, 7}, 160, {3, 5}, 512, false, 900, L3, 16, {0, 0}, {0, 0}},
    /* Zen 4: epyc-zen4/cpu.csv, cpu_random.csv */
    {"AuthenticAMD 25.17", AVX512, {6, 128}, NEVER,  0, {2, 7}, 160, {3, 5}, 512, false,   0, L3, 16, {0, 0}, {0, 0}},
    /* Zen 4, the portable tier: copied from the row of AVX512 */
    {"AuthenticAMD 25.17", ANY,    {6, 128}, NEVER,  0, {2, 7}, 160, {3, 5}, 512, false,   0, L3, 16, {0, 0}, {0, 0}},
    /* Zen 5: epyc-zen5/cpu-avx2.csv, cpu.csv */
    {"AuthenticAMD 26.2",  ANY,    {6, 128}, NEVER,  0, {2, 7}, 160, {3, 5}, 512, false,   0, L2,  8, {0, 0}, {0, 0}},

    /* Emerald Rapids: xeon-emerald-rapids/cpu.csv, cpu_random.csv */
    {"GenuineIntel 6.207", AVX512, {2,  48}, L2,     0, {2, 7}, 160, {3, 5}, 512, true,    0, L2,  8, {0, 0}, {0, 0}},
    /* Sapphire Rapids has the core of 6.207, so its row is a copy of that row */
    {"GenuineIntel 6.143", AVX512, {2,  48}, L2,     0, {2, 7}, 160, {3, 5}, 512, true,    0, L2,  8, {0, 0}, {0, 0}},
    /* Intel's other models and tiers: copied from 6.207, but bands are not used */
    {"GenuineIntel",       ANY,    {2,  48}, NEVER,  0, {2, 7}, 160, {3, 5}, 512, true,    0, L2,  8, {0, 0}, {0, 0}},

    /* All other vendors: copied from Zen 5 */
    {"",                   ANY,    {6, 128}, NEVER,  0, {2, 7}, 160, {3, 5}, 512, false,   0, L2,  8, {0, 0}, {0, 0}},
};
// clang-format on

int tgl_cpu_model_count(void)
{
    return (int)(sizeof tgl_cpu_models / sizeof tgl_cpu_models[0]);
}

void tgl_cpu_model_values(const cpu_model *row, char text[CPU_MODEL_TEXT])
{
    snprintf(text, CPU_MODEL_TEXT,
             "few rows %d,%d; bands %d; strips %d; A %d/%d,%d,%d/%d,%d; copies %d,%d; batches "
             "%d,%d; f32 %d,%d; f64 %d,%d",
             row->few_row_steps.each_row, row->few_row_steps.min, (int)row->bands, row->strip_steps,
             row->a_block.parts, row->a_block.of, row->a_block_min_kb, row->a_one_block.parts,
             row->a_one_block.of, row->a_block_max_rows, row->copies_few_sets,
             row->copy_min_columns, (int)row->batches, row->batch_min_kb, row->f32.kc, row->f32.mc,
             row->f64.kc, row->f64.mc);
}

/* Whether the row is for this model, for all models of its vendor, or for all models. */
static bool is_for_model(const cpu_model *row, const char *model)
{
    const char *name = row->model;
    if (*name == '\0') return true;
    for (; *name != '\0' && *name == *model; name++)
        model++;
    return *name == '\0' && (*model == ' ' || *model == '\0');
}

const cpu_model *tgl_cpu_model_find(const cpu_model *rows, const char *model,
                                    const cpu_kernels *kernels)
{
    const int bytes = kernels->vector * (int)kernels->element;
    const cpu_model *row = rows;
    while ((row->vector_bytes != ANY && row->vector_bytes != bytes) || !is_for_model(row, model))
        row++;
    return row;
}
