/* SPDX-License-Identifier: Apache-2.0
 *
 * The process in which a reader's kernel is compiled and run. It is the leader of its own session,
 * for two reasons: a signal that the reader's kernel sends to its process group does not reach the
 * program, and the program can end the compiler together with the process. The results are in
 * memory that both processes share.
 */
#include "learn_process.h"
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECONDS_MAX = 9,       /* limit of processor time */
    WALL_SECONDS_MAX = 30, /* limit of elapsed time: a kernel may sleep, and a compiler may wait for
                              input */
};

/* MEMORY_MAX: limit in bytes of the memory that this process and the compiler may map; a check
 * needs 0.6 GB. FILE_MAX: limit in bytes of a file. A build with the address or thread sanitizer
 * has no limit of memory, because it maps terabytes. */
static const rlim_t MEMORY_MAX = (rlim_t)4 << 30, FILE_MAX = (rlim_t)256 << 20;

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

typedef struct report {
    bool is_done, is_solved;
    void *volatile fault; /* the address that caused a SIGSEGV or SIGBUS */
} report;

static report *shared_report; /* in memory that both processes share; for the signal handler */

/* ---- In the new process ---------------------------------------------------------------------- */

static void note_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    shared_report->fault = info->si_addr; /* the access is then repeated; because of SA_RESETHAND,
                                             the second signal ends the process */
}

static void limit(int resource, rlim_t max)
{
    struct rlimit old;
    if (getrlimit(resource, &old) == 0 && old.rlim_max != RLIM_INFINITY && old.rlim_max < max)
        max = old.rlim_max;
    const struct rlimit wanted = {max, max};
    setrlimit(resource, &wanted);
}

static void set_limits(bool limits_memory)
{
    const struct rlimit seconds = {SECONDS_MAX, SECONDS_MAX + 1};
    signal(SIGXCPU, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    setrlimit(RLIMIT_CPU, &seconds);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, FILE_MAX);
    if (limits_memory && !IS_SANITIZED) limit(RLIMIT_AS, MEMORY_MAX);
    alarm(WALL_SECONDS_MAX);
}

/* Installs note_fault(), which runs on a stack of its own, because the thread's stack may be
 * full. */
static void watch_faults(void)
{
    static char stack[64 << 10];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = note_fault,
                               .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_ONSTACK};
    if (IS_SANITIZED || sigaltstack(&own, NULL) != 0) return;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

_Noreturn static void run_child(bool limits_memory, bool (*check)(const void *),
                                const void *context)
{
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the child is killed when its parent ends */
    set_limits(limits_memory);
    watch_faults();
    shared_report->is_solved = check(context);
    fflush(stdout);
    shared_report->is_done = true;
    _exit(0);
}

/* ---- In the program -------------------------------------------------------------------------- */

static void say_fault(const char *file, const char *name)
{
    const uintptr_t address = (uintptr_t)shared_report->fault;
    if (address > 0 && address < 1 << 16)
        printf("error     %s: the kernel crashed (%s): it accesses address %#llx, through a NULL "
               "pointer\n",
               file, name, (unsigned long long)address);
    else
        printf("error     %s: the kernel crashed (%s) at address %#llx: an index leads out of an "
               "array in registers, a pointer is wrong, or a function calls itself without end\n",
               file, name, (unsigned long long)address);
}

/* Whether the process has used up its processor time. */
static bool is_late(const struct rusage *used)
{
    return used->ru_utime.tv_sec + used->ru_stime.tv_sec >= SECONDS_MAX - 1;
}

/* Prints how the process ended. */
static void say_end(const char *file, int ended, const struct rusage *used)
{
    const int number = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    const char *name = number != 0 ? strsignal(number) : "";
    if (number == SIGALRM)
        printf("error     %s: stopped after %d s: it waits for something\n", file,
               WALL_SECONDS_MAX);
    else if (number == SIGXCPU || (number == SIGKILL && is_late(used)))
        printf("error     %s: stopped after %d s of processor time: an endless loop, or far more "
               "work than the exercise needs\n",
               file, SECONDS_MAX);
    else if (number == SIGFPE)
        printf("error     %s: a division of integers by zero\n", file);
    else if (number == SIGSEGV || number == SIGBUS)
        say_fault(file, name);
    else if (number == 0)
        printf("error     %s: the kernel ended the process with exit code %d\n", file,
               WEXITSTATUS(ended));
    else if (number == SIGILL || number == SIGTRAP || number == SIGABRT)
        printf(
            "error     %s: the kernel crashed (%s): it calls abort(), assert() or a trap, or has "
            "damaged memory\n",
            file, name);
    else
        printf("error     %s: the kernel ended by a signal (%s)\n", file, name);
}

bool learn_run(const char *file, bool limits_memory, bool is_quiet, bool (*check)(const void *),
               const void *context)
{
    shared_report =
        mmap(NULL, sizeof(report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared_report == MAP_FAILED) return cli_fail_false("no memory: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return cli_fail_false("cannot start a process: %s", strerror(errno));
    if (child == 0) {
        if (is_quiet && freopen("/dev/null", "w", stdout) == NULL) _exit(1);
        run_child(limits_memory, check, context);
    }
    int ended;
    struct rusage used;
    while (wait4(child, &ended, 0, &used) < 0)
        if (errno != EINTR) return cli_fail_false("lost a process: %s", strerror(errno));
    kill(-child, SIGKILL); /* kills the compiler too, if it still runs */
    if (!shared_report->is_done && !is_quiet) say_end(file, ended, &used);
    const bool is_solved = shared_report->is_done && shared_report->is_solved;
    munmap(shared_report, sizeof(report));
    return is_solved;
}
