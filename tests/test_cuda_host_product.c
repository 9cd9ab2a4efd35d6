/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of host memory on the cuda device, with the fake libraries: random products in small
 * tiles, the bytes that are copied, failures of every call, several threads. The fake driver finds
 * copies and kernels that are not ordered, and pinned memory that is used too early.
 */
#include "api/host_gemm.h"
#include "backend/backend.h"
#include "backend/host_product.h"
#include "elements.h"
#include "fake_cuda/setup.h"

#include <pthread.h>

/* Tiles of at most 16 x 16, so that a small product has many. */
static const tgl_tile_limits small_tiles = {.min = 8, .max = 16, .unit = 4};

static tgl_status in_small_tiles(tgl_device *dev, const tgl_problem *problem,
                                 const tgl_operands *operands)
{
    return tgl_gemm_host_in_tiles(dev, problem, operands, &small_tiles);
}

/* The tensor cores' kernels of older GPUs are among those that the fake driver computes. */
static tgl_device *open_sm_80(void)
{
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    return open_device("cuda");
}

/* ---- Random products ------------------------------------------------------------------------- */

static gemm_case random_case(uint64_t *seed, tgl_type type)
{
    static const double alphas[] = {1, -0.75, 2.5, 0}, betas[] = {0, 1, -0.5};
    gemm_case c = {.problem = random_problem(seed, type, 70),
                   .alpha = alphas[random_int(seed, 0, 12) % 4],
                   .beta = betas[random_int(seed, 0, 2)],
                   .run = in_small_tiles,
                   .fill = random_once_in(seed, 4) ? NON_FINITE : UNIFORM_11,
                   .at_end = random_once_in(seed, 2)};
    if (random_once_in(seed, 2)) separate_d(seed, &c.problem);
    if (c.problem.type_d != 0 && element_accumulator(type) != type && random_once_in(seed, 2))
        c.problem.type_d = TGL_F32;
    c.pointers = random_once_in(seed, 4);
    c.seed = random_bits(seed);
    return c;
}

static void check_random(const char *memory, int cases)
{
    static const tgl_type types[] = {TGL_F32, TGL_F64, TGL_F16, TGL_BF16};
    uint64_t seed = 17;
    setenv("FAKE_CUDA_MEMORY", memory, 1);
    tgl_device *dev = open_sm_80();
    for (int i = 0; i < cases; i++) {
        const gemm_case c = random_case(&seed, types[i % 4]);
        assert_true(check_case(dev, &c));
        assert_int_equal(misuses(), 0);
    }
    tgl_device_close(dev);
}

static void products_that_fit(void **state)
{
    (void)state;
    check_random("268435456", 300);
}

/* The device has memory for a few slots (copies of tiles) only. */
static void products_that_do_not_fit(void **state)
{
    (void)state;
    check_random("60000", 300);
}

/* Tiles of the usual size, which are copied in several parts. */
static void large_tiles(void **state)
{
    (void)state;
    uint64_t seed = 3;
    tgl_device *dev = open_sm_80();
    gemm_case c = {.problem = problem_of(TGL_F64, 1100, 3, 1150),
                   .alpha = 0.5,
                   .beta = 2,
                   .run = tgl_gemm_host,
                   .fill = UNIFORM_11,
                   .seed = random_bits(&seed)};
    c.problem.lda = c.problem.ldb = c.problem.ldc = 1152;
    assert_true(check_case(dev, &c));
    tgl_device_close(dev);
}

/* ---- What is copied -------------------------------------------------------------------------- */

enum { SIDE = 48, TILES = 4 }; /* 4 x 4 tiles of 12 x 12 in each matrix, without padding */
enum { MATRIX_BYTES = SIDE * SIDE * 4 };

static float A[SIDE * SIDE], B[SIDE * SIDE], C[SIDE * SIDE];

static tgl_problem square(void)
{
    return problem_of(TGL_F32, SIDE, SIDE, SIDE);
}

static void fill_square(void)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        A[i] = (float)(i % 5), B[i] = (float)(i % 3), C[i] = 7;
}

/* The right value of element i of A*B + beta*C, with C as fill_square() leaves it. */
static float right(int i, float beta)
{
    float sum = beta * 7;
    for (int p = 0; p < SIDE; p++)
        sum += A[i / SIDE * SIDE + p] * B[p * SIDE + i % SIDE];
    return sum;
}

static tgl_status multiply(tgl_device *dev, float beta)
{
    const tgl_problem problem = square();
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = 1, .beta = beta, .A = A, .B = B, .C = C};
    return in_small_tiles(dev, &problem, &operands);
}

static void assert_square(float beta)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        if (C[i] != right(i, beta))
            fail_msg("element %d is %g, not %g", i, (double)C[i], (double)right(i, beta));
}

/* With enough memory each tile is copied to the GPU once, C only if it is read, and D once back. */
static void tiles_are_copied_once(void **state)
{
    (void)state;
    tgl_device *dev = open_sm_80();
    for (int beta = 0; beta <= 1; beta++) {
        const int up = uploaded_bytes(), down = downloaded_bytes();
        fill_square();
        assert_status(multiply(dev, (float)beta), TGL_OK);
        assert_square((float)beta);
        assert_int_equal(uploaded_bytes() - up, (2 + beta) * MATRIX_BYTES);
        assert_int_equal(downloaded_bytes() - down, MATRIX_BYTES);
    }
    tgl_device_close(dev);
}

/* The number of tiles that are copied with memory for this many slots. */
static int copied_tiles(int slots)
{
    enum { TILE_BYTES = MATRIX_BYTES / (TILES * TILES), ROOM = 768 }; /* rounded up to 256 */
    tgl_device *dev = open_sm_80();
    char memory[20];
    /* Two tiles of D and the slots take three quarters of the memory. */
    snprintf(memory, sizeof memory, "%d", (slots + 2) * ROOM / 3 * 4 + 8);
    setenv("FAKE_CUDA_MEMORY", memory, 1);
    const int before = uploaded_bytes();
    fill_square();
    assert_status(multiply(dev, 0), TGL_OK);
    assert_square(0);
    tgl_device_close(dev);
    return (uploaded_bytes() - before) / TILE_BYTES;
}

/* Each slot is needed again while the GPU multiplies. With 8 slots the tiles of a row of A stay in
 * their slots, and at the end of the row those of a column of B. With 4 slots no tile stays. */
static void few_slots(void **state)
{
    (void)state;
    enum { ALL_OF_A = TILES * TILES, PRODUCTS = TILES * TILES * TILES };
    assert_int_equal(copied_tiles(8), ALL_OF_A + PRODUCTS - (TILES - 1) * TILES);
    assert_int_equal(copied_tiles(4), 2 * PRODUCTS);
}

/* A tile of D is stored after the next one has been enqueued, so that the GPU has work meanwhile:
 * if that fails for the second tile, nothing is stored; for the third, the CPU computes the rest.
 */
static void copies_run_beside_products(void **state)
{
    (void)state;
    tgl_device *dev = open_sm_80();
    fill_square();
    setenv("FAKE_CUDA_FAIL", "cuMemcpyDtoHAsync_v2=1:1", 1); /* the copy of the second tile */
    assert_status(multiply(dev, 0), TGL_DRIVER);
    assert_true(C[0] == 7);
    setenv("FAKE_CUDA_FAIL", "cuMemcpyDtoHAsync_v2=1:2", 1);
    assert_status(multiply(dev, 0), TGL_OK);
    assert_square(0);
    tgl_device_close(dev);
}

/* A matrix that all products of a batch use, or that pointers repeat, is copied once. */
static void shared_matrices_are_copied_once(void **state)
{
    (void)state;
    tgl_problem problem = problem_of(TGL_F32, 12, 12, 12);
    problem.batch = 3;
    problem.stride_b = problem.stride_c = 144;
    tgl_operands operands = {.size = sizeof operands, .alpha = 1, .A = A, .B = B, .C = C};
    const void *a[] = {A, A, A}, *b[] = {B, B, B + 144};
    void *c[] = {C, C + 144, C + 288};
    tgl_device *dev = open_sm_80();
    int up = uploaded_bytes();
    assert_status(in_small_tiles(dev, &problem, &operands), TGL_OK);
    assert_int_equal(uploaded_bytes() - up, 4 * 144 * 4);
    problem.batching = TGL_POINTERS;
    operands = (tgl_operands){
        .size = sizeof operands, .alpha = 1, .A_array = a, .B_array = b, .C_array = c};
    up = uploaded_bytes();
    assert_status(in_small_tiles(dev, &problem, &operands), TGL_OK);
    assert_int_equal(uploaded_bytes() - up, 3 * 144 * 4);
    tgl_device_close(dev);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void memory_is_kept_while_it_is_small(void **state)
{
    (void)state;
    tgl_device *dev = open_sm_80();
    fill_square();
    assert_status(multiply(dev, 0), TGL_OK);
    const size_t kept = memory_taken();
    assert_true(kept > 0);
    assert_status(multiply(dev, 0), TGL_OK);
    assert_int_equal(memory_taken(), kept);
    dev->backend->trim(dev);
    assert_int_equal(memory_taken(), 0);
    assert_status(multiply(dev, 0), TGL_OK);
    tgl_device_close(dev);

    char memory[20];
    snprintf(memory, sizeof memory, "%zu", 4 * kept);
    setenv("FAKE_CUDA_MEMORY", memory, 1);
    dev = open_sm_80();
    assert_status(multiply(dev, 0), TGL_OK);
    assert_int_equal(memory_taken(), 0);
    tgl_device_close(dev);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static void assert_unchanged(void)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        if (C[i] != 7) fail_msg("element %d is %g", i, (double)C[i]);
}

/* All calls of one function of the driver fail after 0 to 55 successful ones. C is then unchanged
 * or complete, and the next product on the same device, without failures, is right. */
static void every_call_may_fail(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "cuMemHostAlloc",       "cuMemAlloc_v2",        "cuMemGetInfo_v2", "cuStreamCreate",
        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventCreate",   "cuEventRecord",
        "cuEventSynchronize",   "cuStreamWaitEvent",    "cuLaunchKernel",  "cuModuleLoadData",
    };
    static const int counts[] = {0, 1, 2, 3, 5, 8, 13, 21, 34, 55};
    for (size_t i = 0; i < COUNT_OF(calls) * COUNT_OF(counts); i++)
        for (int result = 1; result <= CUDA_ERROR_OUT_OF_MEMORY; result++) {
            char setting[100];
            snprintf(setting, sizeof setting, "%s=%d:%d", calls[i / COUNT_OF(counts)], result,
                     counts[i % COUNT_OF(counts)]);
            tgl_device *dev = open_sm_80();
            fill_square();
            setenv("FAKE_CUDA_FAIL", setting, 1);
            forget_error();
            const tgl_status status = multiply(dev, 1);
            unsetenv("FAKE_CUDA_FAIL");
            if (status == TGL_OK) {
                assert_square(1);
            } else {
                assert_true(status == TGL_NO_MEMORY || status == TGL_DRIVER);
                assert_true(result != 1 || status == TGL_DRIVER);
                assert_new_sentence();
                assert_unchanged();
            }
            fill_square();
            assert_status(multiply(dev, 1), TGL_OK);
            assert_square(1);
            tgl_device_close(dev);
            if (misuses() != 0 || live_objects() != 0) fail_msg("after %s", setting);
        }
}

/* All memory is allocated before the first element of D is written. */
static void without_memory_c_is_unchanged(void **state)
{
    (void)state;
    tgl_device *dev = open_sm_80();
    fill_square();
    setenv("FAKE_CUDA_MEMORY", "3000", 1); /* less than four slots and two results */
    assert_status(multiply(dev, 1), TGL_NO_MEMORY);
    assert_last_error("allocating memory for tiles of a product");
    assert_unchanged();
    unsetenv("FAKE_CUDA_MEMORY");
    setenv("FAKE_CUDA_FAIL", "cuMemHostAlloc=2", 1);
    assert_status(multiply(dev, 1), TGL_NO_MEMORY);
    assert_unchanged();
    tgl_device_close(dev);
}

/* If the GPU fails after a part of C was stored, the CPU computes the rest. */
static void a_failure_midway(void **state)
{
    (void)state;
    static const char *const failures[] = {"cuLaunchKernel=2:40", "cuLaunchKernel=1:40",
                                           "cuEventSynchronize=1:20", "cuMemcpyHtoDAsync_v2=2:50"};
    for (size_t i = 0; i < 2 * COUNT_OF(failures); i++) {
        const float beta = i < COUNT_OF(failures) ? 0 : 1;
        tgl_device *dev = open_sm_80();
        fill_square();
        setenv("FAKE_CUDA_FAIL", failures[i % COUNT_OF(failures)], 1);
        assert_status(multiply(dev, beta), TGL_OK);
        assert_square(beta);
        unsetenv("FAKE_CUDA_FAIL");
        tgl_device_close(dev);
    }
}

/* The GPU fails after a part of C was stored, and the CPU cannot compute the rest. */
static void a_failure_of_both(void **state)
{
    (void)state;
    tgl_device *dev = open_sm_80();
    fill_square();
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel=1:40", 1);
    setenv("TEGULA_CPU", "none", 1);
    const tgl_status status = multiply(dev, 1);
    unsetenv("TEGULA_CPU");
    unsetenv("FAKE_CUDA_FAIL");
    assert_status(status, TGL_KERNEL_FAULT);
    assert_last_error("cannot be computed on the CPU");
    tgl_device_close(dev);
}

static void a_lost_device(void **state)
{
    (void)state;
    tgl_device *dev = open_sm_80();
    fill_square();
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel=700:40", 1);
    assert_status(multiply(dev, 1), TGL_OK);
    assert_square(1);
    unsetenv("FAKE_CUDA_FAIL");
    fill_square();
    assert_status(multiply(dev, 1), TGL_DEVICE_LOST);
    assert_unchanged();
    tgl_device_close(dev);
}

/* ---- Others at the same time ----------------------------------------------------------------- */

static void *multiply_often(void *device)
{
    static const tgl_tile_limits tiles = {.min = 4, .max = 8, .unit = 4};
    enum { N = 20 };
    float a[N * N], b[N * N], c[N * N];
    const tgl_problem problem = problem_of(TGL_F32, N, N, N);
    const tgl_operands operands = {.size = sizeof operands, .alpha = 1, .A = a, .B = b, .C = c};
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < N * N; i++)
            a[i] = (float)round, b[i] = 1, c[i] = -1;
        if (tgl_gemm_host_in_tiles(device, &problem, &operands, &tiles) != TGL_OK) return "failed";
        for (int i = 0; i < N * N; i++)
            if (c[i] != (float)(round * N)) return "wrong";
    }
    return NULL;
}

static void threads_share_the_device(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    tgl_device *dev = open_sm_80();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, multiply_often, dev), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong != NULL) fail_msg("%s", (char *)wrong);
    }
    tgl_device_close(dev);
}

/* The product neither ends the capture of a stream nor becomes a part of it. */
static void a_capture_goes_on(void **state)
{
    (void)state;
    tgl_device *dev = open_sm_80();
    void *stream = create_blocking_stream();
    begin_capture(stream);
    fill_square();
    assert_status(multiply(dev, 1), TGL_OK);
    assert_square(1);
    destroy_graph(end_capture(stream));
    tgl_device_close(dev);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_that_fit),
        TEST(products_that_do_not_fit),
        TEST(large_tiles),
        TEST(tiles_are_copied_once),
        TEST(few_slots),
        TEST(copies_run_beside_products),
        TEST(shared_matrices_are_copied_once),
        TEST(memory_is_kept_while_it_is_small),
        TEST(every_call_may_fail),
        TEST(without_memory_c_is_unchanged),
        TEST(a_failure_midway),
        TEST(a_failure_of_both),
        TEST(a_lost_device),
        TEST(threads_share_the_device),
        TEST(a_capture_goes_on),
    };
    return cmocka_run_group_tests_name("products of host memory on cuda", tests, NULL, NULL);
}
