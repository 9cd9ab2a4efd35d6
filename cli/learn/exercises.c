/* SPDX-License-Identifier: Apache-2.0
 *
 * The exercises in their order.
 */
#include "exercises.h"
#include "exercise_files.h"

#include <stdio.h>
#include <string.h>

#define GATES(...)                                                                                 \
    .gates = {__VA_ARGS__}, .gate_count = sizeof((learn_gate[]){__VA_ARGS__}) / sizeof(learn_gate)

static const exercise exercises[] = {
    {.name = "coalesce",
     .title = "adjacent lanes load adjacent elements",
     .symbol = "coalesce",
     .rung = "coalesced",
     .type = TGL_F32,
     .block_m = 32,
     .block_n = 32,
     .threads = 1024,
     .gate_m = 64,
     .gate_k = 64,
     GATES({SECTORS_PER_LOAD, 4, false}),
     .hint = "The lanes of a warp are consecutive values of threadIdx.x. Which index of C changes "
             "from one lane to the next, and how far apart in memory are the elements of B and C "
             "that these lanes access? Exchange the division and the remainder."},
};
enum { EXERCISES = sizeof exercises / sizeof exercises[0] };

const exercise *exercise_at(int index)
{
    return index >= 0 && index < EXERCISES ? &exercises[index] : NULL;
}

const exercise *exercise_find(const char *name)
{
    for (int i = 0; i < EXERCISES; i++)
        if (strcmp(exercises[i].name, name) == 0) return &exercises[i];
    return NULL;
}

const exercise *exercise_of(const char *source)
{
    static const char mark[] = "Exercise ";
    for (const char *at = source; (at = strstr(at, mark)) != NULL;) {
        at += sizeof mark - 1;
        for (int i = 0; i < EXERCISES; i++) {
            const size_t length = strlen(exercises[i].name);
            if (strncmp(at, exercises[i].name, length) == 0 && at[length] == ':')
                return &exercises[i];
        }
    }
    return NULL;
}

static const char *text_of(const char *format, const exercise *e)
{
    char name[128];
    snprintf(name, sizeof name, format, e->name);
    const exercise_file *file = exercise_files;
    while (strcmp(file->name, name) != 0)
        file++;
    return file->text;
}

const char *exercise_starter(const exercise *e)
{
    return text_of("%s.cu", e);
}

const char *exercise_solution(const exercise *e)
{
    return text_of("solutions/%s_solution.cu", e);
}
