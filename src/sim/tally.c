/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts accesses by warps. The lanes of a warp run one after the other: their accesses at the same
 * instruction, in the same iteration of all enclosing loops, are counted as one execution of the
 * instruction by the warp.
 */
#include "sim/tally.h"

#include "sim/growing.h"

#include <stdlib.h>
#include <string.h>

struct tgl_tally_group {
    uint64_t round, order;
    uint32_t lanes; /* mask of the lanes in the group */
    tgl_warp_access shared, global;
};

enum { SLOTS = 4096 }; /* slots of the hash table: a power of two */

bool tgl_tally_init(tgl_tally *tally)
{
    *tally = (tgl_tally){.slots = SLOTS};
    tally->sites = calloc(tally->slots, sizeof *tally->sites);
    tally->touched = calloc(tally->slots, sizeof *tally->touched);
    return tally->sites != NULL && tally->touched != NULL;
}

void tgl_tally_clear(tgl_tally *tally)
{
    for (size_t i = 0; i < tally->slots; i++)
        free(tally->sites[i].groups);
    memset(tally->sites, 0, tally->slots * sizeof *tally->sites);
    tally->used = tally->touched_count = 0;
}

void tgl_tally_free(tgl_tally *tally)
{
    if (tally->sites != NULL) tgl_tally_clear(tally);
    free(tally->sites);
    free(tally->touched);
}

/* The slot of an instruction in the hash table, or the free slot for it. The table is at most half
 * full: a kernel has some hundred memory instructions. */
static size_t slot_of(const tgl_tally *tally, const void *pc, tgl_access_kind kind)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: Knuth's multiplier */
    const uint64_t hash = ((uintptr_t)pc * TGL_ACCESS_KINDS + (uint64_t)kind) * golden;
    size_t slot = (size_t)(hash >> 40) & (tally->slots - 1);
    while (tally->sites[slot].pc != NULL &&
           (tally->sites[slot].pc != pc || tally->sites[slot].kind != kind))
        slot = (slot + 1) & (tally->slots - 1);
    return slot;
}

/* The entry of an instruction. A new entry gets this target and cluster. NULL: the table is
 * full. */
static tgl_site *find_site(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target,
                           uint32_t cluster)
{
    tgl_site *site = &tally->sites[slot_of(tally, pc, kind)];
    if (site->pc != NULL) return site;
    if (2 * tally->used >= tally->slots) return NULL;
    site->pc = pc;
    site->kind = kind;
    site->target = target;
    site->cluster = cluster;
    tally->used++;
    return site;
}

static bool can_join(const tgl_tally_group *group, int lane, uint64_t round)
{
    return group->round == round && (group->lanes >> lane & 1) == 0;
}

/* Finds or creates the group that the lane's access joins. A group has the accesses of a warp at
 * this instruction with the same `round`. Usually the lane joins the group after the one that it
 * joined last. The group has a higher index in the array if the lane skipped iterations, and a
 * lower index if other lanes created groups in another order. -1: out of memory. */
static int join_group(tgl_tally *tally, tgl_site *site, int lane, uint64_t round)
{
    const int next = site->next[lane], count = site->group_count;
    for (int i = next; i < count; i++)
        if (can_join(&site->groups[i], lane, round)) return i;
    for (int i = 0; i < next; i++)
        if (can_join(&site->groups[i], lane, round)) return i;
    tgl_tally_group *groups =
        tgl_grow(site->groups, &site->group_room, (size_t)count, sizeof *groups);
    if (groups == NULL) return -1;
    site->groups = groups;
    tgl_tally_group *fresh = &site->groups[site->group_count++];
    fresh->round = round;
    fresh->order = ++tally->order;
    fresh->lanes = fresh->shared.lanes = fresh->global.lanes = 0;
    return count;
}

static void add_lane(tgl_warp_access *access, int lane, uint32_t bytes, uintptr_t address)
{
    access->lanes |= 1u << lane;
    access->bytes = bytes;
    access->address[lane] = address;
}

bool tgl_tally_access(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target, int lane,
                      uint64_t round, uint32_t bytes, uintptr_t shared, uintptr_t global,
                      uint32_t *index, bool *is_full)
{
    tgl_site *site = find_site(tally, pc, kind, target, tally->cluster);
    if (site == NULL) return false;
    *index = (uint32_t)(site - tally->sites);
    if (site->group_count == 0) tally->touched[tally->touched_count++] = *index;
    const int joined = join_group(tally, site, lane, round);
    if (joined < 0) return false;
    tgl_tally_group *group = &site->groups[joined];
    site->next[lane] = joined + 1;
    group->lanes |= 1u << lane;
    if (shared != 0) add_lane(&group->shared, lane, bytes, shared);
    if (global != 0) add_lane(&group->global, lane, bytes, global);
    *is_full = ++site->passes[lane] == TGL_TALLY_WINDOW;
    return true;
}

bool tgl_tally_bulk(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target,
                    int64_t bytes, int64_t sectors, uint32_t *index)
{
    tgl_site *site = find_site(tally, pc, kind, target, tally->cluster);
    if (site == NULL) return false;
    site->requests++;
    site->bytes += bytes;
    site->sectors += sectors;
    *index = (uint32_t)(site - tally->sites);
    return true;
}

static bool add_site(tgl_tally *tally, const tgl_site *other, const void *pc)
{
    tgl_site *site = find_site(tally, pc, other->kind, other->target, other->cluster);
    if (site == NULL) return false;
    if (other->cluster < site->cluster) {
        site->target = other->target;
        site->cluster = other->cluster;
    }
    site->requests += other->requests;
    site->bytes += other->bytes;
    site->sectors += other->sectors;
    site->wavefronts += other->wavefronts;
    site->conflicts += other->conflicts;
    return true;
}

bool tgl_tally_add(tgl_tally *tally, const tgl_tally *other, uintptr_t moved)
{
    for (size_t i = 0; i < other->slots; i++) {
        const tgl_site *site = &other->sites[i];
        if (site->pc != NULL && !add_site(tally, site, (const char *)site->pc - moved))
            return false;
    }
    return true;
}

tgl_trace_step *tgl_tally_step(tgl_tally *tally, uint32_t site)
{
    tgl_site *s = &tally->sites[site];
    if (tally->trace == NULL || s->traced == TGL_TRACE_EACH) return NULL;
    if (s->traced > 0 && s->traced_warp != tally->warp) return NULL;
    tgl_trace_step *step = tgl_trace_add(tally->trace);
    if (step == NULL) return NULL;
    s->traced++;
    s->traced_warp = tally->warp;
    *step = (tgl_trace_step){.order = ++tally->order,
                             .pc = s->pc,
                             .kind = s->kind,
                             .target = s->target,
                             .warp = tally->warp};
    return step;
}

static void trace_group(tgl_tally *tally, uint32_t site, const tgl_tally_group *group)
{
    tgl_trace_step *step = tgl_tally_step(tally, site);
    if (step == NULL) return;
    step->order = group->order;
    step->shared = group->shared;
    step->global = group->global;
}

static void count_group(tgl_site *site, const tgl_tally_group *group)
{
    int least;
    site->requests++;
    if (group->global.lanes != 0) site->sectors += tgl_count_sectors(&group->global);
    if (group->shared.lanes != 0) {
        const int wavefronts = tgl_count_wavefronts(&group->shared, &least);
        site->wavefronts += wavefronts;
        site->conflicts += wavefronts - least;
    }
    const bool is_shared = site->kind == TGL_SHARED_LOAD || site->kind == TGL_SHARED_STORE;
    const tgl_warp_access *asked = is_shared ? &group->shared : &group->global;
    site->bytes += (int64_t)__builtin_popcount(asked->lanes) * asked->bytes;
}

void tgl_tally_flush(tgl_tally *tally)
{
    for (size_t i = 0; i < tally->touched_count; i++) {
        tgl_site *site = &tally->sites[tally->touched[i]];
        for (int group = 0; group < site->group_count; group++) {
            count_group(site, &site->groups[group]);
            trace_group(tally, tally->touched[i], &site->groups[group]);
        }
        site->group_count = 0;
        memset(site->next, 0, sizeof site->next);
        memset(site->passes, 0, sizeof site->passes);
    }
    tally->touched_count = 0;
}
