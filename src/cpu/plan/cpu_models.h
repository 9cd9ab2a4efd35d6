/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of values that cpu_planner.c uses and that differ by the processor's model.
 */
#ifndef TGL_CPU_MODELS_H
#define TGL_CPU_MODELS_H

#include "cpu/kernels/kernels.h"
#include "cpu/plan/cpu_blocking.h"

/* The fraction parts / of. */
typedef struct cpu_fraction {
    int parts, of;
} cpu_fraction;

/* Block sizes, as in cpu_blocking. */
typedef struct cpu_block_size {
    int kc, mc;
} cpu_block_size;

/* How large the data of a product must be for a rule of the planner to apply. */
typedef enum cpu_beyond {
    CPU_NEVER,     /* the rule does not pay on this processor and never applies */
    CPU_BEYOND_L2, /* larger than L2 */
    CPU_BEYOND_L3, /* larger than one core's share of L3; batches: than three cores' shares */
} cpu_beyond;

/* A row of the table: tuning values for a processor model and a tier (instruction set,
 * device/tiers.h). */
typedef struct cpu_model {
    const char *model; /* "VENDOR FAMILY.MODEL"; "VENDOR": all its models; "": all models */
    int vector_bytes;  /* the tier, given by the bytes of its vectors; 0: all tiers */

    /* kc if C has few rows: max(each_row * rows of C, min), with further limits
     * (steps_of_few_rows() in cpu_planner.c). */
    struct {
        int each_row, min;
    } few_row_steps;
    cpu_beyond bands; /* if k is short and C exceeds this cache, C is computed in bands of rows
                         (cpu_planner.c) */
    int strip_steps;  /* if k is at most this, C is computed in strips (cpu_planner.c), which also
                         replace bands; 0: only a flat C with a very short k is computed so */

    cpu_fraction a_block; /* size of a block of A as a fraction of L2, if A is divided into
                             blocks */
    int a_block_min_kb;   /* minimum size of a block of A in KB, if A is divided; the planner limits
                             it to L2 / 3 */
    cpu_fraction a_one_block; /* A is one block if it takes at most this fraction of L2 */
    int a_block_max_rows;     /* maximum number of rows of a block of A */

    bool copies_few_sets;    /* rows of A are packed if they lie in few sets of the caches
                                (rows_share_few_sets() in cpu_planner.c) */
    int copy_min_columns;    /* rows of A are packed if a rectangle of C has at least this many
                                columns; 0: this rule is off */
    cpu_beyond batches;      /* a batch of small products is prefetched if it exceeds this cache */
    int batch_min_kb;        /* minimum KB of each product of a batch that is prefetched */
    cpu_block_size f32, f64; /* block sizes that `tegula tune` measured to be faster; 0:
                                cpu_planner.c computes them */
} cpu_model;

/* The table. Its last row matches every model and tier. */
extern const cpu_model tgl_cpu_models[];
int tgl_cpu_model_count(void);

/* The first row that matches this model and these kernels. */
const cpu_model *tgl_cpu_model_find(const cpu_model *rows, const char *model,
                                    const cpu_kernels *kernels);

enum { CPU_MODEL_TEXT = 200 };

/* Writes the values of a row as text, without `model` and `vector_bytes`. Rows with the same values
 * have the same text. */
void tgl_cpu_model_values(const cpu_model *row, char text[CPU_MODEL_TEXT]);

/* The measured block sizes of a row for the kernels' type; 0: not measured. They are 0 for complex
 * types, whose block sizes are never measured. */
static inline cpu_blocking tgl_cpu_measured_blocking(const cpu_model *row,
                                                     const cpu_kernels *kernels)
{
    if (kernels->parts > 1) return (cpu_blocking){0};
    const cpu_block_size size = kernels->element == sizeof(double) ? row->f64 : row->f32;
    return (cpu_blocking){.kc = size.kc, .mc = size.mc};
}

#endif
