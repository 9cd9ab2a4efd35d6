/* SPDX-License-Identifier: Apache-2.0
 *
 * The wisdom: times of candidates that earlier processes measured, on this chip and on others. It
 * is a text file with a line for each product and candidate:
 *
 *     chip | driver | library | kernel source | product | kernel | us | spread | samples | mode
 *
 *   chip           name and SMs of the GPU; or model, tier (set of kernels) and caches of the
 *                  CPU. Lines of other chips are skipped
 *   driver, library  the versions of the CUDA driver and NVRTC ("none" for the CPU), and of Tegula
 *   kernel source  64 bits of the SHA-256 of what the candidate's kernels are compiled from; for
 *                  the CPU, of the planner's values
 *   product        tgl_shape_key()
 *   kernel         a kernel string
 *   us, spread     the median of the samples in microseconds; (largest - smallest)/median in %
 *   samples        number of samples
 *   mode           burst: at the clock of a few milliseconds of work; sustained: at the power limit
 *
 * A line whose kernel is "peer" has the time of another library, such as cuBLAS.
 *
 * A line of another driver, library or kernel source is stale: it is not used, and
 * tgl_plan_explain() says so. Of two lines of one candidate the later one counts. Lines that begin
 * with '#' are comments. Nothing in the file is trusted. A line that cannot be parsed is skipped,
 * and the planner uses a kernel string only if it could have chosen that candidate itself.
 *
 * The file is $TEGULA_WISDOM, which must be an absolute path; if the variable is empty or "off"
 * there is none. If it is not set, the file is "wisdom" in the folder of the disk cache. The file
 * is read when a device is opened, and again before something is measured. line_file.h says which
 * files are not read. A setuid program uses no wisdom.
 */
#ifndef TGL_WISDOM_H
#define TGL_WISDOM_H

#include "plan/launch_list.h"
#include "problem/shape_key.h"

#include <pthread.h>

enum { TGL_SOURCE_SIZE = 17 };

typedef struct tgl_measured {
    const char *kernel;           /* a kernel string */
    char source[TGL_SOURCE_SIZE]; /* tgl_wisdom_source() of its launch list */
    double seconds, spread;       /* spread: a fraction of seconds */
    int samples;
    bool is_sustained;
    const char *stale; /* why the line is not used, a static text; NULL: it may be used */
} tgl_measured;

/* The measured times of one chip in the file. Thread-safe. All functions accept NULL as an empty
 * wisdom. */
typedef struct tgl_wisdom tgl_wisdom;

/* chip, driver: as in a line. Creates no folder. NULL: no memory. */
tgl_wisdom *tgl_wisdom_open(const char *chip, const char *driver);
void tgl_wisdom_close(tgl_wisdom *wisdom);

/* The file's path and the number of lines, or "off (reason)". Valid until the wisdom is closed. */
const char *tgl_wisdom_describe(tgl_wisdom *wisdom);

/* To be called before something is measured: creates the folder of the disk cache if the file
 * belongs there, and reads the lines that other processes have added. */
void tgl_wisdom_refresh(tgl_wisdom *wisdom);

/* Whether the file exists and is read-only. If so, nothing is measured, so that plans stay the
 * same. */
bool tgl_wisdom_is_fixed(tgl_wisdom *wisdom);

/* Lists the lines of kernels for a product on this chip; the caller frees *found. Order: usable
 * lines first; of these, sustained ones (measured at the power limit) before bursts, then faster
 * ones before slower ones. Kernel strings are valid until the wisdom is closed. Returns the number
 * of lines; also 0 if memory is exhausted. */
int tgl_wisdom_find(tgl_wisdom *wisdom, const tgl_shape *shape, tgl_measured **found);

/* Calls visit() for each product on this chip whose key (tgl_shape_key()) begins with `types`.
 * lines: those that tgl_wisdom_find() would list for the product, but in no order. visit() must not
 * use the wisdom. */
typedef void tgl_wisdom_visit(const tgl_measured *lines, int count, void *context);
void tgl_wisdom_each(tgl_wisdom *wisdom, const char *types, tgl_wisdom_visit *visit, void *context);

/* Whether the wisdom has no line of this chip. Takes no lock. */
bool tgl_wisdom_is_empty(tgl_wisdom *wisdom);

/* *peer := the time of another library for the product, at the power limit or in bursts. False:
 * there is none that is not stale. */
bool tgl_wisdom_peer(tgl_wisdom *wisdom, const tgl_shape *shape, bool is_sustained,
                     tgl_measured *peer);

/* tgl_measured.kernel and .source in a line with the time of another library. */
extern const char tgl_wisdom_peer_kernel[];
extern const char tgl_wisdom_peer_source[TGL_SOURCE_SIZE];

/* Keeps a measurement in memory, and appends it to the file if the file can be written. */
void tgl_wisdom_add(tgl_wisdom *wisdom, const tgl_shape *shape, const tgl_measured *measured);

/* Writes a hash, in hexadecimal, of everything that the kernels of a launch list are compiled from,
 * except an epilogue expression, whose hash is in tgl_shape_key(). */
void tgl_wisdom_source(const tgl_launch_list *list, char source[TGL_SOURCE_SIZE]);

#endif
