/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters and results of gemm/decompose.cu: plain C, shared by this kernel, by
 * gemm/accurate.cu, which multiplies the words, and by the host.
 *
 * A line is a row of op(A) or a column of op(B). Its elements x are scaled by a power of two, 2^s,
 * so that the largest |x| * 2^s lies in [2^14, 2^15), and are stored as two words of f16,
 *     hi = f16(x * 2^s),   lo = f16((x * 2^s - hi) * 2^11).
 * Elements below 2^-13 have words that are 0, and are stored in a list instead. docs/accuracy.md
 * says which elements two words can represent, and why. A panel is a group of TGL_PANEL_LINES lines
 * that share a list and a state.
 *
 * If exactly one element of a line is not 0, the line is single. Its words are 0. The k of the
 * element is stored in place of the line's s, as TGL_SINGLE_LINE + k.
 */
#ifndef TGL_DECOMPOSE_ARGS_H
#define TGL_DECOMPOSE_ARGS_H

enum {
    TGL_TOP_EXPONENT = 14,     /* exponent of a line's largest element after scaling */
    TGL_LOW_EXPONENT = -13,    /* the least exponent of scaled elements that two words represent */
    TGL_SINGLE_EXPONENT = -14, /* exponent after scaling of the element of a single line: below the
                                  range of two words, so that its words are 0 */
    TGL_SINGLE_LINE = 1 << 26, /* above each k and each s */
    TGL_WORD_EXPONENT = 11,    /* lo is scaled by 2^11, the precision of f16 */
    TGL_PANEL_LINES = 64,      /* lines that share a panel */
    TGL_LISTED_MAX = 127,      /* maximum length of a list, so that struct tgl_panel has 2048
                                  bytes */
    TGL_MODEST_EXPONENT = 60,  /* see TGL_PANEL_WIDE */
    TGL_BLOCK_LINES_MAX = 32,  /* maximum number of lines of a thread block of gemm/decompose.cu */
};

/* States of a panel. */
enum {
    TGL_PANEL_NOT_FINITE = 1, /* a line has an Inf or a NaN */
    TGL_PANEL_WIDE = 2,       /* a line's |s| exceeds TGL_MODEST_EXPONENT */
};

/* An element that two words cannot represent. Its two words are 0. */
struct tgl_listed {
    int line, k; /* line: within the panel */
    float value;
    int unused;
};

struct tgl_panel {
    unsigned state;
    unsigned count; /* number of listed elements, whose order is not fixed; if it exceeds
                       TGL_LISTED_MAX, the list is not complete */
    unsigned unused[2];
    struct tgl_listed listed[TGL_LISTED_MAX];
};

/* The state of a panel while blocks add to it. It is zero before and after the launch: the last
 * block copies it into the panel. */
struct tgl_panel_counter {
    unsigned finished; /* blocks that have added to it */
    unsigned state, count;
    unsigned unused;
};

/* The matrices of a batch, or a single one: `lines` lines of `length` elements. padded_lines:
 * `lines`, rounded up to whole panels. ld and stride belong to `from`, pitch to `to`; all are in
 * elements. */
struct tgl_decompose_job {
    const float *from;
    unsigned short *to;                 /* per matrix: hi, then lo, lines x pitch elements each */
    int *exponents;                     /* per matrix: the s of each of padded_lines lines, or
                                           TGL_SINGLE_LINE + k */
    struct tgl_panel *panels;           /* per matrix: padded_lines / TGL_PANEL_LINES panels */
    struct tgl_panel_counter *counters; /* one for each panel */
    long long ld, pitch, stride;
    long long words; /* number of hi words of a matrix: lines x pitch */
    int lines, length, padded_lines;
    int count;       /* matrices */
    int block_lines; /* lines per thread block: a power of two, at most TGL_BLOCK_LINES_MAX */
    int parts;       /* thread blocks that process parts of the same line: 1, or the blocks of a
                        cluster */
    int part;        /* elements of a line per thread block: a multiple of 32 */
    int steps; /* loads of 32 elements per thread along a block's part of a line; if > 1, elements
                  are read twice */
};

struct tgl_decompose_args {
    struct tgl_decompose_job jobs[2];
    int first_blocks; /* number of blocks that do jobs[0], a multiple of the cluster size */
    int unused;
    const float *alpha_at; /* NULL, or alpha in device memory; 0: the matrices are not read */
};

#endif
