/* SPDX-License-Identifier: Apache-2.0
 *
 * A user's program, in the common subset of C and C++.
 */
#include <tegula/tegula.h>

#include <stdio.h>

int main(void)
{
    const float A[] = {1, 2, 3, 4, 5, 6}; /* 2 x 3 */
    const float B[] = {1, 0, 0, 1, 1, 1}; /* 3 x 2 */
    float C[4];
    tgl_device *dev;
    tgl_status status = tgl_device_open("cpu", NULL, &dev);
    if (status == TGL_OK) {
        tgl_problem problem;
        status = tgl_problem_init(&problem, sizeof problem, TGL_F32, 2, 2, 3);
        if (status == TGL_OK) status = tgl_gemm(dev, &problem, 1, A, B, 0, C, NULL);
        tgl_device_close(dev);
    }
    if (status != TGL_OK) {
        fprintf(stderr, "%s\n", tgl_status_text(status));
        return 1;
    }
    printf("%g %g %g %g\n", C[0], C[1], C[2], C[3]);
    return C[0] == 4 && C[1] == 5 && C[2] == 10 && C[3] == 11 ? 0 : 1;
}
