/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula mm`: multiplies two matrices in NumPy files.
 *
 * The inputs are mapped and, on a device that works on host memory, multiplied where they lie: a
 * file in Fortran order is the row-major file of the transposed matrix, so it is handed over with
 * its transpose flag turned round.
 */
#include "cli.h"
#include "npy.h"
#include "output_file.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: tegula mm A.npy B.npy -o C.npy [OPTIONS]\n"
    "\n"
    "C := alpha*op(A)*op(B) + beta*C0, for NumPy files of float32 or float64 matrices.\n"
    "\n"
    "  -o, --output FILE  where C goes; may be one of the inputs, or /dev/stdout\n"
    "  --alpha X          factor of the product (1)\n"
    "  --c FILE           the matrix C0; C takes its order, C or Fortran\n"
    "  --beta X           factor of C0 (1)\n"
    "  --trans-a          op(A) is A transposed\n"
    "  --trans-b          op(B) is B transposed\n"
    "  --compute MODE     arithmetic: default, ieee, accurate, tf32 (default)\n"
    "  --device NAME      auto, cpu, cuda:0, sim (auto)\n"
    "  --threads N        threads of the cpu (OMP_NUM_THREADS, or all)\n"
    "\n"
    "Example:\n"
    "  tegula mm A.npy B.npy -o C.npy --trans-b --alpha 0.5\n";

enum { OPT_ALPHA = OPT_COMMAND, OPT_BETA, OPT_C };

static const struct option option_table[] = {
    CLI_OPTION_HELP,
    CLI_OPTION_DEVICE,
    CLI_OPTION_THREADS,
    CLI_OPTION_COMPUTE,
    CLI_OPTION_TRANS_A,
    CLI_OPTION_TRANS_B,
    {"output", required_argument, NULL, 'o'},
    {"alpha", required_argument, NULL, OPT_ALPHA},
    {"beta", required_argument, NULL, OPT_BETA},
    {"c", required_argument, NULL, OPT_C},
    {0},
};

typedef struct mm_options {
    const char *a, *b, *c0, *output; /* c0: NULL if there is none */
    double alpha, beta;
    bool has_beta, trans_a, trans_b;
    tgl_compute compute;
    const char *device;
    int threads;
} mm_options;

/* One option's value; false: reported. */
static bool take_option(int option, mm_options *o)
{
    switch (option) {
    case 'o':
        o->output = optarg;
        return true;
    case OPT_ALPHA:
        return cli_parse_real("--alpha", optarg, &o->alpha);
    case OPT_BETA:
        o->has_beta = true;
        return cli_parse_real("--beta", optarg, &o->beta);
    case OPT_C:
        o->c0 = optarg;
        return true;
    case OPT_COMPUTE:
        return cli_parse_compute(optarg, &o->compute);
    case OPT_TRANS_A:
        o->trans_a = true;
        return true;
    case OPT_TRANS_B:
        o->trans_b = true;
        return true;
    case OPT_DEVICE:
        o->device = optarg;
        return true;
    case OPT_THREADS:
        return cli_parse_threads(optarg, &o->threads);
    default:
        return false;
    }
}

static int parse(int argc, char **argv, mm_options *o)
{
    *o = (mm_options){.alpha = 1, .device = "auto"};
    for (int option; (option = cli_next_option(argc, argv, "o:h", option_table)) != -1;) {
        if (option == OPT_HELP || option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (!take_option(option, o)) return EXIT_MISUSE;
    }
    if (argc - optind != 2) return cli_misuse("give two files to multiply, not %d", argc - optind);
    if (o->output == NULL) return cli_misuse("say where the product goes, with -o C.npy");
    if (o->has_beta && o->c0 == NULL)
        return cli_misuse("--beta needs the matrix it multiplies, with --c C0.npy");
    if (o->c0 != NULL && !o->has_beta) o->beta = 1;
    o->a = argv[optind];
    o->b = argv[optind + 1];
    return PARSED;
}

/* ---- The files ------------------------------------------------------------------------------- */

typedef struct mm_files {
    npy_file a, b, c0; /* c0: all zeros if there is none */
} mm_files;

static bool open_input(const char *path, npy_file *file)
{
    char message[256];
    if (npy_open(path, file, message, sizeof message)) return true;
    cli_fail("%s: %s", path, message);
    return false;
}

static void close_files(mm_files *files)
{
    npy_close(&files->a);
    npy_close(&files->b);
    npy_close(&files->c0);
}

static bool open_files(const mm_options *o, mm_files *files)
{
    *files = (mm_files){0};
    if (open_input(o->a, &files->a) && open_input(o->b, &files->b) &&
        (o->c0 == NULL || open_input(o->c0, &files->c0)))
        return true;
    close_files(files);
    return false;
}

static const char *numpy_type(tgl_type type)
{
    return type == TGL_F32 ? "float32" : "float64";
}

/* The problem that the files and options describe; false: they do not fit, and this is reported. */
static bool make_problem(const mm_options *o, const mm_files *files, tgl_problem *problem)
{
    const npy_header *a = &files->a.header, *b = &files->b.header, *c0 = &files->c0.header;
    const int64_t m = o->trans_a ? a->columns : a->rows, k = o->trans_a ? a->rows : a->columns;
    const int64_t k_of_b = o->trans_b ? b->columns : b->rows;
    const int64_t n = o->trans_b ? b->rows : b->columns;
    const bool has_c0 = o->c0 != NULL;
    if (a->type != b->type || (has_c0 && c0->type != a->type)) {
        const bool b_differs = a->type != b->type;
        cli_fail("%s is %s and %s is %s: convert one with astype() in NumPy", o->a,
                 numpy_type(a->type), b_differs ? o->b : o->c0,
                 numpy_type(b_differs ? b->type : c0->type));
        return false;
    }
    if (k != k_of_b) {
        cli_fail("op(A) is %" PRId64 " x %" PRId64 " and op(B) is %" PRId64 " x %" PRId64
                 ": the columns of the one must be as many as the rows of the other; is a "
                 "--trans-a or --trans-b missing?",
                 m, k, k_of_b, n);
        return false;
    }
    if (has_c0 && (c0->rows != m || c0->columns != n)) {
        cli_fail("%s is %" PRId64 " x %" PRId64 ", the product is %" PRId64 " x %" PRId64
                 ": they must be the same",
                 o->c0, c0->rows, c0->columns, m, n);
        return false;
    }
    *problem = cli_problem(a->type, m, n, k);
    const bool by_columns = has_c0 && c0->fortran_order;
    if (by_columns) problem->order = TGL_COL_MAJOR;
    problem->trans_a = o->trans_a != (a->fortran_order != by_columns) ? TGL_TRANS : TGL_NO_TRANS;
    problem->trans_b = o->trans_b != (b->fortran_order != by_columns) ? TGL_TRANS : TGL_NO_TRANS;
    problem->compute = o->compute;
    if (tgl_problem_check(problem) == TGL_OK) return true;
    char message[256];
    tgl_last_error(message, sizeof message);
    cli_fail("%s", message);
    return false;
}

/* ---- The product ----------------------------------------------------------------------------- */

/* The memory of the device that a product works on. */
typedef struct mm_memory {
    const void *A, *B;
    void *C;
    void *a_copy, *b_copy; /* NULL where the file's own memory serves */
} mm_memory;

static tgl_status place_input(tgl_device *dev, const npy_file *file, const void **place,
                              void **copy)
{
    if (cli_device_is_host(dev)) {
        *place = file->data;
        return TGL_OK;
    }
    const size_t size = file->header.data_size;
    tgl_status status = tgl_alloc(dev, size, copy);
    if (status == TGL_OK) status = tgl_upload(dev, *copy, file->data, size, NULL);
    *place = *copy;
    return status;
}

static tgl_status place(tgl_device *dev, const mm_files *files, size_t c_size, bool read_c,
                        mm_memory *memory)
{
    tgl_status status = place_input(dev, &files->a, &memory->A, &memory->a_copy);
    if (status == TGL_OK) status = place_input(dev, &files->b, &memory->B, &memory->b_copy);
    if (status == TGL_OK) status = tgl_alloc(dev, c_size, &memory->C);
    if (status == TGL_OK && read_c)
        status = tgl_upload(dev, memory->C, files->c0.data, c_size, NULL);
    return status;
}

/* Runs the plan once, timed. */
static tgl_status run(tgl_device *dev, const tgl_plan *plan, const mm_options *o,
                      const mm_memory *memory, double *seconds)
{
    tgl_timer *timer;
    tgl_status status = tgl_timer_create(dev, &timer);
    if (status != TGL_OK) return status;
    status = tgl_timer_start(timer, NULL);
    if (status == TGL_OK)
        status = tgl_plan_run(plan, o->alpha, memory->A, memory->B, o->beta, memory->C, NULL);
    if (status == TGL_OK) status = tgl_timer_stop(timer, NULL, seconds);
    tgl_timer_destroy(timer);
    return status;
}

/* Writes the product, which lies in memory of the device. */
static int write_product(tgl_device *dev, const tgl_problem *problem, const void *C, size_t size,
                         output_file *output)
{
    void *host = NULL;
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
    const npy_header header = {.type = problem->type_c,
                               .fortran_order = problem->order == TGL_COL_MAJOR,
                               .rows = problem->m,
                               .columns = problem->n};
    char text[NPY_HEADER_MAX];
    const size_t length = npy_format(&header, text);
    const bool ok = output_file_write(output, text, length) && output_file_write(output, C, size);
    free(host);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

static void print_report(FILE *out, tgl_device *dev, const tgl_problem *p, const tgl_plan *plan,
                         double seconds)
{
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    fprintf(out,
            "%" PRId64 " x %" PRId64 " x %" PRId64 " %s on %s, kernel %s: %.6f s, %.1f GFLOP/s\n",
            p->m, p->n, p->k, cli_type_name(p->type_c), tgl_device_name(dev), tgl_plan_kernel(plan),
            seconds, seconds > 0 ? flops / seconds * 1e-9 : 0.0);
}

/* Multiplies with a plan at hand, and puts the file in its place. */
static int multiply_planned(tgl_device *dev, const tgl_problem *problem, const tgl_plan *plan,
                            const mm_options *o, const mm_files *files, output_file *output)
{
    /* The problem was checked, so its bytes fit. */
    const size_t size = (size_t)problem->m * (size_t)problem->n * tgl_type_size(problem->type_c);
    mm_memory memory = {0};
    double seconds = 0;
    tgl_status status = place(dev, files, size, o->c0 != NULL && o->beta != 0, &memory);
    if (status == TGL_OK) status = run(dev, plan, o, &memory, &seconds);
    int code = status != TGL_OK ? cli_fail_status(status)
                                : write_product(dev, problem, memory.C, size, output);
    tgl_free(dev, memory.a_copy);
    tgl_free(dev, memory.b_copy);
    tgl_free(dev, memory.C);
    if (code != EXIT_DONE) return code;
    /* Beside a product that goes to standard output there is no room for a line of text. */
    FILE *report = output->temporary != NULL ? stdout : stderr;
    if (!output_file_commit(output)) return EXIT_FAILED;
    print_report(report, dev, problem, plan, seconds);
    return EXIT_DONE;
}

static int multiply(tgl_device *dev, const tgl_problem *problem, const mm_options *o,
                    const mm_files *files)
{
    tgl_plan *plan;
    tgl_status status = tgl_plan_create(dev, problem, NULL, &plan);
    if (status != TGL_OK) return cli_fail_status(status);
    output_file output;
    int code = EXIT_FAILED;
    /* Before the work, so that a folder that cannot be written does not cost hours. */
    if (output_file_open(&output, o->output)) {
        code = multiply_planned(dev, problem, plan, o, files, &output);
        output_file_close(&output);
    }
    tgl_plan_destroy(plan);
    return code;
}

/* A mapped file that another program cuts short while it is read raises SIGBUS. */
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
    if (!open_files(&options, &files)) return EXIT_FAILED;
    tgl_problem problem;
    code = EXIT_FAILED;
    if (make_problem(&options, &files, &problem)) {
        tgl_device *dev = cli_open_device(options.device, options.threads);
        if (dev != NULL) code = multiply(dev, &problem, &options, &files);
        tgl_device_close(dev);
    }
    close_files(&files);
    return code;
}
