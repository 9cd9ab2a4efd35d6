// SPDX-License-Identifier: Apache-2.0
//
// Measures the rate of the int8 tensor cores of a GPU of compute capability 9.0 without copies and results. Two warpgroups
// of each SM issue wgmma.m64n256k32.s32.s8.s8 on random bytes in shared memory. Prints CSV with the columns: number of steps
// of 128 of K in a launch, milliseconds, 10^12 operations per second. A short launch stays below the power limit, a long one
// does not.
//
//     nvcc -gencode arch=compute_90a,code=sm_90a -o wgmma_i8_loop bench/wgmma_i8_loop.cu && ./wgmma_i8_loop
#include <cstdio>
#include <cstdlib>

enum { GROUPS = 2, M = 64, N = 256, K = 128, BYTES = (GROUPS * M + N) * K };

// The descriptor of a K-major tile with 128-byte swizzle. A group of 8 rows has 1024 bytes.
static __device__ unsigned long long descriptor(const signed char *tile)
{
    const unsigned address = (unsigned)__cvta_generic_to_shared(tile);
    return (unsigned long long)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define R(i) "+r"(d[i])
#define R8(i) R(i), R(i + 1), R(i + 2), R(i + 3), R(i + 4), R(i + 5), R(i + 6), R(i + 7)

static __device__ void multiply(int *d, unsigned long long a, unsigned long long b)
{
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,"
        "%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,"
        "%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,"
        "%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,"
        "%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127},"
        " %128, %129, 1;"
        : R8(0), R8(8), R8(16), R8(24), R8(32), R8(40), R8(48), R8(56), R8(64), R8(72), R8(80), R8(88), R8(96),
          R8(104), R8(112), R8(120)
        : "l"(a), "l"(b));
}

__global__ void __launch_bounds__(128 * GROUPS) loop(const int *bytes, int *out, int steps)
{
    extern __shared__ __align__(1024) signed char shared[];
    for (int i = threadIdx.x; i < BYTES / 4; i += blockDim.x)
        ((int *)shared)[i] = bytes[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    int d[N / 2] = {0};
    const unsigned long long a = descriptor(shared + threadIdx.x / 128 * M * K), b = descriptor(shared + GROUPS * M * K);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int step = 0; step < steps; step++) {
#pragma unroll
        for (int k = 0; k < K / 32; k++)
            multiply(d, a + 2 * k, b + 2 * k);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    int sum = 0;
    for (int i = 0; i < N / 2; i++)
        sum ^= d[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static void check(cudaError_t status)
{
    if (status == cudaSuccess) return;
    fprintf(stderr, "wgmma_i8_loop: %s\n", cudaGetErrorString(status));
    exit(1);
}

int main()
{
    int sms, *bytes, *out, host[BYTES / 4];
    cudaEvent_t start, stop;
    for (int &word : host)
        word = (int)((unsigned)rand() << 16 ^ (unsigned)rand());
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    check(cudaMalloc(&bytes, BYTES));
    check(cudaMalloc(&out, sizeof(int) * 128 * GROUPS * sms));
    check(cudaMemcpy(bytes, host, BYTES, cudaMemcpyHostToDevice));
    check(cudaFuncSetAttribute(loop, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&stop));
    printf("steps,milliseconds,tops\n");
    for (int steps : {20000, 20000, 400000, 400000}) {
        float ms;
        check(cudaEventRecord(start));
        loop<<<sms, 128 * GROUPS, BYTES>>>(bytes, out, steps);
        check(cudaEventRecord(stop));
        check(cudaEventSynchronize(stop));
        check(cudaEventElapsedTime(&ms, start, stop));
        printf("%d,%.2f,%.1f\n", steps, ms, 2.0 * M * N * K * GROUPS * steps * sms / ms / 1e9);
    }
    return 0;
}
