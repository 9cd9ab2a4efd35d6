/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a plan as text.
 */
#include "cpu/run/cpu_explain.h"
#include "cpu/plan/block_plan.h"
#include "cpu/run/cpu_state.h"
#include "problem/describe.h"

static void explain_blocks(tgl_text *out, const tgl_shape *s, const cpu_plan *p,
                           const cpu_facts *facts)
{
    const double element = (double)p->kernels->element;
    const int64_t nr = (int64_t)p->kernels->nv * p->kernels->vector;
    tgl_text_add(out, "tile        %d x %lld in registers (%d rows, %d vectors of %d)\n",
                 p->kernels->mr, (long long)nr, p->kernels->mr, p->kernels->nv, p->kernels->vector);
    tgl_text_add(out, "blocks      MC %lld, KC %lld, NC %lld\n", (long long)p->mc, (long long)p->kc,
                 (long long)p->nc);
    tgl_text_add(out, "            KC x %lld of B: %.1f KB, of the L1's %.0f KB\n", (long long)nr,
                 (double)(p->kc * nr) * element / 1024, (double)facts->l1d / 1024);
    tgl_text_add(out, "            MC x KC of A: %.1f KB, of the L2's %.0f KB\n",
                 (double)(p->mc * p->kc) * element / 1024, (double)facts->l2 / 1024);
    tgl_text_add(out, "packing     A %s\n",
                 p->in_strips              ? "not packed: k is short"
                 : p->pack_a && s->trans_a ? "transposed, in blocks of MC x KC"
                 : p->pack_a  ? "copied, in blocks of MC x KC: tiles read the copy faster"
                 : s->trans_a ? "not packed: each element is used too few times"
                              : "not packed: its rows are contiguous along k");
    tgl_text_add(out, "            B %s\n",
                 !p->pack_b     ? "not packed: each element is used too few times"
                 : p->in_strips ? "packed in blocks of KC x NC"
                 : s->trans_b   ? "transposed, in panels as wide as a tile"
                                : "copied by the first tile that uses a panel");
}

/* Describes how blocks are multiplied by each kind of words (cpu_words.h). */
static const char *const word_paths[CPU_WORD_KINDS] = {
    [CPU_WORDS_BF16] = "products of bf16 are summed in f32; blocks with sums that could be "
                       "denormal\n"
                       "            or overflow are converted to f32 and take FMAs\n",
    [CPU_WORDS_F32] = "each f32 is the sum of three bf16 words, six products of words are summed "
                      "in f32;\n"
                      "            blocks whose words or sums could be denormal or overflow take "
                      "f32 FMAs\n",
    [CPU_WORDS_F16] = "each f16 is the sum of two bf16 words, four products of words are summed in "
                      "f32;\n"
                      "            blocks with Inf or NaN are converted to f32 and take FMAs\n",
    [CPU_WORDS_I8] = "products of i8 are summed in i32\n",
};

static const char by_digits[] =
    "            blocks are tried first by three digits of int8 for each f32, scaled by lines, "
    "with\n"
    "            exact sums in i32: where a bound of the error is at most min(k, 512) u S,\n"
    "            u = 2^-24, S = |A| |B|\n";

static void explain_words(tgl_text *out, const cpu_block_plan *h)
{
    if (h->is_vector)
        tgl_text_add(out,
                     "path        matrix-vector product: elements are converted to f32 as they "
                     "are loaded\n");
    else if (h->words != NULL)
        tgl_text_add(out, "path        %s: %s%s%s", h->words->name, word_paths[h->type->words],
                     h->by_digits ? by_digits : "",
                     h->words->rounds_to_odd && !h->type->sums_are_integers
                         ? "            sums are rounded to odd, at most 1 ulp from exact sums\n"
                         : "");
    else
        tgl_text_add(out,
                     "path        blocks of A and B are converted to f32, products are summed in "
                     "f32%s\n",
                     h->type->sums_are_integers ? ", blocks in i32" : "");
    tgl_text_add(out, "blocks      %lld x %lld of D, %lld steps of k\n", (long long)h->rows,
                 (long long)h->columns, (long long)h->steps);
}

static void explain_threads(tgl_text *out, const cpu_plan *p, int threads_max)
{
    tgl_text_add(out, "threads     %d of %d", p->threads, threads_max);
    if (p->threads == 1)
        tgl_text_add(out, threads_max > 1 ? ": too little work for more threads\n" : "\n");
    else if (p->path == CPU_PATH_VECTOR)
        tgl_text_add(out, ", each computes a part of the result\n");
    else if (p->path == CPU_PATH_BLOCKS && p->blocks->parts > 1)
        tgl_text_add(out,
                     ", each sums a block of D over one of %lld parts of k; the partial sums are "
                     "added in a fixed order\n",
                     (long long)p->blocks->parts);
    else if (p->path == CPU_PATH_BLOCKS)
        tgl_text_add(out, ", each computes whole blocks of D\n");
    else if (p->sharing == CPU_SHARE_BATCH)
        tgl_text_add(out, ", each computes whole products of the batch\n");
    else if (p->sharing == CPU_SHARE_K)
        tgl_text_add(out,
                     ", each sums over a part of k; the partial sums are added in a fixed order\n");
    else
        tgl_text_add(out,
                     ", which take %d x %d rectangles of C, along m and n, one after the other\n",
                     p->grid_m, p->grid_n);
}

void tgl_cpu_explain(const tgl_plan *plan, tgl_text *out)
{
    const cpu_plan *p = plan->state;
    const cpu_device *cpu = plan->dev->state;
    tgl_text_problem(out, &plan->shape);
    tgl_text_add(out, "kernel      %s\n", plan->kernel);
    if (p->path == CPU_PATH_SCALE)
        tgl_text_add(out, "path        k is 0: %c := beta*C\n", plan->shape.in_place ? 'C' : 'D');
    else if (p->path == CPU_PATH_VECTOR)
        tgl_text_add(out,
                     "path        matrix-vector product: each element of the matrix is used once, "
                     "without packing\n");
    else if (p->path == CPU_PATH_SMALL)
        tgl_text_add(out, "path        a few register tiles, which read A and B in place%s\n",
                     plan->shape.trans_b ? "; B is transposed to the stack" : "");
    else if (p->path == CPU_PATH_BLOCKS)
        explain_words(out, p->blocks);
    else
        explain_blocks(out, &plan->shape, p, &cpu->machine.facts);
    explain_threads(out, p, cpu->threads.threads);
    tgl_text_add(out, "workspace   %.1f KB\n", (double)p->workspace / 1024);
}
