/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of the kernel families (src/families/). A family is a kernel under kernels/
 * together with its host code: the table of configurations (tile sizes and the like), the problems
 * that it supports, the predicted time, and the launches. The planner (planner.c) asks every family
 * for candidates and chooses one of them. The chosen candidate's family then adds its steps to the
 * launch list.
 */
#ifndef TGL_FAMILY_H
#define TGL_FAMILY_H

#include "base/text.h"
#include "plan/chips.h"
#include "plan/launch_list.h"
#include "plan/limits.h"

typedef struct tgl_family tgl_family;

/* ---- Choices and candidates ------------------------------------------------------------------ */

/* Options of a configuration, for example the number of splits of K. Each family defines its own. A
 * kernel string sets them: "simt_128x256x8:splits=4". */
enum { TGL_OPTIONS_MAX = 12 };
static const int64_t TGL_UNSET = -1; /* the option is not given; the family's default applies */

/* A way to compute a product: a family, one of its configurations, and the options. */
typedef struct tgl_choice {
    const tgl_family *family;
    int configuration;               /* index of a row of family->rows */
    int64_t option[TGL_OPTIONS_MAX]; /* values in the order of family->options; TGL_UNSET: the
                                        default */
} tgl_choice;

/* A strip: the last columns or rows of D beyond the whole tiles, at most TGL_STRIP_WIDTH_MAX. A
 * launch of its own computes the strip. seconds: predicted time of the strip alone. adds: predicted
 * increase of the product's time, which is less than `seconds` if the strip overlaps with the
 * tiles. */
typedef struct tgl_strip {
    tgl_rectangle part;
    tgl_choice choice;
    double seconds, adds;
} tgl_strip;

static const double TGL_LAUNCH_SECONDS = 1e-6; /* overhead of each of several launches that follow
                                                  each other, in seconds */

/* A choice and its predicted time. The family's predict() fills in the members up to is_predicted.
 * A repacked operand is a copy in another layout, which a pre-pass makes in the workspace. */
typedef struct tgl_candidate {
    tgl_choice choice;
    const char *rejected;       /* why it cannot compute the product, a static text; NULL: it can */
    tgl_status rejected_status; /* status if rejected: TGL_UNSUPPORTED or TGL_GRID_TOO_LARGE */
    int threads, registers;     /* per block; per thread */
    int shared_bytes;           /* bytes of shared memory per block */
    int resident;               /* resident blocks per SM (occupancy) */
    int splits;                 /* number of splits of K; 1: no split-K */
    bool is_uneven;             /* the splits are chosen so that they fill the last wave: no SM is
                                   assumed to be idle in it */
    double blocks;              /* number of blocks of the main kernel, without pre-passes */
    int64_t workspace_bytes;    /* bytes of workspace, including repacked operands */
    int64_t repacked_bytes;     /* part of workspace_bytes for repacked operands */
    int64_t launches;           /* number of launches for the whole batch */
    /* Seconds that arithmetic, memory traffic and L2 traffic take, if each ran alone. */
    double compute, memory, l2;
    bool is_predicted; /* false: the family does not predict the time of this choice */

    double waves;    /* blocks / (blocks that the chip holds at the same time) */
    double overhead; /* seconds of overhead of launches and of pre-passes (planned_shape.h) */
    double seconds;  /* max(compute, memory, l2) + overhead + sum of strips[].adds */
    tgl_strip strips[TGL_STRIPS_MAX];
    int strip_count;
    bool may_have_strips; /* the tiles leave 1 to TGL_STRIP_WIDTH_MAX rows or columns; strips may
                             not be used, though */
    bool is_tuned;        /* chosen because of an entry of the tuned table */
    bool is_measured;     /* chosen because of a measured time (wisdom.h) */
} tgl_candidate;

/* ---- The search for candidates --------------------------------------------------------------- */

/* The search for the best candidate of one configuration: the input, and the best candidate so
 * far. */
typedef struct tgl_search {
    const tgl_chip *chip;
    const tgl_shape *shape; /* the product, or the part of it that the candidate is to compute:
                               whole tiles, or a strip */
    tgl_choice asked;       /* family, configuration, and the options that the user has set */
    bool has_strips;        /* strips will be added to the result */
    int64_t workspace_max;  /* workspace limit in bytes */
    tgl_candidate *best;    /* best candidate so far; its choice.family is NULL at first */
    double limit;           /* predicted seconds of the best candidate so far among all
                               other configurations */
} tgl_search;

/* Predicts the time of search->asked with the options [first, first + count) set to `values`, and
 * replaces search->best if the new candidate is better. least: a lower bound of its time, or 0; if
 * tgl_search_excludes() this bound, nothing is predicted. Returns false in this case, and if the
 * candidate is rejected. */
bool tgl_search_try(tgl_search *search, int first, int count, const int64_t *values, double least);

/* Whether candidates that take at least `seconds` cannot be the best. Families use it to stop
 * trying options that get slower and slower. */
bool tgl_search_excludes(const tgl_search *search, double seconds);

/* ---- Partitions of D ------------------------------------------------------------------------- */

/* A rectangle of D and the choice that computes it: all of D, D without its strips, or a strip. */
typedef struct tgl_partition {
    const tgl_chip *chip;
    const tgl_shape *shape; /* the shape of the whole product */
    tgl_choice choice;
    tgl_rectangle part;
    bool is_strip; /* a strip, which may run concurrently with the step before it */
    bool is_last;  /* no further partition follows. Only the last step of a complex product
                      (complex.h) may still follow in the launch list */
} tgl_partition;

/* ---- The table ------------------------------------------------------------------------------- */

struct tgl_family {
    const char *name;           /* "simt" */
    const char *summary;        /* for which products the family is, a text for users */
    const char *const *options; /* names of its options; ends with NULL */
    bool is_on_request;         /* the planner chooses it only if the user names it */
    bool serves_strips;         /* it can compute strips beside the tiles of any family */
    bool serves_groups;         /* its kernels have the macro GROUPED (families/groups.h) */
    bool serves_bundles;        /* its kernels have the macro BUNDLE (plan/bundle.h) */
    bool is_emulation;          /* it emulates F32 products, which only TGL_COMPUTE_ACCURATE
                                   permits */
    tgl_direct reads; /* which operands it reads without a pre-pass (planned_shape.h). With
                         TGL_DIRECT_WEIGHTS it serves no other products */
    bool may_overlap; /* its launches may start before the previous launch has ended, even with more
                         blocks than SMs (gemm_launch.c) */

    /* The table of configurations. A row is a struct whose first member is the name (const char *).
     * Filled in by TGL_ROWS. */
    const void *rows;
    size_t row_bytes;
    int row_count;

    /* The maximum of min(m, n) that a configuration is made for; NULL: any number. Once a
     * configuration with a maximum supports the product, the planner skips configurations whose
     * maximum is at least twice min(m, n). */
    int (*lines)(int configuration);

    /* The tile size of a configuration, which determines the strips; NULL: the family has no
     * strips. */
    void (*tile)(int configuration, int *rows, int *columns);

    /* Why the family does not support the problem on the chip, a static text; NULL: it does. Call
     * it by tgl_family_unsupported(). */
    const char *(*unsupported_reason)(const tgl_shape *shape, const tgl_chip *chip);

    /* Calls tgl_search_try() for the options that are worth trying with
     * search->asked.configuration. On entry, search->best is the candidate with default options, or
     * the best one of shrink(). It is not rejected. NULL: the family has no options to try. */
    void (*search)(tgl_search *search);

    /* Calls tgl_search_try() for options that need less workspace, if the default options exceed
     * the limit. NULL: no options of the family need less. */
    void (*shrink)(tgl_search *search);

    /* Fills in the members of *c up to is_predicted for c->choice, or sets c->rejected. */
    void (*predict)(const tgl_chip *chip, const tgl_shape *shape, tgl_candidate *c);

    /* A lower bound of the time of a configuration, in seconds, over all options that search()
     * tries, without strips. The planner skips configurations whose bound exceeds the best time so
     * far. NULL: the bound is 0. */
    double (*least_seconds)(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice);

    /* Adds the steps that compute the partition. Its choice must not be a rejected one. */
    void (*launch)(const tgl_partition *of, tgl_list_builder *builder);

    /* Writes lines of `tegula explain` about the choice, such as "split       k 4 ways". NULL:
     * there are none. */
    void (*explain)(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                    tgl_text *out);

    /* Sets *shape to a large product for which the configuration is made, with this type and these
     * transposes; tgl_warm() compiles the kernels of this product. Returns false if there is no
     * kernel for the type or layout, or if the kernel of another layout serves this layout, too. */
    bool (*example)(int configuration, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape);
};

/* Why the family does not support the problem on the chip, a static text; NULL: it does. */
static inline const char *tgl_family_unsupported(const tgl_family *family, const tgl_shape *shape,
                                                 const tgl_chip *chip)
{
    if (shape->grouping != TGL_GROUPED_NONE && !family->serves_groups)
        return "it has no products of groups of rows or of K";
    if (shape->is_bundle && !family->serves_bundles) return "it has no bundles of products";
    return family->unsupported_reason(shape, chip);
}

/* Sets the members of tgl_family that describe the table of configurations. */
#define TGL_ROWS(table)                                                                            \
    .rows = (table), .row_bytes = sizeof *(table), .row_count = sizeof(table) / sizeof *(table)

/* The row of a choice's configuration, and the name of the configuration. */
const void *tgl_choice_row(const tgl_choice *choice);
const char *tgl_choice_name(const tgl_choice *choice);

/* The maximum number of rows or columns that the configuration is made for; 0: any number. */
int tgl_choice_lines(const tgl_choice *choice);

/* ---- families/families.c --------------------------------------------------------------------- */

/* Family `index`; NULL beyond the last one. The planner prefers the first of candidates with equal
 * predictions. */
const tgl_family *tgl_family_at(int index);

/* Configuration `index`, counted over all families, with default options. False: beyond the last
 * one. */
bool tgl_configuration_at(int index, tgl_choice *choice);

/* The configuration with this name ("simt_128x256x8"), with default options. False: there is
 * none. */
bool tgl_configuration_find(const char *name, size_t length, tgl_choice *choice);

#endif
