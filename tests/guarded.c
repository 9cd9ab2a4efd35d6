/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory between inaccessible pages.
 */
#include "guarded.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0xa5 };

bool guarded_create(guarded *g, size_t size, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = (size + page - 1) / page * page;
    *g = (guarded){.map_size = room + 2 * page, .size = size};
    void *map = mmap(NULL, g->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return false;
    g->map = map;
    if (room > 0 && mprotect(g->map + page, room, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, g->map_size);
        return false;
    }
    g->bytes = g->map + page + (at_end ? room - size : 0);
    memset(g->map + page, CANARY, room);
    return true;
}

void guarded_destroy(guarded *g)
{
    if (g->map != NULL) munmap(g->map, g->map_size);
    *g = (guarded){0};
}

void guarded_forbid_writes(guarded *g)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (g->map_size > 2 * page) mprotect(g->map + page, g->map_size - 2 * page, PROT_READ);
}

bool guarded_is_intact(const guarded *g)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const unsigned char *end = g->map + g->map_size - page;
    for (const unsigned char *p = g->map + page; p < g->bytes; p++)
        if (*p != CANARY) return false;
    for (const unsigned char *p = g->bytes + g->size; p < end; p++)
        if (*p != CANARY) return false;
    return true;
}
