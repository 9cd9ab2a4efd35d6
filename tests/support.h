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

/* The same with a simulator. */
int setup_sim(void **state);
int teardown_device(void **state);

/* The same with the simulator, or with the device that TEGULA_TEST_DEVICE names ("cuda:0"). */
int setup_test_device(void **state);

/* The arguments of a program that tests many cases: "i/n" takes the i-th of n parts of them; a
 * second one names a test. sweep_has: whether case number `number` is in this part. */
void sweep_arguments(int argc, char **argv);
bool sweep_has(int number);

/* Whether the explanation of the problem's plan has this word. */
bool plan_explains(tgl_device *dev, const tgl_problem *problem, const char *word);

/* Runs the case. If anything is wrong, fails with the case's description. Returns whether the
 * kernel supports the problem; the planner must support every problem. */
bool check_case(tgl_device *dev, const gemm_case *c);

/* Choice number i of a kernel: first NULL, the planner's choice, then each kernel by name. False:
 * there are no more. */
bool kernel_choice(const tgl_device *dev, int i, const char **kernel);

/* Device memory with `count` floats of this value; the caller frees it. */
void *constant_floats(tgl_device *dev, size_t count, float value);

#endif
