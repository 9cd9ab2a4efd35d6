/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel family: one file under kernels/ and all that the host knows of it, behind one table. The
 * planner (plan/planner.c) asks each family for candidates, predicts, rejects and chooses; the
 * family writes the launch list of the choice. No other file names a family.
 */
#ifndef TGL_FAMILY_H
#define TGL_FAMILY_H

#include "base/text.h"
#include "plan/chips.h"
#include "plan/launch_list.h"
#include "plan/limits.h"

typedef struct tgl_family tgl_family;

/* ---- Choices and candidates ------------------------------------------------------------------ */

/* Options fix how a configuration is used: split-K, the depth of a split, persistent blocks. A
 * family names its own; a user may give them in a kernel string, "simt_128x256x8:splits=4". */
enum { TGL_OPTIONS_MAX = 12 };
static const int64_t TGL_UNSET = -1; /* an option that is not given: the family's default */

/* One way to compute a product. */
typedef struct tgl_choice {
    const tgl_family *family;
    int configuration;               /* of the family */
    int64_t option[TGL_OPTIONS_MAX]; /* by the order of family->options; TGL_UNSET */
} tgl_choice;

/* A strip: a few columns or rows of D beside the tiles of another family, with a choice of its own,
 * its predicted time alone, and what it adds to the time of the tiles. */
typedef struct tgl_strip {
    tgl_rectangle part;
    tgl_choice choice;
    double seconds, adds;
} tgl_strip;

/* A choice with what it is predicted to take. The family's predict() fills in the first group. */
typedef struct tgl_candidate {
    tgl_choice choice;
    const char *rejected;       /* why it cannot serve, static text; NULL: it can */
    tgl_status rejected_status; /* TGL_UNSUPPORTED, TGL_GRID_TOO_LARGE */
    int threads, registers;     /* of a block; of a thread */
    int shared_bytes;           /* of a block */
    int resident;               /* blocks that an SM holds at once */
    int splits;                 /* blocks that share the K of a tile; 1 without split-K */
    bool is_uneven;             /* they share it unequally, so that the last wave is full */
    double blocks;              /* of the grid */
    int64_t workspace_bytes;
    int64_t repacked_bytes;     /* of them, for copies of operands */
    int64_t launches;           /* of the batch */
    double compute, memory, l2; /* seconds that arithmetic, memory and L2 take, overlapped */
    bool is_predicted;          /* false: of a family that does not predict */

    double waves;    /* blocks over those that the chip holds at once */
    double overhead; /* seconds of launching */
    double seconds;  /* the longest of compute, memory and L2, the overhead, and what strips add */
    tgl_strip strips[TGL_STRIPS_MAX];
    int strip_count;
    bool may_have_strips; /* the shape leaves strips beside the tiles, whether it has them or not */
    bool is_tuned;        /* chosen because a measurement says so */
} tgl_candidate;

/* ---- The search for candidates --------------------------------------------------------------- */

/* Values shared by all candidates of a configuration. */
typedef struct tgl_search {
    const tgl_chip *chip;
    const tgl_shape *shape; /* of the tiles, if strips are to follow */
    tgl_choice asked;       /* family, configuration, and options that are fixed */
    bool has_strips;        /* strips are to follow */
    int64_t workspace_max;  /* bytes */
    tgl_candidate *best;    /* so far; its choice.family is NULL before the first */
} tgl_search;

/* Predicts search->asked with option number `first` and those behind it set to the values (count of
 * them), keeps it if it is better than the best so far, and returns whether it can serve. */
bool tgl_search_try(tgl_search *search, int first, int count, const int64_t *values);

/* ---- What a choice is launched for ----------------------------------------------------------- */

/* A rectangle of D, and the choice that computes it: all of D, D without the rows and columns of
 * its strips, or a strip. */
typedef struct tgl_partition {
    const tgl_chip *chip;
    const tgl_shape *shape; /* of the whole product */
    tgl_choice choice;
    tgl_rectangle part;
    bool is_strip; /* it is computed beside the tiles of the step before */
    bool is_last;  /* nothing follows in the launch list */
} tgl_partition;

/* ---- The table ------------------------------------------------------------------------------- */

struct tgl_family {
    const char *name;           /* "simt" */
    const char *summary;        /* for people: which products it is for */
    const char *const *options; /* names, ended by NULL */
    bool is_on_request;         /* it is chosen only if a user names it: the ladder */
    bool serves_strips;         /* its configurations may compute a strip beside another's tiles */
    bool is_emulation;          /* only TGL_COMPUTE_ACCURATE permits its arithmetic */
    bool may_overlap; /* its launches may overlap the one before them, however many blocks:
                         these are short, or as many as the chip holds */

    /* Configurations by index 0, 1, ...: the name, NULL past the last. Static text. */
    const char *(*configuration)(int index);

    /* The most rows or columns that a configuration is made for; NULL: all are for any number.
     * Once a configuration for fewer lines can serve, configurations made for at least twice the
     * lines of the product are skipped. */
    int (*lines)(int configuration);

    /* The tile of a configuration beside which strips may lie; NULL: the family has no strips. */
    void (*tile)(int configuration, int *rows, int *columns);

    /* NULL if the family takes the problem on the chip, else why not. Static text. */
    const char *(*unsupported_reason)(const tgl_shape *shape, const tgl_chip *chip);

    /* Tries candidates of search->asked.configuration with tgl_search_try(). search->best holds the
     * candidate without any option, which can serve. NULL: there is no other. */
    void (*search)(tgl_search *search);

    /* The same with candidates that need less workspace, after search->best was rejected because it
     * needs more than the limit. NULL: there are none. */
    void (*shrink)(tgl_search *search);

    /* Fills in the first group of *c for c->choice, or c->rejected. */
    void (*predict)(const tgl_chip *chip, const tgl_shape *shape, tgl_candidate *c);

    /* Adds the steps of a choice that can serve. */
    void (*launch)(const tgl_partition *of, tgl_list_builder *builder);

    /* Lines of `tegula explain` about the choice: "split       k 4 ways, ...". May be NULL. */
    void (*explain)(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                    tgl_text *out);

    /* A large product that the configuration is made for, with A and B of this type and transposed
     * as said: what tgl_warm() compiles. False: the configuration has no kernel for this type, or
     * none of its own for this layout. */
    bool (*example)(int configuration, tgl_type type, bool trans_a, bool trans_b, tgl_shape *shape);
};

/* families.c: index 0, 1, ... until NULL, in the order in which equal predictions are decided. */
const tgl_family *tgl_family_at(int index);

/* All configurations of all families, numbered through; false past the last. */
bool tgl_configuration_at(int index, tgl_choice *choice);

/* The configuration of that name ("simt_128x256x8"), with no option given; false: there is none. */
bool tgl_configuration_find(const char *name, size_t length, tgl_choice *choice);

/* The name of a choice's configuration. */
const char *tgl_choice_name(const tgl_choice *choice);

/* The most rows or columns that its configuration is made for; 0: any number. */
int tgl_choice_lines(const tgl_choice *choice);

#endif
