/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether Tegula computes a product, translates it to a tgl_problem, and runs it. A product
 * is refused, and left to cuBLAS, if
 *   - its types, its arithmetic or its epilogue are not served;
 *   - an argument is illegal, which cuBLAS then reports, or there is nothing to compute;
 *   - cuBLAS is expected to be faster (is_faster_by_cublas()), unless TEGULA_CUBLAS_SERVE is all,
 *     or is measured and Tegula was measured to be faster;
 *   - the plan cannot be made or its run fails.
 */
#include "../../cli/common/trace_line.h"
#include "cublas_shim.h"

#include <math.h>

/* ---- Types and arithmetic -------------------------------------------------------------------- */

/* The types that are served, as cuBLAS and Tegula number them. */
static const struct {
    cudaDataType of_cublas;
    tgl_type type;
} types[] = {
    {CUDA_R_32F, TGL_F32},         {CUDA_R_64F, TGL_F64},         {CUDA_R_16F, TGL_F16},
    {CUDA_R_16BF, TGL_BF16},       {CUDA_C_32F, TGL_C64},         {CUDA_C_64F, TGL_C128},
    {CUDA_R_8F_E4M3, TGL_F8_E4M3}, {CUDA_R_8F_E5M2, TGL_F8_E5M2}, {CUDA_R_8I, TGL_I8},
    {CUDA_R_32I, TGL_I32},
};

/* The tgl_type; 0: not supported. */
static tgl_type type_of(cudaDataType type)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].of_cublas == type) return types[i].type;
    return (tgl_type)0;
}

static bool is_half(cudaDataType type)
{
    return type == CUDA_R_16F || type == CUDA_R_16BF;
}

static bool is_complex(cudaDataType type)
{
    return type == CUDA_C_32F || type == CUDA_C_64F;
}

static bool has_8_bits(const cublas_product *p)
{
    return p->type_a == CUDA_R_8I || cublas_is_f8(p->type_a);
}

static cublasMath_t mode_of(const cublas_product *p)
{
    return p->math & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
}

/* The compute mode with CUBLAS_COMPUTE_32F, from the math mode of the handle: for F32 and C64
 * matrices, and in pedantic mode for all types. */
static tgl_compute compute_of_mode(cublasMath_t mode, bool forbids_tf32)
{
    if (mode == CUBLAS_PEDANTIC_MATH) return TGL_COMPUTE_IEEE;
    if (mode == CUBLAS_DEFAULT_MATH || forbids_tf32) return TGL_COMPUTE_DEFAULT;
    return TGL_COMPUTE_TF32;
}

/* Sets the problem's compute mode from the compute type, and refuses combinations of modes and
 * types that are not served. Floating-point sums are in F32 or F64, even for CUBLAS_COMPUTE_16F,
 * which requires only F16. */
static bool set_arithmetic(cublas_product *p, tgl_problem *problem)
{
    const bool forbids_tf32 = cublas_get_settings()->forbids_tf32;
    const bool is_f32 = p->type_a == CUDA_R_32F || p->type_a == CUDA_C_32F;
    const bool is_single = (is_f32 && p->type_scale == p->type_a) ||
                           (is_half(p->type_a) && p->type_scale == CUDA_R_32F);
    const bool is_f8 =
        cublas_is_f8(p->type_a) && cublas_is_f8(p->type_b) && p->type_scale == CUDA_R_32F;
    const bool is_double = p->type_a == CUDA_R_64F || p->type_a == CUDA_C_64F;
    const cublasMath_t mode = mode_of(p);
    if (mode < CUBLAS_DEFAULT_MATH || mode > CUBLAS_TF32_TENSOR_OP_MATH)
        return cublas_refuse(p, "math mode %d", p->math);
    bool is_served = false;
    switch (p->compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
        is_served = is_double && p->type_scale == p->type_a;
        problem->compute = TGL_COMPUTE_IEEE;
        break;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
        is_served = is_single;
        problem->compute = TGL_COMPUTE_IEEE;
        break;
    case CUBLAS_COMPUTE_32F:
        is_served = is_single || is_f8;
        problem->compute = is_f32 || mode == CUBLAS_PEDANTIC_MATH
                               ? compute_of_mode(mode, forbids_tf32)
                           : p->has_fast_sums ? TGL_COMPUTE_FAST
                                              : TGL_COMPUTE_DEFAULT;
        break;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
        is_served = p->type_a == CUDA_R_8I && p->type_b == CUDA_R_8I && p->type_c == CUDA_R_32I &&
                    p->type_d == CUDA_R_32I && p->type_scale == CUDA_R_32I;
        problem->compute = TGL_COMPUTE_DEFAULT;
        break;
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        is_served = is_single;
        problem->compute = mode == CUBLAS_PEDANTIC_MATH ? TGL_COMPUTE_IEEE
                           : !is_f32                    ? TGL_COMPUTE_DEFAULT
                           : forbids_tf32               ? TGL_COMPUTE_DEFAULT
                                                        : TGL_COMPUTE_TF32;
        break;
    case CUBLAS_COMPUTE_16F:
        is_served = p->type_a == CUDA_R_16F && p->type_c == CUDA_R_16F && p->type_d == CUDA_R_16F &&
                    p->type_scale == CUDA_R_16F && mode != CUBLAS_PEDANTIC_MATH;
        problem->compute = TGL_COMPUTE_DEFAULT;
        break;
    default:
        break;
    }
    return is_served ||
           cublas_refuse(p, "compute type %d, math mode %d and these types", p->compute, p->math);
}

static bool set_types(cublas_product *p, tgl_problem *problem)
{
    problem->type_a = type_of(p->type_a), problem->type_b = type_of(p->type_b);
    problem->type_c = type_of(p->type_c);
    if (problem->type_a == 0 || problem->type_b == 0 || problem->type_c == 0 ||
        type_of(p->type_d) == 0)
        return cublas_refuse(p, "these types");
    if (!set_arithmetic(p, problem)) return false;
    /* F16 or BF16 times I8 are weights for Tegula, whose factors cuBLAS does not have. */
    if (p->type_a != p->type_b && !(cublas_is_f8(p->type_a) && cublas_is_f8(p->type_b)))
        return cublas_refuse(p, "these types");
    p->mode = problem->compute;
    return true;
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* Checks the sizes, and refuses leading dimensions of 0, which are illegal in cuBLAS but mean "no
 * padding" in tgl_problem. tgl_problem_check() finds all other illegal arguments. */
static bool check_sizes(cublas_product *p)
{
    if (p->m < 1 || p->n < 1 || p->batch < 1 || p->k < 0)
        return cublas_refuse(p, "nothing to compute, or an illegal size");
    if (p->lda < 1 || p->ldb < 1 || p->ldc < 1 || p->ldd < 1)
        return cublas_refuse(p, "an illegal leading dimension");
    return true;
}

/* Converts a transpose. For real matrices, a conjugate transpose becomes a transpose, so that both
 * use the same plan. */
static tgl_transpose transpose_of(cublasOperation_t trans, cudaDataType type)
{
    if (trans == CUBLAS_OP_N) return TGL_NO_TRANS;
    return trans == CUBLAS_OP_C && is_complex(type) ? TGL_CONJ_TRANS : TGL_TRANS;
}

static bool set_transposes(cublas_product *p, tgl_problem *problem)
{
    if (p->trans_a < CUBLAS_OP_N || p->trans_a > CUBLAS_OP_C || p->trans_b < CUBLAS_OP_N ||
        p->trans_b > CUBLAS_OP_C)
        return cublas_refuse(p, "operation %d,%d", p->trans_a, p->trans_b);
    problem->trans_a = transpose_of(p->trans_a, p->type_a);
    problem->trans_b = transpose_of(p->trans_b, p->type_b);
    return true;
}

/* ---- Scalars --------------------------------------------------------------------------------- */

static double value_of_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 31  ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                        : exponent == 0 ? ldexp(fraction, -24)
                                        : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 != 0 ? -size : size;
}

/* The real part (part 0) or the imaginary part (part 1) of a scalar. */
static double value_of(const void *scalar, cudaDataType type, int part)
{
    if (part > 0 && !is_complex(type)) return 0;
    if (type == CUDA_R_32I) return *(const int32_t *)scalar;
    return type == CUDA_R_64F || type == CUDA_C_64F   ? ((const double *)scalar)[part]
           : type == CUDA_R_32F || type == CUDA_C_32F ? (double)((const float *)scalar)[part]
                                                      : value_of_half(*(const uint16_t *)scalar);
}

static bool set_scalars(cublas_product *p, tgl_problem *problem, tgl_operands *operands)
{
    if (p->alpha == NULL || p->beta == NULL) return cublas_refuse(p, "alpha or beta is NULL");
    if (!p->has_device_scalars) {
        operands->alpha = value_of(p->alpha, p->type_scale, 0);
        operands->beta = value_of(p->beta, p->type_scale, 0);
        operands->alpha_imag = value_of(p->alpha, p->type_scale, 1);
        operands->beta_imag = value_of(p->beta, p->type_scale, 1);
        return true;
    }
    if (p->type_scale == CUDA_R_16F)
        return cublas_refuse(p, "f16 scalars in device memory"); /* Tegula reads them as F32 */
    problem->scalars = TGL_SCALARS_DEVICE;
    operands->alpha_at = p->alpha;
    operands->beta_at = p->beta;
    return true;
}

static bool is_blocked(tgl_scaling scaling)
{
    return scaling == TGL_SCALING_BLOCK || scaling == TGL_SCALING_LINE_128;
}

/* ld_scale of A or B. For 128x128 blocks cuBLASLt rounds the number of blocks of k up to a multiple
 * of 4 (cuBLAS's manual, "Scaling factors layouts"). 0: the minimum. */
static int64_t ld_scale(const cublas_product *p, tgl_scaling scaling)
{
    return scaling == TGL_SCALING_BLOCK ? 4 * (p->k / 512 + (p->k % 512 != 0)) : 0;
}

/* Whether the order of 1x128 factors is known: cuBLASLt requires that the number of lines, rows of
 * op(A) or columns of op(B), is a multiple of 4, and does not say how it would pad others. */
static bool has_known_order(tgl_scaling scaling, int64_t lines)
{
    return scaling != TGL_SCALING_LINE_128 || lines % 4 == 0;
}

static bool set_scales(cublas_product *p, tgl_problem *problem, tgl_operands *operands)
{
    problem->scaling_a = p->scaling_a, operands->scale_a = p->scale_a;
    problem->scaling_b = p->scaling_b, operands->scale_b = p->scale_b;
    problem->scaling_d = p->scaling_d, operands->scale_d = p->scale_d;
    problem->ld_scale_a = ld_scale(p, p->scaling_a);
    problem->ld_scale_b = ld_scale(p, p->scaling_b);
    if (!has_known_order(p->scaling_a, p->m) || !has_known_order(p->scaling_b, p->n))
        return cublas_refuse(p, "1x128 scales, and a number of lines that 4 does not divide");
    /* cuBLAS's manual does not say where the factors of the second product are. */
    return p->batch == 1 || !(is_blocked(p->scaling_a) || is_blocked(p->scaling_b)) ||
           cublas_refuse(p, "scales of blocks of a batch");
}

/* ---- Matrices -------------------------------------------------------------------------------- */

/* Whether C and D have the same type, leading dimension and stride. */
static bool is_same_layout(const cublas_product *p)
{
    return p->type_c == p->type_d && p->ldc == p->ldd &&
           (p->batch == 1 || p->stride_c == p->stride_d);
}

static void set_pointers(const cublas_product *p, tgl_problem *problem, tgl_operands *operands)
{
    problem->batching = p->is_pointers ? TGL_POINTERS : TGL_STRIDED;
    if (p->is_pointers) {
        operands->A_array = p->A, operands->B_array = p->B, operands->C_array = p->D;
    } else {
        operands->A = p->A, operands->B = p->B, operands->C = p->D;
    }
}

/* Sets leading dimensions and strides. For a single product the strides are 0, because it does not
 * use them. */
static void set_layouts(const cublas_product *p, tgl_problem *problem)
{
    const bool is_batch = p->batch > 1;
    problem->lda = p->lda, problem->ldb = p->ldb;
    problem->stride_a = is_batch ? p->stride_a : 0, problem->stride_b = is_batch ? p->stride_b : 0;
    problem->type_c = type_of(p->type_d);
    problem->ldc = p->ldd, problem->stride_c = is_batch ? p->stride_d : 0;
}

/* Describes a C that is another matrix than D. Only cublasLtMatmul() has such a C. */
static void set_separate_c(cublas_product *p, tgl_problem *problem, tgl_operands *operands)
{
    problem->type_d = problem->type_c, problem->type_c = type_of(p->type_c);
    problem->ldd = problem->ldc, problem->ldc = p->ldc;
    problem->stride_d = problem->stride_c, problem->stride_c = p->batch > 1 ? p->stride_c : 0;
    operands->C = (void *)p->C, operands->D = p->D;
    p->has_separate_c = true;
}

static bool set_matrices(cublas_product *p, tgl_problem *problem, tgl_operands *operands)
{
    const bool reads_c =
        problem->scalars == TGL_SCALARS_DEVICE || operands->beta != 0 || operands->beta_imag != 0;
    set_pointers(p, problem, operands);
    set_layouts(p, problem);
    if (!reads_c || (p->C == p->D && is_same_layout(p))) return true;
    if (p->C == p->D) return cublas_refuse(p, "C and D at one address with different layouts");
    set_separate_c(p, problem, operands);
    return true;
}

/* ---- The epilogue ---------------------------------------------------------------------------- */

static bool set_epilogue(cublas_product *p, tgl_epilogue *epilogue, tgl_operands *operands)
{
    const cublasLtEpilogue_t activation = p->epilogue & ~CUBLASLT_EPILOGUE_BIAS;
    epilogue->amax = p->amax_d != NULL;
    operands->amax_d = p->amax_d;
    if (p->epilogue == CUBLASLT_EPILOGUE_DEFAULT) return true;
    if (activation == CUBLASLT_EPILOGUE_RELU)
        epilogue->activation = TGL_ACTIVATION_RELU;
    else if (activation == CUBLASLT_EPILOGUE_GELU)
        epilogue->expression = trace_line_gelu;
    else if (activation != 0)
        return cublas_refuse(p, "epilogue %d", p->epilogue);
    if (p->type_a == CUDA_R_64F || p->type_a == CUDA_R_8I || is_complex(p->type_a))
        return cublas_refuse(p, "an epilogue of these types");
    if ((p->epilogue & CUBLASLT_EPILOGUE_BIAS) == 0) return true;
    epilogue->bias = TGL_BIAS_ROW;
    epilogue->type_bias = type_of(p->type_bias);
    epilogue->stride_bias = p->batch > 1 ? p->stride_bias : 0;
    operands->bias = p->bias;
    return p->type_bias == CUDA_R_32F || is_half(p->type_bias) ||
           cublas_refuse(p, "a bias of type %d", p->type_bias);
}

/* ---- Workspace ------------------------------------------------------------------------------- */

/* The caller's workspace, from its first aligned address on. */
static cublas_workspace aligned(const cublas_workspace *given)
{
    enum { ALIGNMENT = 256 };
    cublas_workspace space = *given;
    const size_t skipped = (ALIGNMENT - (uintptr_t)given->memory % ALIGNMENT) % ALIGNMENT;
    if (given->memory == NULL || given->bytes <= skipped)
        return (cublas_workspace){.is_given = given->is_given};
    space.memory = (char *)given->memory + skipped;
    space.bytes -= skipped;
    return space;
}

/* ---- Which is faster ------------------------------------------------------------------------- */

static bool is_column_aligned(const void *matrix, int64_t ld, int64_t stride, int64_t batch,
                              tgl_type type, bool is_pointers)
{
    const int64_t size = (int64_t)tgl_type_size(type);
    return (is_pointers || (uintptr_t)matrix % 16 == 0) && ld % 16 * size % 16 == 0 &&
           (batch == 1 || stride % 16 * size % 16 == 0);
}

/* Whether cuBLASLt has the scales of the product on GPUs of compute capability 9.0. Other GPUs have
 * no scales of blocks. */
static bool cublas_has_scales(const cublas_product *p)
{
    const bool both = p->scaling_a == TGL_SCALING_BLOCK && p->scaling_b == TGL_SCALING_BLOCK;
    return !is_blocked(p->scaling_a) || (!both && p->m % 4 == 0 && p->n % 4 == 0 &&
                                         (is_half(p->type_d) || p->type_d == CUDA_R_32F));
}

/* Whether a product is left to cuBLAS, because Tegula is not expected to be faster. Products with
 * m*n*k*batch below 700 cubed are not left to cuBLAS. Larger ones were measured on an H200
 * (docs/performance.md). Tegula is faster
 *   - in FP32, also complex and with TF32;
 *   - in FP8 and I8, unless both operands are K-major;
 *   - in nearly all cases in which a column does not begin at a multiple of 16 bytes.
 * In all other cases Tegula takes about as long as cuBLAS (F16 and BF16: within 5 % in most cases,
 * 25 % at worst). Products with scales that cuBLASLt does not have are not left to cuBLAS either.
 */
static bool is_faster_by_cublas(const cublas_product *p, const tgl_problem *problem)
{
    const double work = (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
    if (work < 700.0 * 700 * 700 || problem->type_a == TGL_F32 || problem->type_a == TGL_C64)
        return false;
    if (has_8_bits(p) && (p->trans_a == CUBLAS_OP_N || p->trans_b != CUBLAS_OP_N)) return false;
    if (!cublas_has_scales(p)) return false;
    return is_column_aligned(p->A, p->lda, p->stride_a, p->batch, problem->type_a,
                             p->is_pointers) &&
           is_column_aligned(p->B, p->ldb, p->stride_b, p->batch, problem->type_b,
                             p->is_pointers) &&
           is_column_aligned(p->D, p->ldd, p->stride_d, p->batch, type_of(p->type_d),
                             p->is_pointers);
}

/* ---- The product ----------------------------------------------------------------------------- */

static bool run(cublas_product *p, const tgl_problem *problem, const tgl_epilogue *epilogue,
                tgl_operands *operands)
{
    cublas_plan *plan = cublas_find_plan(p, problem, epilogue);
    if (plan == NULL) return false;
    const bool is_served = cublas_run_plan(plan, p, operands);
    if (is_served) cublas_trace_served(p, cublas_plan_kernel(plan));
    cublas_release_plan(plan);
    return is_served;
}

bool cublas_serve(cublas_product *p)
{
    tgl_problem problem;
    tgl_operands operands = {.size = sizeof operands};
    tgl_epilogue epilogue = {.size = sizeof epilogue};
    tgl_problem_init(&problem, sizeof problem, TGL_F32, p->m, p->n, p->k);
    problem.order = TGL_COL_MAJOR;
    problem.batch = p->batch;
    if (!check_sizes(p) || !set_transposes(p, &problem) || !set_types(p, &problem) ||
        !set_scalars(p, &problem, &operands) || !set_epilogue(p, &epilogue, &operands))
        return false;
    if (cublas_get_settings()->serve == SERVE_MEASURED)
        p->needs_proof = is_faster_by_cublas(p, &problem);
    else if (cublas_get_settings()->serve == SERVE_FASTER && is_faster_by_cublas(p, &problem))
        return cublas_refuse(p, "%s", trace_line_faster);
    if (!set_matrices(p, &problem, &operands) || !set_scales(p, &problem, &operands)) return false;
    p->workspace = aligned(&p->workspace);
    const bool is_plain = p->epilogue == CUBLASLT_EPILOGUE_DEFAULT && p->amax_d == NULL;
    return run(p, &problem, is_plain ? NULL : &epilogue, &operands);
}

bool cublas_is_wanted(cublas_product *p)
{
    if (cublas_is_inside()) return false;
    return cublas_get_settings()->serve != SERVE_NONE ||
           cublas_refuse(p, "TEGULA_CUBLAS_SERVE is none");
}

bool cublas_serve_handle(cublasHandle_t handle, cublas_product *p)
{
    return cublas_is_wanted(p) && cublas_read_handle(handle, p) && cublas_serve(p);
}
