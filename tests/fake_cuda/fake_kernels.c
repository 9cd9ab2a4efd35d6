/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cuda.so (see fake_cuda.h): launches, the products that kernels compute, and tensor maps.
 */
#include "elements.h"
#include "fake_state.h"

#include "../../kernels/lib/bundle_table.h"

#include <stdint.h>
#include <string.h>

/* ---- Kernels --------------------------------------------------------------------------------- */

/* The parameters of the ladder's kernels. */
typedef struct ladder_args {
    int m, n, k;
    float alpha;
    const float *A;
    long long lda;
    const float *B;
    long long ldb;
    float beta;
    float *C;
    long long ldc;
} ladder_args;

/* The parameters of the ladder's kernel with split-K. */
typedef struct split_args {
    ladder_args common;
    int splits, k_chunk;
    void *workspace, *counters;
} split_args;

static void run_ladder(const ladder_args *args)
{
    for (long long i = 0; i < args->m; i++)
        for (long long j = 0; j < args->n; j++) {
            float sum = 0, *c = &args->C[i * args->ldc + j];
            for (long long p = 0; p < args->k; p++)
                sum += args->A[i * args->lda + p] * args->B[p * args->ldb + j];
            *c = args->beta == 0 ? args->alpha * sum : args->alpha * sum + args->beta * *c;
        }
}

/* The types and transposes that a kernel was compiled for. */
typedef struct gemm_kind {
    tgl_type a, b, c, d, sum;
    bool trans_a, trans_b;
} gemm_kind;

static tgl_type type_of(CUfunction function, int macro)
{
    return function->macros[macro] != 0 ? (tgl_type)function->macros[macro] : TGL_F32;
}

/* Whether the kernel is skinny.cu or gemv.cu, whose macros describe a large and a small operand
 * instead of A and B. */
static bool has_large_operand(CUfunction function)
{
    return strcmp(function->symbol, "sgemm_skinny") == 0 ||
           strcmp(function->symbol, "sgemm_gemv") == 0;
}

static gemm_kind kind_of(CUfunction function, const struct tgl_gemm_args *args)
{
    const int *macros = function->macros;
    gemm_kind kind = {.a = type_of(function, FAKE_TYPE_A),
                      .b = type_of(function, FAKE_TYPE_B),
                      .c = type_of(function, FAKE_TYPE_C),
                      .d = type_of(function, FAKE_TYPE_D),
                      .trans_a = macros[FAKE_TRANS_A],
                      .trans_b = macros[FAKE_TRANS_B]};
    kind.sum = kind.a == TGL_F64 ? TGL_F64 : TGL_F32;
    if (has_large_operand(function)) {
        const bool a_is_k_major = macros[FAKE_BIG_A] ? macros[FAKE_ALONG_K] : args->small_k_major;
        kind.trans_a = !a_is_k_major;
        kind.trans_b = macros[FAKE_BIG_A] ? args->small_k_major : macros[FAKE_ALONG_K];
    }
    return kind;
}

static size_t size_of(tgl_type type)
{
    return type == TGL_F64 ? 8 : type == TGL_F32 ? 4 : 2;
}

/* The address of matrix `index` of a batch, given by an array of pointers or by a stride. */
static void *matrix_at(const void *const *array, const void *first, int index, long long stride,
                       tgl_type type)
{
    return array != NULL ? (void *)array[index]
                         : (char *)first + index * stride * (long long)size_of(type);
}

/* Records that the kernel accesses a matrix with leading dimension `ld`. */
static void access_matrix(const void *matrix, tgl_type type, long long rows, long long columns,
                          long long ld, bool writes, CUstream stream)
{
    if (rows > 0 && columns > 0)
        fake_access(matrix, (size_t)((rows - 1) * ld + columns) * size_of(type), writes, stream);
}

static void access_factor(const void *matrix, tgl_type type, bool trans, long long rows,
                          long long columns, long long ld, CUstream stream)
{
    access_matrix(matrix, type, trans ? columns : rows, trans ? rows : columns, ld, false, stream);
}

/* A row of op(A) or a column of op(B). */
typedef struct gemm_line {
    const void *matrix;
    tgl_type type;
    long long first, step;
} gemm_line;

/* The sum of products of two lines. Sums of F32 are rounded after each product. */
static double dot(const gemm_line *a, const gemm_line *b, int count, bool is_f64)
{
    double sum = 0;
    if (a->type == TGL_F32) { /* faster, for most tests */
        const float *x = (const float *)a->matrix + a->first;
        const float *y = (const float *)b->matrix + b->first;
        float sum_f32 = 0;
        for (int p = 0; p < count; p++)
            sum_f32 += x[p * a->step] * y[p * b->step];
        return (double)sum_f32;
    }
    for (int p = 0; p < count; p++) {
        sum += element_get(a->type, a->matrix, a->first + p * a->step) *
               element_get(b->type, b->matrix, b->first + p * b->step);
        if (!is_f64) sum = (double)(float)sum;
    }
    return sum;
}

static double sum_at(const gemm_kind *kind, const struct tgl_gemm_args *args, const void *A,
                     const void *B, long long i, long long j)
{
    const gemm_line a = {A, kind->a, kind->trans_a ? i : i * args->lda,
                         kind->trans_a ? args->lda : 1};
    const gemm_line b = {B, kind->b, kind->trans_b ? j * args->ldb : j,
                         kind->trans_b ? 1 : args->ldb};
    return dot(&a, &b, args->k, kind->sum == TGL_F64);
}

/* Computes the batch of a launch of a production kernel, with the types and transposes that the
 * kernel was compiled for. Of epilogues it computes only a bias by column, relu and a residual. */
static void run_gemm(CUfunction function, const struct tgl_gemm_args *args, CUstream stream)
{
    const gemm_kind kind = kind_of(function, args);
    const bool has_c = function->macros[FAKE_SEPARATE_D];
    const bool on_device = function->macros[FAKE_DEVICE_SCALARS];
    const double alpha = element_get(kind.sum, on_device ? args->alpha_at : &args->alpha, 0);
    const void *beta_at = on_device ? args->beta_at : &args->beta;
    const double beta = beta_at != NULL ? element_get(kind.sum, beta_at, 0) : 0;
    const double wrong = (double)fake_setting("FAKE_CUDA_WRONG", 0);
    const tgl_type type_residual = type_of(function, FAKE_TYPE_RESIDUAL);
    for (int b = 0; b < args->batch; b++) {
        const void *A = matrix_at(args->A_array, args->A, b, args->stride_a, kind.a);
        const void *B = matrix_at(args->B_array, args->B, b, args->stride_b, kind.b);
        void *D = matrix_at((const void *const *)args->D_array, args->D, b, args->stride_d, kind.d);
        const void *C = has_c ? matrix_at(args->C_array, args->C, b, args->stride_c, kind.c) : D;
        const tgl_type type_c = has_c ? kind.c : kind.d;
        const long long ldc = has_c ? args->ldc : args->ldd;
        if (alpha != 0) {
            access_factor(A, kind.a, kind.trans_a, args->m, args->k, args->lda, stream);
            access_factor(B, kind.b, kind.trans_b, args->k, args->n, args->ldb, stream);
        }
        if (beta != 0) access_matrix(C, type_c, args->m, args->n, ldc, false, stream);
        if (args->residual)
            access_matrix((const char *)args->residual +
                              b * args->stride_residual * (long long)size_of(type_residual),
                          type_residual, args->m, args->n, args->ld_residual, false, stream);
        access_matrix(D, kind.d, args->m, args->n, args->ldd, true, stream);
        for (long long i = 0; i < args->m; i++)
            for (long long j = 0; j < args->n; j++) {
                double value = wrong;
                if (alpha != 0 && args->k > 0) value += alpha * sum_at(&kind, args, A, B, i, j);
                if (beta != 0) value += beta * element_get(type_c, C, i * ldc + j);
                if (args->bias) value += element_get(kind.d, args->bias, b * args->stride_bias + j);
                if (function->macros[FAKE_ACTIVATION] == 1 && value < 0) value = 0;
                if (args->residual)
                    value += element_get(type_residual, args->residual,
                                         b * args->stride_residual + i * args->ld_residual + j);
                element_set(kind.d, D, i * args->ldd + j, value);
            }
    }
}

static bool is_called(CUfunction function, const char *symbol)
{
    return strcmp(function->symbol, symbol) == 0;
}

/* Whether the kernel takes struct tgl_gemm_args and two tensor maps. The fake reads the operands
 * through the arguments, not through the maps. */
static bool is_gemm_with_maps(CUfunction function)
{
    return is_called(function, "gemm_accurate") || is_called(function, "gemm_dmma");
}

static bool is_gemm(CUfunction function)
{
    return is_gemm_with_maps(function) || is_called(function, "sgemm_simt") ||
           is_called(function, "sgemm_skinny") || is_called(function, "sgemm_gemv") ||
           is_called(function, "sgemm_small_batch") || is_called(function, "gemm_batch_mma") ||
           is_called(function, "gemm_mma");
}

/* Whether the kernel takes struct tgl_bundle_args. */
static bool is_bundle(CUfunction function)
{
    return is_gemm(function) && function->macros[FAKE_BUNDLE];
}

/* Whether the kernel has the parameters of the ladder's kernels. The first exercise of `tegula
 * learn` has them too. */
static bool is_of_ladder(CUfunction function)
{
    return is_called(function, "coalesce") ||
           (strncmp(function->symbol, "sgemm_", 6) == 0 && !is_gemm(function));
}

/* Whether the kernel has the parameters (struct tgl_tensor_map, long long). The hardware requires
 * an alignment of the map that the beginning of the parameters does not have. */
enum { MAP_BYTES = 128, MAP_AT = 48 };
static bool takes_a_map(CUfunction function)
{
    return is_called(function, "mapped");
}

/* The size of the kernel's parameters in bytes; 0: unknown. */
static size_t parameter_bytes(CUfunction function)
{
    return is_bundle(function)                    ? sizeof(struct tgl_bundle_args)
           : is_gemm(function)                    ? sizeof(struct tgl_gemm_args)
           : is_called(function, "sgemm_split_k") ? sizeof(split_args)
           : is_of_ladder(function)               ? sizeof(ladder_args)
                                                  : 0;
}

/* The number of tiles of D that are computed with split-K; each has counters. */
static long long split_tiles(CUfunction function, const struct tgl_gemm_args *args)
{
    if (!is_called(function, "sgemm_simt") || function->macros[FAKE_BM] < 1 ||
        function->macros[FAKE_BN] < 1)
        return 0;
    const long long tiles_m = (args->m + function->macros[FAKE_BM] - 1) / function->macros[FAKE_BM];
    const long long tiles_n = (args->n + function->macros[FAKE_BN] - 1) / function->macros[FAKE_BN];
    return tiles_m * tiles_n - args->tiles_whole;
}

/* Whether the grid has exactly the tiles of all products of the bundle. */
static bool has_grid_of_bundle(const fake_node *node)
{
    struct tgl_bundle_args args;
    const unsigned *grid = node->how.grid;
    memcpy(&args, node->arguments, sizeof args);
    const int bm = node->function->macros[FAKE_BM], bn = node->function->macros[FAKE_BN];
    int tiles = 0;
    for (int i = 0; i < args.bundle.count; i++) {
        const struct tgl_bundle_member *x = &args.bundle.members[i];
        if (x->first_tile != tiles || x->m < 1 || x->n < 1) return false;
        tiles += (x->m + bm - 1) / bm * ((x->n + bn - 1) / bn);
    }
    return grid[0] == (unsigned)tiles && grid[1] == 1 && grid[2] == 1;
}

/* Whether the grid has the number of blocks that the kernel needs for its arguments, for
 * gemm/simt.cu also along x. run_gemm() itself computes the whole batch and all of D for any grid.
 */
static bool has_expected_grid(const fake_node *node)
{
    CUfunction function = node->function;
    const fake_cuda_launch *l = &node->how;
    const struct tgl_gemm_args *args = &l->args;
    if (is_bundle(function)) return has_grid_of_bundle(node);
    const bool has_loop = is_called(function, "sgemm_small_batch") ||
                          is_called(function, "gemm_batch_mma") || is_gemm_with_maps(function);
    const int batch = has_loop ? 1 : args->batch;
    if (l->grid[1] != 1 || l->grid[2] != (unsigned)batch) return false;
    if (!is_called(function, "sgemm_simt")) return true;
    if (function->macros[FAKE_BM] < 1 || function->macros[FAKE_BN] < 1 || args->splits < 1)
        return false;
    const long long whole = args->tiles_whole, split = split_tiles(function, args);
    if (whole < 0 || split < 0 || args->cluster != (int)l->cluster) return false;
    return l->grid[0] == whole + split * args->splits && whole % args->cluster == 0 &&
           (split == 0 || args->splits % args->cluster == 0);
}

static void check_counters(CUfunction function, const struct tgl_gemm_args *args)
{
    const bool is_dirty = fake_setting("FAKE_CUDA_DIRTY", 0) != 0;
    if (args->counters == NULL || args->splits <= args->cluster) return;
    const long long count = split_tiles(function, args) * args->batch * args->cluster;
    for (long long i = 0; i < count; i++) {
        if (args->counters[i] != 0) {
            fake_misuse("counter %lld is %u when a kernel begins", i, args->counters[i]);
            return;
        }
        args->counters[i] = is_dirty;
    }
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* A ring buffer of this thread's launches; the latest one is launched[latest]. */
static _Thread_local fake_cuda_launch launched[FAKE_CUDA_LAUNCHES];
static _Thread_local int latest;
static atomic_int launches;

static void remember(const fake_cuda_launch *how)
{
    latest = (latest + 1) % FAKE_CUDA_LAUNCHES;
    launched[latest] = *how;
    atomic_fetch_add(&launches, 1);
}

/* Counts a misuse if a launch uses memory that was allocated in stream order in another stream or
 * graph. */
static void check_pointers(const fake_node *node, CUstream stream)
{
    pthread_mutex_lock(&fake_lock);
    for (size_t i = 0; i + sizeof(void *) <= node->argument_bytes; i += sizeof(void *)) {
        const void *pointer;
        memcpy(&pointer, node->arguments + i, sizeof pointer);
        block *it = fake_block_of(pointer);
        if (it == NULL || it->stream == NULL) continue;
        fake_raise(&it->latest_work, stream->latest_work);
        if (node->how.is_captured != it->is_of_graph)
            fake_misuse("a launch %s uses memory that is%s of a graph",
                        node->how.is_captured ? "in a graph" : "in no graph",
                        it->is_of_graph ? "" : " not");
        else if (!it->is_of_graph && it->stream_id != stream->id)
            fake_misuse("a launch on stream %d uses memory of stream %d", (int)stream->id,
                        (int)it->stream_id);
    }
    pthread_mutex_unlock(&fake_lock);
}

static void run_bundle(const fake_node *node, CUstream stream)
{
    struct tgl_bundle_args args;
    memcpy(&args, node->arguments, sizeof args);
    for (int i = 0; i < args.bundle.count; i++) {
        const struct tgl_bundle_member *x = &args.bundle.members[i];
        struct tgl_gemm_args own = args.args;
        own.A = x->A, own.B = x->B, own.D = x->D;
        own.lda = x->lda, own.ldb = x->ldb, own.ldd = x->ldd;
        own.m = x->m, own.n = x->n, own.k = x->k;
        own.alpha = x->alpha, own.beta = x->beta;
        own.batch = 1;
        run_gemm(node->function, &own, stream);
    }
}

static void run_kernel(const fake_node *node, CUstream stream)
{
    CUfunction function = node->function;
    fake_raise(&function->module->latest_work, stream->latest_work);
    if (is_bundle(function)) {
        run_bundle(node, stream);
    } else if (is_gemm(function)) {
        struct tgl_gemm_args args;
        memcpy(&args, node->arguments, sizeof args);
        check_counters(function, &args);
        run_gemm(function, &args, stream);
    } else if (is_of_ladder(function)) {
        ladder_args args;
        memcpy(&args, node->arguments, sizeof args);
        run_ladder(&args);
    }
}

CUresult fake_execute(const fake_node *node, CUstream stream)
{
    switch (node->kind) {
    case NODE_LAUNCH:
        run_kernel(node, stream);
        break;
    case NODE_SET:
        memset(node->memory, node->value, node->bytes);
        break;
    case NODE_ALLOC: /* the content is undefined */
        memset(node->memory, 0x5a, node->bytes);
        break;
    case NODE_FREE:
        break;
    case NODE_GRAPH:
        return fake_run_graph(node->graph, stream);
    }
    return CUDA_SUCCESS;
}

/* Reads the arguments: one block of bytes or, for a kernel with a map, one pointer per parameter.
 * The arguments of the kernels that measure rates are ignored. */
static CUresult read_arguments(fake_node *node, void **arguments, void **extra)
{
    const size_t expected = parameter_bytes(node->function);
    if (takes_a_map(node->function)) {
        if (arguments == NULL || extra != NULL) return INVALID_VALUE;
        memcpy(node->arguments, arguments[0], MAP_BYTES);
        memcpy(node->arguments + MAP_BYTES, arguments[1], sizeof(long long));
        node->argument_bytes = MAP_BYTES + sizeof(long long);
        return CUDA_SUCCESS;
    }
    if (is_gemm_with_maps(node->function)) {
        if (arguments == NULL || extra != NULL) return INVALID_VALUE;
        memcpy(node->arguments, arguments[0], expected);
        node->argument_bytes = expected;
        return CUDA_SUCCESS;
    }
    if (extra == NULL) return arguments != NULL && expected == 0 ? CUDA_SUCCESS : INVALID_VALUE;
    if (arguments != NULL || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER ||
        extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE || extra[4] != CU_LAUNCH_PARAM_END)
        return INVALID_VALUE;
    node->argument_bytes = *(const size_t *)extra[3];
    if (node->argument_bytes > sizeof node->arguments) return INVALID_VALUE;
    if (expected > 0 && node->argument_bytes > expected) return OUT_OF_RESOURCES;
    if (expected > node->argument_bytes) fake_misuse("a launch has too few bytes of arguments");
    memcpy(node->arguments, extra[1], node->argument_bytes);
    return CUDA_SUCCESS;
}

static bool is_legal(const fake_node *node)
{
    enum { SHARED_FOR_ALL = 48 * 1024 };
    const unsigned *grid = node->how.grid, *threads = node->block, *cluster = &node->how.cluster;
    const int shared = (int)node->how.dynamic_shared, fixed = fake_setting("FAKE_CUDA_SHARED", 0);
    return grid[0] > 0 && grid[1] > 0 && grid[1] <= 65535 && grid[2] > 0 && grid[2] <= 65535 &&
           threads[0] > 0 && threads[0] <= 1024 && threads[1] == 1 && threads[2] == 1 &&
           *cluster > 0 && *cluster <= 8 && grid[0] % *cluster == 0 &&
           (fixed + shared <= SHARED_FOR_ALL || shared <= node->function->dynamic_shared);
}

FAKE_CUDA_API _Atomic uint64_t fake_device_ns;

static void pass_time(const fake_node *node)
{
    const long us = fake_setting("FAKE_CUDA_US", 0), fast = fake_setting("FAKE_CUDA_FAST", 0);
    const bool is_fast = fast > 0 && node->function->macros[FAKE_BM] == fast;
    const uint64_t warm = 1000 * (uint64_t)fake_setting("FAKE_CUDA_COLD", 0);
    const uint64_t unit = fake_device_ns < warm ? 1200 : 1000;
    atomic_fetch_add(&fake_device_ns, (uint64_t)us * (is_fast ? unit / 10 : unit));
}

static CUresult launch(fake_node *node, void **arguments, void **extra, CUstream stream)
{
    CUgraph graph;
    if (node->function->module->context != fake_current()) return INVALID_HANDLE;
    CUresult result = read_arguments(node, arguments, extra);
    if (result != CUDA_SUCCESS) return result;
    result = fake_give_work("a launch", &stream, &graph);
    if (result != CUDA_SUCCESS) return result;
    node->how.is_captured = graph != NULL;
    if (is_gemm(node->function)) memcpy(&node->how.args, node->arguments, sizeof node->how.args);
    memcpy(node->how.bytes, node->arguments, sizeof node->how.bytes);
    remember(&node->how);
    if (!is_legal(node) || (is_gemm(node->function) && !has_expected_grid(node)))
        return INVALID_VALUE;
    check_pointers(node, stream);
    pass_time(node);
    if (graph == NULL) return fake_execute(node, stream);
    fake_add_node(graph, node);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared, CUstream stream,
                                      void **arguments, void **extra)
{
    fake_node node = {
        .kind = NODE_LAUNCH,
        .function = function,
        .how = {.grid = {grid_x, grid_y, grid_z}, .dynamic_shared = shared, .cluster = 1},
        .block = {block_x, block_y, block_z},
    };
    BEGIN();
    return launch(&node, arguments, extra, stream);
}

/* Reads the launch attributes. False: an attribute is unknown. */
static bool read_attributes(const CUlaunchConfig *config, fake_cuda_launch *how)
{
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const CUlaunchAttribute *attribute = &config->attributes[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            how->cluster = attribute->value.cluster[0];
            if (attribute->value.cluster[1] != 1 || attribute->value.cluster[2] != 1) return false;
        } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            how->overlaps = attribute->value.allows_overlap;
        } else {
            return false;
        }
    }
    return true;
}

/* Launches a kernel with attributes. The checks are those of cuLaunchKernel(). */
FAKE_CUDA_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                        void **arguments, void **extra)
{
    const unsigned *grid = config->grid, *threads = config->block;
    fake_node node = {
        .kind = NODE_LAUNCH,
        .function = function,
        .how = {.grid = {grid[0], grid[1], grid[2]},
                .dynamic_shared = config->dynamic_shared,
                .cluster = 1},
        .block = {threads[0], threads[1], threads[2]},
    };
    BEGIN();
    if (!read_attributes(config, &node.how)) return INVALID_VALUE;
    const CUresult result = fake_begin("cuLaunchKernel");
    return result == CUDA_SUCCESS ? launch(&node, arguments, extra, config->stream) : result;
}

/* ---- Occupancy and parameters ---------------------------------------------------------------- */

FAKE_CUDA_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                                   int threads, size_t shared)
{
    (void)function, (void)shared;
    BEGIN();
    *blocks = 2048 / threads;
    return CUDA_SUCCESS;
}

/* *clusters := the number of clusters that fit on the four SMs of the fake device. */
FAKE_CUDA_API CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                                    const CUlaunchConfig *config)
{
    fake_cuda_launch how = {.cluster = 1};
    (void)function;
    BEGIN();
    if (!read_attributes(config, &how) || config->grid[0] % how.cluster != 0) return INVALID_VALUE;
    *clusters = 4 * (int)(2048 / config->block[0] / how.cluster);
    return CUDA_SUCCESS;
}

#ifndef FAKE_CUDA_OLD
FAKE_CUDA_API CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset,
                                          size_t *size)
{
    BEGIN();
    if (takes_a_map(function) && index < 2) {
        *offset = index == 0 ? MAP_AT : MAP_AT + MAP_BYTES;
        *size = index == 0 ? MAP_BYTES : sizeof(long long);
        return CUDA_SUCCESS;
    }
    if (parameter_bytes(function) == 0) return INVALID_VALUE;
    if (is_gemm_with_maps(function) && index > 0) {
        *offset = MAP_AT + sizeof(struct tgl_gemm_args) + (index - 1) * MAP_BYTES;
        *size = MAP_BYTES;
        return CUDA_SUCCESS;
    }
    *offset = 0; /* only the end of the last parameter is known */
    *size = parameter_bytes(function);
    return CUDA_SUCCESS;
}

/* ---- Tensor maps: they contain only the address; their number is counted --------------------- */

static atomic_int encoded;

FAKE_CUDA_API CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, unsigned rank,
                                              void *address, const uint64_t *size,
                                              const uint64_t *stride, const unsigned *box,
                                              const unsigned *element_stride, int interleave,
                                              int swizzle, int promotion, int out_of_bounds)
{
    (void)type, (void)promotion;
    BEGIN();
    if ((uintptr_t)map % 64 != 0 || (uintptr_t)address % 16 != 0 || rank < 1 || rank > 5 ||
        interleave != 0 || swizzle < 0 || swizzle > 3 || out_of_bounds != 0)
        return INVALID_VALUE;
    for (unsigned i = 0; i < rank; i++)
        if (size[i] == 0 || box[i] < 1 || box[i] > 256 || element_stride[i] != 1 ||
            (i + 1 < rank && stride[i] % 16 != 0))
            return INVALID_VALUE;
    memset(map, 0, sizeof *map);
    memcpy(map->bytes, &address, sizeof address);
    encoded++;
    return CUDA_SUCCESS;
}
#else
static atomic_int encoded;
#endif

/* ---- For the tests --------------------------------------------------------------------------- */

fake_cuda_launched_function fake_cuda_launched;
fake_number_function fake_cuda_encoded, fake_cuda_launches;

FAKE_CUDA_API fake_cuda_launch fake_cuda_launched(int back)
{
    return launched[(latest + FAKE_CUDA_LAUNCHES - back) % FAKE_CUDA_LAUNCHES];
}

FAKE_CUDA_API int fake_cuda_launches(void)
{
    return atomic_load(&launches);
}

FAKE_CUDA_API int fake_cuda_encoded(void)
{
    return encoded;
}
