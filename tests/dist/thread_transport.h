/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport between threads of a process. A message is copied from the sender's memory only when
 * the receiver waits for it, so that the sanitizers detect memory that is reused or freed too
 * early.
 */
#ifndef THREAD_TRANSPORT_H
#define THREAD_TRANSPORT_H

#include "tegula/dist.h"

typedef struct thread_world thread_world;

thread_world *thread_world_create(int ranks, double timeout_s);
void thread_world_destroy(thread_world *world);

/* Opens the communicator of a rank. Must be called by the rank's thread. */
tgl_status thread_open(thread_world *world, int rank, tgl_device *dev, tgl_dist **dist);

/* Runs function(rank, dist, dev, argument) in a thread for each rank, with a cpu device of one
 * thread. */
typedef void thread_rank(int rank, tgl_dist *dist, tgl_device *dev, void *argument);
void thread_run(int ranks, double timeout_s, thread_rank *function, void *argument);

#endif
