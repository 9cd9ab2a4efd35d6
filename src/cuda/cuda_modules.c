/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of loaded kernels (modules): a hash table whose keys are the texts that determine a
 * kernel's code. The first thread that needs a kernel loads it from the archive, the disk cache or
 * the compiler, and other threads that need the same kernel wait. Different kernels are compiled
 * concurrently. Plans hold references to their modules. Modules without references stay loaded for
 * later plans, up to a limit. Beyond it, the least recently used ones are unloaded, many at a time,
 * because unloading has to wait for the GPU.
 */
#include "base/clock.h"
#include "cuda/cuda_state.h"
#include "cuda/kernel_archive.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of shared memory per block. For a kernel that uses more, the host must set an attribute of
 * the kernel's function (CUDA programming guide, compute capability 7.x). */
enum { SHARED_WITHOUT_ASKING = 48 * 1024 };
/* If more than UNUSED_MAX modules have no users, modules are unloaded until UNUSED_KEPT without
 * users are left. */
enum { UNUSED_MAX = 256, UNUSED_KEPT = 192 };
enum { BUCKETS = 512 };

typedef struct tgl_modules {
    pthread_mutex_t lock;   /* protects this struct, and what changes in modules that are ready */
    pthread_cond_t changed; /* signals that a module is ready or has failed */
    uint64_t clock;
    int unused; /* number of modules without users */
    tgl_module *bucket[BUCKETS];
} tgl_modules;

/* ---- Compiling and loading: without the lock ------------------------------------------------- */

/* Converts the driver's result of loading a kernel to a status. A driver loads code from an NVRTC
 * of its own or an earlier major CUDA version, but not of a later one. */
static tgl_status check_load(tgl_device *dev, CUresult result)
{
    const tgl_cuda *cuda = dev->state;
    const int driver = cuda->facts.driver_version, compiler = cuda->nvrtc.version;
    tgl_status status = tgl_cuda_check(dev, result, "loading a kernel");
    if (status == TGL_DRIVER && compiler / 1000 > driver / 1000)
        tgl_set_error("the driver, for CUDA %d.%d, cannot load what NVRTC %d.%d compiles (%s); "
                      "update the driver, or name an older NVRTC in TEGULA_NVRTC",
                      driver / 1000, driver / 10 % 100, compiler / 1000, compiler / 10 % 100,
                      tgl_driver_error_name(&cuda->driver, result));
    return status;
}

/* Loads a kernel from the archive. Returns false if the archive does not have it, or the driver
 * cannot load it. */
static bool load_archived(tgl_device *dev, tgl_module *module)
{
    const tgl_cuda *cuda = dev->state;
    tgl_kernel_key key;
    tgl_binary binary;
    if (tgl_archive_count(cuda->archive) == 0 ||
        tgl_cuda_kernel_key(module->kernel, cuda->arch.name, &key) != TGL_OK ||
        !tgl_archive_find(cuda->archive, &key, &binary) ||
        cuda->driver.cuModuleLoadData(&module->module, binary.image) != CUDA_SUCCESS)
        return false;
    module->origin = "from the archive";
    return true;
}

static tgl_status compile(tgl_device *dev, const tgl_kernel *kernel, bool look, tgl_binary *binary)
{
    const tgl_cuda *cuda = dev->state;
    if (cuda->nvrtc.handle == NULL)
        return tgl_fail(TGL_NO_COMPILER,
                        "%s is not in the archive of kernels, and cannot be compiled: %s",
                        kernel->name, cuda->why_no_nvrtc);
    return tgl_cuda_compile(&cuda->nvrtc, cuda->cache, kernel, cuda->arch.name, look, binary);
}

/* Loads a kernel from the archive, the disk cache or the compiler. If the driver cannot load an
 * image from the cache, the kernel is compiled again. An image in the cache may be for another
 * chip, or may be damaged in a way that the checksum does not detect. */
static tgl_status load_image(tgl_device *dev, tgl_module *module)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_binary binary;
    if (load_archived(dev, module)) return TGL_OK;
    TGL_TRY(compile(dev, module->kernel, true, &binary));
    CUresult result = driver->cuModuleLoadData(&module->module, binary.image);
    if (binary.from_cache &&
        (result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU)) {
        free(binary.image);
        TGL_TRY(compile(dev, module->kernel, false, &binary));
        result = driver->cuModuleLoadData(&module->module, binary.image);
    }
    free(binary.image);
    module->origin = binary.from_cache ? "from the cache" : "by NVRTC";
    return check_load(dev, result);
}

/* Finds the kernel's function, loads it, and gets its resource usage. If the function were not
 * loaded here, the driver would load it at the first launch, perhaps during a graph capture. */
static tgl_status find_function(tgl_device *dev, tgl_module *module)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    const tgl_kernel *kernel = module->kernel;
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

static tgl_status load(tgl_device *dev, tgl_module *module)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    const double start = tgl_clock();
    TGL_TRY(load_image(dev, module));
    tgl_status status = find_function(dev, module);
    if (status != TGL_OK) driver->cuModuleUnload(module->module);
    module->seconds = tgl_clock() - start;
    return status;
}

/* ---- The table: under the lock --------------------------------------------------------------- */

/* FNV-1a hash of the texts, each with its terminating zero. */
static unsigned hash(const tgl_kernel *kernel)
{
    const char *const texts[] = {kernel->file, kernel->symbol, kernel->macros,
                                 kernel->expression != NULL ? kernel->expression : "",
                                 kernel->source != NULL ? kernel->source : ""};
    uint64_t value = 0xcbf29ce484222325;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const unsigned char *at = (const unsigned char *)texts[i];
        do
            value = (value ^ *at) * 0x100000001b3;
        while (*at++ != '\0');
    }
    return (unsigned)(value >> 32);
}

static tgl_module *find(const tgl_modules *modules, const tgl_kernel *kernel)
{
    tgl_module *module = modules->bucket[hash(kernel) % BUCKETS];
    while (module != NULL && !tgl_kernel_is_same(module->kernel, kernel))
        module = module->next;
    return module;
}

static void hold(tgl_modules *modules, tgl_module *module)
{
    if (module->users++ == 0 && module->is_ready) modules->unused--;
    module->latest_use = ++modules->clock;
}

/* Adds a module that is not loaded yet, with one user, to the table. NULL: no memory. */
static tgl_module *add(tgl_modules *modules, const tgl_kernel *kernel)
{
    tgl_module *module = calloc(1, sizeof *module);
    if (module == NULL) return NULL;
    module->kernel = tgl_kernel_copy(kernel);
    if (module->kernel == NULL) {
        free(module);
        return NULL;
    }
    tgl_module **bucket = &modules->bucket[hash(kernel) % BUCKETS];
    module->next = *bucket;
    *bucket = module;
    hold(modules, module);
    return module;
}

static void free_module(tgl_module *module)
{
    free(module->kernel);
    free(module);
}

static void drop(tgl_modules *modules, tgl_module *module)
{
    tgl_module **place = &modules->bucket[hash(module->kernel) % BUCKETS];
    while (*place != module)
        place = &(*place)->next;
    *place = module->next;
    free_module(module);
}

static tgl_module *oldest_unused(const tgl_modules *modules)
{
    tgl_module *oldest = NULL;
    for (int i = 0; i < BUCKETS; i++)
        for (tgl_module *module = modules->bucket[i]; module != NULL; module = module->next)
            if (module->users == 0 && (oldest == NULL || module->latest_use < oldest->latest_use))
                oldest = module;
    return oldest;
}

/* Unloads modules without users until `kept` are left. If the wait for the GPU fails, none is
 * unloaded, and the next load of a kernel tries again. */
static void unload_oldest(const tgl_cuda *cuda, tgl_modules *modules, int kept)
{
    if (modules->unused <= kept || tgl_cuda_wait_for_work(&cuda->driver) != CUDA_SUCCESS) return;
    while (modules->unused > kept) {
        tgl_module *module = oldest_unused(modules);
        cuda->driver.cuModuleUnload(module->module);
        drop(modules, module);
        modules->unused--;
    }
}

/* Allows launches of the kernel with `dynamic_shared` bytes of dynamic shared memory. */
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
        module->kernel->name));
    module->dynamic_shared = dynamic_shared;
    return TGL_OK;
}

static void let_go(tgl_modules *modules, tgl_module *module)
{
    if (--module->users == 0) modules->unused++;
}

/* ---- For the rest of the backend ------------------------------------------------------------- */

tgl_modules *tgl_modules_create(void)
{
    tgl_modules *modules = calloc(1, sizeof *modules);
    if (modules == NULL) return NULL;
    pthread_mutex_init(&modules->lock, NULL);
    pthread_cond_init(&modules->changed, NULL);
    return modules;
}

/* In a lost context unloading fails. Releasing the context then frees the modules. */
void tgl_modules_destroy(tgl_cuda *cuda)
{
    tgl_modules *modules = cuda->modules;
    if (modules == NULL) return;
    for (int i = 0; i < BUCKETS; i++)
        while (modules->bucket[i] != NULL) {
            tgl_module *module = modules->bucket[i];
            modules->bucket[i] = module->next;
            if (!atomic_load(&cuda->is_lost)) cuda->driver.cuModuleUnload(module->module);
            free_module(module);
        }
    pthread_cond_destroy(&modules->changed);
    pthread_mutex_destroy(&modules->lock);
    free(modules);
    cuda->modules = NULL;
}

/* Loads a module that add() returned. Must be called without the lock of the table; returns with
 * the lock held. */
static tgl_status load_added(tgl_device *dev, tgl_module *module)
{
    tgl_modules *modules = ((tgl_cuda *)dev->state)->modules;
    const tgl_status status = load(dev, module);
    pthread_mutex_lock(&modules->lock);
    if (status == TGL_OK)
        module->is_ready = true;
    else
        drop(modules, module);
    pthread_cond_broadcast(&modules->changed);
    return status;
}

/* *module := the kernel's module, with one more user. Must be called with the lock of the table
 * held, and returns with it held. */
static tgl_status find_or_load(tgl_device *dev, const tgl_kernel *kernel, tgl_module **module)
{
    tgl_cuda *cuda = dev->state;
    tgl_modules *modules = cuda->modules;
    while ((*module = find(modules, kernel)) != NULL && !(*module)->is_ready)
        pthread_cond_wait(&modules->changed, &modules->lock);
    if (*module != NULL) {
        hold(modules, *module);
        return TGL_OK;
    }
    if (modules->unused > UNUSED_MAX) unload_oldest(cuda, modules, UNUSED_KEPT);
    *module = add(modules, kernel);
    if (*module == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a kernel");
    pthread_mutex_unlock(&modules->lock);
    return load_added(dev, *module);
}

tgl_status tgl_cuda_load(tgl_device *dev, const tgl_kernel *kernel, int dynamic_shared,
                         const tgl_module **module)
{
    const tgl_cuda *cuda = dev->state;
    tgl_modules *modules = cuda->modules;
    tgl_module *found;
    if ((kernel->needs & ~cuda->chip.features) != 0)
        return tgl_fail(TGL_UNSUPPORTED,
                        "%s uses instructions that this GPU, of compute capability %d.%d, its "
                        "driver or NVRTC does not have",
                        kernel->name, cuda->facts.capability / 10, cuda->facts.capability % 10);
    pthread_mutex_lock(&modules->lock);
    tgl_status status = find_or_load(dev, kernel, &found);
    if (status == TGL_OK) {
        status = allow_shared(dev, found, dynamic_shared);
        if (status != TGL_OK) let_go(modules, found);
    }
    pthread_mutex_unlock(&modules->lock);
    *module = status == TGL_OK ? found : NULL;
    return status;
}

static bool is_archived(const tgl_cuda *cuda, const tgl_kernel *kernel)
{
    tgl_kernel_key key;
    return tgl_archive_count(cuda->archive) > 0 &&
           tgl_cuda_kernel_key(kernel, cuda->arch.name, &key) == TGL_OK &&
           tgl_archive_has(cuda->archive, &key);
}

bool tgl_cuda_is_compiled(tgl_device *dev, const tgl_kernel *kernel)
{
    const tgl_cuda *cuda = dev->state;
    pthread_mutex_lock(&cuda->modules->lock);
    const bool is_loaded = find(cuda->modules, kernel) != NULL;
    pthread_mutex_unlock(&cuda->modules->lock);
    return is_loaded || is_archived(cuda, kernel) ||
           tgl_cuda_is_cached(&cuda->nvrtc, cuda->cache, kernel, cuda->arch.name);
}

void tgl_cuda_unload_unused(tgl_device *dev)
{
    const tgl_cuda *cuda = dev->state;
    pthread_mutex_lock(&cuda->modules->lock);
    unload_oldest(cuda, cuda->modules, 0);
    pthread_mutex_unlock(&cuda->modules->lock);
}

void tgl_cuda_release(tgl_device *dev, const tgl_module *module)
{
    tgl_modules *modules = ((tgl_cuda *)dev->state)->modules;
    if (module == NULL) return;
    pthread_mutex_lock(&modules->lock);
    let_go(modules, (tgl_module *)module);
    pthread_mutex_unlock(&modules->lock);
}
