/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest complete program: C := A * B for two small matrices, on the device that "auto"
 * chooses. To build it against an installed Tegula:
 *
 *     cc product.c -o product $(pkg-config --cflags --libs tegula)
 */
#include <tegula/tegula.h>

#include <stdio.h>

enum { M = 2, N = 2, K = 3 };

static tgl_status multiply(tgl_device *dev, const float *a, const float *b, float *c)
{
    void *A = NULL, *B = NULL, *C = NULL; /* memory of the device */
    tgl_problem problem;

    tgl_status status = tgl_problem_init(&problem, sizeof problem, TGL_F32, M, N, K);
    if (status == TGL_OK) status = tgl_alloc(dev, M * K * sizeof *a, &A);
    if (status == TGL_OK) status = tgl_alloc(dev, K * N * sizeof *b, &B);
    if (status == TGL_OK) status = tgl_alloc(dev, M * N * sizeof *c, &C);
    if (status == TGL_OK) status = tgl_upload(dev, A, a, M * K * sizeof *a, NULL);
    if (status == TGL_OK) status = tgl_upload(dev, B, b, K * N * sizeof *b, NULL);
    if (status == TGL_OK) status = tgl_gemm(dev, &problem, 1.0, A, B, 0.0, C, NULL);
    if (status == TGL_OK) status = tgl_download(dev, c, C, M * N * sizeof *c, NULL);

    tgl_free(dev, A);
    tgl_free(dev, B);
    tgl_free(dev, C);
    return status;
}

int main(void)
{
    const float a[M * K] = {1, 2, 3, 4, 5, 6}, b[K * N] = {1, 0, 0, 1, 1, 1};
    float c[M * N];
    tgl_device *dev;
    tgl_status status = tgl_device_open("auto", NULL, &dev);
    if (status == TGL_OK) {
        status = multiply(dev, a, b, c);
        tgl_device_close(dev);
    }
    if (status != TGL_OK) {
        fprintf(stderr, "%s\n", tgl_status_text(status));
        return 1;
    }
    printf("%g %g\n%g %g\n", (double)c[0], (double)c[1], (double)c[2], (double)c[3]);
    return 0;
}
