/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes from rank 0 to processes of other hosts, by TCP.
 */
#ifndef CLI_DIST_SOCKET_H
#define CLI_DIST_SOCKET_H

#include <stdbool.h>

enum { DIST_SOCKET_BYTES = 128 };

/* Rank 0: waits until each other rank has asked on this port, and gives it the bytes; NULL: tells
 * all that there are none. false: a rank has not asked within the timeout, which is reported. */
bool dist_socket_give(int port, int ranks, const unsigned char *bytes, double timeout_s);

/* The other ranks: asks rank 0 on this host and port. false: no bytes, which this
 * rank or rank 0 reports. */
bool dist_socket_ask(const char *host, int port, int rank, int ranks,
                     unsigned char bytes[DIST_SOCKET_BYTES], double timeout_s);

#endif
