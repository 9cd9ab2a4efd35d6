/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes grouped products of 8-bit types with scale factors (grouped_scale_cases.h).
 */
#include "grouped_scale_cases.h"
#include "support.h"

#define E4M3 TGL_F8_E4M3
#define E5M2 TGL_F8_E5M2

const scale_pair scale_pairs[SCALE_PAIRS] = {
    {TGL_SCALING_LINE_128, TGL_SCALING_BLOCK},    {TGL_SCALING_TENSOR, TGL_SCALING_TENSOR},
    {TGL_SCALING_LINE, TGL_SCALING_LINE},         {TGL_SCALING_NONE, TGL_SCALING_TENSOR},
    {TGL_SCALING_LINE_128, TGL_SCALING_LINE_128}, {TGL_SCALING_BLOCK, TGL_SCALING_BLOCK},
};

bool scale_pair_is_of(int pair, tgl_grouping grouping)
{
    return grouping == TGL_GROUPED_MASKED || scale_pairs[pair].a != TGL_SCALING_BLOCK;
}

static int64_t ld_of_scale(tgl_scaling scaling, int64_t lines, int64_t k)
{
    const int64_t blocks = (k + 127) / 128;
    return scaling == TGL_SCALING_BLOCK      ? (blocks + 3) / 4 * 4
           : scaling == TGL_SCALING_LINE_128 ? (lines + 3) / 4 * 4
                                             : 0;
}

/* Sets the strides between the matrices of the groups, with gaps of `more` rows. */
static void set_strides(tgl_problem *p, int64_t more)
{
    const bool is_masked = p->grouping == TGL_GROUPED_MASKED;
    p->stride_b = ((p->trans_b == TGL_TRANS ? p->n : p->k) + more) * p->ldb;
    if (!is_masked) return;
    p->stride_a = ((p->trans_a == TGL_TRANS ? p->k : p->m) + more) * p->lda;
    p->stride_c = (p->m + more) * p->ldc;
}

scaled_case grouped_scale_case(unsigned number, const group_list *list,
                               const grouped_scale_size *size, int pair, const char *kernel,
                               double error)
{
    static const tgl_type types[][2] = {{E4M3, E4M3}, {E5M2, E4M3}, {E4M3, E5M2}, {E5M2, E5M2}};
    static const tgl_type results[] = {TGL_BF16, TGL_F32, TGL_F16, E4M3};
    const tgl_type *in = types[number % 4], result = results[number / 2 % 4];
    scaled_case c = {
        .problem = scaled_problem(in[0], in[1], result, size->m, size->n, size->k),
        .alpha = number % 3 == 0 ? 1 : -0.75,
        .beta = number % 2 == 0 ? 0 : 0.5,
        .activation = number % 4 == 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE,
        .kernel = kernel,
        .error = error,
        .list = list,
        .seed = number + 1,
    };
    tgl_problem *p = &c.problem;
    const int64_t more = number % 3 == 2 ? 5 : number % 3 == 1 ? 16 : 0;
    p->grouping = list->grouping;
    p->group_form = list->form;
    p->batch = list->count;
    p->trans_b = number % 4 == 3 ? TGL_NO_TRANS : TGL_TRANS;
    p->lda = p->k + more;
    p->ldb = (p->trans_b == TGL_TRANS ? p->k : p->n) + more;
    p->ldc = p->n + more;
    set_strides(p, number % 2);
    p->scaling_a = scale_pairs[pair].a;
    p->scaling_b = scale_pairs[pair].b;
    p->scaling_d = result != E4M3   ? TGL_SCALING_NONE
                   : number % 8 < 4 ? TGL_SCALING_TENSOR
                                    : TGL_SCALING_LINE;
    if (number % 2 != 0) { /* leading dimensions as DeepGEMM and cuBLASLt have them */
        p->ld_scale_a = ld_of_scale(p->scaling_a, p->m, p->k);
        p->ld_scale_b = ld_of_scale(p->scaling_b, p->n, p->k);
    }
    return c;
}

void check_grouped_scales(tgl_device *dev, const scaled_case *c)
{
    char fault[512], why[1024] = "";
    const tgl_status status = scaled_case_run(dev, c, fault, NULL);
    if (status != TGL_OK) tgl_last_error(why, sizeof why);
    if (why[0] != '\0') print_error("%s: %s\n", c->kernel != NULL ? c->kernel : "planned", why);
    assert_status(status, TGL_OK);
    assert_string_equal(fault, "");
}
