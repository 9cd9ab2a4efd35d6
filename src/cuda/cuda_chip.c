/* SPDX-License-Identifier: Apache-2.0
 *
 * Gets the properties of a GPU from the driver, for the planner and `tegula info`.
 */
#include "cuda/cuda_state.h"
#include "cuda/kernel_archive.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns: the driver's attribute, the member of cuda_facts in which its value is stored. */
static const struct {
    int attribute;
    size_t offset;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, offsetof(cuda_facts, sms)},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, offsetof(cuda_facts, clock_khz)},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, offsetof(cuda_facts, memory_clock_khz)},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, offsetof(cuda_facts, memory_bus_bits)},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, offsetof(cuda_facts, l2_bytes)},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
     offsetof(cuda_facts, shared_bytes_per_sm)},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
     offsetof(cuda_facts, shared_bytes_per_block)},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, offsetof(cuda_facts, registers_per_sm)},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, offsetof(cuda_facts, threads_per_sm)},
};

tgl_status tgl_cuda_read_facts(tgl_device *dev)
{
    tgl_cuda *cuda = dev->state;
    cuda_facts *facts = &cuda->facts;
    const tgl_driver *driver = &cuda->driver;
    int major = 0, minor = 0, has_pools = 0;
    CUresult result = driver->cuDeviceGetName(facts->name, sizeof facts->name, cuda->device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceTotalMem(&facts->memory_bytes, cuda->device);
    if (result == CUDA_SUCCESS) result = driver->cuDriverGetVersion(&facts->driver_version);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                              cuda->device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                              cuda->device);
    facts->capability = 10 * major + minor;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0] && result == CUDA_SUCCESS; i++)
        result = driver->cuDeviceGetAttribute((int *)((char *)facts + attributes[i].offset),
                                              attributes[i].attribute, cuda->device);
    /* A driver that does not know MEMORY_POOLS_SUPPORTED returns an error. */
    if (driver->cuMemAllocAsync != NULL && driver->cuMemFreeAsync != NULL &&
        driver->cuDeviceGetAttribute(&has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                     cuda->device) == CUDA_SUCCESS)
        cuda->has_async_alloc = has_pools != 0;
    return tgl_cuda_check(dev, result, "asking the driver about the device");
}

/* The features that the chip, the driver, and the code that NVRTC can compile for it all support.
 * code: the compute capability that kernels are compiled for, 90 for 9.0. */
static unsigned usable_features(const tgl_cuda *cuda, int code)
{
    const unsigned extended = TGL_HAS_CLUSTERS | TGL_HAS_OVERLAP;
    unsigned features = tgl_chip_features(cuda->facts.capability) & tgl_chip_features(code);
    if (!cuda->has_extended_launch) features &= ~extended;
    if (cuda->driver.cuTensorMapEncodeTiled == NULL) features &= ~(unsigned)TGL_HAS_TMA;
    if (strchr(cuda->arch.name, 'a') == NULL) features &= ~(unsigned)TGL_HAS_WGMMA;
    return features;
}

/* Sets cuda->chip. If the chip is in the table of plan/chips.c, takes its rates from the table,
 * because they are closer to measurements than rates computed from clocks. */
static void make_chip(tgl_cuda *cuda, int code)
{
    const cuda_facts *facts = &cuda->facts;
    const tgl_chip *known = tgl_chip_of(facts->name);
    const unsigned features = usable_features(cuda, code);
    const int clock_mhz = facts->clock_khz / 1000;
    /* Memory transfers twice per clock. Copies reach about 0.9 of this rate. */
    const double paper = 2e3 * facts->memory_clock_khz * facts->memory_bus_bits / 8;
    cuda->chip = (tgl_chip){
        .name = known != NULL ? known->name : "",
        .text = facts->name,
        .capability = facts->capability,
        .features = features,
        .sms = facts->sms,
        .clock_mhz = clock_mhz,
        .fp32_lanes = tgl_chip_fp32_lanes(facts->capability),
        .tensor_flops =
            known != NULL ? known->tensor_flops : tgl_chip_tensor_flops(facts->capability),
        .tensor_f64_flops = tgl_chip_tensor_f64_flops(facts->capability),
        .threads_per_sm = facts->threads_per_sm,
        .registers_per_sm = facts->registers_per_sm,
        .shared_per_sm = facts->shared_bytes_per_sm,
        .shared_per_block = facts->shared_bytes_per_block,
        .cluster_max = (features & TGL_HAS_CLUSTERS) != 0 ? TGL_CLUSTER_MAX : 1,
        .l2_bytes = facts->l2_bytes,
        .memory_rate = known != NULL ? known->memory_rate
                       : paper > 0   ? 0.9 * paper
                                     : 1e12,
        .l2_rate = tgl_chip_l2_rate(facts->sms, clock_mhz),
    };
}

void tgl_cuda_make_chip(tgl_cuda *cuda)
{
    /* The CUDA version of the first driver that can capture launches with clusters. */
    enum { EXTENDED_LAUNCH_VERSION = 12030 };
    const char *digits = strchr(cuda->arch.name, '_');
    const int code = digits != NULL ? atoi(digits + 1) : 0;
    cuda->has_extended_launch = code >= 90 && cuda->driver.cuLaunchKernelEx != NULL &&
                                cuda->driver.cuOccupancyMaxActiveClusters != NULL &&
                                cuda->facts.driver_version >= EXTENDED_LAUNCH_VERSION;
    make_chip(cuda, code);
}

/* ---- Properties ------------------------------------------------------------------------------ */

double tgl_cuda_number(const tgl_device *dev, tgl_number number)
{
    const tgl_cuda *cuda = dev->state;
    const cuda_facts *facts = &cuda->facts;
    switch (number) {
    case TGL_NUMBER_PROCESSORS:
        return facts->sms;
    case TGL_NUMBER_CLOCK_HZ:
        return 1e3 * facts->clock_khz;
    case TGL_NUMBER_MEMORY_BYTES:
        return (double)facts->memory_bytes;
    case TGL_NUMBER_MEMORY_BYTES_PER_S: /* two transfers per clock */
        return 2e3 * facts->memory_clock_khz * facts->memory_bus_bits / 8;
    case TGL_NUMBER_L1_BYTES:
        return facts->shared_bytes_per_sm;
    case TGL_NUMBER_L2_BYTES:
        return facts->l2_bytes;
    case TGL_NUMBER_CAPABILITY:
        return facts->capability;
    case TGL_NUMBER_FP32_LANES:
        return cuda->chip.fp32_lanes;
    case TGL_NUMBER_SHARED_BLOCK_BYTES:
        return facts->shared_bytes_per_block;
    case TGL_NUMBER_L3_BYTES:
    case TGL_NUMBER_THREADS:
        break;
    }
    return 0;
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
    const cuda_facts *facts = &cuda->facts;
    const int lanes = cuda->chip.fp32_lanes;
    add(cuda, "chip", "%s", facts->name);
    add(cuda, "compute capability", "%d.%d", facts->capability / 10, facts->capability % 10);
    add(cuda, "SMs", "%d", facts->sms);
    add(cuda, "clock", "%.0f MHz", 1e-3 * facts->clock_khz);
    if (lanes > 0) /* 2 operations per lane and clock */
        add(cuda, "FP32 peak", "%.1f TFLOP/s = 2 x %.0f MHz x %d lanes x %d",
            2e-9 * facts->clock_khz * lanes * facts->sms, 1e-3 * facts->clock_khz, lanes,
            facts->sms);
    add(cuda, "memory", "%.1f GiB", (double)facts->memory_bytes / (1 << 30));
    if (facts->memory_clock_khz > 0) /* two transfers per clock */
        add(cuda, "memory bandwidth", "%.0f GB/s = 2 x %.0f MHz x %d bits",
            2e-6 * facts->memory_clock_khz * facts->memory_bus_bits / 8,
            1e-3 * facts->memory_clock_khz, facts->memory_bus_bits);
    add(cuda, "L2 cache", "%d KiB", facts->l2_bytes / 1024);
    add(cuda, "shared memory", "%d KiB per SM, at most %d KiB per block",
        facts->shared_bytes_per_sm / 1024, facts->shared_bytes_per_block / 1024);
    add(cuda, "registers", "%d per SM", facts->registers_per_sm);
    add(cuda, "threads", "%d per SM", facts->threads_per_sm);
    add(cuda, "driver", "CUDA %d.%d", facts->driver_version / 1000,
        facts->driver_version / 10 % 100);
    if (cuda->nvrtc.version > 0)
        add(cuda, "NVRTC", "%d.%d%s", cuda->nvrtc.version / 1000, cuda->nvrtc.version / 10 % 100,
            cuda->nvrtc.handle == NULL ? ", which does not compile for this GPU" : "");
    else
        add(cuda, "NVRTC", "not found");
    add(cuda, "compiled for", "%s", cuda->arch.name);
    add(cuda, "planned as", "%s", cuda->chip.name[0] != '\0' ? cuda->chip.name : "unknown");
    add(cuda, "archive", "%s", tgl_archive_describe(cuda->archive));
    add(cuda, "cache", "%s", tgl_cache_describe(cuda->cache));
}
