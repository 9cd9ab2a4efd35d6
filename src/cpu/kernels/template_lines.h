/* SPDX-License-Identifier: Apache-2.0
 *
 * Part of template.h: operations on rows of C: scaling, adding up partial sums, and the epilogue.
 * The functions are described at the members of cpu_kernels (kernels.h). The compiler vectorises
 * these loops.
 */

static void NAME(scale)(void *to, int64_t n, double beta, double beta_imag)
{
    (void)beta_imag;
    T *c = to;
    const T factor = (T)beta;
    if (factor == 0)
        memset(c, 0, (size_t)n * sizeof *c);
    else
        for (int64_t j = 0; j < n; j++)
            c[j] *= factor;
}

static void NAME(reduce)(void *to, int64_t c_stride, int64_t n, const void *from,
                         int64_t part_stride, int64_t count, double alpha, double beta,
                         const tgl_complex_part *complex)
{
    (void)complex;
    T *c = to;
    const T *part = from;
    for (int64_t j = 0; j < n; j++) {
        T sum = part[j];
        for (int64_t q = 1; q < count; q++)
            sum += part[q * part_stride + j];
        T *result = c + j * c_stride;
        *result = beta == 0 ? (T)alpha * sum : (T)alpha * sum + (T)beta * *result;
    }
}

/* Calls the variant of a function of activate.h for the type T. */
#define SIZED(activation, x)                                                                       \
    (sizeof(T) == sizeof(float) ? (T)activation##_f32((float)(x))                                  \
                                : (T)activation##_f64((double)(x)))

static void NAME(finish)(void *c, int64_t n, const void *bias, int64_t bias_step,
                         tgl_activation activation, const void *residual)
{
    T *restrict x = c;
    const T *b = bias, *r = residual;
    if (b != NULL && bias_step == 0)
        for (int64_t j = 0; j < n; j++)
            x[j] += *b;
    else if (b != NULL)
        for (int64_t j = 0; j < n; j++)
            x[j] += b[j];
    if (activation == TGL_ACTIVATION_RELU)
        for (int64_t j = 0; j < n; j++)
            x[j] = x[j] < 0 ? 0 : x[j];
    else if (activation == TGL_ACTIVATION_GELU)
        for (int64_t j = 0; j < n; j++)
            x[j] = SIZED(cpu_gelu, x[j]);
    else if (activation == TGL_ACTIVATION_SILU)
        for (int64_t j = 0; j < n; j++)
            x[j] = SIZED(cpu_silu, x[j]);
    for (int64_t j = 0; r != NULL && j < n; j++)
        x[j] += r[j];
}

#undef SIZED
