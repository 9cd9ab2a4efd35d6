/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of processor models (src/cpu/plan/cpu_models.c).
 */
#include "cpu_plan_case.h"

#include "cpu/device/tiers.h"
#include "cpu/plan/cpu_settings.h"

/* Rows are for a model or a vendor, with one tier or all of its tiers, or for all processors. */
static void rows_are_for_one_processor(void **state)
{
    (void)state;
    static const cpu_model rows[] = {
        {.model = "Vendor 6.1", .vector_bytes = 32, .f32 = {100, 10}, .f64 = {101, 11}},
        {.model = "Vendor 6.1", .vector_bytes = 64, .f32 = {200, 20}, .f64 = {201, 21}},
        {.model = "Vendor 6.1", .f32 = {300, 30}, .f64 = {301, 31}},
        {.model = "Vendor", .vector_bytes = 64, .f32 = {400, 40}, .f64 = {401, 41}},
        {.model = "Vendor", .f32 = {500, 50}, .f64 = {501, 51}},
        {.model = "", .f32 = {600, 60}, .f64 = {601, 61}}};
    static const struct {
        const char *model;
        int vector_bytes, kc;
    } table[] = {{"Vendor 6.1", 32, 100},
                 {"Vendor 6.1", 64, 200},
                 {"Vendor 6.1", 16, 300},
                 {"Vendor 6.10", 64, 400},
                 {"Vendor 6.10", 32, 500},
                 {"Vendor 6.", 32, 500},
                 {"Vendor", 64, 400},
                 {"VendorX 6.1", 64, 600},
                 {"Vend", 64, 600},
                 {"Another 6.1", 64, 600},
                 {"", 32, 600}};
    for (size_t i = 0; i < COUNT_OF(table); i++)
        for (int f64 = 0; f64 < 2; f64++) {
            cpu_kernels kernels = f64 ? tgl_cpu_kernels_portable_f64 : tgl_cpu_kernels_portable_f32;
            kernels.vector = table[i].vector_bytes / (int)kernels.element;
            const cpu_model *row = tgl_cpu_model_find(rows, table[i].model, &kernels);
            const cpu_blocking blocking = tgl_cpu_measured_blocking(row, &kernels);
            if (blocking.kc != table[i].kc + f64 || blocking.mc != table[i].kc / 10 + f64)
                fail_msg("row %d", (int)i);
        }
}

/* No row is hidden by an earlier one, and the last row is for all processors. */
static void each_row_is_found(void **state)
{
    (void)state;
    for (const cpu_model *row = tgl_cpu_models;; row++) {
        cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
        if (row->vector_bytes > 0) kernels.vector = row->vector_bytes / (int)kernels.element;
        if (tgl_cpu_model_find(tgl_cpu_models, row->model, &kernels) != row)
            fail_msg("%s, vectors of %d bytes", row->model, row->vector_bytes);
        if (row->model[0] == '\0' && row->vector_bytes == 0) break;
    }
}

/* The table identifies a tier by the bytes of its vectors, so each tier with the kernels of avx512
 * must have vectors of 64 bytes. */
static void tiers_that_share_kernels_share_rows(void **state)
{
    (void)state;
    static const char *const names[] = {"avx512", "avx512_vnni", "avx512_bf16", "amx"};
    const cpu_tier *tiers[CPU_MAX_TIERS];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        int count;
        if (tgl_cpu_choose_tiers(~0u, names[i], tiers, &count) != TGL_OK) continue;
        assert_string_equal(tiers[0]->base != NULL ? tiers[0]->base : tiers[0]->name, "avx512");
        assert_int_equal(tiers[0]->f32->vector * (int)tiers[0]->f32->element, 64);
        assert_int_equal(tiers[0]->f64->vector * (int)tiers[0]->f64->element, 64);
    }
}

/* The option row=N gives the plans of the processor in row N of the table. */
static void rows_have_numbers(void **state)
{
    (void)state;
    const tgl_shape shape = shape_of(1000, 3000, 100, false, false);
    for (int row = 1; row <= tgl_cpu_model_count(); row++) {
        const cpu_model *model = &tgl_cpu_models[row - 1];
        cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
        cpu_plan own, asked;
        cpu_machine of_row = server_of(model->model, 1), of_another = server_of("", 1);
        if (model->vector_bytes > 0) kernels.vector = model->vector_bytes / (int)kernels.element;
        tgl_cpu_plan(&shape, &kernels, (cpu_blocking){.row = 0}, &of_row, &own);
        tgl_cpu_plan(&shape, &kernels, (cpu_blocking){.row = row}, &of_another, &asked);
        assert_true(tgl_cpu_plan_is_same(&own, &asked));
    }
}

/* The settings that are measured: first the planner's own, then the rows whose values differ from
 * those of all earlier settings, then block sizes. Each can be read back from its options. */
static void settings_differ(void **state)
{
    (void)state;
    const cpu_model *last = &tgl_cpu_models[tgl_cpu_model_count() - 1];
    for (const cpu_model *own = tgl_cpu_models; own <= last; own++) {
        cpu_blocking list[CPU_SETTINGS_MAX];
        char values[CPU_SETTINGS_MAX][CPU_MODEL_TEXT], options[CPU_SETTING_TEXT];
        const int count = tgl_cpu_settings(own, list);
        int rows = 0;
        tgl_cpu_setting_options(&list[0], options);
        assert_string_equal(options, "");
        tgl_cpu_model_values(own, values[rows++]);
        for (int i = 1; i < count; i++) {
            cpu_blocking read;
            tgl_cpu_setting_options(&list[i], options);
            assert_status(tgl_cpu_blocking_read(options, &read), TGL_OK);
            assert_memory_equal(&read, &list[i], sizeof read);
            if (read.row == 0) continue;
            tgl_cpu_model_values(&tgl_cpu_models[read.row - 1], values[rows]);
            for (int other = 0; other < rows; other++)
                assert_string_not_equal(values[other], values[rows]);
            rows++;
        }
        assert_in_range(rows, 2, tgl_cpu_model_count());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_for_one_processor),
        cmocka_unit_test(each_row_is_found),
        cmocka_unit_test(tiers_that_share_kernels_share_rows),
        cmocka_unit_test(rows_have_numbers),
        cmocka_unit_test(settings_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
