/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that torchrun or srun has started. Environment variables tell a rank its number. Rank 0
 * sends NCCL's unique id to the other ranks by TCP.
 */
#include "dist_launched.h"

#include "cli.h"
#include "dist_socket.h"
#include "tegula/nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns: the environment variables with the rank of this process, the number of ranks, the rank
 * among those of the host, and the list of hosts, of which the first one runs rank 0. See
 * torchrun(1), and srun(1), "OUTPUT ENVIRONMENT VARIABLES". SLURM_STEP_NUM_TASKS is not set in a
 * batch script, which is not a rank, and is 1 in a shell that srun has started. */
typedef struct launcher {
    const char *rank, *ranks, *local, *hosts;
} launcher;

static const launcher torchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"};
static const launcher srun = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                              "SLURM_STEP_NODELIST"};

/* Environment variables that MPI launchers set: the first is set by Open MPI, the second by MPICH
 * and by srun --mpi=pmi2, the third by launchers with PMIx. */
static const char *const of_mpi[] = {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"};

static bool has_set(const launcher *l)
{
    return getenv(l->rank) != NULL && getenv(l->ranks) != NULL && getenv(l->local) != NULL &&
           getenv(l->hosts) != NULL;
}

/* The launcher of this process; NULL: an MPI launcher, or none. A torchrun that srun has started
 * passes the variables of Slurm and MPI on to its ranks, so the variables of torchrun are looked up
 * first. */
static const launcher *find_launcher(void)
{
    if (has_set(&torchrun)) return &torchrun;
    for (size_t i = 0; i < sizeof of_mpi / sizeof of_mpi[0]; i++)
        if (getenv(of_mpi[i]) != NULL) return NULL;
    const char *tasks = getenv(srun.ranks);
    const bool is_alone = tasks != NULL && strcmp(tasks, "1") == 0;
    return has_set(&srun) && !is_alone ? &srun : NULL;
}

bool dist_is_launched(void)
{
    return find_launcher() != NULL;
}

/* The number in an environment variable, from 0 to `max`. -1: it has no such number, and the error
 * has been printed. */
static int read_number(const char *name, int max)
{
    const char *text = getenv(name);
    char *end = NULL;
    const long value = text != NULL ? strtol(text, &end, 10) : -1;
    if (text != NULL && end != text && *end == '\0' && value >= 0 && value <= max)
        return (int)value;
    cli_misuse("the variable %s is \"%s\", and not a number of 0 to %d", name,
               text != NULL ? text : "", max);
    return -1;
}

/* Writes the first host of a list: for "a[03-05,09]-b,c7" it is "a03-b". */
static void first_host(const char *list, char *host, size_t size)
{
    size_t length = 0;
    for (const char *at = list; *at != '\0' && *at != ','; at++) {
        if (*at != '[') {
            if (length + 1 < size) host[length++] = *at;
            continue;
        }
        for (at++; *at != '\0' && strchr(",-]", *at) == NULL; at++)
            if (length + 1 < size) host[length++] = *at;
        at += strcspn(at, "]");
        if (*at == '\0') break;
    }
    host[length] = '\0';
}

/* Where rank 0 listens. The port is not MASTER_PORT itself, at which torchrun's store listens. */
typedef struct meeting_point {
    char host[256];
    int port;
} meeting_point;

static bool find_meeting_point(const launcher *l, meeting_point *m)
{
    const char *given = getenv("MASTER_ADDR"), *list = getenv(l->hosts);
    if (given != NULL)
        snprintf(m->host, sizeof m->host, "%s", given);
    else if (list != NULL)
        first_host(list, m->host, sizeof m->host);
    if (getenv("MASTER_PORT") != NULL) {
        m->port = read_number("MASTER_PORT", 65534) + 1;
        return m->port > 0;
    }
    /* The port depends on the job and the step of Slurm, so that other steps on the same host
     * usually have other ports. */
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    m->port = 20000 + (int)((strtoul(job != NULL ? job : "0", NULL, 10) +
                             7 * strtoul(step != NULL ? step : "0", NULL, 10)) %
                            10000);
    return true;
}

static bool bring_id(const dist_gpu_rank *r, void *where, bool is_ready, unsigned char *id)
{
    enum { PATIENCE = 120 }; /* seconds, for ranks that start late */
    const meeting_point *m = where;
    if (r->rank > 0)
        return dist_socket_ask(m->host, m->port, r->rank, r->ranks, is_ready, id, PATIENCE);
    return dist_socket_give(m->port, r->ranks, is_ready ? id : NULL, PATIENCE);
}

int dist_launched_run(dist_gpu_function *function, const void *argument)
{
    enum { RANKS = 1 << 16 };
    const launcher *l = find_launcher();
    meeting_point m = {.port = 0};
    if (l == NULL || !find_meeting_point(l, &m)) return EXIT_MISUSE;
    const int ranks = read_number(l->ranks, RANKS);
    const int rank = ranks > 0 ? read_number(l->rank, ranks - 1) : -1;
    const int local = rank >= 0 ? read_number(l->local, rank) : -1;
    if (local < 0) return EXIT_MISUSE;
    const dist_gpu_rank r = {.rank = rank, .ranks = ranks, .gpu = local, .may_see_one = true};
    return dist_gpu_run(&r, bring_id, &m, function, argument);
}
