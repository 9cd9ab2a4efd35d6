/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of statuses: every value has a name and a sentence of its own, and values are pinned.
 */
#include "support.h"

static void every_status_has_a_name_and_a_sentence(void **state)
{
    (void)state;
    for (int i = TGL_OK; i <= TGL_BAD_RESIDUAL; i++) {
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
    } pinned[] = {{0, "TGL_OK"},           {1, "TGL_BAD_ARGUMENT"},
                  {10, "TGL_BAD_LDA"},     {19, "TGL_BAD_C"},
                  {21, "TGL_UNSUPPORTED"}, {23, "TGL_NO_MEMORY"},
                  {28, "TGL_DEVICE_LOST"}, {30, "TGL_UNKNOWN_KERNEL"},
                  {31, "TGL_BAD_SETTING"}, {34, "TGL_BAD_EPILOGUE"},
                  {36, "TGL_BAD_RESIDUAL"}};
    for (size_t i = 0; i < COUNT_OF(pinned); i++)
        assert_string_equal(tgl_status_name((tgl_status)pinned[i].value), pinned[i].name);
}

static void unknown_values_are_named_so(void **state)
{
    (void)state;
    static const int values[] = {-1, TGL_BAD_RESIDUAL + 1, INT32_MAX, INT32_MIN};
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
