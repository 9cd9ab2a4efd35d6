/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles an archive of the kernels that plans choose most often.
 */
#ifndef TGL_ARCHIVE_BUILD_H
#define TGL_ARCHIVE_BUILD_H

#include "base/disk_cache.h"
#include "cuda/nvrtc.h"
#include "plan/chips.h"

/* Compiles kernels into the file options->archive, with a thread per processor. Returns what
 * tgl_warm() returns. */
tgl_status tgl_archive_build(const tgl_nvrtc *nvrtc, const tgl_cache *cache,
                             const tgl_warm_options *options, int capability);

/* A chip of this capability for unsupported_reason() and predict(): its features are those of the
 * capability, and its sizes are so large that no configuration is rejected for them. */
tgl_chip tgl_warm_chip(int capability);

#endif
