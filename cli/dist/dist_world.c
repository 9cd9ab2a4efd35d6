/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks that `mpirun` has started.
 */
#include "dist_world.h"

#include "cli.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef tgl_status open_world(double timeout_s, tgl_dist_transport *transport);

/* Loads libtegula_mpi.so from the folder of this program, as in a build folder, else from where the
 * dynamic loader finds it. NULL: failed. */
static void *load(void)
{
    static const char name[] = "libtegula_mpi.so.0";
    char path[4096 + sizeof name];
    const ssize_t length = readlink("/proc/self/exe", path, 4096);
    if (length > 0) {
        path[length] = '\0';
        char *slash = strrchr(path, '/');
        memcpy(slash != NULL ? slash + 1 : path, name, sizeof name);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) return library;
    }
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

tgl_dist *dist_world_open(tgl_device *dev)
{
    void *library = load();
    if (library == NULL) {
        cli_fail("%s; it comes with a build where CMake finds MPI", dlerror());
        return NULL;
    }
    open_world *open = (open_world *)dlsym(library, "tgl_dist_mpi_world");
    tgl_dist_transport transport;
    tgl_dist *dist;
    tgl_status status = open != NULL ? open(0, &transport) : TGL_UNSUPPORTED;
    if (status == TGL_OK) status = tgl_dist_open(&transport, dev, NULL, &dist);
    if (status == TGL_OK) return dist;
    cli_fail("MPI does not start: %s", tgl_status_text(status));
    return NULL;
}

int dist_fail_status(const tgl_dist *dist, tgl_status status)
{
    char text[512];
    if (tgl_dist_last_error(text, sizeof text) == 0)
        snprintf(text, sizeof text, "%s", tgl_status_text(status));
    return tgl_dist_rank(dist) == 0 ? cli_fail("%s", text) : EXIT_FAILED;
}
