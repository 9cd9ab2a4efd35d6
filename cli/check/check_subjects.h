/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels that `tegula check` tests, and the counts of their cases.
 */
#ifndef CLI_CHECK_SUBJECTS_H
#define CLI_CHECK_SUBJECTS_H

#include "check_case.h"

enum { CHECK_CELLS = 4 * 4 * 4 }; /* 4 combinations of transposes, 4 alignments of A, 4 of B */

/* Options of kernel strings that get random values. Below: properties of cases that are counted. */
enum { CHECK_SPLITS, CHECK_WHOLE, CHECK_DEPTH, CHECK_BLOCKS, CHECK_STRIPS, CHECK_OPTIONS };
enum {
    COUNT_SPLIT,     /* split-K */
    COUNT_TAIL,      /* split-K for the last tiles only */
    COUNT_STRIPS,    /* launches of their own for the last rows and columns */
    COUNT_BATCH,     /* a batch */
    COUNT_TEN,       /* the product ran ten times */
    COUNT_SEPARATE,  /* a D other than C */
    COUNT_SCALARS,   /* scalars in memory of the device */
    COUNT_WORKSPACE, /* a workspace that the caller provides */
    COUNT_PREPARED,  /* prepared operands */
    CHECK_COUNTS
};

typedef struct check_tally {
    int64_t passed, failed, unsupported; /* numbers of cases */
    error_summary errors;
    bool cells[CHECK_CELLS]; /* the layouts and alignments that were run */
    int64_t counts[CHECK_COUNTS];
} check_tally;

typedef struct check_subject {
    const char *name;            /* a name; a kernel string; "auto": the planner's choice */
    bool options[CHECK_OPTIONS]; /* the options that the kernel has and that are drawn */
    check_tally tally;
} check_subject;

/* Returns EXIT_DONE if `asked` names a kernel of the device; else reports an error and returns its
 * exit code. */
int check_find_kernel(const tgl_device *dev, const char *asked);

/* Lists the requested kernels, first the planner's choice if it is one of them. Returns an exit
 * code. The caller frees *subjects. */
int check_list_subjects(const tgl_device *dev, const char *asked, check_subject **subjects,
                        int *count);

/* Writes the kernel string for a case: the name, and the case's values of the kernel's options. */
void check_kernel_string(const check_subject *s, const check_case *c, bool strips, char *text,
                         size_t size);

/* Records the layout, alignments and options that a case has covered; nothing if the case computes
 * no product. has_strips: its plan may compute the last rows and columns by launches of their own;
 * has_workspace: it ran in a workspace of the caller. */
void check_tally_case(check_tally *tally, const check_subject *s, const check_case *c,
                      bool has_strips, bool has_workspace);

void check_tally_add(check_tally *into, const check_tally *from);
int check_cells_seen(const check_tally *tally);

#endif
