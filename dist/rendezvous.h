/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that the processes of one host share, in which ranks agree and tell each other where their
 * receive buffers are. All waiting ends after a timeout.
 */
#ifndef RENDEZVOUS_H
#define RENDEZVOUS_H

#include "gpu_driver.h"

enum {
    RENDEZVOUS_NAME = 64,
    RENDEZVOUS_SLOTS = 16, /* maximum number of receive buffers that one rank has announced to
                              another */
};

typedef struct rendezvous rendezvous;

/* A receive buffer that a rank announces to the sender. */
typedef struct rendezvous_buffer {
    uint64_t block; /* number of the allocation in its pool; never reused */
    uint64_t offset, bytes;
    CUipcMemHandle handle; /* IPC handle of the allocation */
} rendezvous_buffer;

/* Rank 0 makes the shared memory and its name, the other ranks join it. NULL: it failed. */
rendezvous *rendezvous_make(int ranks, double timeout_s, char name[RENDEZVOUS_NAME]);
rendezvous *rendezvous_join(int rank, int ranks, double timeout_s, const char *name);
/* Removes the name of the shared memory, so that no other process can join. */
void rendezvous_unlink(const char *name);
void rendezvous_close(rendezvous *r);

/* Tells the other ranks that this rank has lost contact to a rank: they must not use what this rank
 * sends from now on. */
void rendezvous_give_up(rendezvous *r);

/* Returns TGL_COMMUNICATION if a rank has given up. */
tgl_status rendezvous_check(const rendezvous *r);

/* Collective: an all-gather. all[r*bytes]: the bytes of rank r. Returns TGL_OK or
 * TGL_COMMUNICATION. */
tgl_status rendezvous_gather(rendezvous *r, const void *mine, void *all, size_t bytes);

/* Announces a receive buffer to rank `from`, which will fill it. *slot := its number, below
 * RENDEZVOUS_SLOTS. */
tgl_status rendezvous_post(rendezvous *r, int from, const rendezvous_buffer *buffer, int *slot);

/* Waits for the next receive buffer that rank `to` announces, and takes it. */
tgl_status rendezvous_take(rendezvous *r, int to, rendezvous_buffer *buffer, int *slot);

#endif
