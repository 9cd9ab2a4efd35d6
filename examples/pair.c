/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a pair of matrices as NumPy files, and checks their product without multiplying them:
 *
 *     pair make  M N K A.npy B.npy
 *     pair check M N K A.npy B.npy C.npy
 *
 * For a vector x of random signs, C*x must equal A*(B*x) up to rounding. A wrong C passes this test
 * with a probability of at most 1/2, and ROUNDS tests with other vectors x with a probability of at
 * most 2^-ROUNDS (R. Freivalds, 1977). This program does not use Tegula.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 128, ROUNDS = 20 };

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "pair: %s: %s\n", name, what);
    exit(1);
}

/* The header that NumPy writes for a C-ordered matrix of floats. */
static void format_header(char header[HEADER], long rows, long columns)
{
    memset(header, ' ', HEADER);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    char text[HEADER - 10];
    const int length =
        snprintf(text, sizeof text,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%ld, %ld), }", rows, columns);
    memcpy(header + 10, text, (size_t)length);
    header[HEADER - 1] = '\n';
}

static unsigned next_random(void)
{
    static unsigned long long state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
}

static void make(const char *name, long rows, long columns)
{
    char header[HEADER];
    format_header(header, rows, columns);
    FILE *file = fopen(name, "wb");
    if (file == NULL) fail("cannot be written", name);
    int ok = fwrite(header, 1, HEADER, file) == HEADER;
    for (long i = 0; i < rows * columns && ok; i++) {
        const float value = (float)next_random() / 1073741824.0f - 1; /* in [-1, 1] */
        ok = fwrite(&value, sizeof value, 1, file) == 1;
    }
    if (fclose(file) != 0 || !ok) fail("cannot be written", name);
}

static float *load(const char *name, long rows, long columns)
{
    char expected[HEADER], header[HEADER];
    format_header(expected, rows, columns);
    FILE *file = fopen(name, "rb");
    if (file == NULL) fail("cannot be read", name);
    const size_t count = (size_t)(rows * columns);
    float *matrix = malloc(count * sizeof *matrix);
    if (matrix == NULL || fread(header, 1, HEADER, file) != HEADER ||
        memcmp(header, expected, HEADER) != 0)
        fail("is not a matrix of floats of the expected shape", name);
    if (fread(matrix, sizeof *matrix, count, file) != count) fail("is too short", name);
    fclose(file);
    return matrix;
}

/* y := X*x or, if `absolute` is not 0, |X|*x. */
static void apply(const float *X, long rows, long columns, const double *x, int absolute, double *y)
{
    for (long i = 0; i < rows; i++) {
        double sum = 0;
        for (long j = 0; j < columns; j++) {
            const double element = (double)X[i * columns + j];
            sum += (absolute ? fabs(element) : element) * x[j];
        }
        y[i] = sum;
    }
}

/* The largest |C*x - A*(B*x)|, divided by the error that rounding may cause: 2^-24, half the
 * spacing of floats at 1, times the mean of the row of |A||B|, times sqrt(k*n), because the k*n
 * rounding errors have random signs. */
static double largest_error(long m, long n, long k, const float *A, const float *B, const float *C)
{
    const size_t bytes = (size_t)(m + n + k) * sizeof(double);
    double *x = malloc(bytes), *bx = malloc(bytes), *abx = malloc(bytes), *cx = malloc(bytes);
    double *mean = malloc(bytes), worst = 0;
    if (!x || !bx || !abx || !cx || !mean) fail("no memory", "check");
    for (long j = 0; j < n; j++)
        x[j] = 1 / (double)n;
    apply(B, k, n, x, 1, bx);
    apply(A, m, k, bx, 1, mean);
    for (int round = 0; round < ROUNDS; round++) {
        for (long j = 0; j < n; j++)
            x[j] = next_random() & 1 ? 1 : -1;
        apply(B, k, n, x, 0, bx);
        apply(A, m, k, bx, 0, abx);
        apply(C, m, n, x, 0, cx);
        for (long i = 0; i < m; i++) {
            const double rounding = ldexp(sqrt((double)k * (double)n), -24) * mean[i];
            const double error = fabs(cx[i] - abx[i]) / rounding;
            /* If `worst` is NaN it stays NaN, because no error compares greater. */
            if (error > worst || isnan(error)) worst = error;
        }
    }
    free(x), free(bx), free(abx), free(cx), free(mean);
    return worst;
}

int main(int argc, char **argv)
{
    const int checking = argc == 8 && strcmp(argv[1], "check") == 0;
    if (!checking && !(argc == 7 && strcmp(argv[1], "make") == 0)) {
        fprintf(stderr, "Usage: pair make M N K A.npy B.npy\n"
                        "       pair check M N K A.npy B.npy C.npy\n");
        return 2;
    }
    const long m = atol(argv[2]), n = atol(argv[3]), k = atol(argv[4]);
    if (!checking) {
        make(argv[5], m, k);
        make(argv[6], k, n);
        return 0;
    }
    float *A = load(argv[5], m, k), *B = load(argv[6], k, n), *C = load(argv[7], m, n);
    const double error = largest_error(m, n, k, A, B, C);
    printf("C*x = A*(B*x) for %d random x: the largest error is %.2g of what rounding may give\n",
           ROUNDS, error);
    free(A), free(B), free(C);
    return error <= 1 ? 0 : 1;
}
