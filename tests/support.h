/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests share. A test program includes this header alone.
 */
#ifndef TGL_TEST_SUPPORT_H
#define TGL_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_case.h"
#include "tegula/tegula.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Fails with both names if they differ: "TGL_BAD_LDA != TGL_OK". */
#define assert_status(actual, expected)                                                            \
    assert_string_equal(tgl_status_name(actual), tgl_status_name(expected))

/* Fails unless that is the calling thread's sentence of its latest failure. */
#define assert_sentence(sentence)                                                                  \
    do {                                                                                           \
        char sentence_found[400];                                                                  \
        tgl_last_error(sentence_found, sizeof sentence_found);                                     \
        assert_string_equal(sentence_found, sentence);                                             \
    } while (0)

/* Makes a known failure the calling thread's latest, so that a sentence that a later failure sets
 * can be told from one that is left from before. */
void forget_error(void);

/* Fails unless a failure since forget_error() has set a sentence. */
void assert_new_sentence(void);

/* Opens the cpu device. If TEGULA_CPU asks for an instruction set that this machine lacks, ends the
 * program with 77, which CTest takes for "skipped". */
tgl_device *open_cpu(int threads);

/* For cmocka: *state is an open cpu device of two threads. */
int setup_cpu(void **state);

/* The same of a simulator. */
int setup_sim(void **state);
int teardown_device(void **state);

/* Runs the case and fails with its description if anything about it is wrong. Returns whether the
 * kernel takes the problem; the planner must always find one that does. */
bool check_case(tgl_device *dev, const gemm_case *c);

/* The i-th choice of a kernel: first NULL, the planner's own, then each kernel by name. False:
 * there are no more. */
bool kernel_choice(const tgl_device *dev, int i, const char **kernel);

/* Memory of the device, `count` floats of this value; the caller gives it back. */
void *constant_floats(tgl_device *dev, size_t count, float value);

#endif
