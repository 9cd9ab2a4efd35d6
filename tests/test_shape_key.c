/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of products in the wisdom.
 */
#include "plan_shape.h"

/* Changes the shape in respect number `difference`, so that it runs another kernel or moves other
 * bytes. Returns false past the last number. */
static bool change(tgl_shape *s, int difference)
{
    switch (difference) {
    case 0:
        s->m++;
        return true;
    case 1:
        s->trans_a = true;
        return true;
    case 2:
        s->lda += 4;
        return true;
    case 3:
        s->ldb += 4;
        return true;
    case 4:
        s->ldc = s->ldd = s->ldd + 4;
        return true;
    case 5:
        s->batch = 2;
        return true;
    case 6:
        s->in_place = false;
        return true;
    case 7:
        s->device_scalars = true;
        return true;
    case 8:
        s->pointers = true;
        return true;
    case 9:
        s->unaligned = true;
        return true;
    case 10:
        s->compute = TGL_COMPUTE_TF32;
        return true;
    case 11:
        s->type_a = TGL_BF16;
        return true;
    case 12:
        s->type_d = TGL_F16;
        return true;
    case 13:
        s->epilogue.bias = TGL_BIAS_ROW;
        return true;
    case 14:
        s->epilogue.bias = TGL_BIAS_COLUMN;
        return true;
    case 15:
        s->epilogue.activation = TGL_ACTIVATION_RELU;
        return true;
    case 16:
        s->epilogue.activation = TGL_ACTIVATION_GELU;
        return true;
    case 17:
        s->epilogue.residual = true;
        return true;
    case 18:
        s->epilogue.expression = "acc";
        return true;
    case 19:
        s->epilogue.expression = "acc + c";
        return true;
    case 20:
        s->batch = 2, s->stride_a = 7;
        return true;
    case 21:
        s->batch = 2, s->pointers = true, s->alignment = 16;
        return true;
    case 22:
        s->conj_a = true;
        return true;
    case 23:
        s->conj_b = true;
        return true;
    case 24:
        s->trans_a = s->conj_a = true, s->lda = s->m;
        return true;
    default:
        return false;
    }
}

static void products_that_differ_have_different_keys(void **state)
{
    (void)state;
    enum { MANY = 25 };
    char keys[MANY + 1][TGL_SHAPE_KEY_SIZE];
    int count = 0;
    tgl_shape s = shape_of(64, 32, 16);
    tgl_shape_key(&s, keys[count++]);
    assert_string_equal(keys[0], "f32,f32,f32,f32 NN 64x32x16x1 default");
    for (int i = 0; s = shape_of(64, 32, 16), change(&s, i); i++)
        tgl_shape_key(&s, keys[count++]);
    assert_int_equal(count, MANY + 1);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(keys[i], keys[j]) == 0) fail_msg("%d, %d: %s", i, j, keys[i]);
    s = shape_of(64, 32, 16);
    s.scaling_a = TGL_SCALING_TENSOR;
    assert_string_equal(tgl_shape_key(&s, keys[0]), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_that_differ_have_different_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
