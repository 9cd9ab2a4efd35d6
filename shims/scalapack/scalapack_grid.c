/* SPDX-License-Identifier: Apache-2.0
 *
 * The process grids of BLACS. BLACS keeps an MPI communicator for each grid. The libtegula_dist
 * communicator of the grid is stored as an attribute of that MPI communicator: when
 * blacs_gridexit() frees the MPI communicator, MPI calls close_dist(), which closes the
 * libtegula_dist communicator.
 *
 * The functions of BLACS are looked up at run time, because BLACS belongs to the program.
 */
#include "scalapack_grid.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct {
    tgl_device *dev; /* never closed; NULL: it could not be opened */
    bool has_blacs;
    int key; /* of the attribute, from MPI_Comm_create_keyval() */
    void (*get)(const int *context, const int *what, int *value);
    void (*grid_info)(const int *context, int *rows, int *columns, int *row, int *column);
} process;

static int close_dist(MPI_Comm comm, int key, void *dist, void *extra)
{
    (void)comm, (void)key, (void)extra;
    tgl_dist_close(dist);
    return MPI_SUCCESS;
}

static void start(void)
{
    process.get = (void (*)(const int *, const int *, int *))dlsym(RTLD_DEFAULT, "blacs_get_");
    process.grid_info =
        (void (*)(const int *, int *, int *, int *, int *))dlsym(RTLD_DEFAULT, "blacs_gridinfo_");
    if (process.get == NULL || process.grid_info == NULL) return;
    process.has_blacs = true;
    if (tgl_device_open("cpu", NULL, &process.dev) != TGL_OK)
        fprintf(stderr, "tegula_scalapack: the device cpu does not open\n");
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_dist, &process.key, NULL);
}

/* The MPI communicator that BLACS keeps for the grid. MPI_COMM_NULL: there is none, or its ranks
 * are not those of the grid in row-major order. */
static MPI_Comm communicator_of(int context, const scalapack_grid *grid)
{
    /* With this value, SGET_BLACSCONTXT, blacs_get() returns the communicator of a grid. */
    const int context_of_grid = 10;
    int handle, rank, ranks;
    process.get(&context, &context_of_grid, &handle);
    const MPI_Comm comm = MPI_Comm_f2c(handle);
    if (comm == MPI_COMM_NULL) return comm;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    return rank == grid->rank && ranks == grid->rows * grid->columns ? comm : MPI_COMM_NULL;
}

/* Collective: whether `mine` is true on all ranks. */
static bool all_of(MPI_Comm comm, bool mine)
{
    int own = mine, all = 0;
    return MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all != 0;
}

/* Collective: opens a libtegula_dist communicator on all ranks; NULL on all ranks if one has no
 * device or fails. There is no timeout, as in ScaLAPACK: a rank may come late. */
static tgl_dist *open_dist(MPI_Comm comm)
{
    const tgl_mpi_options options = {.size = sizeof options, .timeout_s = INFINITY};
    tgl_dist *dist = NULL;
    if (!all_of(comm, process.dev != NULL)) return NULL;
    const tgl_status status = tgl_dist_open_mpi(comm, process.dev, &options, &dist);
    if (all_of(comm, status == TGL_OK)) return dist;
    tgl_dist_close(dist);
    return NULL;
}

bool scalapack_grid_of(int context, scalapack_grid *grid)
{
    pthread_once(&once, start);
    if (!process.has_blacs) return false;
    int row, column, found = 0;
    process.grid_info(&context, &grid->rows, &grid->columns, &row, &column);
    if (row < 0 || column < 0) return false;
    grid->rank = row * grid->columns + column;
    const MPI_Comm comm = communicator_of(context, grid);
    if (comm == MPI_COMM_NULL) return false;
    void *attribute = NULL;
    MPI_Comm_get_attr(comm, process.key, &attribute, &found);
    if (!found) {
        attribute = open_dist(comm);
        MPI_Comm_set_attr(comm, process.key, attribute);
    }
    grid->dist = attribute;
    return attribute != NULL;
}
