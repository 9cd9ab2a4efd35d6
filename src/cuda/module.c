/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels in the device's memory: compiled and loaded once a device, on first use. Different
 * kernels are compiled side by side if different threads ask for them.
 */
#include "cuda/compile.h"
#include "cuda/state.h"

#include <stdlib.h>
#include <string.h>

enum { SHARED_WITHOUT_ASKING = 48 * 1024 }; /* bytes; a kernel that wants more must opt in */

static tgl_status compile(tgl_device *dev, const tgl_kernel *kernel, bool look, tgl_binary *binary)
{
    const tgl_cuda *cuda = dev->state;
    char *error;
    tgl_status status =
        tgl_cuda_compile(&cuda->nvrtc, cuda->cache, kernel, cuda->arch.name, look, binary, &error);
    if (status != TGL_OK)
        tgl_keep_error(dev, "%s", error != NULL ? error : "no memory for a kernel");
    free(error);
    return status;
}

/* A driver takes the code of compilers of its own major version and of those before. */
static tgl_status check_load(tgl_device *dev, CUresult result)
{
    const tgl_cuda *cuda = dev->state;
    const int driver = cuda->chip.driver_version, compiler = cuda->nvrtc.version;
    tgl_status status = tgl_cuda_check(dev, result, "loading a kernel");
    if (status == TGL_DRIVER && compiler / 1000 > driver / 1000)
        tgl_keep_error(dev,
                       "the driver, for CUDA %d.%d, cannot load what NVRTC %d.%d compiles (%s); "
                       "update the driver, or name an older NVRTC in TEGULA_NVRTC",
                       driver / 1000, driver / 10 % 100, compiler / 1000, compiler / 10 % 100,
                       tgl_driver_error_name(&cuda->driver, result));
    return status;
}

/* An image from the cache that the driver will not have was built for another chip, or damaged
 * where no checksum sees it: it is compiled once more. */
static tgl_status load_image(tgl_device *dev, const tgl_kernel *kernel, tgl_module *module)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_binary binary;
    TGL_TRY(compile(dev, kernel, true, &binary));
    CUresult result = driver->cuModuleLoadData(&module->module, binary.image);
    if (binary.from_cache &&
        (result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU)) {
        free(binary.image);
        TGL_TRY(compile(dev, kernel, false, &binary));
        result = driver->cuModuleLoadData(&module->module, binary.image);
    }
    free(binary.image);
    module->from_cache = binary.from_cache;
    return check_load(dev, result);
}

/* Finds the function, has it loaded now (the driver would otherwise do so at the first launch,
 * which may be in the middle of a graph capture), and asks what it uses. */
static tgl_status find_function(tgl_device *dev, tgl_module *module)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    const tgl_kernel *kernel = &module->kernel;
    TGL_TRY(tgl_cuda_check(
        dev, driver->cuModuleGetFunction(&module->function, module->module, kernel->symbol),
        kernel->symbol));
    CUfunction function = module->function;
    CUresult result = driver->cuFuncLoad != NULL ? driver->cuFuncLoad(function) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result =
            driver->cuFuncGetAttribute(&module->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (result == CUDA_SUCCESS)
        result = driver->cuFuncGetAttribute(&module->shared_bytes,
                                            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    if (result == CUDA_SUCCESS)
        result = driver->cuFuncGetAttribute(&module->local_bytes,
                                            CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
    return tgl_cuda_check(dev, result, kernel->name);
}

/* Lets launches ask for so much. */
static tgl_status allow_shared(tgl_device *dev, tgl_module *module, int dynamic_shared)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    if (dynamic_shared + module->shared_bytes <= SHARED_WITHOUT_ASKING ||
        dynamic_shared <= module->dynamic_shared)
        return TGL_OK;
    TGL_TRY(tgl_cuda_check(
        dev,
        driver->cuFuncSetAttribute(module->function,
                                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic_shared),
        module->kernel.name));
    module->dynamic_shared = dynamic_shared;
    return TGL_OK;
}

static tgl_status load(tgl_device *dev, tgl_module *module)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    const double start = tgl_clock();
    TGL_TRY(load_image(dev, &module->kernel, module));
    tgl_status status = find_function(dev, module);
    if (status == TGL_OK) status = allow_shared(dev, module, module->kernel.dynamic_shared);
    if (status != TGL_OK) driver->cuModuleUnload(module->module);
    module->seconds = tgl_clock() - start;
    return status;
}

/* ---- The list: under the lock ---------------------------------------------------------------- */

static tgl_module *find(const tgl_cuda *cuda, const tgl_kernel *kernel)
{
    tgl_module *module = cuda->modules;
    while (module != NULL && !tgl_kernel_is_same(&module->kernel, kernel))
        module = module->next;
    return module;
}

static void free_module(tgl_module *module)
{
    free(module->defines);
    free(module->expression);
    free(module);
}

/* A module to be loaded, at the head of the list. NULL: no memory. */
static tgl_module *add(tgl_cuda *cuda, const tgl_kernel *kernel)
{
    tgl_module *module = calloc(1, sizeof *module);
    if (module == NULL) return NULL;
    module->kernel = *kernel;
    module->kernel.defines = module->defines = strdup(kernel->defines);
    if (kernel->expression != NULL) module->expression = strdup(kernel->expression);
    module->kernel.expression = module->expression;
    if (module->defines == NULL || (kernel->expression != NULL && module->expression == NULL)) {
        free_module(module);
        return NULL;
    }
    module->next = cuda->modules;
    cuda->modules = module;
    return module;
}

static void drop(tgl_cuda *cuda, tgl_module *module)
{
    tgl_module **place = &cuda->modules;
    while (*place != module)
        place = &(*place)->next;
    *place = module->next;
    free_module(module);
}

/* The lock is not held. */
static tgl_status load_added(tgl_device *dev, tgl_module *module)
{
    tgl_cuda *cuda = dev->state;
    const tgl_status status = load(dev, module);
    pthread_mutex_lock(&cuda->module_lock);
    if (status == TGL_OK)
        module->is_ready = true;
    else
        drop(cuda, module);
    pthread_cond_broadcast(&cuda->module_change);
    pthread_mutex_unlock(&cuda->module_lock);
    return status;
}

tgl_status tgl_cuda_load(tgl_device *dev, const tgl_kernel *kernel, const tgl_module **module)
{
    tgl_cuda *cuda = dev->state;
    tgl_module *found;
    pthread_mutex_lock(&cuda->module_lock);
    while ((found = find(cuda, kernel)) != NULL && !found->is_ready)
        pthread_cond_wait(&cuda->module_change, &cuda->module_lock);
    *module = found;
    if (found != NULL) {
        const tgl_status status = allow_shared(dev, found, kernel->dynamic_shared);
        pthread_mutex_unlock(&cuda->module_lock);
        return status;
    }
    *module = found = add(cuda, kernel);
    pthread_mutex_unlock(&cuda->module_lock);
    if (found == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a kernel");
    return load_added(dev, found);
}

void tgl_cuda_unload_all(tgl_cuda *cuda)
{
    while (cuda->modules != NULL) {
        tgl_module *module = cuda->modules;
        cuda->modules = module->next;
        if (!atomic_load(&cuda->is_lost)) cuda->driver.cuModuleUnload(module->module);
        free_module(module);
    }
}
