/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM + reduce-scatter and GEMM + all-reduce in a ring; dist_ring.h describes the algorithm. A
 * shard is the block of rows (or columns) of C that one rank, its owner, gets. A chunk is a part of
 * a shard. The axis of the ring is the axis of C that the shards divide. With a single product
 * (choice.ring is 0) there are no chunks: each rank computes one product for all of C.
 */
#include "dist_ring.h"

#include "dist_copy.h"
#include "dist_error.h"
#include "dist_ring_choose.h"

#include <stdlib.h>

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* A part of a shard: `length` rows (or columns) from `first` on. */
typedef struct chunk {
    int64_t first, length; /* position in the whole matrix */
    int64_t at;            /* position in the shard */
} chunk;

static const dist_axis *shards_of(const tgl_dist_plan *plan)
{
    const int axis = dist_ring_axis(&plan->task);
    return &plan->owned.axis[plan->task.axis_of[OPERAND_C][0] == axis ? 0 : 1];
}

static chunk chunk_of(const tgl_dist_plan *plan, int owner, int64_t index)
{
    const dist_axis *shards = shards_of(plan);
    const int64_t shard = dist_axis_length(shards, owner), length = plan->choice.chunk;
    int64_t rest;
    chunk c = {.at = index * length};
    if (c.at >= shard) return (chunk){.length = 0};
    c.length = shard - c.at < length ? shard - c.at : length;
    c.first = dist_axis_index(shards, owner, c.at, &rest);
    return c;
}

/* The size of C along the axis that the ring does not divide. */
static int64_t across(const tgl_dist_plan *plan)
{
    return dist_task_extent(&plan->task, dist_ring_axis(&plan->task) == AXIS_M ? AXIS_N : AXIS_M);
}

/* Whether the rows of this rank's C are padded. Each rank may have another ldc. */
static bool is_padded(const tgl_dist_plan *plan)
{
    return plan->task.ld[OPERAND_C] != across(plan);
}

static size_t chunk_bytes(const tgl_dist_plan *plan, const chunk *c, size_t element)
{
    return (size_t)(c->length * across(plan)) * element;
}

/* The type of the partial sums, and its size. */
static tgl_type type_of_sums(const tgl_dist_plan *plan)
{
    return dist_ring_type(&plan->task, &plan->dist->machine);
}

static size_t sum_element(const tgl_dist_plan *plan)
{
    return tgl_type_size(type_of_sums(plan));
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tgl_status make_list(int count, void ***list)
{
    *list = calloc((size_t)count, sizeof **list);
    return *list != NULL ? TGL_OK : dist_fail(TGL_NO_MEMORY, "no memory for %d buffers", count);
}

static int chunks_of(const tgl_dist_plan *plan)
{
    return plan->choice.ring > 0 ? plan->choice.ring : 1;
}

tgl_status dist_ring_allocate(tgl_dist_plan *plan)
{
    dist_ring *ring = &plan->ring;
    const int ranks = plan->task.ranks, chunks = chunks_of(plan),
              chunks_of_others = (ranks - 1) * chunks;
    const size_t sum = sum_element(plan);
    const bool sums_all = plan->has_copies && plan->choice.ring == 0;
    const chunk longest = {.length = sums_all ? plan->task.problem.m : plan->choice.chunk};
    const size_t bytes = chunk_bytes(plan, &longest, sum);
    const size_t whole =
        (size_t)(dist_task_extent(&plan->task, AXIS_M) * dist_task_extent(&plan->task, AXIS_N)) *
        sum;
    ring->slots =
        plan->choice.ring > 0 && chunks_of_others > chunks + 2 ? chunks + 2 : chunks_of_others;
    DIST_TRY(make_list(ring->slots, &ring->received));
    for (int i = 0; i < ring->slots; i++)
        DIST_TRY(dist_plan_allocate(plan, bytes, &ring->received[i]));
    for (int i = 0; i < (plan->choice.ring > 0 ? 2 : 1); i++)
        DIST_TRY(dist_plan_allocate(plan, plan->choice.ring > 0 ? bytes : whole, &ring->made[i]));
    DIST_TRY(dist_plan_allocate(plan, bytes, &ring->scratch));
    ring->messages = malloc(sizeof *ring->messages * 2 * (size_t)ranks);
    if (ring->messages == NULL) return dist_fail(TGL_NO_MEMORY, "no memory for messages");
    if (!plan->has_copies || plan->choice.ring == 0) return TGL_OK;
    DIST_TRY(make_list(ranks * chunks, &ring->staged));
    for (int i = 0; i < ranks * chunks; i++)
        if (i / chunks != plan->dist->transport.rank || is_padded(plan))
            DIST_TRY(dist_plan_allocate(
                plan, chunk_bytes(plan, &longest, dist_task_element(&plan->task, OPERAND_C)),
                &ring->staged[i]));
    return TGL_OK;
}

void dist_ring_free(tgl_dist_plan *plan)
{
    dist_ring *ring = &plan->ring;
    for (int i = 0; ring->received != NULL && i < ring->slots; i++)
        dist_plan_release(plan, ring->received[i]);
    for (int i = 0; ring->staged != NULL && i < plan->task.ranks * chunks_of(plan); i++)
        dist_plan_release(plan, ring->staged[i]);
    dist_plan_release(plan, ring->made[0]);
    dist_plan_release(plan, ring->made[1]);
    dist_plan_release(plan, ring->scratch);
    free(ring->received), free(ring->staged), free(ring->messages);
    *ring = (dist_ring){.slots = 0};
}

/* ---- Products -------------------------------------------------------------------------------- */

static void *at(const void *base, int64_t elements, size_t element)
{
    return base == NULL ? NULL : (char *)base + elements * (int64_t)element;
}

static void multiply(tgl_dist_plan *plan, dist_ring_call *call, const dist_product *product)
{
    const tgl_status status = dist_multiply(&plan->products, product);
    if (call->product == TGL_OK) call->product = status;
}

/* sum += part, for `lines` lines of `width` elements. */
static void add_part(const tgl_dist_plan *plan, dist_ring_call *call, void *sum, const void *part,
                     int64_t lines, int64_t width)
{
    const tgl_status status =
        dist_add(&plan->dist->transport, type_of_sums(plan), sum, width, part, width, lines, width);
    if (call->product == TGL_OK) call->product = status;
}

/* This rank's product alpha*A*B for the rows (or columns) [first, first + length) of C. The caller
 * sets C and D. */
static dist_product product_of(const tgl_dist_plan *plan, const dist_ring_call *call, int64_t first,
                               int64_t length)
{
    const dist_task *task = &plan->task;
    const bool by_rows = dist_ring_axis(task) == AXIS_M;
    const int operand = by_rows ? OPERAND_A : OPERAND_B;
    const dist_rect own = dist_rect_at(&task->spread[OPERAND_A], plan->dist->transport.rank, 0);
    dist_product p = {.problem = task->problem, .alpha = call->alpha, .A = call->A, .B = call->B};
    const int k_side = task->axis_of[OPERAND_A][DIST_OUTER] == AXIS_K ? DIST_OUTER : DIST_INNER;
    p.problem.k = own.window[k_side].end - own.window[k_side].begin;
    p.problem.lda = task->ld[OPERAND_A];
    p.problem.ldb = task->ld[OPERAND_B];
    *(by_rows ? &p.problem.m : &p.problem.n) = length;
    const bool is_outer = task->axis_of[operand][DIST_OUTER] == (by_rows ? AXIS_M : AXIS_N);
    const int64_t offset = is_outer ? first * task->ld[operand] : first;
    const void **from = by_rows ? &p.A : &p.B;
    *from = at(*from, offset, dist_task_element(task, operand));
    if (p.problem.k == 0) p.A = p.B = NULL;
    p.problem.type_c = type_of_sums(plan);
    p.problem.ldc = by_rows ? across(plan) : length;
    return p;
}

/* The first row, in this rank's memory of C, of the rows that this rank sums. 0 if the memory has
 * only the rank's shard. 0 also with a single product: a rank whose memory has all of C then sums
 * all of it. */
static int64_t first_row(const tgl_dist_plan *plan)
{
    return plan->choice.ring > 0 ? plan->first_row : 0;
}

/* Address of a chunk of this rank's shard in C. */
static void *own_chunk(const tgl_dist_plan *plan, const dist_ring_call *call, const chunk *c)
{
    const dist_task *task = &plan->task;
    const int64_t ld = task->ld[OPERAND_C];
    const int64_t line = first_row(plan) + (dist_ring_axis(task) == AXIS_M ? c->at : 0);
    const int64_t column = dist_ring_axis(task) == AXIS_M ? 0 : c->at;
    return at(call->C, line * ld + column, dist_task_element(task, OPERAND_C));
}

/* Address of the bias for a chunk of this rank's shard; NULL: no bias. */
static const void *bias_of(const tgl_dist_plan *plan, const dist_ring_call *call, const chunk *c)
{
    const dist_task *task = &plan->task;
    const tgl_epilogue *e = &task->epilogue;
    const tgl_type type = e->type_bias != 0 ? e->type_bias : task->type[OPERAND_C];
    if (e->bias == TGL_BIAS_NONE) return NULL;
    const bool is_along = (e->bias == TGL_BIAS_ROW) == (dist_ring_axis(task) == AXIS_M);
    const int64_t first = is_along ? first_row(plan) + c->at : 0;
    return at(call->bias, first, tgl_type_size(type));
}

/* received += beta*C, for a chunk of this rank's shard. */
static void add_own_c(tgl_dist_plan *plan, dist_ring_call *call, const chunk *c, void *received)
{
    const dist_task *task = &plan->task;
    dist_product p = product_of(plan, call, c->first, c->length);
    const int64_t ld = p.problem.ldc;
    p.problem.k = 0;
    p.beta = call->beta;
    p.problem.type_c = task->type[OPERAND_C];
    p.problem.ldc = task->ld[OPERAND_C];
    p.problem.type_d = type_of_sums(plan);
    p.problem.ldd = ld;
    p.C = own_chunk(plan, call, c);
    p.D = plan->ring.scratch;
    multiply(plan, call, &p);
    add_part(plan, call, received, plan->ring.scratch, p.problem.m, ld);
}

/* The product adds what was received, which has the layout of its C: as its residual if it may, and
 * the sums have 16 bits, because kernels of 16-bit results read a residual faster than C; else as
 * its C. */
static void add_received(const tgl_dist_plan *plan, dist_product *p, void *received,
                         bool may_be_residual)
{
    const bool is_residual = may_be_residual && sum_element(plan) == 2;
    if (is_residual) {
        p->residual = received;
    } else {
        p->C = received;
        p->beta = 1;
    }
}

static bool has_activation(const tgl_dist_plan *plan)
{
    const tgl_epilogue *e = &plan->task.epilogue;
    return e->size > 0 && e->activation != TGL_ACTIVATION_NONE;
}

/* C := activation(product + received + beta*C + bias) + residual, for a chunk of this rank's shard.
 * multiplies: whether to compute `product`, this rank's product, and add it; false if `received`
 * contains it already. residual: has the layout of `received`; NULL: none. */
static void finish_chunk(tgl_dist_plan *plan, dist_ring_call *call, const chunk *c, void *received,
                         bool multiplies, const void *residual)
{
    const dist_task *task = &plan->task;
    if (call->beta != 0) add_own_c(plan, call, c, received);
    dist_product p = product_of(plan, call, c->first, c->length);
    if (!multiplies) p.problem.k = 0;
    p.C = received;
    p.residual = residual;
    add_received(plan, &p, received, multiplies && residual == NULL && !has_activation(plan));
    p.problem.type_d = task->type[OPERAND_C];
    p.problem.ldd = task->ld[OPERAND_C];
    p.D = own_chunk(plan, call, c);
    p.has_epilogue = task->epilogue.size > 0;
    p.bias = bias_of(plan, call, c);
    multiply(plan, call, &p);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static tgl_status begin(tgl_dist_plan *plan, int count, void **group)
{
    tgl_dist *dist = plan->dist;
    *group = NULL;
    if (count == 0) return TGL_OK;
    return dist_check_link(
        dist, dist->transport.begin(dist->transport.state, plan->ring.messages, count, group));
}

static tgl_status wait(tgl_dist_plan *plan, void **group)
{
    tgl_dist *dist = plan->dist;
    void *begun = *group;
    *group = NULL;
    if (begun == NULL) return TGL_OK;
    return dist_check_link(dist, dist->transport.wait(dist->transport.state, begun));
}

static void add_message(tgl_dist_plan *plan, int *count, int rank, const void *send, void *receive,
                        size_t bytes)
{
    if (bytes > 0) plan->ring.messages[(*count)++] = (tgl_dist_message){rank, send, receive, bytes};
}

/* ---- Copies of C for all ranks --------------------------------------------------------------- */

/* *found := address of this rank's chunk of C with contiguous rows: in C itself or, if C is padded,
 * in a copy. */
static tgl_status find_tight_chunk(tgl_dist_plan *plan, const dist_ring_call *call,
                                   const chunk *own, int64_t index, const void **found)
{
    const tgl_dist_transport *t = &plan->dist->transport;
    const size_t element = dist_task_element(&plan->task, OPERAND_C);
    const size_t line = (size_t)across(plan) * element;
    *found = own_chunk(plan, call, own);
    if (!is_padded(plan) || own->length == 0) return TGL_OK;
    void *tight = plan->ring.staged[t->rank * chunks_of(plan) + index];
    DIST_TRY(dist_copy(t, tight, line, *found, (size_t)plan->task.ld[OPERAND_C] * element,
                       own->length, line));
    *found = tight;
    return TGL_OK;
}

/* Starts to send a chunk of this rank's shard of C to all ranks, and to receive theirs. */
static tgl_status begin_copies(tgl_dist_plan *plan, const dist_ring_call *call, int64_t index,
                               void **group)
{
    const tgl_dist_transport *t = &plan->dist->transport;
    const size_t element = dist_task_element(&plan->task, OPERAND_C);
    const chunk own = chunk_of(plan, t->rank, index);
    const void *sent;
    int count = 0;
    DIST_TRY(find_tight_chunk(plan, call, &own, index, &sent));
    for (int i = 1; i < t->ranks; i++) {
        const int to = (t->rank + i) % t->ranks, from = (t->rank + t->ranks - i) % t->ranks;
        const chunk other = chunk_of(plan, from, index);
        add_message(plan, &count, from, NULL, plan->ring.staged[from * chunks_of(plan) + index],
                    chunk_bytes(plan, &other, element));
        add_message(plan, &count, to, sent, NULL, chunk_bytes(plan, &own, element));
    }
    return begin(plan, count, group);
}

static tgl_status finish_copies(tgl_dist_plan *plan, const dist_ring_call *call, int64_t index,
                                void **group)
{
    const tgl_dist_transport *t = &plan->dist->transport;
    const size_t element = dist_task_element(&plan->task, OPERAND_C);
    const size_t line = (size_t)across(plan) * element;
    const int64_t ld = plan->task.ld[OPERAND_C];
    DIST_TRY(wait(plan, group));
    for (int rank = 0; rank < t->ranks; rank++) {
        const chunk other = chunk_of(plan, rank, index);
        if (rank == t->rank || other.length == 0) continue;
        DIST_TRY(dist_copy(t, at(call->C, other.first * ld, element), (size_t)ld * element,
                           plan->ring.staged[rank * chunks_of(plan) + index], line, other.length,
                           line));
    }
    return TGL_OK;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* Starts to send chunk t to the next rank, and to receive the previous rank's chunk t. t counts the
 * chunks in the order in which a rank computes them. made: address of this rank's chunk t. */
static tgl_status begin_chunk(tgl_dist_plan *plan, int64_t t, const void *made, void **group)
{
    const tgl_dist_transport *transport = &plan->dist->transport;
    const int ranks = transport->ranks, before = (transport->rank + ranks - 1) % ranks;
    const int step = (int)(t / plan->choice.ring) + 1;
    const int64_t index = t % plan->choice.ring;
    const size_t sum = sum_element(plan);
    const chunk sent = chunk_of(plan, (transport->rank + ranks - step) % ranks, index);
    const chunk received = chunk_of(plan, (before + ranks - step) % ranks, index);
    int count = 0;
    add_message(plan, &count, before, NULL, plan->ring.received[t % plan->ring.slots],
                chunk_bytes(plan, &received, sum));
    add_message(plan, &count, (transport->rank + 1) % ranks, made, NULL,
                chunk_bytes(plan, &sent, sum));
    return begin(plan, count, group);
}

/* Computes chunk t, which is then sent to the next rank. The chunk is this rank's product plus the
 * partial sum that the rank has received, if any. Returns the address of the chunk. */
static void *make_chunk(tgl_dist_plan *plan, dist_ring_call *call, int64_t t, const chunk *c)
{
    const dist_ring *ring = &plan->ring;
    const int64_t chunks = plan->choice.ring;
    dist_product p = product_of(plan, call, c->first, c->length);
    void *made = ring->made[t & 1];
    p.C = made;
    if (t >= chunks) add_received(plan, &p, ring->received[(t - chunks) % ring->slots], true);
    if (p.C != made) {
        p.problem.type_d = p.problem.type_c;
        p.problem.ldd = p.problem.ldc;
        p.D = made;
    }
    if (c->length > 0) multiply(plan, call, &p);
    return made;
}

/* Runs the ring. Before chunk t, waits for the messages of chunk t-2, because their buffers are
 * reused. With one chunk per shard, waits for the messages of chunk t-1 instead, because they bring
 * the sum that chunk t needs. */
static tgl_status run_chunks(tgl_dist_plan *plan, dist_ring_call *call)
{
    const int ranks = plan->task.ranks, rank = plan->dist->transport.rank;
    const int64_t chunks = plan->choice.ring, sent = (ranks - 1) * chunks,
                  late = chunks > 1 ? 2 : 1;
    void *group[2] = {NULL, NULL}, *copies[RING_CHUNKS_MAX] = {NULL};
    for (int64_t t = 0; t < sent + chunks; t++) {
        const int owner = (int)((rank + ranks - 1 - t / chunks) % ranks);
        const chunk c = chunk_of(plan, owner, t % chunks);
        if (t >= late) DIST_TRY(wait(plan, &group[(t - late) & 1]));
        if (t < sent) {
            const void *made = make_chunk(plan, call, t, &c);
            DIST_TRY(begin_chunk(plan, t, made, &group[t & 1]));
            continue;
        }
        if (c.length > 0)
            finish_chunk(plan, call, &c, plan->ring.received[(t - chunks) % plan->ring.slots], true,
                         NULL);
        if (plan->has_copies) DIST_TRY(begin_copies(plan, call, t - sent, &copies[t - sent]));
        if (plan->has_copies && t > sent)
            DIST_TRY(finish_copies(plan, call, t - sent - 1, &copies[t - sent - 1]));
    }
    return plan->has_copies ? finish_copies(plan, call, chunks - 1, &copies[chunks - 1]) : TGL_OK;
}

/* Computes the single product into ring->made[0]. It is stored like a row-major C without padding
 * or, if shards are columns, as one such matrix per shard. */
static void make_whole(tgl_dist_plan *plan, dist_ring_call *call)
{
    const size_t sum = sum_element(plan);
    const bool by_rows = dist_ring_axis(&plan->task) == AXIS_M;
    for (int rank = 0; rank < (by_rows ? 1 : plan->task.ranks); rank++) {
        chunk c = {.length = plan->task.problem.m};
        if (!by_rows) c = chunk_of(plan, rank, 0);
        dist_product p = product_of(plan, call, c.first, c.length);
        p.C = at(plan->ring.made[0], c.first * across(plan), sum);
        multiply(plan, call, &p);
    }
}

/* The part of C that a rank sums: its shard, or all of C if each rank has all of C. */
static chunk summed_by(const tgl_dist_plan *plan, int rank)
{
    const chunk all = {.length = plan->task.problem.m};
    return plan->has_copies ? all : chunk_of(plan, rank, 0);
}

/* Sends to each rank its part of this rank's product, and receives this rank's part of the other
 * ranks' products. */
static tgl_status exchange_parts(tgl_dist_plan *plan)
{
    const tgl_dist_transport *t = &plan->dist->transport;
    const size_t sum = sum_element(plan);
    const chunk own = summed_by(plan, t->rank);
    int count = 0;
    for (int i = 1; i < t->ranks; i++) {
        const int to = (t->rank + i) % t->ranks, from = (t->rank + t->ranks - i) % t->ranks;
        const chunk other = summed_by(plan, to);
        add_message(plan, &count, from, NULL, plan->ring.received[from - (from > t->rank)],
                    chunk_bytes(plan, &own, sum));
        add_message(plan, &count, to, at(plan->ring.made[0], other.first * across(plan), sum), NULL,
                    chunk_bytes(plan, &other, sum));
    }
    return count > 0 ? dist_exchange(plan->dist, plan->ring.messages, count) : TGL_OK;
}

/* Computes the single product and exchanges its parts. They are added in the order of the ranks, so
 * that all copies of C are equal to the last bit. */
static tgl_status run_whole(tgl_dist_plan *plan, dist_ring_call *call)
{
    const tgl_dist_transport *t = &plan->dist->transport;
    const dist_task *task = &plan->task;
    const chunk own = summed_by(plan, t->rank);
    make_whole(plan, call);
    DIST_TRY(exchange_parts(plan));
    if (own.length == 0) return TGL_OK;
    const bool by_rows = dist_ring_axis(task) == AXIS_M;
    const int64_t width = by_rows ? across(plan) : own.length;
    const int64_t lines = by_rows ? own.length : across(plan);
    /* The last part, which finish_chunk() adds. NULL if there is an activation, before
     * which all parts must be added. */
    const void *residual = NULL;
    void *sum = NULL;
    for (int rank = 0; rank < t->ranks; rank++) {
        void *part = rank == t->rank
                         ? at(plan->ring.made[0], own.first * across(plan), sum_element(plan))
                         : plan->ring.received[rank - (rank > t->rank)];
        if (rank == 0)
            sum = part;
        else if (rank == t->ranks - 1 && !has_activation(plan))
            residual = part;
        else
            add_part(plan, call, sum, part, lines, width);
    }
    finish_chunk(plan, call, &own, sum, false, residual);
    return TGL_OK;
}

tgl_status dist_ring_run(tgl_dist_plan *plan, dist_ring_call *call)
{
    return plan->choice.ring > 0 ? run_chunks(plan, call) : run_whole(plan, call);
}
