/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the compiler optimises and no sanitizer is on: only then do times and stack frames have
 * their usual size. gcc and clang say differently that a sanitizer is on.
 */
#ifndef TGL_TEST_USUAL_CODE_H
#define TGL_TEST_USUAL_CODE_H

#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) ||                               \
    HAS_FEATURE(thread_sanitizer) || HAS_FEATURE(address_sanitizer) || !defined(__OPTIMIZE__)
#define IS_USUAL_CODE false
#else
#define IS_USUAL_CODE true
#endif

#endif
