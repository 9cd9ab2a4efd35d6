/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of exercises/, embedded at build time (cmake/embed.cmake).
 */
#ifndef CLI_EXERCISE_FILES_H
#define CLI_EXERCISE_FILES_H

typedef struct exercise_file {
    const char *name; /* as "coalesce.cu" or "solutions/coalesce_solution.cu"; NULL ends the
                         table */
    const char *text; /* zero-terminated */
    unsigned long size;
} exercise_file;

extern const exercise_file exercise_files[];

#endif
