/* SPDX-License-Identifier: Apache-2.0
 *
 * Two libraries with the SONAMEs of cuBLAS and cuBLASLt 13, for machines without a GPU. They keep
 * the state of handles and descriptors. Instead of a product they record the call, and return a
 * status that no other code returns.
 */
#ifndef TGL_CUBLAS_RECORDER_H
#define TGL_CUBLAS_RECORDER_H

enum { RECORDED = 99, RECORD_WORDS = 24 };

/* The latest call on this thread: the function and its arguments in order, as numbers. */
typedef struct recorded_call {
    const char *function; /* NULL: none */
    int count;
    long long words[RECORD_WORDS];
} recorded_call;

/* Exported by both libraries. recorder_take() returns the latest call and forgets it. */
typedef recorded_call recorder_take_function(void);
/* Exported by the fake libcublas: the next cublasSgemm_v2() calls cublasGemmEx()
 * through the loader, as cuBLAS calls functions of its own libraries. */
typedef void recorder_reenter_function(void);

#define RECORDER_API __attribute__((visibility("default")))

#endif
