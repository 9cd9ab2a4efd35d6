/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the key of a product, under which its measurements are stored: see shape_key.h.
 */
#include "problem/shape_key.h"
#include "base/sha256.h"
#include "base/text.h"

#include <string.h>

/* Adds the leading dimensions if a matrix is padded, and the strides of a batch unless its matrices
 * follow each other without gaps. */
static void add_layout(tgl_text *out, const tgl_shape *s)
{
    const int64_t lda = s->trans_a ? s->m : s->k, ldb = s->trans_b ? s->k : s->n;
    const int64_t a = s->m * s->k, b = s->k * s->n, c = s->m * s->n;
    if (s->lda != lda || s->ldb != ldb || s->ldc != s->n || s->ldd != s->n)
        tgl_text_add(out, " ld=%lld,%lld,%lld,%lld", (long long)s->lda, (long long)s->ldb,
                     (long long)s->ldc, (long long)s->ldd);
    if (s->batch > 1 && !s->pointers &&
        (s->stride_a != a || s->stride_b != b || s->stride_c != c || s->stride_d != c))
        tgl_text_add(out, " stride=%lld,%lld,%lld,%lld", (long long)s->stride_a,
                     (long long)s->stride_b, (long long)s->stride_c, (long long)s->stride_d);
}

static void add_expression(tgl_text *out, const char *expression)
{
    enum { BYTES = 8 };
    unsigned char digest[TGL_SHA256_BYTES];
    char text[2 * BYTES + 1];
    tgl_sha256 hash;
    tgl_sha256_start(&hash);
    tgl_sha256_add(&hash, expression, strlen(expression));
    tgl_sha256_finish(&hash, digest);
    tgl_sha256_text(digest, BYTES, text);
    tgl_text_add(out, " expression=%s", text);
}

static void add_epilogue(tgl_text *out, const tgl_shape_epilogue *e)
{
    if (e->bias != TGL_BIAS_NONE)
        tgl_text_add(out, " bias=%s,%s,%lld", e->bias == TGL_BIAS_ROW ? "row" : "column",
                     tgl_type_name(e->type_bias), (long long)e->stride_bias);
    if (e->activation != TGL_ACTIVATION_NONE)
        tgl_text_add(out, " activation=%d", (int)e->activation);
    if (e->residual)
        tgl_text_add(out, " residual=%s,%lld,%lld", tgl_type_name(e->type_residual),
                     (long long)e->ld_residual, (long long)e->stride_residual);
    if (e->expression != NULL) add_expression(out, e->expression);
    if (e->amax) tgl_text_add(out, " amax");
}

/* The letter for op(X): N, T (transposed), J (conjugated) or C (both). */
static char letter(bool trans, bool conj)
{
    return "NTJC"[(conj ? 2 : 0) + (trans ? 1 : 0)];
}

const char *tgl_shape_key(const tgl_shape *s, char text[TGL_SHAPE_KEY_SIZE])
{
    tgl_text out = {text, TGL_SHAPE_KEY_SIZE, 0};
    text[0] = '\0';
    if (s->scaling_a != 0 || s->scaling_b != 0 || s->scaling_d != 0) return text;
    if (s->grouping != TGL_GROUPED_NONE || s->is_bundle || tgl_shape_has_weights(s)) return text;
    tgl_text_add(&out, "%s,%s,%s,%s %c%c %lldx%lldx%lldx%lld %s", tgl_type_name(s->type_a),
                 tgl_type_name(s->type_b), tgl_type_name(s->type_c), tgl_type_name(s->type_d),
                 letter(s->trans_a, s->conj_a), letter(s->trans_b, s->conj_b), (long long)s->m,
                 (long long)s->n, (long long)s->k, (long long)s->batch,
                 tgl_compute_name(s->compute));
    add_layout(&out, s);
    if (!s->in_place) tgl_text_add(&out, " out-of-place");
    if (s->device_scalars) tgl_text_add(&out, " device-scalars");
    if (s->pointers) tgl_text_add(&out, " pointers=%lld", (long long)s->alignment);
    if (s->unaligned) tgl_text_add(&out, " unaligned");
    add_epilogue(&out, &s->epilogue);
    if (out.length >= TGL_SHAPE_KEY_SIZE) text[0] = '\0';
    return text;
}
