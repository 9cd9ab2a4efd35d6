/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of the kernel families (src/families/). A family is a kernel under kernels/ and
 * what the host knows about it: the configurations, the problems that it supports, the predicted
 * time, and the launches. The planner (planner.c) asks every family for candidates and chooses one
 * of them. The family of that candidate then adds its steps to the launch list.
 */
#ifndef TGL_FAMILY_H
#define TGL_FAMILY_H

#include "base/text.h"
#include "plan/chips.h"
#include "plan/launch_list.h"
#include "plan/limits.h"

typedef struct tgl_family tgl_family;

/* ---- Choices and candidates ------------------------------------------------------------------ */

/* Options say how a configuration is used, for example the number of splits of K. Each family has
 * options of its own. A kernel string can set them: "simt_128x256x8:splits=4". */
enum { TGL_OPTIONS_MAX = 12 };
static const int64_t TGL_UNSET = -1; /* an option that is not given: the family's default */

/* One way to compute a product. */
typedef struct tgl_choice {
    const tgl_family *family;
    int configuration;               /* index of a row of family->rows */
    int64_t option[TGL_OPTIONS_MAX]; /* in the order of family->options; TGL_UNSET: the default */
} tgl_choice;

/* A strip: the last few columns or rows of D, which a launch of its own computes while whole tiles
 * compute the rest. seconds: predicted for the strip alone; adds: the seconds that the strip adds
 * to the time of the tiles. */
typedef struct tgl_strip {
    tgl_rectangle part;
    tgl_choice choice;
    double seconds, adds;
} tgl_strip;

static const double TGL_LAUNCH_SECONDS = 1e-6; /* overhead of each launch, back to back */

/* A choice and its predicted time. The family's predict() fills in the first group of members. */
typedef struct tgl_candidate {
    tgl_choice choice;
    const char *rejected;       /* why it cannot compute the product, static text; NULL: it can */
    tgl_status rejected_status; /* TGL_UNSUPPORTED, TGL_GRID_TOO_LARGE */
    int threads, registers;     /* threads of a block; registers of a thread */
    int shared_bytes;           /* shared memory of a block */
    int resident;               /* resident blocks of an SM */
    int splits;                 /* number of splits of K; 1: no split-K */
    bool is_uneven;             /* the splits differ in size, so that they fill the last wave */
    double blocks;              /* blocks of all launches */
    int64_t workspace_bytes;    /* bytes of workspace, with copies of operands */
    int64_t repacked_bytes;     /* the part of workspace_bytes for these copies */
    int64_t launches;           /* launches that the batch takes */
    double compute, memory, l2; /* seconds that arithmetic, memory and L2 take; they overlap */
    bool is_predicted;          /* false: the family does not predict times */

    double waves;    /* number of blocks / number of blocks that the chip holds at once */
    double overhead; /* seconds that the launches themselves take */
    double seconds;  /* the longest of compute, memory and l2, plus overhead and strips[].adds */
    tgl_strip strips[TGL_STRIPS_MAX];
    int strip_count;
    bool may_have_strips; /* the shape leaves rows or columns for strips, used or not */
    bool is_tuned;        /* chosen by an entry of the tuned table */
    bool is_measured;     /* chosen because of its measured time (wisdom.h) */
} tgl_candidate;

/* ---- The search for candidates --------------------------------------------------------------- */

/* The search for the best candidate of a configuration: what all of its candidates have in common,
 * and the best so far. */
typedef struct tgl_search {
    const tgl_chip *chip;
    const tgl_shape *shape; /* the product; with strips, the part of it that whole tiles compute */
    tgl_choice asked;       /* family, configuration, and the options that the user has set */
    bool has_strips;        /* strips will be added */
    int64_t workspace_max;  /* bytes */
    tgl_candidate *best;    /* the best so far; choice.family is NULL before the first */
    double limit;           /* seconds of the best candidate of other configurations */
} tgl_search;

/* Predicts the time of search->asked with options first, ..., first + count - 1 set to `values`,
 * and replaces search->best if the new candidate is better. Returns false if it is rejected. least:
 * a lower bound of the candidate's seconds, or 0: the candidate is rejected without a prediction if
 * tgl_search_excludes() this bound. */
bool tgl_search_try(tgl_search *search, int first, int count, const int64_t *values, double least);

/* Whether candidates that take at least this time cannot be the best. Families ask before they try
 * options that get slower and slower. */
bool tgl_search_excludes(const tgl_search *search, double seconds);

/* ---- What a choice is launched for ----------------------------------------------------------- */

/* A rectangle of D and the choice that computes it. The rectangle is all of D, D without its
 * strips, or a strip. */
typedef struct tgl_partition {
    const tgl_chip *chip;
    const tgl_shape *shape; /* of the whole product */
    tgl_choice choice;
    tgl_rectangle part;
    bool is_strip; /* it runs concurrently with the tiles of the step before */
    bool is_last;  /* no step follows in the launch list */
} tgl_partition;

/* ---- The table ------------------------------------------------------------------------------- */

struct tgl_family {
    const char *name;           /* "simt" */
    const char *summary;        /* the products that it is for, in words for users */
    const char *const *options; /* names, ended by NULL */
    bool is_on_request;         /* the planner does not choose it unless the user names it */
    bool serves_strips;         /* it can compute strips beside the tiles of another family */
    bool serves_groups;         /* its kernels have GROUPED: see families/groups.h */
    bool is_emulation;          /* only TGL_COMPUTE_ACCURATE permits its arithmetic */
    bool reads_pairs; /* it can read B of a complex product as it lies: tgl_shape.pairs_b */
    bool may_overlap; /* its launches may start before the launch before them has ended,
                         even with more blocks than SMs: see gemm_launch.c */

    /* The configurations: a table whose rows begin with the name (const char *). See TGL_ROWS. */
    const void *rows;
    size_t row_bytes;
    int row_count;

    /* The maximum number of lines (rows or columns of D) that a configuration is made for; NULL:
     * any number. If a configuration for few lines can compute the product, the planner skips those
     * made for at least twice as many lines as the product has. */
    int (*lines)(int configuration);

    /* The tile of a configuration, beside which strips may lie; NULL: the family has no strips. */
    void (*tile)(int configuration, int *rows, int *columns);

    /* NULL: the family supports the problem on the chip; else the reason why not, static text. It
     * is called by tgl_family_unsupported(). */
    const char *(*unsupported_reason)(const tgl_shape *shape, const tgl_chip *chip);

    /* Calls tgl_search_try() for the options that are worth trying with
     * search->asked.configuration. search->best holds the candidate with default options, which was
     * not rejected. NULL: the family tries no options. */
    void (*search)(tgl_search *search);

    /* Calls tgl_search_try() for options that need less workspace. It is called if the candidate
     * with default options needs more than the limit. NULL: there are no such options. */
    void (*shrink)(tgl_search *search);

    /* Fills in the first group of members of *c for c->choice, or c->rejected. */
    void (*predict)(const tgl_chip *chip, const tgl_shape *shape, tgl_candidate *c);

    /* A lower bound of the seconds of all candidates of the configuration, with default options or
     * any that search() tries, without strips. The planner does not search configurations that
     * cannot be faster than what it has found. NULL: 0. */
    double (*least_seconds)(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice);

    /* Adds the steps of a choice that is not rejected. */
    void (*launch)(const tgl_partition *of, tgl_list_builder *builder);

    /* Writes lines of `tegula explain` about the choice: "split       k 4 ways". NULL: none. */
    void (*explain)(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                    tgl_text *out);

    /* Sets *shape to a large product that the configuration is made for, with this type and these
     * transposes of A and B: tgl_warm() compiles its kernels. Returns false if the configuration
     * has no kernel for the type, or if another layout's kernel serves this one. */
    bool (*example)(int configuration, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape);
};

/* NULL, or why the family does not support the problem on the chip, static text. */
static inline const char *tgl_family_unsupported(const tgl_family *family, const tgl_shape *shape,
                                                 const tgl_chip *chip)
{
    if (shape->grouping != TGL_GROUPED_NONE && !family->serves_groups)
        return "it has no products of groups of rows or of K";
    return family->unsupported_reason(shape, chip);
}

/* The members of tgl_family that describe a table of configurations. */
#define TGL_ROWS(table)                                                                            \
    .rows = (table), .row_bytes = sizeof *(table), .row_count = sizeof(table) / sizeof *(table)

/* The row of a choice's configuration, and the name of the configuration. */
const void *tgl_choice_row(const tgl_choice *choice);
const char *tgl_choice_name(const tgl_choice *choice);

/* The maximum number of rows or columns that the configuration is made for; 0: any number. */
int tgl_choice_lines(const tgl_choice *choice);

/* ---- families/families.c --------------------------------------------------------------------- */

/* Index 0, 1, ... until NULL. Of candidates with equal predictions the first one is chosen. */
const tgl_family *tgl_family_at(int index);

/* All configurations of all families: index 0, 1, ...; false past the last. */
bool tgl_configuration_at(int index, tgl_choice *choice);

/* The configuration of that name ("simt_128x256x8") with default options; false: there is none. */
bool tgl_configuration_find(const char *name, size_t length, tgl_choice *choice);

#endif
