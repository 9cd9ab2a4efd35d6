// SPDX-License-Identifier: Apache-2.0
//
// Eigen as a library with a CBLAS interface, so that `tegula bench` can time it; Eigen itself
// consists of headers only. Compile with -O3 -march=native -fopenmp, as a user of Eigen would.
#include <Eigen/Core>
#include <cstdio>

namespace
{
template <typename T>
using Stored = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T> using View = Eigen::Map<Stored<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <typename T>
using ConstView = Eigen::Map<const Stored<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

const int ColumnMajor = 102, NoTranspose = 111;

template <typename T>
void gemm(int order, int trans_a, int trans_b, int m, int n, int k, T alpha, const T *A, int lda,
          const T *B, int ldb, T beta, T *C, int ldc)
{
    if (order == ColumnMajor) // the row-major product of the transposed matrices
        return gemm(101, trans_b, trans_a, n, m, k, alpha, B, ldb, A, lda, beta, C, ldc);
    const bool ta = trans_a != NoTranspose, tb = trans_b != NoTranspose;
    ConstView<T> a(A, ta ? k : m, ta ? m : k, Eigen::OuterStride<>(lda));
    ConstView<T> b(B, tb ? n : k, tb ? k : n, Eigen::OuterStride<>(ldb));
    View<T> c(C, m, n, Eigen::OuterStride<>(ldc));
    if (beta == T(0))
        c.setZero();
    else if (beta != T(1))
        c *= beta;
    if (ta && tb)
        c.noalias() += alpha * a.transpose() * b.transpose();
    else if (ta)
        c.noalias() += alpha * a.transpose() * b;
    else if (tb)
        c.noalias() += alpha * a * b.transpose();
    else
        c.noalias() += alpha * a * b;
}
} // namespace

extern "C" {
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *A, int lda, const float *B, int ldb, float beta, float *C, int ldc)
{
    gemm(order, trans_a, trans_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

void cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                 const double *A, int lda, const double *B, int ldb, double beta, double *C,
                 int ldc)
{
    gemm(order, trans_a, trans_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

void tegula_peer_set_num_threads(int threads)
{
    Eigen::setNbThreads(threads);
}

const char *tegula_peer_version()
{
    static char text[64];
    std::snprintf(text, sizeof text, "Eigen %d.%d.%d", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                  EIGEN_MINOR_VERSION);
    return text;
}
}
