/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver says about a chip, and how `tegula info` shows it.
 */
#include "cuda/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns: the attribute, where it goes. */
static const struct {
    int attribute;
    size_t offset;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, offsetof(tgl_chip, multiprocessors)},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, offsetof(tgl_chip, clock_khz)},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, offsetof(tgl_chip, memory_clock_khz)},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, offsetof(tgl_chip, memory_bus_bits)},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, offsetof(tgl_chip, l2_bytes)},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
     offsetof(tgl_chip, shared_bytes_per_sm)},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
     offsetof(tgl_chip, shared_bytes_per_block)},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, offsetof(tgl_chip, registers_per_sm)},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, offsetof(tgl_chip, threads_per_sm)},
};

/* For a chip in the planner's table that table's rates, which are nearer to what is reached. */
static void make_facts(tgl_chip *chip, bool has_clusters)
{
    const tgl_chip_facts *known = tgl_chip_facts_of(chip->name);
    const int clock_mhz = chip->clock_khz / 1000;
    /* Two transfers a clock; nine tenths are what copies reach. */
    const double paper = 2e3 * chip->memory_clock_khz * chip->memory_bus_bits / 8;
    chip->facts = (tgl_chip_facts){
        .name = known != NULL ? known->name : "",
        .text = chip->name,
        .capability = chip->capability,
        .multiprocessors = chip->multiprocessors,
        .clock_mhz = clock_mhz,
        .fp32_lanes = tgl_chip_fp32_lanes(chip->capability),
        .threads_per_sm = chip->threads_per_sm,
        .registers_per_sm = chip->registers_per_sm,
        .shared_per_sm = chip->shared_bytes_per_sm,
        .shared_per_block = chip->shared_bytes_per_block,
        .cluster_most = has_clusters ? tgl_chip_cluster_most(chip->capability) : 1,
        .l2_bytes = chip->l2_bytes,
        .memory_rate = known != NULL ? known->memory_rate
                       : paper > 0   ? 0.9 * paper
                                     : 1e12,
        .l2_rate = tgl_chip_l2_rate(chip->multiprocessors, clock_mhz),
    };
}

tgl_status tgl_cuda_read_chip(tgl_device *dev)
{
    tgl_cuda *cuda = dev->state;
    tgl_chip *chip = &cuda->chip;
    const tgl_driver *driver = &cuda->driver;
    int major = 0, minor = 0;
    CUresult result = driver->cuDeviceGetName(chip->name, sizeof chip->name, cuda->device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceTotalMem(&chip->memory_bytes, cuda->device);
    if (result == CUDA_SUCCESS) result = driver->cuDriverGetVersion(&chip->driver_version);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                              cuda->device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                              cuda->device);
    chip->capability = 10 * major + minor;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0] && result == CUDA_SUCCESS; i++)
        result = driver->cuDeviceGetAttribute((int *)((char *)chip + attributes[i].offset),
                                              attributes[i].attribute, cuda->device);
    return tgl_cuda_check(dev, result, "asking the driver about the device");
}

void tgl_cuda_choose_launches(tgl_cuda *cuda)
{
    const char *digits = strchr(cuda->arch.name, '_');
    cuda->has_extended_launch = digits != NULL && atoi(digits + 1) >= 90 &&
                                cuda->driver.cuLaunchKernelEx != NULL &&
                                cuda->chip.driver_version >= 12030;
    make_facts(&cuda->chip, cuda->has_extended_launch);
}

static void add(tgl_cuda *cuda, const char *key, const char *format, ...) TGL_PRINTF(3, 4);

static void add(tgl_cuda *cuda, const char *key, const char *format, ...)
{
    if (cuda->property_count == TGL_CUDA_PROPERTIES) return;
    tgl_property *property = &cuda->properties[cuda->property_count++];
    property->key = key;
    va_list args;
    va_start(args, format);
    vsnprintf(property->value, sizeof property->value, format, args);
    va_end(args);
}

void tgl_cuda_list_properties(tgl_cuda *cuda)
{
    const tgl_chip *chip = &cuda->chip;
    const int lanes = tgl_chip_fp32_lanes(chip->capability);
    add(cuda, "chip", "%s", chip->name);
    add(cuda, "compute capability", "%d.%d", chip->capability / 10, chip->capability % 10);
    add(cuda, "multiprocessors", "%d", chip->multiprocessors);
    add(cuda, "clock", "%.0f MHz", 1e-3 * chip->clock_khz);
    if (lanes > 0) /* 2 operations a lane and clock */
        add(cuda, "FP32 peak", "%.1f TFLOP/s = 2 x %.0f MHz x %d lanes x %d",
            2e-9 * chip->clock_khz * lanes * chip->multiprocessors, 1e-3 * chip->clock_khz, lanes,
            chip->multiprocessors);
    add(cuda, "memory", "%.1f GiB", (double)chip->memory_bytes / (1 << 30));
    if (chip->memory_clock_khz > 0) /* two transfers a clock */
        add(cuda, "memory bandwidth", "%.0f GB/s = 2 x %.0f MHz x %d bits",
            2e-6 * chip->memory_clock_khz * chip->memory_bus_bits / 8,
            1e-3 * chip->memory_clock_khz, chip->memory_bus_bits);
    add(cuda, "L2 cache", "%d KiB", chip->l2_bytes / 1024);
    add(cuda, "shared memory", "%d KiB a multiprocessor, at most %d KiB a block",
        chip->shared_bytes_per_sm / 1024, chip->shared_bytes_per_block / 1024);
    add(cuda, "registers", "%d a multiprocessor", chip->registers_per_sm);
    add(cuda, "threads", "%d a multiprocessor", chip->threads_per_sm);
    add(cuda, "driver", "CUDA %d.%d", chip->driver_version / 1000, chip->driver_version / 10 % 100);
    add(cuda, "NVRTC", "%d.%d", cuda->nvrtc.version / 1000, cuda->nvrtc.version / 10 % 100);
    add(cuda, "compiled for", "%s", cuda->arch.name);
    add(cuda, "planned as", "%s", chip->facts.name[0] != '\0' ? chip->facts.name : "unknown");
    add(cuda, "cache", "%s", tgl_cache_describe(cuda->cache));
}
