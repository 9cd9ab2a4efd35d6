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
    RENDEZVOUS_SLOTS = 16, /* receive buffers that a rank has announced to another one, at most */
};

typedef struct rendezvous rendezvous;

/* A buffer in which a rank expects a message. */
typedef struct rendezvous_buffer {
    uint64_t block; /* number of the allocation, never used again */
    uint64_t offset, bytes;
    CUipcMemHandle handle; /* of the allocation */
} rendezvous_buffer;

/* The first rank makes the memory and its name; the others open it. NULL: it is not to be had. */
rendezvous *rendezvous_make(int ranks, double timeout_s, char name[RENDEZVOUS_NAME]);
rendezvous *rendezvous_join(int rank, int ranks, double timeout_s, const char *name);
/* Removes the name: no other rank joins from now on. */
void rendezvous_unlink(const char *name);
void rendezvous_close(rendezvous *r);

/* This rank has lost another one, and what it has sent since is not to be used. */
void rendezvous_give_up(rendezvous *r);

/* TGL_COMMUNICATION if a rank has given up. */
tgl_status rendezvous_check(const rendezvous *r);

/* all[r*bytes] := mine of rank r. TGL_COMMUNICATION. */
tgl_status rendezvous_gather(rendezvous *r, const void *mine, void *all, size_t bytes);

/* Announces a buffer to the rank that fills it. *slot := its number, below RENDEZVOUS_SLOTS. */
tgl_status rendezvous_post(rendezvous *r, int from, const rendezvous_buffer *buffer, int *slot);

/* Takes the next buffer that the rank `to` has announced. */
tgl_status rendezvous_take(rendezvous *r, int to, rendezvous_buffer *buffer, int *slot);

#endif
