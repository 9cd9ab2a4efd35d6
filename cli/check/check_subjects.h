/* SPDX-License-Identifier: Apache-2.0
 *
 * The subjects of `tegula check`, which are the kernels that it tests and the planner's choice, and
 * the counts of their cases. A cell is a combination of transposes and alignments of A and B.
 */
#ifndef CLI_CHECK_SUBJECTS_H
#define CLI_CHECK_SUBJECTS_H

#include "check_case.h"

enum { CHECK_CELLS = 4 * 4 * 4 }; /* 4 combinations of transposes, 4 alignments of A, 4 of B */

/* CHECK_...: options of kernel strings that get random values. COUNT_...: properties of cases whose
 * occurrences are counted. */
enum { CHECK_SPLITS, CHECK_WHOLE, CHECK_DEPTH, CHECK_BLOCKS, CHECK_STRIPS, CHECK_OPTIONS };
enum {
    COUNT_SPLIT,     /* split-K */
    COUNT_TAIL,      /* split-K for the last tiles only */
    COUNT_STRIPS,    /* separate launches for the last rows and columns */
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
    bool cells[CHECK_CELLS]; /* which combinations of layout and alignments have been run; see
                                cell_of() */
    int64_t counts[CHECK_COUNTS];
} check_tally;

typedef struct check_subject {
    const char *name;            /* name of a kernel; a kernel string with options; or "auto", the
                                    planner's choice */
    bool options[CHECK_OPTIONS]; /* the options that the kernel has; they get random values */
    check_tally tally;
} check_subject;

/* Returns EXIT_DONE if `asked` is "auto" or names a kernel or a group of the device's kernels. Else
 * prints an error and returns its exit code. */
int check_find_kernel(const tgl_device *dev, const char *asked);

/* Makes the list of the kernels that `asked` includes, with the planner's choice first if it is
 * included. Returns an exit code. The caller frees *subjects. */
int check_list_subjects(const tgl_device *dev, const char *asked, check_subject **subjects,
                        int *count);

/* Writes the kernel string for a case: the kernel's name, and the case's values of the options that
 * the kernel has. strips: the value of the option "strips". */
void check_kernel_string(const check_subject *s, const check_case *c, bool strips, char *text,
                         size_t size);

/* Records the layout, alignments and properties that a case has covered; does nothing if the case
 * computes no product. has_strips: the plan may compute the last rows and columns by separate
 * launches. has_workspace: the plan ran in a workspace of the caller. has_prepared: the plan uses a
 * prepared form of A or B. */
void check_tally_case(check_tally *tally, const check_subject *s, const check_case *c,
                      bool has_strips, bool has_workspace, bool has_prepared);

void check_tally_add(check_tally *into, const check_tally *from);
int check_cells_seen(const check_tally *tally);

#endif
