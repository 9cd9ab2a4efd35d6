/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cuda.so (see fake_cuda.h): graphs and user objects. Executable graphs, clones and the
 * graphs of child nodes are copies of a graph.
 */
#include "fake_state.h"

#include <stdlib.h>
#include <string.h>

enum { NOT_SUPPORTED = 801, MOVE = 1, NO_DESTRUCTOR_SYNC = 1 };

struct CUuserObject_st {
    void *data;
    void (*destroy)(void *);
    atomic_int references;
    CUuserObject next; /* the next object in the list `late` */
};

struct CUgraph_st {
    fake_node *nodes;
    int count;
    CUuserObject *objects; /* user objects to which the graph has a reference */
    int object_count;
    bool is_copy;        /* whether it is a copy, which does not own the memory of its nodes */
    bool has_executable; /* whether a graph with memory nodes has an executable */
    struct CUevent_st launched; /* the latest launch, for which the next one waits */
};

CUgraph fake_new_graph(void)
{
    return fake_keep(calloc(1, sizeof(struct CUgraph_st)));
}

void fake_add_node(CUgraph graph, const fake_node *node)
{
    graph->nodes = realloc(graph->nodes, (size_t)(graph->count + 1) * sizeof *graph->nodes);
    graph->nodes[graph->count++] = *node;
}

static void add_object(CUgraph graph, CUuserObject object)
{
    const size_t bytes = (size_t)(graph->object_count + 1) * sizeof(CUuserObject);
    graph->objects = realloc(graph->objects, bytes);
    graph->objects[graph->object_count++] = object;
}

/* ---- User objects ---------------------------------------------------------------------------- */

static _Thread_local bool is_in_destructor;
static CUuserObject late; /* list of objects without references that are not destroyed yet; guarded
                             by fake_lock */

bool fake_is_in_destructor(void)
{
    return is_in_destructor;
}

static void destroy_object(CUuserObject object)
{
    is_in_destructor = true;
    object->destroy(object->data);
    is_in_destructor = false;
    fake_drop(object);
}

int fake_run_destructors(void)
{
    int count = 0;
    pthread_mutex_lock(&fake_lock);
    CUuserObject object = late;
    late = NULL;
    pthread_mutex_unlock(&fake_lock);
    for (CUuserObject next; object != NULL; object = next, count++) {
        next = object->next;
        destroy_object(object);
    }
    return count;
}

static void release(CUuserObject object, int references)
{
    if (atomic_fetch_sub(&object->references, references) != references) return;
    if (fake_setting("FAKE_CUDA_LATE", 0) == 0) {
        destroy_object(object);
        return;
    }
    pthread_mutex_lock(&fake_lock);
    object->next = late;
    late = object;
    pthread_mutex_unlock(&fake_lock);
}

#ifndef FAKE_CUDA_OLD
FAKE_CUDA_API CUresult cuUserObjectCreate(CUuserObject *object, void *data, void (*destroy)(void *),
                                          unsigned references, unsigned flags)
{
    BEGIN();
    if (references == 0 || flags != NO_DESTRUCTOR_SYNC) return INVALID_VALUE;
    *object = fake_keep(calloc(1, sizeof **object));
    (*object)->data = data;
    (*object)->destroy = destroy;
    (*object)->references = (int)references;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuUserObjectRelease(CUuserObject object, unsigned references)
{
    BEGIN();
    release(object, (int)references);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object,
                                               unsigned references, unsigned flags)
{
    BEGIN();
    if (references != 1 || flags > MOVE) return INVALID_VALUE;
    if (flags != MOVE) object->references++;
    add_object(graph, object);
    return CUDA_SUCCESS;
}
#endif

/* ---- Copies ---------------------------------------------------------------------------------- */

static bool has_memory_nodes(CUgraph graph)
{
    for (int i = 0; i < graph->count; i++)
        if (graph->nodes[i].kind == NODE_ALLOC) return true;
    return false;
}

static CUgraph copy(CUgraph graph)
{
    CUgraph made = fake_new_graph();
    made->is_copy = true;
    for (int i = 0; i < graph->count; i++) {
        fake_node node = graph->nodes[i];
        if (node.kind == NODE_GRAPH) node.graph = copy(node.graph);
        fake_add_node(made, &node);
    }
    for (int i = 0; i < graph->object_count; i++) {
        graph->objects[i]->references++;
        add_object(made, graph->objects[i]);
    }
    return made;
}

FAKE_CUDA_API CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    BEGIN();
    *graph = fake_new_graph();
    return flags == 0 ? CUDA_SUCCESS : INVALID_VALUE;
}

FAKE_CUDA_API CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
    BEGIN();
    if (has_memory_nodes(graph)) return NOT_SUPPORTED;
    *clone = copy(graph);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuGraphAddChildGraphNode(void **node, CUgraph graph,
                                                const void *dependencies, size_t dependency_count,
                                                CUgraph child)
{
    BEGIN();
    *node = NULL;
    if (has_memory_nodes(child)) return NOT_SUPPORTED;
    if (dependencies != NULL || dependency_count != 0) return INVALID_VALUE;
    fake_add_node(graph, &(fake_node){.kind = NODE_GRAPH, .graph = copy(child)});
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuGraphInstantiateWithFlags(CUgraph *executable, CUgraph graph,
                                                   unsigned long long flags)
{
    BEGIN();
    if (flags != 0) return INVALID_VALUE;
    if (has_memory_nodes(graph)) {
        if (graph->has_executable) return NOT_SUPPORTED;
        graph->has_executable = true;
    }
    *executable = copy(graph);
    return CUDA_SUCCESS;
}

/* ---- Launches and the end -------------------------------------------------------------------- */

CUresult fake_run_graph(CUgraph graph, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < graph->count && result == CUDA_SUCCESS; i++)
        result = fake_execute(&graph->nodes[i], stream);
    return result;
}

/* Launches an executable graph. A graph is accepted too, in place of its first executable. */
FAKE_CUDA_API CUresult cuGraphLaunch(CUgraph graph, CUstream stream)
{
    CUgraph other;
    BEGIN();
    CUstream own = fake_stream(stream);
    if (own != NULL) fake_order_wait(own, &graph->launched);
    CUresult result = fake_give_work(__func__, &stream, &other);
    if (result != CUDA_SUCCESS) return result;
    result = fake_run_graph(graph, stream);
    fake_order_record(&graph->launched, stream);
    return result;
}

static void destroy(CUgraph graph)
{
    for (int i = 0; i < graph->count; i++) {
        if (graph->nodes[i].kind == NODE_GRAPH) destroy(graph->nodes[i].graph);
        if (graph->nodes[i].kind != NODE_ALLOC || graph->is_copy) continue;
        block *it = (block *)((char *)graph->nodes[i].memory - BLOCK_ROOM);
        it->context->used -= it->bytes;
        fake_drop(it);
    }
    for (int i = 0; i < graph->object_count; i++)
        release(graph->objects[i], 1);
    free(graph->objects);
    free(graph->nodes);
    fake_drop(graph);
}

/* Destroys a graph or an executable graph. */
FAKE_CUDA_API CUresult cuGraphDestroy(CUgraph graph)
{
    BEGIN();
    destroy(graph);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API int fake_cuda_run_destructors(void)
{
    return fake_run_destructors();
}

FAKE_CUDA_API int fake_cuda_memory_nodes(CUgraph graph)
{
    int count = 0;
    for (int i = 0; i < graph->count; i++)
        count += graph->nodes[i].kind == NODE_ALLOC;
    return count;
}
