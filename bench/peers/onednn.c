/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16 by oneDNN (version 2), so that `tegula bench` can time them. They need a
 * primitive, an object that oneDNN makes from structs which only its headers describe. This library
 * is linked with oneDNN, so a program also finds dnnl_sgemm() and dnnl_gemm_s8s8s32() through it.
 */
#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

/* The product for which the primitive was made. */
typedef struct key {
    int64_t m, n, k;
    int trans_a, trans_b, result_is_f32;
} key;

static struct {
    key of;
    bool is_made;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t product;
    dnnl_memory_t memories[3]; /* A, B, C */
} made;

/* Describes a row-major matrix of rows x columns or, if transposed, the transpose of a stored
 * matrix of columns x rows. */
static bool describe(dnnl_memory_desc_t *matrix, int64_t rows, int64_t columns, bool transposed,
                     dnnl_data_type_t type)
{
    const dnnl_dims_t dims = {rows, columns},
                      strides = {transposed ? 1 : columns, transposed ? rows : 1};
    return dnnl_memory_desc_init_by_strides(matrix, 2, dims, type, strides) == dnnl_success;
}

static bool is_same(const key *x, const key *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->trans_a == y->trans_a &&
           x->trans_b == y->trans_b && x->result_is_f32 == y->result_is_f32;
}

static bool make_product(const key *of)
{
    dnnl_memory_desc_t d[3];
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t chosen;
    if (made.engine == NULL &&
        (dnnl_engine_create(&made.engine, dnnl_cpu, 0) != dnnl_success ||
         dnnl_stream_create(&made.stream, made.engine, dnnl_stream_default_flags) != dnnl_success))
        return false;
    if (!describe(&d[0], of->m, of->k, of->trans_a, dnnl_bf16) ||
        !describe(&d[1], of->k, of->n, of->trans_b, dnnl_bf16) ||
        !describe(&d[2], of->m, of->n, false, of->result_is_f32 ? dnnl_f32 : dnnl_bf16) ||
        dnnl_matmul_desc_init(&product, &d[0], &d[1], NULL, &d[2]) != dnnl_success ||
        dnnl_primitive_desc_create(&chosen, &product, NULL, made.engine, NULL) != dnnl_success)
        return false;
    const dnnl_status_t status = dnnl_primitive_create(&made.product, chosen);
    dnnl_primitive_desc_destroy(chosen);
    if (status != dnnl_success) return false;
    for (int i = 0; i < 3; i++)
        if (dnnl_memory_create(&made.memories[i], &d[i], made.engine, DNNL_MEMORY_NONE) !=
            dnnl_success)
            return false;
    made.of = *of;
    return made.is_made = true;
}

static void forget_product(void)
{
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(made.memories[i]);
    dnnl_primitive_destroy(made.product);
    made.is_made = false;
}

/* C := op(A)*op(B) for contiguous row-major matrices. A and B are bf16, C is bf16 or f32. The
 * primitive is kept for the next call. Returns 0 on success. */
int tegula_peer_bf16(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *A,
                     const void *B, void *C, int result_is_f32);

int tegula_peer_bf16(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *A,
                     const void *B, void *C, int result_is_f32)
{
    const key of = {.m = m,
                    .n = n,
                    .k = k,
                    .trans_a = trans_a,
                    .trans_b = trans_b,
                    .result_is_f32 = result_is_f32};
    if (made.is_made && !is_same(&of, &made.of)) forget_product();
    if (!made.is_made && !make_product(&of)) return 1;
    dnnl_memory_set_data_handle(made.memories[0], (void *)A);
    dnnl_memory_set_data_handle(made.memories[1], (void *)B);
    dnnl_memory_set_data_handle(made.memories[2], C);
    const dnnl_exec_arg_t arguments[3] = {{DNNL_ARG_SRC, made.memories[0]},
                                          {DNNL_ARG_WEIGHTS, made.memories[1]},
                                          {DNNL_ARG_DST, made.memories[2]}};
    return dnnl_primitive_execute(made.product, made.stream, 3, arguments) != dnnl_success ||
           dnnl_stream_wait(made.stream) != dnnl_success;
}
