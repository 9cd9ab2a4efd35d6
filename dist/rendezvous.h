/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that the processes of one host share. In it, ranks exchange a few bytes and tell each
 * other where their receive buffers are. All waiting ends after a timeout.
 */
#ifndef RENDEZVOUS_H
#define RENDEZVOUS_H

#include "gpu_driver.h"

enum {
    RENDEZVOUS_NAME = 64,  /* bytes of a name */
    RENDEZVOUS_SLOTS = 16, /* maximum number of receive buffers that a rank has announced to a
                              sender and that the sender has not taken yet */
};

typedef struct rendezvous rendezvous;

/* A receive buffer that a rank announces to the rank that will fill it: `bytes` bytes of a block of
 * its pool (gpu_pool.h), from byte `offset` on. */
typedef struct rendezvous_buffer {
    uint64_t block; /* number of the block, never reused */
    uint64_t offset, bytes;
    CUipcMemHandle handle; /* IPC handle of the block */
} rendezvous_buffer;

/* Rank 0 makes the shared memory and sets its name; the other ranks join it by this name. Both
 * functions return NULL after a failure. */
rendezvous *rendezvous_make(int ranks, double timeout_s, char name[RENDEZVOUS_NAME]);
rendezvous *rendezvous_join(int rank, int ranks, double timeout_s, const char *name);
/* Removes the name of the shared memory, so that no other process can join. */
void rendezvous_unlink(const char *name);
void rendezvous_close(rendezvous *r);

/* Tells the other ranks that this rank has lost contact to some rank. The other ranks must then not
 * use what this rank sends from now on. */
void rendezvous_give_up(rendezvous *r);

/* Returns TGL_COMMUNICATION if a rank has given up. */
tgl_status rendezvous_check(const rendezvous *r);

/* Collective: an all-gather. all[r*bytes]: the bytes of rank r. Returns TGL_OK or, if a rank has
 * given up, does not answer or passes another `bytes`, TGL_COMMUNICATION. */
tgl_status rendezvous_gather(rendezvous *r, const void *mine, void *all, size_t bytes);

/* Announces a receive buffer to rank `from`, which will fill it. *slot := the place of the
 * announcement, below RENDEZVOUS_SLOTS. rendezvous_take() gives the sender the same number. */
tgl_status rendezvous_post(rendezvous *r, int from, const rendezvous_buffer *buffer, int *slot);

/* Waits until rank `to` announces the next receive buffer to this rank, and takes the
 * announcement. */
tgl_status rendezvous_take(rendezvous *r, int to, rendezvous_buffer *buffer, int *slot);

#endif
