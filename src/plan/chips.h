/* SPDX-License-Identifier: Apache-2.0
 *
 * The properties of a chip that the planner needs. A device gets the properties of its chip from
 * the driver, but some rates from a const table, if this table has the chip.
 */
#ifndef TGL_CHIPS_H
#define TGL_CHIPS_H

#include <stdint.h>

typedef struct tgl_chip {
    const char *name; /* name in the tuned table and in `tegula explain --chip`, such as "h200"; "":
                         unknown */
    const char *text; /* the device name that the driver reports, such as "NVIDIA H200" */
    int capability;   /* compute capability times 10: 90 for 9.0 */
    unsigned features; /* set of TGL_HAS_... (kernel_source.h) */
    int sms;
    int clock_mhz;        /* clock in MHz: under load if that is known, else the boost clock */
    int fp32_lanes;       /* FP32 FMAs per SM and clock */
    int tensor_flops;     /* FLOPs per SM and clock of the tensor cores, for dense products of
                             16-bit types with FP32 sums; TF32 has half of it from 8.0 on; 0: no
                             tensor cores */
    int tensor_f64_flops; /* FLOPs per SM and clock of the tensor cores for F64; 0: not supported */
    int threads_per_sm, registers_per_sm, shared_per_sm, shared_per_block; /* shared_...: bytes */
    int cluster_max; /* maximum blocks of a cluster; 1: the chip has no clusters */
    int64_t l2_bytes;
    double memory_rate; /* memory bandwidth of a copy in bytes/s, reads plus writes */
    double l2_rate;     /* L2 read bandwidth in bytes/s, all SMs together */
} tgl_chip;

/* Chip `index` of the table; NULL beyond the last one. */
const tgl_chip *tgl_chip_at(int index);

/* The chip with this `name`, in lower case; NULL: not in the table. */
const tgl_chip *tgl_chip_find(const char *name);

/* The chip whose `text` is this device name; NULL: not in the table. */
const tgl_chip *tgl_chip_of(const char *device_name);

/* A chip of this capability to compile for: its features are those of the capability, and its sizes
 * are so large that no configuration is rejected for them. */
tgl_chip tgl_chip_of_capability(int capability);

/* FP32 lanes of an SM, from the throughput table of the CUDA programming guide: 64 for 7.x and 8.0,
 * else 128; 0 before 7.0: unknown. */
int tgl_chip_fp32_lanes(int capability);

/* FLOPs of the tensor cores per SM and clock, by capability. Computed from data sheets and
 * architecture white papers: throughput / (SMs * boost clock). If chips of one capability differ,
 * the value is that of the GeForce chips, but for 7.5 that of the T4. */
int tgl_chip_tensor_flops(int capability);
int tgl_chip_tensor_f64_flops(int capability);

/* The features that all chips of a compute capability have. An old driver may not support all of
 * them. */
unsigned tgl_chip_features(int capability);

/* Estimated L2 bandwidth in bytes/s of a chip that was not measured. Assumption: each SM receives
 * 64 bytes per clock, and with all SMs active L2 sustains two thirds of that. */
double tgl_chip_l2_rate(int sms, int clock_mhz);

/* A copy of the chip in which properties that the driver did not report (older drivers) have
 * typical values. A rate of 0 would make all predicted times infinite. */
tgl_chip tgl_chip_with_usual_rates(const tgl_chip *chip);

#endif
