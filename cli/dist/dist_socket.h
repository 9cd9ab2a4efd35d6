/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends DIST_SOCKET_BYTES bytes from rank 0 to the processes of the other ranks, on any host, by
 * TCP.
 */
#ifndef CLI_DIST_SOCKET_H
#define CLI_DIST_SOCKET_H

#include <stdbool.h>

enum { DIST_SOCKET_BYTES = 128 };

/* For rank 0: waits until each other rank has asked on this port, and gives them the bytes. No rank
 * gets them if `bytes` is NULL or a rank is not ready; the function then returns false, as it does
 * if a rank has not asked within the timeout. The rank that failed prints the error. */
bool dist_socket_give(int port, int ranks, const unsigned char *bytes, double timeout_s);

/* For the other ranks: asks rank 0 on this host and port for the bytes. is_ready: false: this rank
 * has failed, and no rank shall get the bytes. Returns whether this rank got the bytes. */
bool dist_socket_ask(const char *host, int port, int rank, int ranks, bool is_ready,
                     unsigned char bytes[DIST_SOCKET_BYTES], double timeout_s);

#endif
