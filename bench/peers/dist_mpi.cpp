// SPDX-License-Identifier: Apache-2.0
//
// Times distributed products in FP64 on MPI ranks. Tegula, ScaLAPACK and COSMA run alternately in
// one program, each with matrices in a distribution of its own: shards of rows or columns for
// Tegula, blocks of 256 x 256 on a column or a row of ranks for ScaLAPACK and again for Tegula.
// Products without communication run beside them: of each rank's share of the longest axis.
// bench/dist_mpi.sh builds the program.
//
//     mpirun -n 2 --bind-to core build/dist_mpi M N K [RUNS [CSV]]
//
// Prints a line for each library: the median and the quartiles, over the runs, of the slowest
// rank's time; GFLOP/s; and whether up to 64 elements of C on each rank are exact. A run in which
// another program had the processor of a rank is repeated, at most twice; the least disturbed one
// counts. CSV: a file to which a line for each library is appended.

#include "tegula/mpi.h"

#include <cosma/multiply.hpp>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

extern "C" {
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *row,
               const int *column, const int *context, const int *ld, int *info);
void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const double *alpha, const double *A, const int *lda, const double *B, const int *ldb,
            const double *beta, double *C, const int *ldc);
void pdgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
             const double *alpha, const double *A, const int *ia, const int *ja, const int *desc_a,
             const double *B, const int *ib, const int *jb, const int *desc_b, const double *beta,
             double *C, const int *ic, const int *jc, const int *desc_c);
}

namespace
{

int rank, ranks;
int m, n, k;

void require(bool ok, const char *what)
{
    if (ok) return;
    char text[512] = "";
    tgl_dist_last_error(text, sizeof text);
    std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// A pseudorandom element of A (salt 1) or B (salt 2): an integer from -1 to 2, so that sums are
// exact in any order.
double element(int64_t row, int64_t column, uint64_t salt)
{
    uint64_t x = static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u +
                 static_cast<uint64_t>(column) * 0xc2b2ae3d27d4eb4fu + salt;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return static_cast<double>(x >> 40 & 3) - 1;
}

double expected(int64_t row, int64_t column)
{
    double sum = 0;
    for (int64_t p = 0; p < k; p++)
        sum += element(row, p, 1) * element(p, column, 2);
    return sum;
}

using Place =
    std::function<std::pair<int64_t, int64_t>(int64_t)>; // row and column of a stored element

void fill(double *X, int64_t count, uint64_t salt, const Place &place)
{
    for (int64_t i = 0; i < count; i++) {
        const auto at = place(i);
        X[i] = element(at.first, at.second, salt);
    }
}

bool is_right(const double *C, int64_t count, const Place &place)
{
    enum { SAMPLES = 64 };
    for (int64_t i = 0; i < std::min<int64_t>(SAMPLES, count); i++) {
        const int64_t at = count / SAMPLES * i + i % (count / SAMPLES + 1);
        const auto in_whole = place(at);
        if (C[at] != expected(in_whole.first, in_whole.second)) return false;
    }
    return true;
}

// A library with its matrices.
struct Library {
    std::string name;
    std::function<void()> run;
    std::function<bool()> check;
    std::vector<double> seconds;
};

bool nothing_to_check()
{
    return true;
}

// ---- Tegula and ScaLAPACK -----------------------------------------------------------------------

// A rank's part of a matrix, in the layouts of Tegula.
struct Part {
    tgl_dist_layout layout;
    tgl_order order;
    int64_t rows = 0, columns = 0;
    std::vector<double> elements;

    Part(const tgl_dist_layout &given, tgl_order stored, uint64_t salt)
        : layout(given), order(stored)
    {
        require(tgl_dist_local(&layout, rank, &rows, &columns) == TGL_OK, "a layout");
        elements.resize(static_cast<size_t>(rows * columns));
        if (salt > 0) fill(elements.data(), rows * columns, salt, place());
    }

    Place place() const
    {
        return [this](int64_t i) {
            const int64_t width = order == TGL_ROW_MAJOR ? columns : rows;
            int64_t row, column;
            const bool ok =
                order == TGL_ROW_MAJOR
                    ? tgl_dist_index(&layout, rank, i / width, i % width, &row, &column) == TGL_OK
                    : tgl_dist_index(&layout, rank, i % width, i / width, &row, &column) == TGL_OK;
            require(ok, "an element");
            return std::make_pair(row, column);
        };
    }

    bool is_right_c() const
    {
        return is_right(elements.data(), rows * columns, place());
    }
};

tgl_dist_layout rows_of(int64_t rows, int64_t columns)
{
    tgl_dist_layout layout;
    tgl_dist_rows(&layout, sizeof layout, rows, columns, ranks);
    return layout;
}

tgl_dist_layout columns_of(int64_t rows, int64_t columns)
{
    tgl_dist_layout layout;
    tgl_dist_columns(&layout, sizeof layout, rows, columns, ranks);
    return layout;
}

enum { BLOCK = 256 };

// The layouts of A, B and C, on a column or a row of ranks.
struct Layouts {
    tgl_dist_layout of[3];
};

Layouts blocks_on(tgl_dist_layout (*grid)(int64_t, int64_t))
{
    Layouts blocks = {{grid(m, k), grid(k, n), grid(m, n)}};
    for (tgl_dist_layout &layout : blocks.of)
        layout.block_rows = layout.block_columns = BLOCK;
    return blocks;
}

Library tegula_library(const char *name, tgl_dist *dist, const Layouts &layouts, tgl_order order)
{
    auto *A = new Part(layouts.of[0], order, 1), *B = new Part(layouts.of[1], order, 2),
         *C = new Part(layouts.of[2], order, 0);
    tgl_problem problem;
    tgl_dist_plan *plan;
    tgl_problem_init(&problem, sizeof problem, TGL_F64, m, n, k);
    problem.order = order;
    require(tgl_dist_plan_create(dist, &problem, &A->layout, &B->layout, &C->layout, nullptr,
                                 &plan) == TGL_OK,
            "Tegula's plan");
    const auto run = [=] {
        require(tgl_dist_plan_run(plan, 1, A->elements.data(), B->elements.data(), 0,
                                  C->elements.data(), nullptr) == TGL_OK,
                "Tegula's product");
    };
    return {name, run, [=] { return C->is_right_c(); }, {}};
}

Library scalapack_library(const char *name, const Layouts &layouts)
{
    auto *A = new Part(layouts.of[0], TGL_COL_MAJOR, 1),
         *B = new Part(layouts.of[1], TGL_COL_MAJOR, 2),
         *C = new Part(layouts.of[2], TGL_COL_MAJOR, 0);
    int context;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", layouts.of[0].grid_rows, layouts.of[0].grid_columns);
    auto *descriptors = new std::vector<int>(27);
    const Part *parts[] = {A, B, C};
    for (int x = 0; x < 3; x++) {
        const int rows = static_cast<int>(parts[x]->layout.rows),
                  columns = static_cast<int>(parts[x]->layout.columns);
        const int block = BLOCK, zero = 0, ld = std::max(1, static_cast<int>(parts[x]->rows));
        int info;
        descinit_(&(*descriptors)[9 * x], &rows, &columns, &block, &block, &zero, &zero, &context,
                  &ld, &info);
        require(info == 0, "descinit_()");
    }
    const auto run = [=] {
        const double alpha = 1, beta = 0;
        const int one = 1, *of = descriptors->data();
        pdgemm_("N", "N", &m, &n, &k, &alpha, A->elements.data(), &one, &one, of,
                B->elements.data(), &one, &one, of + 9, &beta, C->elements.data(), &one, &one,
                of + 18);
    };
    return {name, run, [=] { return C->is_right_c(); }, {}};
}

// ---- COSMA --------------------------------------------------------------------------------------

Library cosma_library(bool overlaps)
{
    auto *strategy =
        new cosma::Strategy(m, n, k, static_cast<size_t>(ranks),
                            cosma::get_cpu_max_memory<double>(), false, overlaps, false);
    auto *A = new cosma::CosmaMatrix<double>('A', *strategy, rank);
    auto *B = new cosma::CosmaMatrix<double>('B', *strategy, rank);
    auto *C = new cosma::CosmaMatrix<double>('C', *strategy, rank);
    const auto place = [](cosma::CosmaMatrix<double> *X) {
        return [X](int64_t i) {
            const auto at = X->global_coordinates(static_cast<int>(i));
            return std::make_pair<int64_t, int64_t>(at.first, at.second);
        };
    };
    fill(A->matrix_pointer(), static_cast<int64_t>(A->matrix_size()), 1, place(A));
    fill(B->matrix_pointer(), static_cast<int64_t>(B->matrix_size()), 2, place(B));
    const auto run = [=] { cosma::multiply(*A, *B, *C, *strategy, MPI_COMM_WORLD, 1.0, 0.0); };
    const auto check = [=] {
        return is_right(C->matrix_pointer(), static_cast<int64_t>(C->matrix_size()), place(C));
    };
    return {overlaps ? "COSMA, overlap" : "COSMA", run, check, {}};
}

// ---- Products without communication -------------------------------------------------------------

// The matrices of a rank's product, its share of the longest axis.
struct Share {
    int m = ::m, n = ::n, k = ::k;
    std::vector<double> A, B, C;

    Share()
    {
        int &longest = k > m && k > n ? k : m >= n ? m : n;
        longest = (longest + ranks - 1) / ranks;
        A.assign(static_cast<size_t>(m) * static_cast<size_t>(k), 1);
        B.assign(static_cast<size_t>(k) * static_cast<size_t>(n), 1);
        C.resize(static_cast<size_t>(m) * static_cast<size_t>(n));
    }
};

Library tegula_share(tgl_device *dev)
{
    auto *share = new Share;
    tgl_problem problem;
    tgl_plan *plan;
    tgl_problem_init(&problem, sizeof problem, TGL_F64, share->m, share->n, share->k);
    require(tgl_plan_create(dev, &problem, nullptr, &plan) == TGL_OK, "Tegula's local plan");
    const auto run = [=] {
        require(tgl_plan_run(plan, 1, share->A.data(), share->B.data(), 0, share->C.data(),
                             nullptr) == TGL_OK,
                "Tegula's local product");
    };
    return {"local, Tegula", run, nothing_to_check, {}};
}

Library openblas_share()
{
    auto *share = new Share;
    const auto run = [=] {
        const double alpha = 1, beta = 0;
        dgemm_("N", "N", &share->m, &share->n, &share->k, &alpha, share->A.data(), &share->m,
               share->B.data(), &share->k, &beta, share->C.data(), &share->m);
    };
    return {"local, OpenBLAS", run, nothing_to_check, {}};
}

// ---- Times --------------------------------------------------------------------------------------

double processor_seconds()
{
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A run: the time of the slowest rank, and the least share of it in which a rank had its processor.
// No library sleeps while it waits.
struct Run {
    double seconds, processor_share;
};

Run run_once(const Library &library)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime(), processor = processor_seconds();
    library.run();
    const double wall = MPI_Wtime() - start;
    double mine[2] = {wall, 1 - (processor_seconds() - processor) / wall}, most[2];
    MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {most[0], 1 - most[1]};
}

// The seconds of the first run in which no other program had a processor for long or, after TRIES
// runs, those of the least disturbed one.
double seconds_of(const Library &library)
{
    enum { TRIES = 3 };
    const double undisturbed = 0.97;
    Run best = run_once(library);
    for (int i = 1; i < TRIES && best.processor_share < undisturbed; i++) {
        const Run run = run_once(library);
        if (run.processor_share > best.processor_share) best = run;
    }
    return best.seconds;
}

bool report(const Library &library, std::FILE *csv)
{
    int mine = library.check(), all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    std::vector<double> sorted = library.seconds;
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](double part) { // interpolates between the two nearest runs
        const double place = part * static_cast<double>(sorted.size() - 1);
        const size_t below = static_cast<size_t>(place);
        const size_t above = std::min(below + 1, sorted.size() - 1);
        return sorted[below] +
               (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
    };
    if (rank == 0)
        std::printf("%-26s %9.4f %9.4f %9.4f  %7.1f  %s\n", library.name.c_str(), at(0.5), at(0.25),
                    at(0.75), 2e-9 * m * n * k / at(0.5), all ? "right" : "WRONG");
    if (csv != nullptr)
        std::fprintf(csv, "%d,%d,%d,f64,%d,\"%s\",%.6f,%.6f,%.6f,%.6f,%.2f,%zu\n", m, n, k, ranks,
                     library.name.c_str(), at(0.5), at(0.25), at(0.75), sorted[0],
                     2e-9 * m * n * k / at(0.5), sorted.size());
    return all != 0;
}

bool measure(std::vector<Library> &libraries, int runs, const char *csv_path)
{
    for (int i = -1; i < runs; i++) // run -1 is not counted
        for (Library &library : libraries) {
            const double seconds = seconds_of(library);
            if (i >= 0) library.seconds.push_back(seconds);
        }
    if (rank == 0)
        std::printf("%d x %d x %d in FP64 on %d ranks, %d runs\n%-26s    median       25%%       "
                    "75%%  GFLOP/s\n",
                    m, n, k, ranks, runs, "");
    std::FILE *csv = rank == 0 && csv_path != nullptr ? std::fopen(csv_path, "a") : nullptr;
    require(rank != 0 || csv_path == nullptr || csv != nullptr, "the CSV file");
    bool ok = true;
    for (const Library &library : libraries)
        ok = report(library, csv) && ok;
    if (csv != nullptr) require(std::fclose(csv) == 0, "the CSV file");
    return ok;
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4) {
        if (rank == 0) std::fprintf(stderr, "usage: mpirun -n RANKS dist_mpi M N K [RUNS [CSV]]\n");
        MPI_Finalize();
        return 2;
    }
    m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
    tgl_device_options one_thread = {};
    one_thread.size = sizeof one_thread;
    one_thread.threads = 1;
    tgl_device *dev;
    tgl_dist *dist;
    require(tgl_device_open("cpu", &one_thread, &dev) == TGL_OK, "the device");
    require(tgl_dist_open_mpi(MPI_COMM_WORLD, dev, nullptr, &dist) == TGL_OK,
            "Tegula's communicator");
    const bool is_long = k > m && k > n; // as in `tegula dist bench`
    const Layouts shards = {
        {is_long ? columns_of(m, k) : rows_of(m, k), rows_of(k, n), rows_of(m, n)}};
    const Layouts column = blocks_on(rows_of), row = blocks_on(columns_of);
    bool ok;
    {
        std::vector<Library> libraries = {
            tegula_library("Tegula, shards", dist, shards, TGL_ROW_MAJOR),
            tegula_library("Tegula, blocks, column", dist, column, TGL_COL_MAJOR),
            tegula_library("Tegula, blocks, row", dist, row, TGL_COL_MAJOR),
            scalapack_library("ScaLAPACK, column", column),
            scalapack_library("ScaLAPACK, row", row),
            cosma_library(false),
            cosma_library(true),
            tegula_share(dev),
            openblas_share()};
        ok = measure(libraries, argc > 4 ? std::max(1, std::atoi(argv[4])) : 7,
                     argc > 5 ? argv[5] : nullptr);
    }
    std::fflush(stdout);
    MPI_Finalize();
    _Exit(ok ? 0 : 1); // COSMA's static objects call MPI when they end
}
