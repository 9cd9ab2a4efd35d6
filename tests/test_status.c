/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of statuses: every value has its own name and text, and the values are pinned.
 */
#include "support.h"

static void every_status_has_a_name_and_a_sentence(void **state)
{
    (void)state;
    for (int i = TGL_OK; i <= TGL_BAD_GROUPS; i++) {
        const char *name = tgl_status_name((tgl_status)i), *text = tgl_status_text((tgl_status)i);
        assert_memory_equal(name, "TGL_", 4);
        assert_true(strlen(text) > 3);
        for (int j = TGL_OK; j < i; j++) {
            assert_string_not_equal(name, tgl_status_name((tgl_status)j));
            assert_string_not_equal(text, tgl_status_text((tgl_status)j));
        }
    }
}

static void values_are_pinned(void **state)
{
    (void)state;
    static const struct {
        int value;
        const char *name;
    } pinned[] = {{0, "TGL_OK"},
                  {1, "TGL_BAD_ARGUMENT"},
                  {2, "TGL_BAD_ORDER"},
                  {3, "TGL_BAD_TRANS_A"},
                  {4, "TGL_BAD_TRANS_B"},
                  {5, "TGL_BAD_TYPE"},
                  {6, "TGL_BAD_COMPUTE"},
                  {7, "TGL_BAD_M"},
                  {8, "TGL_BAD_N"},
                  {9, "TGL_BAD_K"},
                  {10, "TGL_BAD_LDA"},
                  {11, "TGL_BAD_LDB"},
                  {12, "TGL_BAD_LDC"},
                  {13, "TGL_BAD_BATCH"},
                  {14, "TGL_BAD_STRIDE_A"},
                  {15, "TGL_BAD_STRIDE_B"},
                  {16, "TGL_BAD_STRIDE_C"},
                  {17, "TGL_BAD_A"},
                  {18, "TGL_BAD_B"},
                  {19, "TGL_BAD_C"},
                  {20, "TGL_TOO_LARGE"},
                  {21, "TGL_UNSUPPORTED"},
                  {22, "TGL_NO_DEVICE"},
                  {23, "TGL_NO_MEMORY"},
                  {24, "TGL_NO_COMPILER"},
                  {25, "TGL_COMPILE"},
                  {26, "TGL_GRID_TOO_LARGE"},
                  {27, "TGL_DRIVER"},
                  {28, "TGL_DEVICE_LOST"},
                  {29, "TGL_KERNEL_FAULT"},
                  {30, "TGL_UNKNOWN_KERNEL"},
                  {31, "TGL_BAD_SETTING"},
                  {32, "TGL_BAD_BATCHING"},
                  {33, "TGL_BAD_ALIGNMENT"},
                  {34, "TGL_BAD_EPILOGUE"},
                  {35, "TGL_BAD_BIAS"},
                  {36, "TGL_BAD_RESIDUAL"},
                  {37, "TGL_BAD_LDD"},
                  {38, "TGL_BAD_STRIDE_D"},
                  {39, "TGL_BAD_D"},
                  {40, "TGL_BAD_SCALAR"},
                  {41, "TGL_BAD_SCALE"},
                  {42, "TGL_BAD_WORKSPACE"},
                  {43, "TGL_COMMUNICATION"},
                  {44, "TGL_BAD_GROUPS"}};
    for (size_t i = 0; i < COUNT_OF(pinned); i++)
        assert_string_equal(tgl_status_name((tgl_status)pinned[i].value), pinned[i].name);
}

static void unknown_values_are_named_so(void **state)
{
    (void)state;
    static const int values[] = {-1, TGL_BAD_GROUPS + 1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_string_equal(tgl_status_name((tgl_status)values[i]), "TGL_UNKNOWN_STATUS");
        assert_non_null(tgl_status_text((tgl_status)values[i]));
    }
}

static void version_is_that_of_the_header(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", TGL_VERSION_MAJOR, TGL_VERSION_MINOR,
             TGL_VERSION_PATCH);
    assert_string_equal(tgl_version(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_sentence),
        cmocka_unit_test(values_are_pinned),
        cmocka_unit_test(unknown_values_are_named_so),
        cmocka_unit_test(version_is_that_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
