/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula dist mm`. Each rank has a shard of each matrix, which is a range of rows. Files that are
 * not compressed are mapped: a shard is contiguous in its file, so a rank reads no other pages.
 * Rank 0 makes the file of the product; each rank writes its rows.
 */
#include "dist_mm.h"

#include "array_file.h"
#include "cli.h"
#include "dist_world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct shard {
    tgl_dist_layout layout;
    int64_t first, rows; /* the first row, and the number of rows, of this rank's shard */
} shard;

static bool is_matrix(const array_file *file)
{
    return file->header.dimensions == 2 && !file->header.fortran_order;
}

static bool open_matrix(const char *path, array_file *file)
{
    char message[256];
    if (!array_open(path, file, message, sizeof message))
        return cli_fail_false("%s: %s", path, message);
    if (is_matrix(file)) return true;
    array_close(file);
    return cli_fail_false("%s: not a matrix in C order", path);
}

static bool make_shard(const tgl_dist *dist, int64_t rows, int64_t columns, shard *s)
{
    const int rank = tgl_dist_rank(dist);
    int64_t width, column;
    s->first = 0;
    if (tgl_dist_rows(&s->layout, sizeof s->layout, rows, columns, tgl_dist_ranks(dist)) !=
            TGL_OK ||
        tgl_dist_local(&s->layout, rank, &s->rows, &width) != TGL_OK)
        return cli_fail_false("the matrices are too large");
    if (s->rows > 0 && width > 0) (void)tgl_dist_index(&s->layout, rank, 0, 0, &s->first, &column);
    return true;
}

/* If `writes` is true, creates the file with its header and its whole size. Returns the offset of
 * the first element in the file; 0: failed, and the error has been printed. */
static size_t make_file(const char *path, const npy_header *header, size_t elements_size,
                        bool writes)
{
    char text[NPY_HEADER_MAX];
    const size_t length = npy_format(header, text);
    if (!writes) return length;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const bool ok = fd >= 0 && write(fd, text, length) == (ssize_t)length &&
                    ftruncate(fd, (off_t)(length + elements_size)) == 0;
    if (!ok) cli_fail("cannot write %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return ok ? length : 0;
}

static bool write_rows(const char *path, const char *rows, size_t size, size_t at)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    while (fd >= 0 && size > 0) {
        const ssize_t done = pwrite(fd, rows, size, (off_t)at);
        if (done <= 0) break;
        rows += done, at += (size_t)done, size -= (size_t)done;
    }
    if (fd < 0 || size > 0) cli_fail("cannot write %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return fd >= 0 && size == 0;
}

static int multiply(tgl_dist *dist, const array_file *a, const array_file *b, const char *output)
{
    const int64_t m = a->header.shape[0], k = a->header.shape[1], n = b->header.shape[1];
    const tgl_type type = a->header.type, type_c = type == TGL_I8 ? TGL_I32 : type;
    tgl_problem problem;
    shard of_a, of_b, of_c;
    if (b->header.shape[0] != k || b->header.type != type)
        return cli_fail("A is %" PRId64 " x %" PRId64 " and B is %" PRId64 " x %" PRId64
                        ", or their types differ",
                        m, k, b->header.shape[0], n);
    if (tgl_problem_init(&problem, sizeof problem, type, m, n, k) != TGL_OK ||
        !make_shard(dist, m, k, &of_a) || !make_shard(dist, k, n, &of_b) ||
        !make_shard(dist, m, n, &of_c))
        return EXIT_FAILED;
    const size_t element = tgl_type_size(type), element_c = tgl_type_size(type_c);
    const size_t line = (size_t)n * element_c, size = (size_t)of_c.rows * line;
    const npy_header header = {.type = type_c, .dimensions = 2, .shape = {m, n}};
    const size_t start = make_file(output, &header, (size_t)m * line, tgl_dist_rank(dist) == 0);
    char *C = malloc(size + 1);
    if (start == 0 || C == NULL) {
        free(C);
        return start == 0 ? EXIT_FAILED : cli_fail("no memory for the product");
    }
    const tgl_status status =
        tgl_dist_gemm(dist, &problem, &of_a.layout, &of_b.layout, &of_c.layout, 1,
                      (const char *)a->data + (size_t)(of_a.first * k) * element,
                      (const char *)b->data + (size_t)(of_b.first * n) * element, 0, C);
    int code = EXIT_DONE;
    if (status != TGL_OK)
        code = dist_fail_status(dist, status);
    else if (!write_rows(output, C, size, start + (size_t)of_c.first * line))
        code = EXIT_FAILED;
    free(C);
    return code;
}

int dist_mm(tgl_dist *dist, const char *a, const char *b, const char *output)
{
    array_file file_a, file_b;
    int code = EXIT_FAILED;
    if (open_matrix(a, &file_a)) {
        if (open_matrix(b, &file_b)) {
            code = multiply(dist, &file_a, &file_b, output);
            array_close(&file_b);
        }
        array_close(&file_a);
    }
    if (code == EXIT_DONE) return code;
    fflush(stdout);
    _exit(code);
}
