/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests over the fake libraries share.
 */
#ifndef FAKE_CUDA_SETUP_H
#define FAKE_CUDA_SETUP_H

#include "cuda/driver.h"
#include "fake_cuda.h"
#include "support.h"

/* For cmocka, around every test: the library finds the fakes, nothing goes wrong, and the disk
 * cache is an empty folder, cache_folder(), which goes away with the test. The teardown also fails
 * if a test left something behind on the fake device, or if the library misused it. */
int fake_setup(void **state);
int fake_teardown(void **state);
const char *cache_folder(void);

/* Entries of the disk cache. */
int cache_entries(void);

/* The rest of the test has a driver for this CUDA version, 1000*major + 10*minor, below 12.0. */
void use_old_driver(const char *version);

/* Opens a device or fails the test. */
tgl_device *open_device(const char *name);

/* Fails the test unless opening fails so, with `words` in the sentence of detail. */
void assert_open_fails(const char *name, tgl_status expected, const char *words);

/* Fails the test unless the thread's latest sentence of detail has `words` in it. */
void assert_last_error(const char *words);

/* The value of a property of the device; fails the test if there is none. */
const char *property_of(const tgl_device *dev, const char *wanted);

/* Runs C := A*B with m x k ones and k x n twos and fails the test unless C is right, or unless the
 * product fails as expected. kernel: NULL for the device's choice. */
void assert_product(tgl_device *dev, const char *kernel, int m, int n, int k);
void assert_product_fails(tgl_device *dev, tgl_status expected);

/* The fakes' own account: see fake_cuda.h. */
int live_objects(void);
int context_depth(void);
int loaded_modules(void);
int misuses(void);
int encoded_maps(void);
int compilations(void);
int compiler_options(void);

/* The latest launch on this thread, and those before it. */
fake_cuda_launch latest_launch(void);
fake_cuda_launch earlier_launch(int back);

/* A function of the fake libcuda, as its other users call it. */
void *fake_function(const char *name);

/* What other users of the driver do, in cuda:0's primary context. */
void *create_stream(void);
void *create_blocking_stream(void);
void destroy_stream(void *stream);
void begin_capture(void *stream);
void *end_capture(void *stream); /* the graph; fails the test if something has ended the capture */
void launch_graph(void *graph, void *stream);
void destroy_graph(void *graph);
size_t memory_taken(void); /* bytes of the device */

#endif
