/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a problem as text.
 */
#include "problem/describe.h"

/* Bytes of all matrices if each is moved once. C counts only if D is another matrix. */
static double bytes_moved(const tgl_shape *s)
{
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    return (double)s->batch *
           (m * k * (double)tgl_type_size(s->type_a) + k * n * (double)tgl_type_size(s->type_b) +
            m * n * (double)tgl_type_size(s->type_d) +
            (s->in_place ? 0 : m * n * (double)tgl_type_size(s->type_c)));
}

double tgl_shape_flops(const tgl_shape *s)
{
    return 2.0 * (double)s->batch * (double)s->m * (double)s->n * (double)s->k;
}

static void add_types(tgl_text *out, const tgl_shape *s)
{
    if (tgl_shape_is_all(s, s->type_a))
        tgl_text_add(out, "%s", tgl_type_name(s->type_a));
    else
        tgl_text_add(out, "A %s, B %s, C %s, D %s", tgl_type_name(s->type_a),
                     tgl_type_name(s->type_b), tgl_type_name(s->type_c), tgl_type_name(s->type_d));
}

void tgl_text_problem(tgl_text *out, const tgl_shape *s)
{
    char epilogue[120];
    tgl_text_add(out, "problem     %s := alpha*%s*%s + beta*C, ", s->in_place ? "C" : "D",
                 s->trans_a ? "A^T" : "A", s->trans_b ? "B^T" : "B");
    add_types(out, s);
    tgl_text_add(out, ", row-major, m=%lld n=%lld k=%lld", (long long)s->m, (long long)s->n,
                 (long long)s->k);
    if (s->batch > 1) tgl_text_add(out, ", batch of %lld", (long long)s->batch);
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
