/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the host's C compiler, and compiles a kernel with it unless the disk cache has the result.
 * The sources are in a private folder while the compiler runs.
 */
#include "sim/host_compile.h"
#include "plan/sources.h"
#include "sim/process.h"
#include "sim/temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Flags for the kernels and for the run-time library that is linked to each kernel. The -Werror
 * makes older compilers reject calls of undeclared functions, as gcc 14 and clang 16 do by
 * default. */
#define COMMON_FLAGS                                                                               \
    "-c -x c -std=gnu11 -Werror=implicit-function-declaration -Wno-psabi -fPIC "                   \
    "-fvisibility=hidden -U_FORTIFY_SOURCE -fno-stack-protector -fno-builtin-memcpy "              \
    "-fno-builtin-memset "
static const char run_time_flags[] = COMMON_FLAGS "-O2";

/* -O0: the compiler neither merges nor moves accesses, so that each access in the source is one
 * access of the program. -gdwarf-4: the newest version that elf_image.c reads. */
static const char kernel_flags[] =
    COMMON_FLAGS "-O0 -g1 -gdwarf-4 -gz=none -DTGL_SIM -fgnu89-inline -ffp-contract=off "
                 "-fsanitize=thread,bounds "
                 "-fsanitize-coverage=trace-pc";

/* Only for clang. The first flag makes it instrument every basic block. The second leaves out a
 * part of -fsanitize=bounds that would end the process. gcc does not know either. */
static const char *const clang_flags[] = {"-fsanitize-coverage=no-prune",
                                          "-fno-sanitize=local-bounds", NULL};

/* -z defs: the linker reports an undefined function with the name of its caller. --emit-relocs: the
 * relocations of the calls of __sanitizer_cov_trace_pc() show where basic blocks begin. */
static const char link_flags[] = "-shared -Wl,-z,defs -Wl,--emit-relocs";

enum { ARGUMENTS_MAX = 256, PATH_SIZE = TGL_TEMP_PATH + 256 };

/* ---- Command lines --------------------------------------------------------------------------- */

typedef struct command {
    const char *argv[ARGUMENTS_MAX + 1];
    int count;      /* number of arguments; above ARGUMENTS_MAX: too many, so that the command is
                       not run */
    char *owned[2]; /* texts that add_words() has split: a zero byte ends each word, and argv[]
                       points to the words. Freed with the command */
    int owned_count;
} command;

static void add_argument(command *c, const char *argument)
{
    if (c->count < ARGUMENTS_MAX) c->argv[c->count] = argument;
    c->count++;
}

static void add_arguments(command *c, const char *const *list)
{
    for (; *list != NULL; list++)
        add_argument(c, *list);
}

/* Adds each blank-separated word of two texts as an argument. prefix: an argument to add before
 * each word; NULL: none. False: out of memory. */
static bool add_words(command *c, const char *prefix, const char *text, const char *more)
{
    char *copy, *rest = NULL;
    if (asprintf(&copy, "%s %s", text, more) < 0) return false;
    c->owned[c->owned_count++] = copy;
    for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (prefix != NULL) add_argument(c, prefix);
        add_argument(c, word);
    }
    return true;
}

static bool run_command(command *c, char **output)
{
    if (c->count > ARGUMENTS_MAX) {
        if (asprintf(output, "its command line would have %d words; %d are the most", c->count,
                     ARGUMENTS_MAX) < 0)
            *output = NULL;
        return false;
    }
    c->argv[c->count] = NULL;
    return tgl_process_run(c->argv, output);
}

static void free_command(command *c)
{
    while (c->owned_count > 0)
        free(c->owned[--c->owned_count]);
}

/* ---- The compiler ---------------------------------------------------------------------------- */

/* Replaces the first word of a command line, a program's name, by the program's path. NULL: there
 * is no such program. */
static char *resolve_compiler(const char *words)
{
    words += strspn(words, " \t");
    const size_t length = strcspn(words, " \t");
    char *name = strndup(words, length);
    char *path = name != NULL ? tgl_process_find(name) : NULL;
    free(name);
    if (path == NULL) return NULL;
    char *resolved;
    if (asprintf(&resolved, "%s%s", path, words + length) < 0) resolved = NULL;
    free(path);
    return resolved;
}

/* The first line that the compiler prints with --version; NULL if it does not run. */
static char *ask_version(const char *words)
{
    command c = {0};
    char *output = NULL;
    const bool ok =
        add_words(&c, NULL, words, "--version") && run_command(&c, &output) && output != NULL;
    free_command(&c);
    if (!ok) {
        free(output);
        return NULL;
    }
    output[strcspn(output, "\n")] = '\0';
    return output;
}

static bool try_compiler(tgl_host_compiler *compiler, const char *words)
{
    if (words == NULL || words[strspn(words, " \t")] == '\0') return false;
    compiler->words = resolve_compiler(words);
    compiler->version = compiler->words != NULL ? ask_version(compiler->words) : NULL;
    if (compiler->version != NULL) return true;
    free(compiler->words);
    compiler->words = NULL;
    return false;
}

tgl_status tgl_host_compiler_find(tgl_host_compiler *compiler)
{
    *compiler = (tgl_host_compiler){0};
    const char *chosen = secure_getenv("TEGULA_CC");
    if (chosen != NULL && chosen[0] != '\0') {
        if (!try_compiler(compiler, chosen))
            return tgl_fail(TGL_NO_COMPILER, "TEGULA_CC is \"%s\", which does not run", chosen);
    } else if (!try_compiler(compiler, secure_getenv("CC")) && !try_compiler(compiler, "cc") &&
               !try_compiler(compiler, "gcc") && !try_compiler(compiler, "clang")) {
        return tgl_fail(TGL_NO_COMPILER,
                        "the simulator compiles kernels with a C compiler, and found none: install "
                        "gcc or clang, or set TEGULA_CC to one");
    }
    compiler->cache = tgl_cache_open();
    return TGL_OK;
}

void tgl_host_compiler_free(tgl_host_compiler *compiler)
{
    tgl_cache_close(compiler->cache);
    free(compiler->words);
    free(compiler->version);
}

/* ---- One kernel ------------------------------------------------------------------------------ */

/* The inputs of one compilation. */
typedef struct job {
    const tgl_host_compiler *compiler;
    const tgl_kernel *kernel;
    const char *source;
    char *wrapper; /* text of the file to compile, which includes the kernel and defines its entry
                      function */
    bool is_clang;
} job;

/* Whether an embedded file is a header that kernels may include. */
static bool is_header(const char *file)
{
    return strncmp(file, "lib/", 4) == 0 || strncmp(file, "sim/", 4) == 0;
}

/* Writes the kernel's parameters, either as members of a struct ("int p0; float p1; ") or as the
 * arguments of a call ("p->p0, p->p1"). */
static void write_parameters(FILE *out, const char *parameters, bool as_arguments)
{
    for (int i = 0; *parameters != '\0'; i++) {
        const int length = (int)strcspn(parameters, "|");
        if (as_arguments)
            fprintf(out, "%sp->p%d", i > 0 ? ", " : "", i);
        else
            fprintf(out, "%.*s p%d; ", length, parameters, i);
        parameters += length + (parameters[length] == '|');
    }
}

/* The text of the file to compile. It includes the kernel and defines the entry function, which
 * calls the kernel with arguments from a struct that the host fills. */
static char *make_wrapper(const tgl_kernel *kernel)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    fprintf(out,
            "#include \"sim/cuda_words.h\"\n"
            "#include \"%s\"\n"
            "struct tgl_sim_parameters { ",
            kernel->file);
    write_parameters(out, kernel->parameters, false);
    fprintf(out,
            "};\n"
            "static void tgl_sim_entry(const void *arguments)\n"
            "{\n"
            "    const struct tgl_sim_parameters *p = arguments;\n"
            "    %s(",
            kernel->symbol);
    write_parameters(out, kernel->parameters, true);
    fprintf(out, ");\n"
                 "}\n"
                 "__attribute__((visibility(\"default\"))) const tgl_sim_image tgl_sim_object = {\n"
                 "    &tgl_sim, tgl_sim_entry, __start_tgl_shared, __stop_tgl_shared};\n");
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

static tgl_status make_job(job *j)
{
    j->source = j->kernel->source;
    if (j->source == NULL) j->source = tgl_kernel_source(j->kernel->file);
    if (j->source == NULL)
        return tgl_fail(TGL_COMPILE, "%s is not among the embedded kernels", j->kernel->file);
    j->wrapper = make_wrapper(j->kernel);
    if (j->wrapper == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory to compile a kernel");
    j->is_clang = strstr(j->compiler->version, "clang") != NULL;
    return TGL_OK;
}

/* Starts a cache key with everything that affects all compilations: the compiler, its flags and the
 * headers. */
static void start_key(const job *j, const char *kind, tgl_cache_key *key)
{
    tgl_cache_key_start(key, kind);
    tgl_cache_key_add_text(key, j->compiler->words);
    tgl_cache_key_add_text(key, j->compiler->version);
    tgl_cache_key_add_text(key, run_time_flags);
    for (const tgl_source_file *file = tgl_source_files; file->name != NULL; file++) {
        if (!is_header(file->name)) continue;
        tgl_cache_key_add_text(key, file->name);
        tgl_cache_key_add_text(key, file->digest);
    }
}

static void make_kernel_key(const job *j, tgl_cache_key *key)
{
    start_key(j, "sim", key);
    tgl_cache_key_add_text(key, kernel_flags);
    for (int i = 0; clang_flags[i] != NULL; i++)
        tgl_cache_key_add_text(key, clang_flags[i]);
    tgl_cache_key_add_text(key, link_flags);
    tgl_cache_key_add_text(key, j->wrapper);
    tgl_cache_key_add_text(key, j->kernel->macros);
    if (j->kernel->expression != NULL) tgl_cache_key_add_text(key, j->kernel->expression);
    tgl_cache_key_add_text(key, tgl_kernel_source_key(j->source));
}

static bool write_text(tgl_temp_folder *folder, const char *name, const char *text)
{
    return tgl_temp_folder_write(folder, name, text, strlen(text)) != NULL;
}

static bool has_entry(const tgl_temp_folder *folder, const char *name)
{
    const size_t length = strlen(folder->path) + 1; /* with the slash behind it */
    for (int i = 0; i < folder->count; i++)
        if (strcmp(folder->entries[i] + length, name) == 0) return true;
    return false;
}

/* Writes the embedded headers that a text includes, and those that they include. All headers
 * together would be some 80 files, most of which a kernel does not include. */
static bool write_headers(tgl_temp_folder *folder, const char *text)
{
    static const char word[] = "#include \"";
    while ((text = strstr(text, word)) != NULL) {
        text += strlen(word);
        const size_t length = strcspn(text, "\"\n");
        for (const tgl_source_file *file = tgl_source_files; file->name != NULL; file++) {
            if (strncmp(file->name, text, length) != 0 || file->name[length] != '\0' ||
                !is_header(file->name) || has_entry(folder, file->name))
                continue;
            if (!write_text(folder, file->name, file->text) || !write_headers(folder, file->text))
                return false;
        }
    }
    return true;
}

static bool write_sources(const job *j, tgl_temp_folder *folder)
{
    static const char run_time[] = "#include \"sim/run_time.h\"\n";
    const char *expression = j->kernel->expression;
    if (expression != NULL && !write_text(folder, "lib/expression.h", expression)) return false;
    return write_text(folder, j->kernel->file, j->source) &&
           write_text(folder, "kernel.c", j->wrapper) &&
           write_text(folder, "run_time.c", run_time) && write_headers(folder, j->source) &&
           write_headers(folder, j->wrapper) && write_headers(folder, run_time);
}

/* Removes the temporary folder's path from the compiler's log, so that the log shows the files
 * under the names that they have in the library. */
static void shorten_paths(char *log, const char *folder)
{
    const size_t length = strlen(folder) + 1; /* with the slash behind it */
    for (char *at = log; (at = strstr(at, folder)) != NULL && at[length - 1] == '/';)
        memmove(at, at + length, strlen(at + length) + 1);
}

/* Runs a command and frees it. is_whole: false if memory ran out while the command was built. If
 * the command fails, its output becomes the error message. */
static tgl_status run_step(const job *j, command *c, bool is_whole, const tgl_temp_folder *folder)
{
    char *log = NULL;
    tgl_status status = TGL_OK;
    if (!is_whole) {
        status = tgl_fail(TGL_NO_MEMORY, "no memory to compile a kernel");
    } else if (!run_command(c, &log)) {
        if (log != NULL) shorten_paths(log, folder->path);
        status = tgl_fail(TGL_COMPILE, "%s does not compile with %s:\n%s", j->kernel->name,
                          j->compiler->words, log != NULL ? log : "");
    }
    free(log);
    free_command(c);
    return status;
}

/* Compiles one file of the folder with these macros and flags. more: one additional flag, or NULL.
 * *object: the path of the result. */
static tgl_status compile_file(const job *j, tgl_temp_folder *folder, const char *input,
                               const char *macros, const char *flags, const char *const *more,
                               const char **object)
{
    char include[PATH_SIZE], map[PATH_SIZE], path[PATH_SIZE], name[64];
    snprintf(include, sizeof include, "-I%s", folder->path);
    snprintf(map, sizeof map, "-ffile-prefix-map=%s/=", folder->path);
    snprintf(path, sizeof path, "%s/%s", folder->path, input);
    snprintf(name, sizeof name, "%s.o", input);
    *object = tgl_temp_folder_entry(folder, name);
    if (*object == NULL) return tgl_temp_folder_fail(folder);

    command c = {0};
    const bool ok =
        add_words(&c, NULL, j->compiler->words, flags) && add_words(&c, "-D", macros, "");
    const char *const tail[] = {include, map, path, "-o", *object, NULL};
    add_arguments(&c, tail);
    if (more != NULL) add_arguments(&c, more);
    return run_step(j, &c, ok, folder);
}

static tgl_status link_files(const job *j, tgl_temp_folder *folder, const char *kernel,
                             const char *run_time, const char **object)
{
    *object = tgl_temp_folder_entry(folder, "kernel.so");
    if (*object == NULL) return tgl_temp_folder_fail(folder);
    command c = {0};
    const bool ok = add_words(&c, NULL, j->compiler->words, link_flags);
    const char *const tail[] = {kernel, run_time, "-o", *object, "-lm", NULL};
    add_arguments(&c, tail);
    return run_step(j, &c, ok, folder);
}

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) return NULL;
    void *data = NULL;
    const long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (length > 0) data = malloc((size_t)length);
    if (data != NULL) {
        rewind(file);
        *size = fread(data, 1, (size_t)length, file);
        if (*size != (size_t)length) {
            free(data);
            data = NULL;
        }
    }
    fclose(file);
    return data;
}

/* Gets the object file of the run-time library, from the cache or by compiling it. It is shared by
 * all kernels, because compiling it takes as long as compiling a kernel. */
static tgl_status make_run_time(const job *j, tgl_temp_folder *folder, const char **object)
{
    tgl_cache_key key;
    start_key(j, "sim run time", &key);
    void *data;
    size_t size;
    if (tgl_cache_load(j->compiler->cache, &key, &data, &size)) {
        *object = tgl_temp_folder_write(folder, "run_time.o", data, size);
        free(data);
        return *object != NULL ? TGL_OK : tgl_temp_folder_fail(folder);
    }
    TGL_TRY(compile_file(j, folder, "run_time.c", "", run_time_flags, NULL, object));
    data = read_file(*object, &size);
    if (data != NULL) tgl_cache_store(j->compiler->cache, &key, data, size);
    free(data);
    return TGL_OK;
}

static tgl_status compile_and_link(const job *j, tgl_temp_folder *folder, const char **object)
{
    const char *kernel, *run_time;
    TGL_TRY(compile_file(j, folder, "kernel.c", j->kernel->macros, kernel_flags,
                         j->is_clang ? clang_flags : NULL, &kernel));
    TGL_TRY(make_run_time(j, folder, &run_time));
    return link_files(j, folder, kernel, run_time, object);
}

static tgl_status build_kernel(const job *j, void **image, size_t *size)
{
    tgl_temp_folder folder;
    TGL_TRY(tgl_temp_folder_make(&folder));
    tgl_status status = TGL_OK;
    const char *object = NULL;
    if (!write_sources(j, &folder)) status = tgl_temp_folder_fail(&folder);
    if (status == TGL_OK) status = compile_and_link(j, &folder, &object);
    if (status == TGL_OK && (*image = read_file(object, size)) == NULL)
        status =
            tgl_fail(TGL_COMPILE, "%s left no object of %s", j->compiler->words, j->kernel->name);
    tgl_temp_folder_remove(&folder);
    return status;
}

tgl_status tgl_host_compile(const tgl_host_compiler *compiler, const tgl_kernel *kernel,
                            void **image, size_t *size)
{
    job j = {.compiler = compiler, .kernel = kernel};
    TGL_TRY(make_job(&j));
    tgl_cache_key key;
    make_kernel_key(&j, &key);
    tgl_status status = TGL_OK;
    if (!tgl_cache_load(compiler->cache, &key, image, size)) {
        status = build_kernel(&j, image, size);
        if (status == TGL_OK) tgl_cache_store(compiler->cache, &key, *image, *size);
    }
    free(j.wrapper);
    return status;
}
