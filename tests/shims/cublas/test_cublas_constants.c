/* SPDX-License-Identifier: Apache-2.0
 *
 * Values and sizes in shims/cublas/cublas_abi.h are those of NVIDIA's headers.
 */
#include "cublas_constants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_constants(void **state)
{
    (void)state;
    int count = 0;
    for (; own_constants[count].name != NULL; count++) {
        const cublas_constant own = own_constants[count], nvidia = nvidia_constants[count];
        assert_string_equal(own.name, nvidia.name);
        if (own.value != nvidia.value)
            fail_msg("%s is %lld; NVIDIA's headers have %lld", own.name, own.value, nvidia.value);
    }
    assert_true(count > 40);
    assert_null(nvidia_constants[count].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_constants)};
    return cmocka_run_group_tests_name("cuBLAS: constants", tests, NULL, NULL);
}
