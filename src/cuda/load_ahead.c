/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles several kernels at the same time: a plan may have several kernels, and planning with
 * TGL_EFFORT_MEASURE needs dozens of kernels. The threads load the modules, which then stay in the
 * table of cuda_modules.c. Failures are not reported: a caller that needs the module compiles the
 * kernel again and learns why that fails.
 */
#include "base/processors.h"
#include "cuda/cuda_state.h"

#include <pthread.h>
#include <signal.h>

enum { KERNELS_MAX = 64, THREADS_MAX = 16 };

typedef struct load_ahead {
    tgl_device *dev;
    const tgl_kernel *kernels[KERNELS_MAX];
    int count;
    atomic_int next;
} load_ahead;

static void load_kernel(tgl_device *dev, const tgl_kernel *kernel)
{
    tgl_cuda_scope scope;
    const tgl_module *module;
    if (tgl_cuda_enter_relaxed(dev, &scope) != TGL_OK) return;
    if (tgl_cuda_load(dev, kernel, 0, &module) == TGL_OK) tgl_cuda_release(dev, module);
    tgl_cuda_leave(&scope);
}

static void *work(void *data)
{
    load_ahead *of = data;
    for (int i; (i = atomic_fetch_add(&of->next, 1)) < of->count;)
        load_kernel(of->dev, of->kernels[i]);
    return NULL;
}

/* Adds a kernel to the list, unless it is compiled already or in the list, or the list is full. */
static void add(load_ahead *of, const tgl_kernel *kernel)
{
    if (of->count == KERNELS_MAX) return;
    for (int i = 0; i < of->count; i++)
        if (tgl_kernel_is_same(of->kernels[i], kernel)) return;
    if (!tgl_cuda_is_compiled(of->dev, kernel)) of->kernels[of->count++] = kernel;
}

static void add_list(load_ahead *of, const tgl_launch_list *list)
{
    for (int i = 0; i < list->step_count; i++) {
        const tgl_launch *launch = tgl_step_choose_aligned(&list->steps[i]);
        if (launch != NULL) add(of, launch->kernel);
    }
}

/* Compiles with the calling thread and `helpers` others. The helpers block all signals, so that the
 * program's handlers do not run on them. */
static void work_together(load_ahead *of, int helpers)
{
    pthread_t threads[THREADS_MAX];
    sigset_t all, before;
    int count = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (count < helpers && pthread_create(&threads[count], NULL, work, of) == 0)
        count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(of);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void load_all(load_ahead *of)
{
    const int processors = tgl_processors();
    const int helpers = (of->count < processors ? of->count : processors) - 1;
    work_together(of, helpers < THREADS_MAX ? helpers : THREADS_MAX);
}

void tgl_cuda_load_ahead(tgl_device *dev, const tgl_launch_list *list)
{
    load_ahead of = {.dev = dev};
    if (list->kernel_count < 2) return;
    add_list(&of, list);
    if (of.count >= 2) load_all(&of);
}

void tgl_cuda_load_lists(tgl_device *dev, const tgl_launch_list *lists, int count)
{
    load_ahead of = {.dev = dev};
    for (int i = 0; i < count; i++)
        add_list(&of, &lists[i]);
    if (of.count > 0) load_all(&of);
}
