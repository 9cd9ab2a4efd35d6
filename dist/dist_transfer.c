/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves a matrix from one distribution to another. A piece is the set of elements that one rank
 * sends to another in a step.
 *
 * Pieces that are contiguous in memory are sent and received where they are, except that pieces to
 * be added, and those of a transfer with `stages`, are received into a buffer. The rectangles of
 * all other pieces are packed one after the other, in the order of their rows.
 */
#include "dist_transfer.h"

#include "dist_copy.h"
#include "dist_error.h"

enum { PIECE_ALIGNMENT = 64 }; /* alignment of packed pieces in bytes */

/* ---- Shared rectangles ----------------------------------------------------------------------- */

/* Iterates over the rectangles of elements that two parts x and y of the same matrix share. */
typedef struct shared_rects {
    const dist_rect *x, *y;
    dist_overlap outer, inner;
    dist_run rows, columns; /* the present rectangle */
    bool has_rows;
} shared_rects;

static shared_rects shared_start(const dist_rect *x, const dist_rect *y)
{
    return (shared_rects){
        .x = x, .y = y, .outer = dist_overlap_start(x->window[DIST_OUTER], y->window[DIST_OUTER])};
}

static bool shared_next(shared_rects *s)
{
    while (!s->has_rows || !dist_overlap_next(&s->inner, &s->columns)) {
        s->has_rows = dist_overlap_next(&s->outer, &s->rows);
        if (!s->has_rows) return false;
        s->inner = dist_overlap_start(s->x->window[DIST_INNER], s->y->window[DIST_INNER]);
    }
    return true;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* The elements that one rank sends to another in a step. mine: the part of this rank, as the sender
 * or as the receiver; other: the part of the other rank. */
typedef struct piece {
    dist_rect mine, other;
    int64_t count;  /* number of elements; 0: nothing is sent */
    bool is_direct; /* contiguous in this rank's part, from element `offset` on, so that no packing
                       is needed */
    int64_t offset;
} piece;

static void find_direct(piece *p, int64_t ld)
{
    shared_rects shared = shared_start(&p->mine, &p->other);
    if (!shared_next(&shared)) return;
    const dist_run rows = shared.rows, columns = shared.columns;
    p->is_direct =
        rows.length * columns.length == p->count && (rows.length == 1 || columns.length == ld);
    p->offset = rows.x * ld + columns.x;
}

static piece piece_of(const dist_spread *mine, int rank, int64_t ld, const dist_spread *others,
                      int other, int64_t step)
{
    piece p = {.mine = dist_rect_at(mine, rank, step), .other = dist_rect_at(others, other, step)};
    p.count = dist_rect_shared(&p.mine, &p.other);
    if (p.count > 0) find_direct(&p, ld);
    return p;
}

/* The piece that this rank sends to rank `other`. A replicated matrix is never sent, because each
 * rank has it. */
static piece piece_sent(const dist_transfer *t, int rank, int other, int64_t step)
{
    if (t->from->replicated) return (piece){.count = 0};
    return piece_of(t->from, rank, t->ld_from, t->to, other, step);
}

static piece piece_received(const dist_transfer *t, int rank, int other, int64_t step)
{
    if (t->from->replicated && rank != other) return (piece){.count = 0};
    piece p = piece_of(t->to, rank, t->ld_to, t->from, other, step);
    if (t->adds || t->stages) p.is_direct = false;
    return p;
}

static size_t piece_bytes(const dist_transfer *t, const piece *p)
{
    const size_t bytes = (size_t)p->count * t->element;
    return (bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
}

/* Packs the elements of a piece. base: address of this rank's part. */
static tgl_status pack(const dist_transfer *t, const tgl_dist_transport *transport, const piece *p,
                       const char *base, char *packed)
{
    shared_rects shared = shared_start(&p->mine, &p->other);
    while (shared_next(&shared)) {
        const dist_run rows = shared.rows, columns = shared.columns;
        const size_t bytes = (size_t)columns.length * t->element;
        const char *at = base + (size_t)(rows.x * t->ld_from + columns.x) * t->element;
        DIST_TRY(dist_copy(transport, packed, bytes, at, (size_t)t->ld_from * t->element,
                           rows.length, bytes));
        packed += (size_t)rows.length * bytes;
    }
    return TGL_OK;
}

/* target += source, for a rectangle of elements. */
static void add(dist_transfer *t, const tgl_dist_transport *transport, void *target,
                int64_t ld_target, const void *source, int64_t ld_source, int64_t lines,
                int64_t count)
{
    const tgl_status status =
        dist_add(transport, t->type, target, ld_target, source, ld_source, lines, count);
    if (t->sum == TGL_OK) t->sum = status;
}

static tgl_status unpack(dist_transfer *t, const tgl_dist_transport *transport, const piece *p,
                         char *base, const char *packed)
{
    shared_rects shared = shared_start(&p->mine, &p->other);
    while (shared_next(&shared)) {
        const dist_run rows = shared.rows, columns = shared.columns;
        const size_t bytes = (size_t)columns.length * t->element;
        char *at = base + (size_t)(rows.x * t->ld_to + columns.x) * t->element;
        if (t->adds)
            add(t, transport, at, t->ld_to, packed, columns.length, rows.length, columns.length);
        else
            DIST_TRY(dist_copy(transport, at, (size_t)t->ld_to * t->element, packed, bytes,
                               rows.length, bytes));
        packed += (size_t)rows.length * bytes;
    }
    return TGL_OK;
}

/* For the elements that are both in this rank's part in `from` (source) and in its part in `to`
 * (target): copies or adds the source to the target. */
static tgl_status move_own(dist_transfer *t, const tgl_dist_transport *transport, int64_t step,
                           const char *source, char *target)
{
    const piece p = piece_received(t, transport->rank, transport->rank, step);
    shared_rects shared = shared_start(&p.mine, &p.other);
    while (shared_next(&shared)) {
        const dist_run rows = shared.rows, columns = shared.columns;
        const char *from = source + (size_t)(rows.y * t->ld_from + columns.y) * t->element;
        char *to = target + (size_t)(rows.x * t->ld_to + columns.x) * t->element;
        if (t->adds)
            add(t, transport, to, t->ld_to, from, t->ld_from, rows.length, columns.length);
        else
            DIST_TRY(dist_copy(transport, to, (size_t)t->ld_to * t->element, from,
                               (size_t)t->ld_from * t->element, rows.length,
                               (size_t)columns.length * t->element));
    }
    return TGL_OK;
}

/* ---- Transfers ------------------------------------------------------------------------------- */

void dist_transfer_measure(dist_transfer *t, int rank, int ranks, int64_t steps)
{
    t->packed_bytes = t->staged_bytes = 0;
    for (int64_t step = 0; step < steps; step++) {
        size_t packed = 0, staged = 0;
        for (int other = 0; other < ranks; other++) {
            if (other == rank) continue;
            const piece sent = piece_sent(t, rank, other, step);
            const piece received = piece_received(t, rank, other, step);
            if (!sent.is_direct) packed += piece_bytes(t, &sent);
            if (!received.is_direct) staged += piece_bytes(t, &received);
        }
        if (packed > t->packed_bytes) t->packed_bytes = packed;
        if (staged > t->staged_bytes) t->staged_bytes = staged;
    }
}

/* Lists the messages to receive, in the order of the ranks. Returns their number. */
static int list_received(const dist_transfer *t, int rank, int ranks, int64_t step, char *target,
                         dist_slot *slot)
{
    int count = 0;
    char *staged = slot->staged;
    for (int other = 0; other < ranks; other++) {
        if (other == rank) continue;
        const piece p = piece_received(t, rank, other, step);
        if (p.count == 0) continue;
        char *to = p.is_direct ? target + (size_t)p.offset * t->element : staged;
        if (!p.is_direct) staged += piece_bytes(t, &p);
        slot->messages[count++] =
            (tgl_dist_message){.rank = other, .receive = to, .bytes = (size_t)p.count * t->element};
    }
    return count;
}

/* Packs and lists the messages to send. Starts with the next rank, so that not all ranks send to
 * rank 0 first. */
static tgl_status list_sent(const dist_transfer *t, const tgl_dist_transport *transport,
                            int64_t step, const char *source, dist_slot *slot, int *count)
{
    char *packed = slot->packed;
    for (int i = 1; i < transport->ranks; i++) {
        const int other = (transport->rank + i) % transport->ranks;
        const piece p = piece_sent(t, transport->rank, other, step);
        if (p.count == 0) continue;
        const char *from = source + (size_t)p.offset * t->element;
        if (!p.is_direct) {
            DIST_TRY(pack(t, transport, &p, source, packed));
            from = packed;
            packed += piece_bytes(t, &p);
        }
        slot->messages[(*count)++] =
            (tgl_dist_message){.rank = other, .send = from, .bytes = (size_t)p.count * t->element};
    }
    return TGL_OK;
}

/* The all-gather needs contiguous rows. Padded rows are first copied to their place in target. */
static tgl_status gather(const dist_transfer *t, const tgl_dist_transport *transport,
                         const void *source, void *target)
{
    const dist_rect own = dist_rect_at(t->from, transport->rank, 0);
    const int64_t lines = dist_rect_lines(&own), width = dist_rect_width(&own);
    const size_t line = (size_t)width * t->element, count = (size_t)(lines * width);
    if (count == 0) return TGL_OK;
    if (t->ld_from != width) {
        void *place = (char *)target + (size_t)transport->rank * count * t->element;
        DIST_TRY(dist_copy(transport, place, line, source, (size_t)t->ld_from * t->element, lines,
                           line));
        source = place;
    }
    return transport->collect(transport->state, TGL_DIST_ALL_GATHER, t->type, source, target,
                              count);
}

tgl_status dist_transfer_begin(dist_transfer *t, const tgl_dist_transport *transport, int64_t step,
                               const void *source, void *target)
{
    if (t->gathers) return gather(t, transport, source, target);
    dist_slot *slot = &t->slot[step & 1];
    int count = list_received(t, transport->rank, transport->ranks, step, target, slot);
    DIST_TRY(list_sent(t, transport, step, source, slot, &count));
    slot->group = NULL;
    if (count > 0 && t->at_once && transport->exchange != NULL)
        DIST_TRY(transport->exchange(transport->state, slot->messages, count));
    else if (count > 0)
        DIST_TRY(transport->begin(transport->state, slot->messages, count, &slot->group));
    if (t->adds || t->keeps_own || target == NULL) return TGL_OK;
    return move_own(t, transport, step, source, target);
}

tgl_status dist_transfer_finish(dist_transfer *t, const tgl_dist_transport *transport, int64_t step,
                                const void *source, void *target)
{
    if (t->gathers) return TGL_OK;
    dist_slot *slot = &t->slot[step & 1];
    if (slot->group != NULL) DIST_TRY(transport->wait(transport->state, slot->group));
    slot->group = NULL;
    if (target == NULL) return TGL_OK;
    const char *staged = slot->staged;
    for (int other = 0; other < transport->ranks; other++) {
        if (other == transport->rank) {
            if (t->adds) DIST_TRY(move_own(t, transport, step, source, target));
            continue;
        }
        const piece p = piece_received(t, transport->rank, other, step);
        if (p.count == 0 || p.is_direct) continue;
        DIST_TRY(unpack(t, transport, &p, target, staged));
        staged += piece_bytes(t, &p);
    }
    return TGL_OK;
}
