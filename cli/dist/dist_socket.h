/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends some bytes from rank 0 to the processes of the other ranks, on any host, by TCP.
 */
#ifndef CLI_DIST_SOCKET_H
#define CLI_DIST_SOCKET_H

#include <stdbool.h>

enum { DIST_SOCKET_BYTES = 128 };

/* For rank 0: waits until each other rank has asked on this port, and gives it the bytes. bytes:
 * NULL: tells all ranks that there are none. False: failed, for example because a rank has not
 * asked within the timeout, and the error has been printed. */
bool dist_socket_give(int port, int ranks, const unsigned char *bytes, double timeout_s);

/* The other ranks: asks rank 0 on this host and port. false: no bytes, which this
 * rank or rank 0 reports. */
bool dist_socket_ask(const char *host, int port, int rank, int ranks,
                     unsigned char bytes[DIST_SOCKET_BYTES], double timeout_s);

#endif
