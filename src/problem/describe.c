/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a problem as text.
 */
#include "problem/describe.h"

/* Bytes of this many elements of A (is_a) or B. */
static double bytes_of(const tgl_shape *s, bool is_a, double elements)
{
    return elements / 2 * (double)tgl_type_bytes(tgl_shape_stored_type(s, is_a), 2);
}

/* Bytes of all matrices, each counted once. C is counted only if D is another matrix. */
static double bytes_moved(const tgl_shape *given)
{
    const tgl_shape even = tgl_shape_of_even_groups(given), *s = &even;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    return (double)s->batch * (bytes_of(s, true, m * k) + bytes_of(s, false, k * n) +
                               m * n * (double)tgl_type_size(s->type_d) +
                               (s->in_place ? 0 : m * n * (double)tgl_type_size(s->type_c)));
}

/* 2 operations per multiply-add; 8 for complex types, whose multiply-add is four real ones. */
double tgl_shape_flops(const tgl_shape *shape)
{
    const tgl_shape s = tgl_shape_of_even_groups(shape);
    return (tgl_type_is_complex(s.type_a) ? 8.0 : 2.0) * (double)s.batch * (double)s.m *
           (double)s.n * (double)s.k;
}

void tgl_text_types(tgl_text *out, const tgl_shape *s)
{
    if (tgl_shape_is_all(s, s->type_a) && !tgl_shape_has_weights(s))
        tgl_text_add(out, "%s", tgl_type_name(s->type_a));
    else
        tgl_text_add(out, "A %s, B %s, C %s, D %s", tgl_type_name(tgl_shape_stored_type(s, true)),
                     tgl_type_name(tgl_shape_stored_type(s, false)), tgl_type_name(s->type_c),
                     tgl_type_name(s->type_d));
}

/* Writes op(X), such as "A^T" or "conj(A)". */
static void add_operand(tgl_text *out, const char *name, bool transposed, bool conjugated)
{
    if (conjugated && !transposed)
        tgl_text_add(out, "conj(%s)", name);
    else
        tgl_text_add(out, "%s%s", name, conjugated ? "^H" : transposed ? "^T" : "");
}

static const char *const of_groups[] = {
    [TGL_GROUPED_ROWS] = " of rows",
    [TGL_GROUPED_DEPTH] = " along k",
    [TGL_GROUPED_MASKED] = " of up to m rows",
};

void tgl_text_problem(tgl_text *out, const tgl_shape *s)
{
    char epilogue[120];
    tgl_text_add(out, "problem     %s := alpha*", s->in_place ? "C" : "D");
    add_operand(out, "A", s->trans_a, s->conj_a);
    tgl_text_add(out, "*");
    add_operand(out, "B", s->trans_b, s->conj_b);
    tgl_text_add(out, " + beta*C, ");
    tgl_text_types(out, s);
    tgl_text_add(out, ", row-major, m=%lld n=%lld k=%lld", (long long)s->m, (long long)s->n,
                 (long long)s->k);
    if (s->grouping != TGL_GROUPED_NONE)
        tgl_text_add(out, ", %lld groups%s", (long long)s->batch, of_groups[s->grouping]);
    else if (s->batch > 1)
        tgl_text_add(out, ", batch of %lld", (long long)s->batch);
    if (s->pointers) tgl_text_add(out, " by pointers");
    if (s->device_scalars) tgl_text_add(out, ", alpha and beta in device memory");
    tgl_text_add(out, "%s\n",
                 s->swapped ? " (column-major given: A and B, m and n exchanged)" : "");
    tgl_text_add(
        out, "intensity   %.1f FLOP/byte (%.4g GFLOP, %.4g MB if each matrix moves once)\n",
        tgl_shape_flops(s) / bytes_moved(s), 1e-9 * tgl_shape_flops(s), 1e-6 * bytes_moved(s));
    tgl_epilogue_describe(s, epilogue, sizeof epilogue);
    if (epilogue[0] != '\0') tgl_text_add(out, "epilogue    %s\n", epilogue);
}
