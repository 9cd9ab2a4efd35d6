/* SPDX-License-Identifier: Apache-2.0
 *
 * Two libraries with the SONAMEs of cuBLAS and cuBLASLt 13, for machines without a GPU. They keep
 * the state of handles and descriptors. They do not compute products, but record the call and
 * return RECORDED, a status that no other code returns.
 */
#ifndef TGL_CUBLAS_RECORDER_H
#define TGL_CUBLAS_RECORDER_H

enum { RECORDED = 99, RECORD_WORDS = 24 };

/* The latest call on the calling thread: the function, and its arguments in order as numbers. */
typedef struct recorded_call {
    const char *function; /* NULL: there was no call */
    int count;
    long long words[RECORD_WORDS];
} recorded_call;

/* Exported by both libraries. recorder_take() returns the latest call and forgets it. */
typedef recorded_call recorder_take_function(void);
/* The type of a function that the fake libcublas exports: it makes the next cublasSgemm_v2() call
 * cublasGemmEx() through the loader, as cuBLAS calls functions of its own libraries. */
typedef void recorder_reenter_function(void);

#define RECORDER_API __attribute__((visibility("default")))

#endif
