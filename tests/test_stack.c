/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library takes of the stack and of the thread-local storage of its host's threads. A
 * thread runs on a stack that was filled with a pattern; what is left of the pattern tells how much
 * was used.
 */
#include "support.h"
#include "usual_code.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

enum {
    PATTERN = 0xa5,
    STACK = 1 << 20,
    STACK_MAX = 13 << 10, /* the bytes that a thread with 16 KB may use: glibc takes 2.3 KB */
    TLS_MAX = 256,
    N = 200,
};

/* Calls body() in a thread with a stack of `size` bytes, and returns how many bytes of it were
 * used. */
static size_t stack_of(size_t size, void *(*body)(void *), void *argument)
{
    unsigned char *stack =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(stack, MAP_FAILED);
    memset(stack, PATTERN, size);
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, size), 0);
    assert_int_equal(pthread_create(&thread, &attributes, body, argument), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    size_t unused = 0;
    while (unused < size && stack[unused] == PATTERN)
        unused++;
    munmap(stack, size);
    return size - unused;
}

static void *do_nothing(void *argument)
{
    return argument;
}

/* ---- Products of the cpu device -------------------------------------------------------------- */

typedef struct product {
    tgl_type type, result;
    int64_t m, n, k;
    tgl_transpose trans;
    tgl_device *dev; /* NULL: the thread opens one */
    const char *name;
    tgl_status status;
} product;

static double A[N * N], B[N * N], C[N * N];

static void *multiply(void *argument)
{
    product *p = argument;
    const tgl_device_options options = {.size = sizeof options, .threads = 2};
    tgl_device *opened = NULL;
    tgl_problem problem = problem_of(p->type, p->m, p->n, p->k);
    problem.type_c = p->result;
    problem.trans_a = problem.trans_b = p->trans;
    p->status = p->dev != NULL ? TGL_OK : tgl_device_open("cpu", &options, &opened);
    if (p->status == TGL_OK)
        p->status = tgl_gemm(p->dev != NULL ? p->dev : opened, &problem, 1, A, B, 0, C, NULL);
    tgl_device_close(opened);
    return NULL;
}

static void products_take_little_stack(void **state)
{
    (void)state;
    const product products[] = {
        {TGL_F64, TGL_F64, 4, 4, 4, TGL_NO_TRANS, NULL, "tiles", TGL_OK},
        {TGL_F64, TGL_F64, 64, 64, 64, TGL_TRANS, NULL, "packed tiles", TGL_OK},
        {TGL_F32, TGL_F32, N, N, N, TGL_TRANS, NULL, "blocks", TGL_OK},
        {TGL_F64, TGL_F64, N, 1, N, TGL_NO_TRANS, NULL, "vector", TGL_OK},
        {TGL_F64, TGL_F64, 1, N, 100, TGL_TRANS, NULL, "row", TGL_OK},
        {TGL_F16, TGL_F16, N, N, N, TGL_NO_TRANS, NULL, "f16", TGL_OK},
        {TGL_BF16, TGL_F32, N, N, N, TGL_TRANS, NULL, "bf16", TGL_OK},
        {TGL_I8, TGL_I32, N, N, N, TGL_NO_TRANS, NULL, "i8", TGL_OK},
        {TGL_F16, TGL_F16, 1, N, N, TGL_NO_TRANS, NULL, "row of f16", TGL_OK},
        {TGL_F64, TGL_F64, -1, N, N, TGL_NO_TRANS, NULL, "error", TGL_BAD_M},
    };
    const size_t before = stack_of(STACK, do_nothing, NULL);
    tgl_device *dev = open_cpu(2);
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        for (int first = 0; first < 2; first++) {
            product p = products[i];
            p.dev = first ? NULL : dev;
            const size_t used = stack_of(STACK, multiply, &p) - before;
            assert_status(p.status, products[i].status);
            print_message("%s, %s: %zu bytes of stack\n", p.name, first ? "first" : "later", used);
            if (IS_USUAL_CODE) assert_true(used <= STACK_MAX);
        }
    tgl_device_close(dev);
}

/* ---- Devices that need more ------------------------------------------------------------------ */

typedef struct opening {
    const char *name;
    tgl_status status;
    char message[200];
} opening;

static void *open_and_close(void *argument)
{
    opening *o = argument;
    tgl_device *dev;
    o->status = tgl_device_open(o->name, NULL, &dev);
    tgl_last_error(o->message, sizeof o->message);
    if (o->status == TGL_OK) tgl_device_close(dev);
    return NULL;
}

static void small_stacks_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t stack;
    } devices[] = {{"cuda", 128 << 10}, {"sim", 32 << 10}};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        opening o = {.name = devices[i].name};
        stack_of(devices[i].stack, open_and_close, &o);
        if (o.status == TGL_NO_DEVICE) continue; /* built without the simulator */
        assert_status(o.status, TGL_NO_MEMORY);
        assert_non_null(strstr(o.message, "KB of stack left"));
        assert_non_null(strstr(o.message, devices[i].name));
    }
}

typedef struct planning {
    tgl_device *dev;
    tgl_status status;
} planning;

static void *plan_and_run(void *argument)
{
    planning *p = argument;
    const tgl_problem problem = problem_of(TGL_F32, 64, 64, 64);
    p->status = tgl_gemm(p->dev, &problem, 1, A, B, 0, C, NULL);
    return NULL;
}

/* The simulator refuses a thread with 32 KB of stack, and uses at most 48 KB. */
static void the_simulator_takes_what_it_says(void **state)
{
    (void)state;
    tgl_device *dev;
    const tgl_device_options options = {.size = sizeof options, .threads = 2};
    if (tgl_device_open("sim", &options, &dev) != TGL_OK) skip();
    planning p = {.dev = dev};
    stack_of(32 << 10, plan_and_run, &p);
    assert_status(p.status, TGL_NO_MEMORY);
    const size_t used = stack_of(STACK, plan_and_run, &p) - stack_of(STACK, do_nothing, NULL);
    if (p.status == TGL_NO_COMPILER) skip();
    assert_status(p.status, TGL_OK);
    print_message("sim: %zu bytes of stack\n", used);
    if (IS_USUAL_CODE) assert_true(used <= 48 << 10);
    tgl_device_close(dev);
}

/* ---- Thread-local storage -------------------------------------------------------------------- */

static int print_tls(struct dl_phdr_info *info, size_t size, void *data)
{
    int *libraries = data;
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (slash == NULL || strncmp(slash, "/libtegula", 10) != 0) return 0;
    ++*libraries;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            print_message("%s: %zu bytes of TLS\n", slash + 1, (size_t)info->dlpi_phdr[i].p_memsz);
            if (IS_USUAL_CODE) assert_true(info->dlpi_phdr[i].p_memsz < TLS_MAX);
        }
    return 0;
}

static void threads_of_the_host_pay_little_tls(void **state)
{
    (void)state;
    static const char *const names[] = {LIBRARIES};
    int libraries = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_non_null(dlopen(names[i], RTLD_NOW | RTLD_LOCAL));
    dl_iterate_phdr(print_tls, &libraries);
    assert_true(libraries >= (int)(sizeof names / sizeof names[0]));
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Each thread has its own message, and a long one is complete. */
static void *fail_with_a_long_message(void *argument)
{
    static char message[4000];
    tgl_problem problem = problem_of(TGL_F32, -1, 1, 1);
    (void)argument;
    assert_status(tgl_problem_check(&problem), TGL_BAD_M);
    char name[3000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    tgl_device *dev;
    assert_status(tgl_device_open(name, NULL, &dev), TGL_NO_DEVICE);
    assert_true(tgl_last_error(message, sizeof message) > sizeof name);
    assert_non_null(strstr(message, name));
    return NULL;
}

static void messages_belong_to_their_threads(void **state)
{
    (void)state;
    char before[200], after[200];
    assert_status(tgl_problem_check(NULL), TGL_BAD_ARGUMENT);
    tgl_last_error(before, sizeof before);
    for (int i = 0; i < 3; i++)
        stack_of(STACK, fail_with_a_long_message, NULL);
    tgl_last_error(after, sizeof after);
    assert_string_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_take_little_stack),
        cmocka_unit_test(small_stacks_are_refused),
        cmocka_unit_test(the_simulator_takes_what_it_says),
        cmocka_unit_test(threads_of_the_host_pay_little_tls),
        cmocka_unit_test(messages_belong_to_their_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
