/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel strings: what a user asks for, and the string of a candidate.
 */
#ifndef TGL_KERNEL_STRING_H
#define TGL_KERNEL_STRING_H

#include "plan/family.h"
#include "plan/limits.h"
#include "plan/wisdom.h"

/* What a kernel string asks for. */
typedef struct tgl_request {
    bool is_named; /* choice.family and choice.configuration are set */
    /* The named configuration with the given options; not used if no kernel is named. */
    tgl_choice choice;
    int strips;            /* -1: the planner chooses; 0: none; 1: required */
    int64_t workspace_max; /* in bytes, or TGL_WORKSPACE_DEFAULT */
    tgl_wisdom *wisdom;    /* measured times, which determine the choice unless a kernel is named;
                              NULL: none */
} tgl_request;

/* Parses a kernel string, "simt_128x256x8:splits=4,strips=0"; NULL: the planner chooses all.
 * workspace_limit: as in tgl_plan_options. Returns TGL_OK, TGL_UNKNOWN_KERNEL or
 * TGL_BAD_ARGUMENT. */
tgl_status tgl_request_make(const char *kernel, int64_t workspace_limit, tgl_request *request);

/* The kernel string of exactly this candidate. Returns text. */
const char *tgl_candidate_string(const tgl_candidate *candidate, char *text, size_t size);

#endif
