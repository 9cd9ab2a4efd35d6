/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner needs to know of a chip. A device fills it in from its driver; for chips that
 * are not there a const table has it.
 */
#ifndef TGL_CHIPS_H
#define TGL_CHIPS_H

#include <stdint.h>

typedef struct tgl_chip {
    const char
        *name; /* "h200": what tuned tables and `tegula explain --chip` call it; "": unknown */
    const char *text;  /* "NVIDIA H200" */
    int capability;    /* 90 for 9.0 */
    unsigned features; /* TGL_HAS_..., of kernel_source.h */
    int sms;
    int clock_mhz;  /* under load */
    int fp32_lanes; /* FFMAs of an SM in a clock */
    int threads_per_sm, registers_per_sm, shared_per_sm, shared_per_block; /* bytes */
    int cluster_max; /* blocks that a cluster may have; 1: the chip has none */
    int64_t l2_bytes;
    double memory_rate; /* bytes/s that a copy moves, read plus written */
    double l2_rate;     /* bytes/s that all SMs read from L2 together */
} tgl_chip;

/* index 0, 1, ... until NULL. */
const tgl_chip *tgl_chip_at(int index);

/* By name, in lower case; NULL: not in the table. */
const tgl_chip *tgl_chip_find(const char *name);

/* The chip whose `text` the driver gives as the device's name; NULL: not in the table. */
const tgl_chip *tgl_chip_of(const char *device_name);

/* FP32 lanes of an SM, from the throughputs in the CUDA programming guide: 64 for 7.x and 8.0, else
 * 128; 0 before 7.0: not known. */
int tgl_chip_fp32_lanes(int capability);

/* The features of all chips of a compute capability, given a driver that has them. */
unsigned tgl_chip_features(int capability);

/* Bytes/s of L2 for a chip that was not measured: 64 bytes a clock of an SM reach its L1, and
 * with all of them at it L2 sustains about two thirds of that. */
double tgl_chip_l2_rate(int sms, int clock_mhz);

#endif
