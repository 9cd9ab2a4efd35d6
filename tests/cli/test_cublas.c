/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS as a peer of `tegula bench`, over its stand-in: products of all types, single and batched,
 * by both of the ways in which it is called.
 */
#include "fake_cuda/setup.h"

#include "cublas.h"
#include "elements.h"
#include "problem_options.h"

static void assert_right(tgl_device *dev, const operands *o, const cublas_product *product)
{
    const operand_set set = operands_for(o, 0);
    const tgl_problem *p = &o->problem;
    void *C = malloc(o->size_c);
    assert_non_null(C);
    if (!cublas_run(product, set))
        fail_msg("%s batch %d", element_type_name(p->type_a), (int)p->batch);
    assert_status(tgl_download(dev, C, set.C, o->size_c, NULL), TGL_OK);
    /* The stand-in sums in double. */
    const double bound = (element_unit(p->type_a) < 1e-10 ? error_bound(p->k) : 1) +
                         error_of_rounded_inputs(p->type_a, p->compute);
    error_summary summary = {0};
    const int parts = element_parts(o->result.type);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n * parts; j++) {
                const int64_t at = stored_place(&o->result, b, i, j / parts) * parts + j % parts;
                const double c = element_get(o->result.type, C, at);
                const reference_element e = operands_expected(o, b, i, j / parts, (int)(j % parts));
                double error;
                if (!error_add(&summary, o->result.type, c, &e, bound, &error))
                    fail_msg("%g, not %Lg", c, e.value);
            }
    if (p->compute == TGL_COMPUTE_TF32) assert_true(summary.max > 100); /* inputs were rounded */
    free(C);
}

static void try_problem(tgl_device *dev, cublas *lib, const tgl_problem *p)
{
    char why[200] = "";
    for (cublas_way way = 0; way < CUBLAS_WAYS; way++) {
        operands o;
        assert_status(operands_make(&o, dev, p, false), TGL_OK);
        cublas_product *product = cublas_prepare(lib, way, &o, why, sizeof why);
        if (product == NULL) fail_msg("%s", why);
        assert_right(dev, &o, product);
        cublas_release(product);
        operands_release(&o);
    }
}

static void products_of_all_types(void **state)
{
    (void)state;
    static const struct {
        tgl_type type, type_c;
        tgl_compute compute;
    } rows[] = {
        {TGL_F32, TGL_F32, TGL_COMPUTE_DEFAULT},   {TGL_F32, TGL_F32, TGL_COMPUTE_TF32},
        {TGL_F64, TGL_F64, TGL_COMPUTE_DEFAULT},   {TGL_F16, TGL_F16, TGL_COMPUTE_DEFAULT},
        {TGL_F16, TGL_F32, TGL_COMPUTE_DEFAULT},   {TGL_BF16, TGL_BF16, TGL_COMPUTE_DEFAULT},
        {TGL_BF16, TGL_F32, TGL_COMPUTE_ACCURATE}, {TGL_C64, TGL_C64, TGL_COMPUTE_DEFAULT},
        {TGL_C64, TGL_C64, TGL_COMPUTE_TF32},      {TGL_C128, TGL_C128, TGL_COMPUTE_DEFAULT},
    };
    char why[200] = "";
    setenv("TEGULA_CUBLAS", FAKE_LIBCUBLAS, 1);
    tgl_device *dev = open_device("cuda");
    cublas *lib = cublas_open(dev, why, sizeof why);
    if (lib == NULL) fail_msg("%s", why);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int batch = 1; batch <= 3; batch += 2) {
            tgl_problem p = problem_of(rows[i].type, 7, 5, 33);
            p.type_c = rows[i].type_c;
            p.compute = rows[i].compute;
            p.batch = batch;
            problem_set_strides(&p);
            try_problem(dev, lib, &p);
        }
    cublas_close(lib);
    tgl_device_close(dev);
    unsetenv("TEGULA_CUBLAS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products_of_all_types, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
