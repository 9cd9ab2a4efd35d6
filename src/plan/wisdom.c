/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the lines of the wisdom in memory, in a hash table by product. The file's text is split in
 * place, and stays allocated until the wisdom is closed.
 */
#include "plan/wisdom.h"
#include "base/disk_cache.h"
#include "base/line_file.h"
#include "base/process_number.h"
#include "base/text.h"
#include "plan/limits.h"
#include "plan/sources.h"
#include "tegula/tegula.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char tgl_wisdom_peer_kernel[] = "peer";
const char tgl_wisdom_peer_source[TGL_SOURCE_SIZE] = "0000000000000000";

enum { BUCKETS = 1024, LINE_SIZE = 1024, NONE = -1 };

/* A line of the file that is for this chip, in the hash table. */
typedef struct known_line {
    uint64_t hash; /* hash of `product` */
    const char *product;
    tgl_measured measured;
    int next; /* index of an earlier line in the same bucket; NONE: there is none */
} known_line;

/* A text that members of known_line point into; owned by the wisdom. */
typedef struct chunk {
    struct chunk *next;
    char *text;
} chunk;

struct tgl_wisdom {
    unsigned process;      /* tgl_process() of the process that has opened the wisdom */
    atomic_int line_count; /* copy of `count` for readers that do not hold the lock */
    pthread_mutex_t lock;  /* protects all members below */
    tgl_line_file file;
    const char *off; /* why there is no file, a static text; NULL: there may be one */
    char chip[160], driver[160];
    chunk *chunks;
    const char *description; /* result of the last tgl_wisdom_describe(); NULL: there was none */
    known_line *lines;
    int count, room;
    long skipped; /* number of lines that could not be parsed */
    int bucket[BUCKETS];
};

/* Locks the wisdom. After fork() the lock may be held by a thread that exists only in the parent.
 * Hence a child waits for at most a second; no thread holds the lock for so long. */
static bool take_lock(tgl_wisdom *w)
{
    struct timespec until;
    if (pthread_mutex_trylock(&w->lock) == 0) return true;
    if (w->process == tgl_process()) return pthread_mutex_lock(&w->lock) == 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    return pthread_mutex_timedlock(&w->lock, &until) == 0;
}

/* ---- Reading a line -------------------------------------------------------------------------- */

enum { CHIP, DRIVER, LIBRARY, SOURCE, PRODUCT, KERNEL, US, SPREAD, SAMPLES, MODE, FIELDS };
static const char separator[] = " | ";

/* Reads a decimal number such as 12.345; *value := 1000 * number. */
static bool read_thousandths(const char *text, int64_t *value)
{
    return text[0] != '.' && tgl_read_decimal(text, 3, value);
}

/* Splits a line into fields in place. False: the line does not have FIELDS fields, or contains
 * bytes that are not printable ASCII. */
static bool split(char *line, char *fields[FIELDS])
{
    for (const char *at = line; *at != '\0'; at++)
        if (*at < ' ' || *at > '~') return false;
    for (int i = 0; i < FIELDS; i++) {
        fields[i] = line;
        char *end = strstr(line, separator);
        if ((end == NULL) != (i + 1 == FIELDS)) return false;
        if (end == NULL) break;
        *end = '\0';
        line = end + strlen(separator);
    }
    return true;
}

static bool read_mode(const char *text, bool *is_sustained)
{
    *is_sustained = strcmp(text, "sustained") == 0;
    return *is_sustained || strcmp(text, "burst") == 0;
}

/* Parses the fields from SOURCE on, except PRODUCT. False: a field is invalid. */
static bool read_measured(char *const fields[FIELDS], tgl_measured *m)
{
    int64_t us, spread, samples;
    if (!read_thousandths(fields[US], &us) || !read_thousandths(fields[SPREAD], &spread) ||
        !read_thousandths(fields[SAMPLES], &samples) || !read_mode(fields[MODE], &m->is_sustained))
        return false;
    if (us == 0 || samples < 1000 || samples % 1000 != 0 || samples / 1000 > INT32_MAX ||
        strlen(fields[SOURCE]) != TGL_SOURCE_SIZE - 1 ||
        strlen(fields[KERNEL]) >= TGL_KERNEL_STRING_SIZE ||
        strlen(fields[PRODUCT]) >= TGL_SHAPE_KEY_SIZE)
        return false;
    memcpy(m->source, fields[SOURCE], TGL_SOURCE_SIZE);
    m->kernel = fields[KERNEL];
    m->seconds = 1e-9 * (double)us;
    m->spread = 1e-5 * (double)spread;
    m->samples = (int)(samples / 1000);
    return true;
}

/* ---- The table: the caller holds the lock, or opens the wisdom ------------------------------- */

/* The FNV-1a hash of the text. */
static uint64_t hash_of(const char *product)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *product != '\0'; product++)
        hash = (hash ^ (unsigned char)*product) * 0x100000001b3;
    return hash;
}

static bool make_room(tgl_wisdom *w)
{
    if (w->count < w->room) return true;
    const int room = 2 * w->room + 64;
    known_line *lines = realloc(w->lines, (size_t)room * sizeof *lines);
    if (lines == NULL) return false;
    w->lines = lines;
    w->room = room;
    return true;
}

static void keep_line(tgl_wisdom *w, const char *product, const tgl_measured *m)
{
    if (!make_room(w)) return;
    const uint64_t hash = hash_of(product);
    int *bucket = &w->bucket[hash % BUCKETS];
    w->lines[w->count] = (known_line){hash, product, *m, *bucket};
    *bucket = w->count++;
    atomic_store(&w->line_count, w->count);
}

static const char *why_stale(const tgl_wisdom *w, char *const fields[FIELDS])
{
    if (strcmp(fields[LIBRARY], tgl_version()) != 0) return "of another version of Tegula";
    return strcmp(fields[DRIVER], w->driver) != 0 ? "of another driver or NVRTC" : NULL;
}

/* Parses a line in place. Keeps the line if it is for this chip, and skips comments. */
static void take_line(tgl_wisdom *w, char *line)
{
    char *fields[FIELDS];
    tgl_measured m;
    if (line[0] == '#' || line[0] == '\0') return;
    if (strlen(line) >= LINE_SIZE || !split(line, fields) || !read_measured(fields, &m)) {
        w->skipped++;
        return;
    }
    if (strcmp(fields[CHIP], w->chip) != 0) return;
    m.stale = why_stale(w, fields);
    keep_line(w, fields[PRODUCT], &m);
}

/* Keeps a text until the wisdom is closed. False: out of memory, and the text has been freed. */
static bool keep_text(tgl_wisdom *w, char *text)
{
    chunk *made = text != NULL ? malloc(sizeof *made) : NULL;
    if (made == NULL) {
        free(text);
        return false;
    }
    *made = (chunk){w->chunks, text};
    w->chunks = made;
    return true;
}

/* Parses lines. `text` becomes a chunk of the wisdom. A zero byte ends a line, too. */
static void take_text(tgl_wisdom *w, char *text, size_t size)
{
    if (!keep_text(w, text)) return;
    for (char *line = text, *end; line < text + size; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        if (end == NULL) end = text + size;
        *end = '\0';
        take_line(w, line);
    }
}

static void read_file(tgl_wisdom *w)
{
    size_t size;
    char *text = tgl_line_file_read(&w->file, &size);
    if (text != NULL) take_text(w, text, size);
}

/* ---- The file -------------------------------------------------------------------------------- */

/* Sets the path of the file, or w->off. makes_folder: creates the folder of the disk cache if the
 * file belongs there. */
static void choose_file(tgl_wisdom *w, bool makes_folder)
{
    const char *own = secure_getenv("TEGULA_WISDOM");
    char *path = w->file.path;
    const size_t size = sizeof w->file.path;
    int length = 0;
    if (own != NULL && (own[0] == '\0' || strcmp(own, "off") == 0))
        w->off = "TEGULA_WISDOM says so";
    else if (own != NULL && own[0] != '/')
        w->off = "TEGULA_WISDOM is not an absolute path";
    else if (own != NULL)
        length = snprintf(path, size, "%s", own);
    else if (tgl_cache_path("wisdom", makes_folder, path, size))
        length = (int)strlen(path);
    else
        w->off = "the disk cache is off, and TEGULA_WISDOM names no file";
    if (length >= (int)size) w->off = "the path is too long";
    if (w->off != NULL) path[0] = '\0';
}

tgl_wisdom *tgl_wisdom_open(const char *chip, const char *driver)
{
    tgl_wisdom *w = calloc(1, sizeof *w);
    if (w == NULL) return NULL;
    pthread_mutex_init(&w->lock, NULL);
    atomic_init(&w->line_count, 0);
    w->process = tgl_process();
    for (int i = 0; i < BUCKETS; i++)
        w->bucket[i] = NONE;
    snprintf(w->chip, sizeof w->chip, "%s", chip);
    snprintf(w->driver, sizeof w->driver, "%s", driver);
    choose_file(w, false);
    read_file(w);
    return w;
}

void tgl_wisdom_close(tgl_wisdom *w)
{
    if (w == NULL) return;
    for (chunk *at = w->chunks, *next; at != NULL; at = next) {
        next = at->next;
        free(at->text);
        free(at);
    }
    free(w->lines);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void describe(const tgl_wisdom *w, tgl_text *out)
{
    if (w->off != NULL)
        tgl_text_add(out, "off (%s)", w->off);
    else if (w->file.problem != NULL)
        tgl_text_add(out, "off (%s: %s)", w->file.path, w->file.problem);
    else
        tgl_text_add(out, "%s (%d line%s of this chip%s)", w->file.path, w->count,
                     w->count == 1 ? "" : "s", w->file.is_fixed ? ", read-only" : "");
    if (w->skipped > 0) tgl_text_add(out, ", %ld lines are not understood", w->skipped);
}

const char *tgl_wisdom_describe(tgl_wisdom *w)
{
    char text[PATH_MAX + 200] = "", *copy;
    tgl_text out = {text, sizeof text, 0};
    if (w == NULL || !take_lock(w)) return "";
    describe(w, &out);
    if (w->description == NULL || strcmp(w->description, text) != 0)
        w->description = keep_text(w, copy = strdup(text)) ? copy : "off (out of memory)";
    const char *description = w->description;
    pthread_mutex_unlock(&w->lock);
    return description;
}

void tgl_wisdom_refresh(tgl_wisdom *w)
{
    if (w == NULL || !take_lock(w)) return;
    if (!w->file.exists && w->off == NULL) choose_file(w, true);
    read_file(w);
    pthread_mutex_unlock(&w->lock);
}

bool tgl_wisdom_is_fixed(tgl_wisdom *w)
{
    if (w == NULL || !take_lock(w)) return false;
    const bool is_fixed = w->file.is_fixed;
    pthread_mutex_unlock(&w->lock);
    return is_fixed;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static int by_use(const void *x, const void *y)
{
    const tgl_measured *a = x, *b = y;
    if ((a->stale != NULL) != (b->stale != NULL)) return a->stale != NULL ? 1 : -1;
    if (a->is_sustained != b->is_sustained) return a->is_sustained ? -1 : 1;
    if (a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
    return strcmp(a->kernel, b->kernel);
}

/* Whether found[] already has a later measurement of the candidate of this line. */
static bool is_replaced(const tgl_measured *found, int count, const tgl_measured *m)
{
    for (int i = 0; i < count; i++)
        if (found[i].is_sustained == m->is_sustained && strcmp(found[i].kernel, m->kernel) == 0 &&
            strcmp(found[i].source, m->source) == 0 &&
            (found[i].stale != NULL) == (m->stale != NULL))
            return true;
    return false;
}

/* Collects the lines of a product, the latest first. Only lines of other libraries if peers is
 * true, else only lines of Tegula's kernels. found: receives the lines; NULL: they are only
 * counted. */
static int collect(const tgl_wisdom *w, const char *product, bool peers, tgl_measured *found)
{
    const uint64_t hash = hash_of(product);
    int count = 0;
    for (int i = w->bucket[hash % BUCKETS]; i != NONE; i = w->lines[i].next) {
        const known_line *line = &w->lines[i];
        const bool is_peer = strcmp(line->measured.kernel, tgl_wisdom_peer_kernel) == 0;
        if (line->hash != hash || is_peer != peers || strcmp(line->product, product) != 0) continue;
        if (found != NULL && is_replaced(found, count, &line->measured)) continue;
        if (found != NULL) found[count] = line->measured;
        count++;
    }
    return count;
}

/* The lines of a product, the latest first, in an array that the caller frees. */
static int collect_all(const tgl_wisdom *w, const char *product, bool peers, tgl_measured **found)
{
    const int count = w->count > 0 ? collect(w, product, peers, NULL) : 0;
    *found = count > 0 ? calloc((size_t)count, sizeof **found) : NULL;
    return *found != NULL ? collect(w, product, peers, *found) : 0;
}

/* Sets *found to the lines of a product, the latest first. */
static int find_lines(tgl_wisdom *w, const tgl_shape *shape, bool peers, tgl_measured **found)
{
    char product[TGL_SHAPE_KEY_SIZE];
    *found = NULL;
    if (w == NULL || tgl_shape_key(shape, product)[0] == '\0' || !take_lock(w)) return 0;
    const int count = collect_all(w, product, peers, found);
    pthread_mutex_unlock(&w->lock);
    return count;
}

/* Whether no later line is for the same product. */
static bool is_latest(const tgl_wisdom *w, int index)
{
    const known_line *line = &w->lines[index];
    int at = w->bucket[line->hash % BUCKETS];
    while (w->lines[at].hash != line->hash || strcmp(w->lines[at].product, line->product) != 0)
        at = w->lines[at].next;
    return at == index;
}

void tgl_wisdom_each(tgl_wisdom *w, const char *types, tgl_wisdom_visit *visit, void *context)
{
    const size_t length = strlen(types);
    if (w == NULL || !take_lock(w)) return;
    for (int i = 0; i < w->count; i++) {
        tgl_measured *lines;
        const char *product = w->lines[i].product;
        if (strncmp(product, types, length) != 0 || !is_latest(w, i)) continue;
        const int count = collect_all(w, product, false, &lines);
        if (count > 0) visit(lines, count, context);
        free(lines);
    }
    pthread_mutex_unlock(&w->lock);
}

bool tgl_wisdom_is_empty(tgl_wisdom *w)
{
    return w == NULL || atomic_load(&w->line_count) == 0;
}

int tgl_wisdom_find(tgl_wisdom *w, const tgl_shape *shape, tgl_measured **found)
{
    const int count = find_lines(w, shape, false, found);
    if (count > 1) qsort(*found, (size_t)count, sizeof **found, by_use);
    return count;
}

bool tgl_wisdom_peer(tgl_wisdom *w, const tgl_shape *shape, bool is_sustained, tgl_measured *peer)
{
    tgl_measured *lines;
    bool is_found = false;
    const int count = find_lines(w, shape, true, &lines);
    for (int i = 0; i < count && !is_found; i++) {
        is_found = lines[i].stale == NULL && lines[i].is_sustained == is_sustained;
        if (is_found) *peer = lines[i];
    }
    free(lines);
    return is_found;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static int write_line(const tgl_wisdom *w, const char *product, const tgl_measured *m, char *line)
{
    const long long ns = llround(1e9 * m->seconds), spread = llround(1e5 * m->spread);
    return snprintf(
        line, LINE_SIZE, "%s | %s | %s | %s | %s | %s | %lld.%03lld | %lld.%03lld | %d | %s\n",
        w->chip, w->driver, tgl_version(), m->source, product, m->kernel, ns / 1000, ns % 1000,
        spread / 1000, spread % 1000, m->samples, m->is_sustained ? "sustained" : "burst");
}

void tgl_wisdom_add(tgl_wisdom *w, const tgl_shape *shape, const tgl_measured *m)
{
    char product[TGL_SHAPE_KEY_SIZE], line[LINE_SIZE];
    if (w == NULL || tgl_shape_key(shape, product)[0] == '\0') return;
    const int length = write_line(w, product, m, line);
    if (length >= LINE_SIZE || llround(1e9 * m->seconds) < 1 || !take_lock(w)) return;
    if (tgl_line_file_append(&w->file, line)) {
        read_file(w);
    } else {
        take_text(w, strdup(line), (size_t)length);
    }
    pthread_mutex_unlock(&w->lock);
}

/* ---- Sources --------------------------------------------------------------------------------- */

static void add_text(tgl_sha256 *hash, const char *text)
{
    tgl_sha256_add(hash, text, strlen(text) + 1);
}

/* Adds the digests of all headers, as the key of a compiled kernel does (nvrtc_compile.c). */
static void add_headers(tgl_sha256 *hash)
{
    for (const tgl_source_file *file = tgl_source_files; file->name != NULL; file++)
        if (tgl_source_is_header(file)) add_text(hash, file->digest);
}

void tgl_wisdom_source(const tgl_launch_list *list, char source[TGL_SOURCE_SIZE])
{
    unsigned char digest[TGL_SHA256_BYTES];
    tgl_sha256 hash;
    tgl_sha256_start(&hash);
    add_headers(&hash);
    for (int i = 0; i < list->kernel_count; i++) {
        const tgl_kernel *kernel = list->kernels[i];
        const char *text =
            kernel->source != NULL ? kernel->source : tgl_kernel_source(kernel->file);
        add_text(&hash, text != NULL ? tgl_kernel_source_key(text) : "");
        add_text(&hash, kernel->symbol);
        add_text(&hash, kernel->macros);
    }
    tgl_sha256_finish(&hash, digest);
    tgl_sha256_text(digest, (TGL_SOURCE_SIZE - 1) / 2, source);
}
