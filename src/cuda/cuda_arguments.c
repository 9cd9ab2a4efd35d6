/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the arguments of a launch with the kernel's parameters, whose offsets and sizes the
 * driver reports: checks their total size, or finds the offset of each argument.
 */
#include "base/error.h"
#include "base/integers.h"
#include "cuda/cuda_launch.h"

#include <string.h>

/* The type of a tensor map in tgl_kernel.parameters. */
static const char map_type[] = "struct tgl_tensor_map";

static tgl_status refuse_arguments(const tgl_launch *of, int bytes)
{
    return tgl_fail(TGL_BAD_ARGUMENT, "%s has parameters of %d bytes, but is launched with %d",
                    of->kernel->name, bytes, of->argument_bytes);
}

/* Finds the offset of each parameter in the arguments, which are a C struct. The driver reports the
 * parameter's offset in the kernel's parameter space. The offsets in the struct and in the
 * parameter space differ only from the first tensor map on: a map's address is a multiple of 64,
 * but the address at which the parameter space starts is not. With sm_90 and NVRTC 13.0 the space
 * starts at 0x210, so that a map in front of all other parameters has offset 48. */
static tgl_status find_parameters(const tgl_driver *driver, cuda_launch *launch)
{
    enum { MAP_ALIGNMENT = 64 };
    const tgl_launch *of = launch->of;
    size_t expected, before = 0, size = 0;
    int at = 0, end = 0, i = 0;
    for (const char *type = of->kernel->parameters; type != NULL && i < PARAMETERS_MAX; i++) {
        const bool is_map = strncmp(type, map_type, strlen(map_type)) == 0;
        if (driver->cuFuncGetParamInfo(launch->module->function, (size_t)i, &expected, &size) !=
            CUDA_SUCCESS)
            return refuse_arguments(of, end);
        at = is_map  ? (int)tgl_round_up(end, MAP_ALIGNMENT)
             : i > 0 ? at + (int)(expected - before)
                     : 0;
        launch->parameter_at[i] = at;
        before = expected;
        end = at + (int)size;
        type = strchr(type, '|');
        if (type != NULL) type++;
    }
    launch->parameter_count = i;
    return end == of->argument_bytes ? TGL_OK : refuse_arguments(of, end);
}

static size_t count_parameters(const char *types)
{
    size_t count = 1;
    for (const char *at = types; (at = strchr(at, '|')) != NULL; at++)
        count++;
    return count;
}

/* Checks the size of the arguments against the kernel's parameters. The driver reports surplus
 * arguments at the launch, but not missing ones. Drivers before CUDA 12.4 do not report the
 * parameters; with them nothing is checked. */
static tgl_status check_arguments(const tgl_driver *driver, const cuda_launch *launch,
                                  const char *types)
{
    size_t offset = 0, size = 0;
    if (driver->cuFuncGetParamInfo == NULL || types[0] == '\0') return TGL_OK;
    const CUresult result = driver->cuFuncGetParamInfo(launch->module->function,
                                                       count_parameters(types) - 1, &offset, &size);
    if (result != CUDA_SUCCESS || offset + size == (size_t)launch->of->argument_bytes)
        return TGL_OK; /* the driver reports surplus arguments at the launch */
    return refuse_arguments(launch->of, (int)(offset + size));
}

tgl_status tgl_cuda_find_arguments(const tgl_driver *driver, cuda_launch *launch)
{
    const tgl_kernel *kernel = launch->of->kernel;
    const char *parameters = kernel->parameters != NULL ? kernel->parameters : "";
    if (strstr(parameters, map_type) == NULL) return check_arguments(driver, launch, parameters);
    if (driver->cuFuncGetParamInfo == NULL)
        return tgl_fail(TGL_UNSUPPORTED,
                        "%s takes tensor maps; install a driver for CUDA 12.4 or later",
                        kernel->name);
    return find_parameters(driver, launch);
}
