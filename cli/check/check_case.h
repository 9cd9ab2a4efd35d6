/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a case, which is a random problem of `tegula check`, and compares results with its
 * reference. A case depends only on the settings of the run (check_drawing), which include a seed,
 * and on its number, so that it can be reproduced.
 */
#ifndef CLI_CHECK_CASE_H
#define CLI_CHECK_CASE_H

#include "case_data.h"

/* Makes case number `number`. False: out of memory. */
bool check_case_make(check_case *c, const check_drawing *from, int64_t number);
void check_case_free(check_case *c);

/* What is wrong with a result, in one line; empty: it is right. */
typedef struct check_verdict {
    char text[256];
} check_verdict;

/* The buffer of the result: the buffer of D if D is another matrix than C, else that of C. */
const check_buffer *check_case_result(const check_case *c);

/* Compares the contents of the result's buffer after the product, `after`, with the reference;
 * padding and guards must have their initial contents. Adds the errors to *errors, and describes
 * the first fault in *verdict. */
void check_case_compare(const check_case *c, const unsigned char *after, error_summary *errors,
                        check_verdict *verdict);

/* Describes the case in one line: sizes, order, leading dimensions, scalars and so on. */
void check_case_describe(const check_case *c, char *text, size_t size);

#endif
