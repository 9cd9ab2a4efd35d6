/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles an archive of the kernels that plans choose most often.
 */
#ifndef TGL_ARCHIVE_BUILD_H
#define TGL_ARCHIVE_BUILD_H

#include "base/disk_cache.h"
#include "cuda/nvrtc.h"

/* Compiles kernels into the file options->archive, with one thread per processor, at most 257.
 * capability: the compute capability to compile for (90 for 9.0). Returns the status that
 * tgl_warm() returns; the file is not written if a kernel fails. */
tgl_status tgl_archive_build(const tgl_nvrtc *nvrtc, tgl_cache *cache,
                             const tgl_warm_options *options, int capability);

#endif
