/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the tests with the fake libraries share.
 */
#ifndef FAKE_CUDA_SETUP_H
#define FAKE_CUDA_SETUP_H

#include "api/handles.h"
#include "cuda/driver.h"
#include "fake_cuda.h"
#include "support.h"

/* Setup and teardown of each test, for cmocka. In the test the library uses the fakes
 * (fake_cuda.h), nothing fails, and the disk cache is an empty folder, cache_folder(), which the
 * teardown removes. The teardown fails if an object of the fake device was not released or if the
 * library has misused the fakes. */
int fake_setup(void **state);
int fake_teardown(void **state);
const char *cache_folder(void);

/* The number of entries of the disk cache. */
int cache_entries(void);

/* Switches the rest of the test to a driver for this CUDA version, 1000*major + 10*minor, below
 * 12.0. */
void use_old_driver(const char *version);

/* Opens a device or fails the test. */
tgl_device *open_device(const char *name);

/* Fails the test unless opening fails with this status and the error message contains `words`. */
void assert_open_fails(const char *name, tgl_status expected, const char *words);

/* Fails the test unless the thread's latest error message contains `words`. */
void assert_last_error(const char *words);

/* The value of a property of the device; fails the test if there is none. */
const char *property_of(const tgl_device *dev, const char *wanted);

/* Runs C := A*B with m x k ones and k x n twos and fails the test unless C is right, or unless the
 * product fails as expected. kernel: NULL for the device's choice. */
void assert_product(tgl_device *dev, const char *kernel, int m, int n, int k);
void assert_product_fails(tgl_device *dev, tgl_status expected);

/* Makes a plan of the launches in `b`, for an FP32 product of 1 x 1 matrices. */
tgl_status plan_of_launches(tgl_device *dev, tgl_list_builder *b, tgl_plan **plan);

/* The counters of the fakes: see fake_cuda.h. */
int live_objects(void);
int context_depth(void);
int loaded_modules(void);
int misuses(void);
int encoded_maps(void);
int launches_so_far(void);
int uploaded_bytes(void);
int downloaded_bytes(void);
int compilations(void);
int compiler_options(void);

/* latest_launch(): the latest launch on this thread. earlier_launch(): the launch `back` launches
 * before it. */
fake_cuda_launch latest_launch(void);
fake_cuda_launch earlier_launch(int back);

/* A function of the fake libcuda, for calls that an application makes. */
void *fake_function(const char *name);

/* Calls that an application makes in cuda:0's primary context. */
void *create_stream(void);
void *create_blocking_stream(void);
void destroy_stream(void *stream);
void begin_capture(void *stream);
void *end_capture(void *stream); /* the graph; fails the test if the capture was invalidated */
void fail_capture(void *stream); /* ends a capture that was invalidated */
void launch_graph(void *graph, void *stream);
void destroy_graph(void *graph);
void *clone_graph(void *graph);       /* NULL: it has memory nodes */
void *instantiate_graph(void *graph); /* NULL: it has memory nodes and an executable */
void *embed_graph(void *graph); /* a new graph with `graph` as child (NULL: empty); returns NULL
                                   as clone_graph() does */
void begin_capture_to(void *graph, void *stream);
void wait_for_stream(void *stream, void *other); /* makes `stream` wait for `other`, by an event */
void end_captures(void); /* invalidates all captures, without counting a misuse */
int memory_nodes(void *graph);
int late_destructors(void); /* destroys what FAKE_CUDA_LATE has kept; returns the number */
size_t memory_taken(void);  /* bytes of device memory in use */

#endif
