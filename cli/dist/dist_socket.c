/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank connects to rank 0 and sends a question with its number. When all ranks have asked, or
 * after the timeout, rank 0 answers all that have asked. A connection that sends anything else gets
 * no answer.
 */
#include "dist_socket.h"

#include "cli.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The message of a rank to rank 0. Its numbers are in the byte order of the sender, which all ranks
 * have, because they run on machines of one kind. */
typedef struct question {
    char magic[8];
    int32_t rank, ranks, is_ready;
} question;

typedef struct answer {
    int32_t has_bytes;
    unsigned char bytes[DIST_SOCKET_BYTES];
} answer;

static const char magic[8] = "tegula2";

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Whether there is something to read before the deadline: data, or the end of the connection. */
static bool wait_until(int fd, double deadline)
{
    const double left = deadline - now();
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return left > 0 && poll(&one, 1, (int)(1e3 * left) + 1) > 0;
}

static bool receive_all(int fd, void *data, size_t bytes, double deadline)
{
    char *at = data;
    while (bytes > 0) {
        const ssize_t got = wait_until(fd, deadline) ? recv(fd, at, bytes, 0) : -1;
        if (got <= 0) return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

static bool send_all(int fd, const void *data, size_t bytes)
{
    return send(fd, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes; /* the message is so short that it
                                                                     fits in the socket's buffer */
}

/* ---- Rank 0 ---------------------------------------------------------------------------------- */

/* Opens a socket that listens on this port: for IPv6 and IPv4, or else for IPv4 alone. -1:
 * failed. */
static int listen_on(int port)
{
    const struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = htons((uint16_t)port)};
    const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int on = 1, off = 0;
    for (int family = 0; family < 2; family++) {
        const int fd = socket(family == 0 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (family == 0) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        const struct sockaddr *address =
            family == 0 ? (const struct sockaddr *)&six : (const struct sockaddr *)&four;
        if (bind(fd, address, family == 0 ? sizeof six : sizeof four) == 0 &&
            listen(fd, SOMAXCONN) == 0)
            return fd;
        close(fd);
    }
    return -1;
}

/* Raises the limit of open files of this process to its maximum, because rank 0 has a socket for
 * each other rank. */
static void raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

/* The ranks that have asked so far. */
typedef struct meeting {
    int ranks, missing;
    bool are_ready;
    int *sockets; /* [ranks]; -1: the rank has not asked */
} meeting;

/* Takes one connection, which stays open if it is that of a rank. False: this process cannot have
 * more sockets, and the error has been printed. */
static bool welcome(meeting *m, int listening)
{
    enum { PATIENCE = 5 }; /* seconds for a question of 20 bytes */
    question asked;
    const int fd = accept(listening, NULL, NULL);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return cli_fail_false("rank 0 cannot take the connections of %d ranks: %s", m->ranks - 1,
                              strerror(errno));
    if (fd < 0) return true;
    if (!receive_all(fd, &asked, sizeof asked, now() + PATIENCE) ||
        memcmp(asked.magic, magic, sizeof magic) != 0 || asked.ranks != m->ranks ||
        asked.rank < 1 || asked.rank >= m->ranks) {
        close(fd);
        return true;
    }
    if (m->sockets[asked.rank] >= 0)
        close(m->sockets[asked.rank]); /* the rank has lost this connection and asks again */
    else
        m->missing--;
    m->sockets[asked.rank] = fd;
    m->are_ready = m->are_ready && asked.is_ready != 0;
    return true;
}

/* Answers all ranks that have asked, and closes their connections. bytes: what they get; NULL: the
 * answer is that there are no bytes. */
static void answer_all(const meeting *m, const unsigned char *bytes)
{
    answer given = {.has_bytes = bytes != NULL};
    if (bytes != NULL) memcpy(given.bytes, bytes, sizeof given.bytes);
    for (int rank = 1; rank < m->ranks; rank++) {
        if (m->sockets[rank] < 0) continue;
        (void)send_all(m->sockets[rank], &given, sizeof given);
        close(m->sockets[rank]);
    }
}

bool dist_socket_give(int port, int ranks, const unsigned char *bytes, double timeout_s)
{
    const double deadline = now() + timeout_s;
    meeting m = {ranks, ranks - 1, true, malloc(sizeof(int) * (size_t)ranks)};
    if (m.sockets == NULL) return cli_fail_false("no memory for %d ranks", ranks);
    for (int rank = 0; rank < ranks; rank++)
        m.sockets[rank] = -1;
    raise_file_limit();
    const int fd = listen_on(port);
    bool has_room = true;
    while (fd >= 0 && m.missing > 0 && has_room && wait_until(fd, deadline))
        has_room = welcome(&m, fd);
    const bool has_all = m.missing == 0 && m.are_ready && bytes != NULL;
    answer_all(&m, has_all ? bytes : NULL);
    free(m.sockets);
    if (fd < 0) return cli_fail_false("rank 0 cannot listen on port %d", port);
    close(fd);
    if (m.missing > 0 && has_room)
        cli_fail("%d of %d ranks have not come to port %d of rank 0 within %.0f seconds", m.missing,
                 ranks, port, timeout_s);
    return has_all;
}

/* ---- The other ranks ------------------------------------------------------------------------- */

/* Tries to connect to each address of the host once. Returns the socket; -1: failed. */
static int connect_once(const char *host, int port)
{
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char service[16];
    int fd = -1;
    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &wanted, &list) != 0) return -1;
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

bool dist_socket_ask(const char *host, int port, int rank, int ranks, bool is_ready,
                     unsigned char bytes[DIST_SOCKET_BYTES], double timeout_s)
{
    const double deadline = now() + timeout_s;
    question asked = {.rank = rank, .ranks = ranks, .is_ready = is_ready};
    answer given = {.has_bytes = 0};
    bool ok = false;
    memcpy(asked.magic, magic, sizeof magic);
    while (!ok && now() < deadline) { /* repeats, because rank 0 may start later */
        const int fd = connect_once(host, port);
        ok = fd >= 0 && send_all(fd, &asked, sizeof asked) &&
             receive_all(fd, &given, sizeof given, deadline);
        if (fd >= 0) close(fd);
        if (!ok) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    if (!ok)
        return cli_fail_false("rank %d: rank 0 does not answer on %s port %d within %.0f seconds",
                              rank, host, port, timeout_s);
    memcpy(bytes, given.bytes, sizeof given.bytes);
    return given.has_bytes != 0;
}
