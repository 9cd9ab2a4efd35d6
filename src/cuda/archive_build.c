/* SPDX-License-Identifier: Apache-2.0
 *
 * tgl_warm() with options.archive: compiles kernels with one thread per processor, and writes them
 * to one file.
 */
#include "cuda/archive_build.h"
#include "base/clock.h"
#include "base/processors.h"
#include "cuda/archive_kernels.h"
#include "cuda/kernel_archive.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 256 };

/* State of one call of tgl_archive_build(), shared by its threads. `lock` protects the members that
 * are declared after it. */
typedef struct build {
    const tgl_nvrtc *nvrtc;
    tgl_cache *cache;
    const tgl_warm_options *options;
    tgl_arch arch;
    const tgl_samples *samples;
    int wanted; /* number of kernels to compile */
    tgl_archived *kernels;
    pthread_mutex_t lock;
    int next;     /* index in `samples` of the next kernel to compile */
    int count;    /* number of kernels added so far */
    size_t bytes; /* bytes of the archive so far */
    bool is_full; /* the latest kernel would have made the archive too large */
    tgl_status status;
    char *message; /* error message if status is a failure */
} build;

/* ---- Samples --------------------------------------------------------------------------------- */

/* Finds the kernels that plans for chips of this compute capability launch. All chips of one
 * capability run the same code, so their plans are counted together. If the table of chips has none
 * of the capability, plans are made for a chip without limits (tgl_chip_of_capability()). */
static tgl_status find_samples(tgl_samples *samples, tgl_type type, int capability)
{
    const tgl_chip *chip, own = tgl_chip_of_capability(capability);
    int chips = 0;
    for (int i = 0; (chip = tgl_chip_at(i)) != NULL; i++) {
        if (chip->capability != capability) continue;
        TGL_TRY(tgl_samples_add(samples, chip, type, TGL_SAMPLE_PRODUCTS, 0));
        chips++;
    }
    if (chips == 0) TGL_TRY(tgl_samples_add(samples, &own, type, TGL_SAMPLE_PRODUCTS, 0));
    tgl_samples_sort(samples);
    return TGL_OK;
}

static tgl_status no_samples(tgl_type type, int capability)
{
    char types[120];
    tgl_text text = {types, sizeof types, 0};
    tgl_samples_types(&text);
    return tgl_fail(TGL_UNSUPPORTED,
                    "archives have no kernels of %s for compute capability %d.%d; they have those "
                    "that this supports of %s",
                    tgl_type_name(type), capability / 10, capability % 10, types);
}

/* ---- Compiling, on several threads ----------------------------------------------------------- */

/* The index of the next kernel to compile; -1: none is left, the archive is full, or memory is
 * exhausted. */
static int take_next(build *of)
{
    pthread_mutex_lock(&of->lock);
    const bool is_done = of->is_full || of->status == TGL_NO_MEMORY || of->next == of->wanted;
    const int number = is_done ? -1 : of->next++;
    pthread_mutex_unlock(&of->lock);
    return number;
}

/* Adds a kernel to the archive and takes ownership of binary->image. If the archive has no room for
 * the kernel, only sets is_full. Must be called with of->lock held. */
static void add(build *of, const tgl_kernel_key *key, tgl_binary *binary)
{
    const size_t bytes = tgl_archive_bytes_of(binary);
    if (of->bytes + bytes > TGL_ARCHIVE_BYTES_MAX) {
        of->is_full = true;
        return;
    }
    of->bytes += bytes;
    of->kernels[of->count++] = (tgl_archived){.key = *key, .binary = *binary};
    binary->image = NULL;
}

static void report(const build *of, const tgl_kernel *kernel, const tgl_binary *binary,
                   tgl_status status, double seconds)
{
    const tgl_resources *uses = &binary->uses;
    const tgl_warm_report what = {
        .size = sizeof what,
        .kernel = kernel->name,
        .arch = of->arch.name,
        .status = status,
        .message = status == TGL_OK ? "" : tgl_error(),
        .seconds = seconds,
        .from_cache = binary->from_cache,
        .is_clean = status == TGL_OK && !uses->serialises,
        .registers = uses->registers,
        .shared_bytes = uses->shared_bytes,
        .local_bytes = uses->local_bytes,
        .spill_bytes = uses->spill_bytes,
        .symbol = kernel->symbol,
        .image = binary->image,
        .image_size = binary->size,
    };
    if (of->options->report != NULL) of->options->report(&what, of->options->user);
}

static void compile_one(build *of, const tgl_kernel *kernel)
{
    const double start = tgl_clock();
    tgl_binary binary = {.image = NULL};
    tgl_kernel_key key;
    tgl_status status = tgl_cuda_kernel_key(kernel, of->arch.name, &key);
    if (status == TGL_OK)
        status = tgl_cuda_compile_small(of->nvrtc, of->cache, kernel, of->arch.name, &binary);
    pthread_mutex_lock(&of->lock);
    report(of, kernel, &binary, status, tgl_clock() - start);
    if (status == TGL_OK) {
        add(of, &key, &binary);
    } else {
        of->status = status;
        free(of->message);
        of->message = strdup(tgl_error());
    }
    pthread_mutex_unlock(&of->lock);
    free(binary.image);
}

static void *work(void *data)
{
    build *of = data;
    for (int i; (i = take_next(of)) >= 0;)
        compile_one(of, of->samples->kernels[i].kernel);
    return NULL;
}

/* Compiles all wanted kernels. The calling thread compiles, too: if no other thread can be created,
 * the work only takes longer. */
static void compile_all(build *of)
{
    pthread_t threads[THREADS_MAX];
    int count = 0;
    const int wanted = tgl_processors() - 1;
    while (count < wanted && count < THREADS_MAX &&
           pthread_create(&threads[count], NULL, work, of) == 0)
        count++;
    work(of);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static tgl_status build_with(build *of)
{
    of->kernels = calloc((size_t)of->wanted + 1, sizeof *of->kernels);
    if (of->kernels == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for an archive");
    pthread_mutex_init(&of->lock, NULL);
    compile_all(of);
    pthread_mutex_destroy(&of->lock);
    tgl_status status = of->status;
    if (status != TGL_OK)
        tgl_set_error("%s", of->message != NULL ? of->message : "");
    else
        status = tgl_archive_write(of->options->archive, of->arch.name, of->nvrtc->version,
                                   of->kernels, of->count);
    for (int i = 0; i < of->count; i++)
        free(of->kernels[i].binary.image);
    free(of->kernels);
    free(of->message);
    return status;
}

tgl_status tgl_archive_build(const tgl_nvrtc *nvrtc, tgl_cache *cache,
                             const tgl_warm_options *options, int capability)
{
    tgl_samples samples = {.count = 0};
    tgl_status status = find_samples(&samples, options->type, capability);
    if (status == TGL_OK && samples.count == 0) status = no_samples(options->type, capability);
    if (status == TGL_OK) {
        const int64_t kernels_max = options->archive_kernels;
        build of = {.nvrtc = nvrtc,
                    .cache = cache,
                    .options = options,
                    .arch = tgl_nvrtc_arch_name(nvrtc, capability),
                    .samples = &samples,
                    .wanted = kernels_max > 0 && kernels_max < samples.count ? (int)kernels_max
                                                                             : samples.count,
                    .bytes = tgl_archive_empty_bytes()};
        status = build_with(&of);
    }
    tgl_samples_free(&samples);
    return status;
}
