/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the tests share. A test program needs only this header.
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

/* Fails unless this is the error message of the calling thread's latest failure. */
#define assert_sentence(sentence)                                                                  \
    do {                                                                                           \
        char sentence_found[400];                                                                  \
        tgl_last_error(sentence_found, sizeof sentence_found);                                     \
        assert_string_equal(sentence_found, sentence);                                             \
    } while (0)

/* Sets a known error message, so that a later failure that sets no message can be detected. */
void forget_error(void);

/* Fails unless a failure since forget_error() has set an error message. */
void assert_new_sentence(void);

/* The number of threads of this process. */
int threads_of_process(void);

/* Opens the cpu device. If TEGULA_CPU selects an instruction set that this machine does not have,
 * ends the program with 77, which CTest reports as "skipped". */
tgl_device *open_cpu(int threads);

/* For cmocka: *state is an open cpu device with two threads. */
int setup_cpu(void **state);

/* Like setup_cpu(), with a simulator. */
int setup_sim(void **state);
int teardown_device(void **state);

/* Like setup_sim(), but with the device that TEGULA_TEST_DEVICE names ("cuda:0"), if it is set. */
int setup_test_device(void **state);

/* sweep_arguments(): reads the arguments of a program that tests many cases. The first, "i/n",
 * selects every n-th case from the i-th on; the second names a single test. sweep_has(): whether
 * case number `number` was selected. */
void sweep_arguments(int argc, char **argv);
bool sweep_has(int number);

/* Whether the text of tgl_plan_explain() for the problem contains this word. */
bool plan_explains(tgl_device *dev, const tgl_problem *problem, const char *word);

/* Runs the case. If anything is wrong, fails the test with a description of the case. Returns
 * whether the kernel supports the problem. The planner must find a kernel for every problem. */
bool check_case(tgl_device *dev, const gemm_case *c);

/* *kernel := choice number i: NULL (the planner's choice) for i = 0, then the names of the device's
 * kernels. False: there are no more. */
bool kernel_choice(const tgl_device *dev, int i, const char **kernel);

/* Device memory with `count` floats of this value; the caller frees it. */
void *constant_floats(tgl_device *dev, size_t count, float value);

#endif
