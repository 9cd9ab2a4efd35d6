/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula mm`: multiplies arrays in NumPy files.
 *
 * Input files are mapped into memory, and a device that works on host memory reads them there
 * without a copy, unless they are compressed or not aligned. A matrix in Fortran order is read as
 * the transpose of a row-major matrix; only a batch in Fortran order is reordered (array_file.c).
 */
#include "host_memory.h"
#include "long_work.h"
#include "mm_product.h"
#include "output_file.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: tegula mm A.npy B.npy -o C.npy [OPTIONS]\n"
    "\n"
    "C := alpha*op(A)*op(B) + beta*C0, for NumPy arrays of float32, float64, float16, bfloat16,\n"
    "complex64, complex128, or int8 with C and C0 of int32.\n"
    "An array of 1 dimension is a vector, of 2 a matrix, of 3 a batch of matrices, multiplied as\n"
    "numpy.matmul() does. Files are .npy, X.npz:NAME for an array of an archive, or - for "
    "standard\n"
    "input and output.\n"
    "\n"
    "  -o, --output FILE  where C goes; may be one of the inputs\n"
    "  --alpha X          factor of the product (1)\n"
    "  --c FILE           the matrix C0; C takes its type and order, C or Fortran\n"
    "  --beta X           factor of C0 (1)\n"
    "  --trans-a          op(A) is A transposed\n"
    "  --trans-b          op(B) is B transposed\n"
    "  --type TYPE        the type that A and B must have: f32, f64, f16, bf16, i8, c64, c128 "
    "(any)\n"
    "  --type-d TYPE      type of C (that of C0, or of A and B; i32 for i8)\n"
    "  --compute MODE     arithmetic: default, ieee, accurate, tf32, fast (default)\n"
    "  --device NAME      auto, cpu, cuda:0, sim (auto)\n"
    "  --threads N        threads of the cpu (OMP_NUM_THREADS, or all)\n"
    "\n"
    "Examples:\n"
    "  tegula mm A.npy B.npy -o C.npy --trans-b --alpha 0.5\n"
    "  tegula mm weights.npz:W - -o - < x.npy > y.npy\n";

static bool take_beta(const char *text, void *options)
{
    mm_options *o = options;
    o->has_beta = true;
    return cli_parse_real("--beta", text, &o->beta);
}

static const cli_option option_table[] = {
    OPTIONS_COMMON,
    OPTIONS_RUN,
    OPTIONS_COMPUTE,
    OPTIONS_TRANS,
    OPTION_TYPE(problem_options, type, "type"),
    OPTION_TYPE(problem_options, type_d, "type-d"),
    {"output", 'o', CLI_TEXT, CLI_AT(const char *, mm_options, output), 0, 0, NULL, NULL},
    OPTION_REAL(mm_options, alpha, "alpha"),
    OPTION_TAKE("beta", take_beta),
    OPTION_TEXT(mm_options, c0, "c"),
    {0},
};

static const cli_syntax syntax = {.help = help, .table = option_table, .has_operands = true};

/* Whether the file name ends in ".npz" or contains ".npz:". Such an output file is refused, because
 * a later command would take it for an archive. */
static bool is_in_archive(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *suffix = strstr(slash != NULL ? slash : path, ".npz");
    return suffix != NULL && (suffix[4] == '\0' || suffix[4] == ':');
}

/* Checks the names of the files without opening them. Returns PARSED, or an exit code. */
static int check_names(mm_options *o)
{
    if (o->a[0] == '\0' || o->b[0] == '\0') return cli_misuse("the name of a file is empty");
    if (mm_is_stdin(o->a) + mm_is_stdin(o->b) + mm_is_stdin(o->c0) > 1)
        return cli_misuse("only one file can be -, standard input");
    if (is_in_archive(o->output))
        return cli_misuse("-o: the product is written as .npy, and not into an archive such as %s",
                          o->output);
    if (strcmp(o->output, "-") != 0) return PARSED;
    if (isatty(STDOUT_FILENO))
        return cli_misuse("-o -: standard output is a terminal, and the product is not text");
    o->output = "/dev/stdout";
    return PARSED;
}

static int parse(int argc, char **argv, mm_options *o)
{
    *o = (mm_options){.common = problem_options_start(), .alpha = 1};
    const int code = cli_parse(argc, argv, &syntax, o);
    if (code != PARSED) return code;
    if (argc - optind != 2) return cli_misuse("give two files to multiply, not %d", argc - optind);
    if (o->output == NULL) return cli_misuse("say where the product goes, with -o C.npy");
    if (o->has_beta && o->c0 == NULL)
        return cli_misuse("--beta needs the matrix it multiplies, with --c C0.npy");
    if (o->c0 != NULL && !o->has_beta) o->beta = 1;
    o->a = argv[optind];
    o->b = argv[optind + 1];
    return check_names(o);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* Refuses a product that does not fit in memory, because the system would kill the program in the
 * middle of it. Inputs that are mapped need no host memory, and others are in memory already.
 * False: refused, and the error has been printed. */
static bool fits_memory(tgl_device *dev, const mm_product *x, const mm_files *files)
{
    const double result = (double)mm_result_bytes(x), available = host_memory_available();
    const double all =
        result + (double)files->a.header.data_size + (double)files->b.header.data_size;
    const double on_device = cli_device_number(dev, TGL_NUMBER_MEMORY_BYTES);
    const tgl_problem *p = &x->problem;
    if (result > available)
        return cli_fail_false("the product of %" PRId64 " x %" PRId64
                              " elements needs %.1f GB of memory; %.1f "
                              "GB are available",
                              p->m, p->n, 1e-9 * result, 1e-9 * available);
    if (!cli_device_is_host(dev) && on_device > 0 && all > on_device)
        return cli_fail_false("the matrices need %.1f GB of memory; %s has %.1f GB", 1e-9 * all,
                              tgl_device_name(dev), 1e-9 * on_device);
    return true;
}

/* ---- The product ----------------------------------------------------------------------------- */

/* The operands of a product in memory that the device can access. */
typedef struct mm_memory {
    const void *A, *B, *c0;
    void *C;                         /* the result */
    void *a_copy, *b_copy, *c0_copy; /* copies in device memory; NULL: none, the device reads host
                                        memory or C0 was copied to C */
} mm_memory;

static tgl_status place_input(tgl_device *dev, const array_file *file, const void **place,
                              void **copy)
{
    if (cli_device_is_host(dev)) {
        *place = file->data;
        return TGL_OK;
    }
    const size_t size = file->header.data_size;
    CLI_TRY(tgl_alloc(dev, size, copy));
    *place = *copy;
    return tgl_upload(dev, *copy, file->data, size, NULL);
}

/* Makes the operands accessible to the device. If C0 has the type of the result, it is copied to C,
 * which the product then updates in place. */
static tgl_status place_operands(tgl_device *dev, const mm_product *x, const mm_files *files,
                                 bool reads_c0, mm_memory *memory)
{
    CLI_TRY(place_input(dev, &files->a, &memory->A, &memory->a_copy));
    CLI_TRY(place_input(dev, &files->b, &memory->B, &memory->b_copy));
    CLI_TRY(tgl_alloc(dev, mm_result_bytes(x), &memory->C));
    if (!reads_c0) return TGL_OK;
    if (x->problem.type_d != 0) return place_input(dev, &files->c0, &memory->c0, &memory->c0_copy);
    return tgl_upload(dev, memory->C, files->c0.data, mm_result_bytes(x), NULL);
}

static void release_memory(tgl_device *dev, mm_memory *memory)
{
    tgl_free(dev, memory->a_copy);
    tgl_free(dev, memory->b_copy);
    tgl_free(dev, memory->c0_copy);
    tgl_free(dev, memory->C);
}

static tgl_operands operands_of(const mm_product *x, const mm_options *o, const mm_memory *memory)
{
    const bool has_d = x->problem.type_d != 0;
    return (tgl_operands){.size = sizeof(tgl_operands),
                          .alpha = o->alpha,
                          .beta = o->beta,
                          .A = memory->A,
                          .B = memory->B,
                          .C = has_d ? (void *)memory->c0 : memory->C, /* c0 is only read */
                          .D = has_d ? memory->C : NULL};
}

/* Runs the plan once and waits until the result is complete. *seconds := the duration of the
 * run. */
static tgl_status run_plan_timed(tgl_device *dev, const tgl_plan *plan, const tgl_operands *given,
                                 double *seconds)
{
    tgl_timer *timer;
    CLI_TRY(tgl_timer_create(dev, &timer));
    tgl_status status = tgl_timer_start(timer, NULL);
    if (status == TGL_OK) status = tgl_plan_run_operands(plan, given, NULL);
    if (status == TGL_OK) status = tgl_timer_stop(timer, NULL, seconds);
    tgl_timer_destroy(timer);
    return status;
}

/* Writes the product from device memory to the output file. Returns an exit code. */
static int write_product(tgl_device *dev, const mm_product *x, const void *C, output_file *output)
{
    void *host = NULL;
    const size_t size = mm_result_bytes(x);
    if (!cli_device_is_host(dev) && size > 0) {
        host = malloc(size);
        if (host == NULL) return cli_fail("no %zu bytes of memory for the product", size);
        tgl_status status = tgl_download(dev, host, C, size, NULL);
        if (status != TGL_OK) {
            free(host);
            return cli_fail_status(status);
        }
        C = host;
    }
    char text[NPY_HEADER_MAX];
    const size_t length = npy_format(&x->result, text);
    const bool ok = output_file_write(output, text, length) && output_file_write(output, C, size);
    free(host);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

static void print_report(FILE *out, tgl_device *dev, const tgl_problem *p, const tgl_plan *plan,
                         double seconds)
{
    char batch[40] = "";
    if (p->batch != 1) snprintf(batch, sizeof batch, ", batch of %" PRId64 ",", p->batch);
    fprintf(out,
            "%" PRId64 " x %" PRId64 " x %" PRId64 " %s%s on %s, kernel %s: %.6f s, %.1f GFLOP/s\n",
            p->m, p->n, p->k, problem_type_label(p).text, batch, tgl_device_name(dev),
            tgl_plan_kernel(plan), seconds, seconds > 0 ? problem_flops(p) / seconds * 1e-9 : 0.0);
}

/* Prints that the report could not be printed; the caller then leaves the output file as it was.
 * Returns an exit code. */
static int fail_to_report(FILE *out, const char *output)
{
    const int error = errno;
    __fpurge(out); /* drops the unwritten text; else cli_finish() would print the error again */
    clearerr(out);
    return cli_fail("cannot write to standard %s: %s; %s stays as it was",
                    out == stdout ? "output" : "error", strerror(error), output);
}

/* Multiplies with a plan, prints a report, and replaces the output file. Returns an exit code. */
static int multiply_planned(tgl_device *dev, const mm_product *x, const tgl_plan *plan,
                            const mm_options *o, const mm_files *files, output_file *output)
{
    mm_memory memory = {0};
    double seconds = 0;
    tgl_status status = place_operands(dev, x, files, o->c0 != NULL && o->beta != 0, &memory);
    const tgl_operands given = operands_of(x, o, &memory);
    if (status == TGL_OK) {
        long_work work;
        long_work_start(&work, dev, &x->problem);
        status = run_plan_timed(dev, plan, &given, &seconds);
        long_work_end(&work);
    }
    int code = status != TGL_OK ? cli_fail_status(status) : write_product(dev, x, memory.C, output);
    release_memory(dev, &memory);
    if (code != EXIT_DONE) return code;
    /* If output->temporary is NULL, the product may go to standard output. The report then goes to
     * standard error. */
    FILE *report = output->temporary != NULL ? stdout : stderr;
    print_report(report, dev, &x->problem, plan, seconds);
    if (fflush(report) != 0 || ferror(report)) return fail_to_report(report, o->output);
    return output_file_commit(output) ? EXIT_DONE : EXIT_FAILED;
}

static int multiply(tgl_device *dev, const mm_product *x, const mm_options *o,
                    const mm_files *files)
{
    tgl_plan *plan;
    if (!fits_memory(dev, x, files)) return EXIT_FAILED;
    tgl_status status = tgl_plan_create(dev, &x->problem, NULL, &plan);
    if (status != TGL_OK) return cli_fail_status(status);
    output_file output;
    int code = EXIT_FAILED;
    /* The file is opened before the product is computed, so that a folder without write permission
     * is noticed at once and not after hours. */
    if (output_file_open(&output, o->output)) {
        code = multiply_planned(dev, x, plan, o, files, &output);
        output_file_close(&output);
    }
    tgl_plan_destroy(plan);
    return code;
}

/* Reading the mapping of a file that another program has shortened raises SIGBUS. */
static void on_bus_error(int number)
{
    static const char text[] = "tegula mm: an input file became shorter while it was read\n";
    (void)number;
    output_file_abandon();
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(EXIT_FAILED);
    _exit(EXIT_FAILED);
}

int command_mm(int argc, char **argv)
{
    mm_options options;
    int code = parse(argc, argv, &options);
    if (code != PARSED) return code;
    sigaction(SIGBUS, &(struct sigaction){.sa_handler = on_bus_error}, NULL);

    mm_files files;
    if (!mm_open_files(&options, &files)) return EXIT_FAILED;
    mm_product product;
    code = EXIT_MISUSE;
    if (mm_make_product(&options, &files, &product)) {
        tgl_device *dev = problem_open_device(&options.common, &code);
        if (dev != NULL) code = multiply(dev, &product, &options, &files);
        tgl_device_close(dev);
    }
    mm_close_files(&files);
    return code;
}
