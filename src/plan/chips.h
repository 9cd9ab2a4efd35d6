/* SPDX-License-Identifier: Apache-2.0
 *
 * The properties of a chip that the planner needs. A device gets them from its driver. A const
 * table has those of known chips.
 */
#ifndef TGL_CHIPS_H
#define TGL_CHIPS_H

#include <stdint.h>

typedef struct tgl_chip {
    const char
        *name; /* "h200": the name in tuned tables and in `tegula explain --chip`; "": unknown */
    const char *text;  /* "NVIDIA H200" */
    int capability;    /* 90 for 9.0 */
    unsigned features; /* TGL_HAS_..., of kernel_source.h */
    int sms;
    int clock_mhz;        /* under load */
    int fp32_lanes;       /* FFMAs per SM and clock */
    int tensor_flops;     /* FLOPs per SM and clock of dense products of 16-bit types with FP32
                             sums; half as many of TF32 from 8.0 on; 0: no tensor cores */
    int tensor_f64_flops; /* FLOPs per SM and clock of F64; 0: the tensor cores do not support it */
    int threads_per_sm, registers_per_sm, shared_per_sm, shared_per_block; /* shared_...: bytes */
    int cluster_max; /* maximum blocks of a cluster; 1: the chip has no clusters */
    int64_t l2_bytes;
    double memory_rate; /* bytes/s of a copy, read plus written */
    double l2_rate;     /* bytes/s that all SMs together read from L2 */
} tgl_chip;

/* Chip number `index` of the table; NULL past the last one. */
const tgl_chip *tgl_chip_at(int index);

/* By name, in lower case; NULL: not in the table. */
const tgl_chip *tgl_chip_find(const char *name);

/* The chip whose `text` is the device name that the driver reports; NULL: not in the table. */
const tgl_chip *tgl_chip_of(const char *device_name);

/* A chip of this capability to compile for: its features are those of the capability, and its sizes
 * are so large that no configuration is rejected for them. */
tgl_chip tgl_chip_of_capability(int capability);

/* FP32 lanes of an SM, from the throughput table of the CUDA programming guide: 64 for 7.x and 8.0,
 * else 128; 0 before 7.0: unknown. */
int tgl_chip_fp32_lanes(int capability);

/* FLOPs of the tensor cores per SM and clock, by capability: throughput of data sheets and
 * architecture white papers, divided by SMs and boost clock. Where chips of one capability differ,
 * the value is that of GeForce. */
int tgl_chip_tensor_flops(int capability);
int tgl_chip_tensor_f64_flops(int capability);

/* The features of all chips of a compute capability, if the driver supports them. */
unsigned tgl_chip_features(int capability);

/* Estimated L2 bandwidth in bytes/s of a chip that was not measured: L1 of an SM receives 64 bytes
 * per clock, and with all SMs active L2 sustains about two thirds of that. */
double tgl_chip_l2_rate(int sms, int clock_mhz);

/* A copy of the chip with typical values for unknown properties (older drivers). A rate of 0 would
 * make all predictions infinite. */
tgl_chip tgl_chip_with_usual_rates(const tgl_chip *chip);

#endif
