/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports illegal arguments. The handlers xerbla_() and cblas_xerbla() belong to the program or to
 * the BLAS that it uses. They are looked up at each illegal argument, because a program may load
 * its BLAS later than this library. Without a handler, the message of the reference BLAS goes to
 * stderr and the call returns, whereas the handlers of the reference BLAS end the program.
 */
#include "blas_shim.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const names_32[] = {"xerbla_", "scipy_xerbla_"};
static const char *const names_64[] = {"xerbla_64_", "scipy_xerbla_64_"};
static const char *const cblas_names_32[] = {"cblas_xerbla", "scipy_cblas_xerbla"};
static const char *const cblas_names_64[] = {"cblas_xerbla_64", "cblas_xerbla64_",
                                             "scipy_cblas_xerbla64_"};

/* The address of the first function in `names` that exists in the process; NULL: none does. */
static void *find(const char *const *names, size_t count)
{
    void *address = NULL;
    for (size_t i = 0; i < count && address == NULL; i++)
        address = dlsym(RTLD_DEFAULT, names[i]);
    return address;
}

void blas_report(const char *routine, int argument, bool is_64)
{
    typedef void handler_32(const char *, const int32_t *, size_t);
    typedef void handler_64(const char *, const int64_t *, size_t);
    const size_t length = strlen(routine);
    if (is_64) {
        handler_64 *handler = (handler_64 *)find(names_64, BLAS_COUNT_OF(names_64));
        const int64_t info = argument;
        if (handler != NULL) {
            handler(routine, &info, length);
            return;
        }
    }
    handler_32 *handler = (handler_32 *)find(names_32, BLAS_COUNT_OF(names_32));
    const int32_t info = argument;
    if (handler != NULL)
        handler(routine, &info, length);
    else
        fprintf(stderr, " ** On entry to %.*s parameter number %2d had an illegal value\n",
                (int)strcspn(routine, " "), routine, argument);
}

static void call_cblas_handler(const char *routine, int argument, const blas_error *error,
                               bool is_64)
{
    typedef void handler_32(int, const char *, const char *, ...);
    typedef void handler_64(int64_t, const char *, const char *, ...);
    const char *format = error->setting != NULL ? "Illegal %s setting, %d\n" : "";
    if (is_64) {
        handler_64 *handler = (handler_64 *)find(cblas_names_64, BLAS_COUNT_OF(cblas_names_64));
        if (handler != NULL) {
            handler(argument, routine, format, error->setting, error->value);
            return;
        }
    }
    handler_32 *handler = (handler_32 *)find(cblas_names_32, BLAS_COUNT_OF(cblas_names_32));
    if (handler != NULL) {
        handler(argument, routine, format, error->setting, error->value);
        return;
    }
    fprintf(stderr, "Parameter %d to routine %s was incorrect\n", argument, routine);
    if (error->setting != NULL)
        fprintf(stderr, "Illegal %s setting, %d\n", error->setting, error->value);
}

/* Calls the CBLAS error handler. The reference CBLAS converts a row-major call to a column-major
 * one, and passes the argument's number in the column-major call to the handler. The handler
 * converts the number back if the global variable RowMajorStrg is not 0. In a process without this
 * variable, the handler gets the number in the original call. */
void blas_report_cblas(const char *routine, const blas_error *error, bool is_64)
{
    int *is_row_major = dlsym(RTLD_DEFAULT, "RowMajorStrg");
    if (is_row_major == NULL) {
        call_cblas_handler(routine, error->argument, error, is_64);
        return;
    }
    const bool translates = error->row_major_argument != 0;
    *is_row_major = translates;
    call_cblas_handler(routine, translates ? error->row_major_argument : error->argument, error,
                       is_64);
    *is_row_major = 0;
}
