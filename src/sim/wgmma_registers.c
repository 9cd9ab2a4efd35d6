/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks the registers of each thread that wgmma instructions use: accumulators from their first
 * wgmma on, and left operands.
 */
#include "sim/wgmma_registers.h"

/* ---- Accumulators ---------------------------------------------------------------------------- */

void tgl_wgmma_check_fence(tgl_machine *machine, tgl_sim_thread *thread, const float *acc, int n,
                           const void *pc)
{
    tgl_sim_wgmma_thread *w = &thread->wgmmas;
    const char *begin = (const char *)acc, *end = (const char *)(acc + n / 2);
    int i = 0;
    while (i < TGL_WGMMA_ACCUMULATORS &&
           (w->accumulators[i].begin != begin || w->accumulators[i].end != end))
        i++;
    const bool is_known = i < TGL_WGMMA_ACCUMULATORS;
    if (!w->has_fenced || (is_known && w->accumulators[i].is_touched))
        tgl_machine_fault(
            machine, pc,
            "wgmma with an accumulator of thread %u, and no wgmma_fence() since it was "
            "last touched",
            thread->index);
    if (is_known) return;
    int free_one = 0; /* index of an unused or overlapping entry; 0 if there is none */
    for (i = 0; i < TGL_WGMMA_ACCUMULATORS; i++)
        if (w->accumulators[i].begin == NULL ||
            (w->accumulators[i].begin < end && begin < w->accumulators[i].end)) {
            w->accumulators[i].begin = w->accumulators[i].end = NULL;
            free_one = i;
        }
    w->accumulators[free_one].begin = begin;
    w->accumulators[free_one].end = end;
    w->accumulators[free_one].is_touched = false;
}

void tgl_wgmma_touch_accumulators(tgl_sim_wgmma_thread *w, const char *address, const char *end)
{
    for (int i = 0; i < TGL_WGMMA_ACCUMULATORS; i++)
        if (end > w->accumulators[i].begin && address < w->accumulators[i].end)
            w->accumulators[i].is_touched = true;
}

/* ---- Left operands --------------------------------------------------------------------------- */

void tgl_wgmma_use_fragment(tgl_machine *machine, tgl_sim_thread *thread, const unsigned *fragment,
                            const void *pc)
{
    tgl_sim_wgmma_thread *w = &thread->wgmmas;
    const char *begin = (const char *)fragment;
    tgl_sim_left_fragment *entry = w->fragments;
    while (entry < w->fragments + TGL_WGMMA_LEFT_FRAGMENTS && entry->begin != NULL &&
           entry->begin != begin)
        entry++;
    if (entry == w->fragments + TGL_WGMMA_LEFT_FRAGMENTS)
        tgl_machine_fault(machine, pc,
                          "wgmma with more than %d left operands in registers, which is the "
                          "maximum of the simulator",
                          TGL_WGMMA_LEFT_FRAGMENTS);
    if (entry->begin == begin && entry->is_written)
        tgl_machine_fault(machine, pc,
                          "wgmma with left fragments of thread %u, and no wgmma_fence() since they "
                          "were last written",
                          thread->index);
    *entry = (tgl_sim_left_fragment){.begin = begin,
                                     .end = begin + TGL_WGMMA_FRAGMENT * sizeof(unsigned),
                                     .group = w->groups,
                                     .pc = pc};
}

void tgl_wgmma_check_fragments(tgl_machine *machine, const char *address, const char *end,
                               const void *pc)
{
    tgl_sim_wgmma_thread *w = &machine->current->wgmmas;
    for (int i = 0; i < TGL_WGMMA_LEFT_FRAGMENTS && w->fragments[i].begin != NULL; i++) {
        tgl_sim_left_fragment *x = &w->fragments[i];
        if (end <= x->begin || address >= x->end) continue;
        if (x->group >= w->done)
            tgl_machine_fault(
                machine, pc,
                "writes a left fragment of the wgmma at %s, which has not been waited for",
                tgl_sim_place(machine->launch->module, x->pc).text);
        x->is_written = true;
    }
}

/* ---- Accumulators and left operands ---------------------------------------------------------- */

void tgl_wgmma_fence(tgl_machine *machine)
{
    tgl_sim_wgmma_thread *w = &machine->current->wgmmas;
    w->has_fenced = true;
    for (int i = 0; i < TGL_WGMMA_ACCUMULATORS; i++)
        w->accumulators[i].is_touched = false;
    for (int i = 0; i < TGL_WGMMA_LEFT_FRAGMENTS; i++)
        w->fragments[i].is_written = false;
}
