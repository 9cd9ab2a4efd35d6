/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a cpu device.
 */
#ifndef TGL_CPU_STATE_H
#define TGL_CPU_STATE_H

#include "base/thread_pool.h"
#include "cpu/plan/cpu_plan.h"
#include "cpu/run/buffer_pool.h"

enum { CPU_MAX_PROPERTIES = 12, CPU_MAX_THREADS = 1024 };

typedef struct cpu_device {
    cpu_machine machine;
    const cpu_tier *tiers[CPU_MAX_TIERS];
    int tier_count; /* usable tiers, best first; tiers[0] is the default */
    thread_pool threads;
    cpu_buffer_pool buffers;

    struct {
        const char *key;
        char value[96];
    } properties[CPU_MAX_PROPERTIES];
    int property_count;
} cpu_device;

#endif
