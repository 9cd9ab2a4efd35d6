/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel strings, "simt_128x256x8:splits=4,strips=0": reads what a user asks for, and writes the
 * string of a candidate.
 */
#include "plan/kernel_string.h"

#include <stdlib.h>
#include <string.h>

static const char strips_option[] = "strips";

/* The address of the value of an option: one of the family's, or `strips`. NULL: no such option. */
static int64_t *find_option(tgl_request *request, const char *name, size_t length, int64_t *strips)
{
    const tgl_family *family = request->choice.family;
    for (int i = 0; family->options[i] != NULL; i++)
        if (strlen(family->options[i]) == length && memcmp(family->options[i], name, length) == 0)
            return &request->choice.option[i];
    if (family->tile != NULL && length == strlen(strips_option) &&
        memcmp(name, strips_option, length) == 0)
        return strips;
    return NULL;
}

/* Parses "NAME=VALUE" of `length` characters. */
static tgl_status parse_option(tgl_request *request, const char *text, size_t length,
                               int64_t *strips)
{
    const size_t name = strcspn(text, "=,");
    int64_t *option = name < length ? find_option(request, text, name, strips) : NULL;
    char *end;
    if (name >= length)
        return tgl_fail(TGL_BAD_ARGUMENT, "\"%.*s\" is not NAME=VALUE", (int)length, text);
    if (option == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "%s has no option \"%.*s\"",
                        tgl_choice_name(&request->choice), (int)name, text);
    if (*option != TGL_UNSET)
        return tgl_fail(TGL_BAD_ARGUMENT, "the option %.*s is given twice", (int)name, text);
    const char *digits = text + name + 1;
    const long long value = strtoll(digits, &end, 10);
    const bool is_number = digits[0] >= '0' && digits[0] <= '9' && end == text + length;
    if (!is_number || value > INT32_MAX || (option == strips && value > 1))
        return tgl_fail(TGL_BAD_ARGUMENT, "\"%.*s\": the value must be a number from 0 to %d",
                        (int)length, text, option == strips ? 1 : INT32_MAX);
    *option = value;
    return TGL_OK;
}

tgl_status tgl_request_make(const char *kernel, int64_t workspace_limit, tgl_request *request)
{
    *request = (tgl_request){.strips = -1,
                             .workspace_max = workspace_limit > 0    ? workspace_limit
                                              : workspace_limit == 0 ? TGL_WORKSPACE_DEFAULT
                                                                     : 0};
    if (workspace_limit < -1)
        return tgl_fail(TGL_BAD_ARGUMENT, "workspace_limit is %lld; it must be at least -1",
                        (long long)workspace_limit);
    if (kernel == NULL) return TGL_OK;
    const size_t name = strcspn(kernel, ":");
    if (!tgl_configuration_find(kernel, name, &request->choice))
        return tgl_fail(TGL_UNKNOWN_KERNEL, "no kernel is called \"%.*s\"", (int)name, kernel);
    request->is_named = true;
    int64_t strips = TGL_UNSET;
    for (const char *text = kernel + name; *text != '\0';) {
        text++; /* skips the colon or comma */
        const size_t length = strcspn(text, ",");
        TGL_TRY(parse_option(request, text, length, &strips));
        text += length;
    }
    request->strips = (int)strips; /* TGL_UNSET: the planner chooses */
    return TGL_OK;
}

const char *tgl_candidate_string(const tgl_candidate *c, char *text, size_t size)
{
    const tgl_family *family = c->choice.family;
    tgl_text out = {text, size, 0};
    char mark = ':';
    tgl_text_add(&out, "%s", tgl_choice_name(&c->choice));
    for (int i = 0; family->options[i] != NULL; i++) {
        if (c->choice.option[i] == TGL_UNSET) continue;
        tgl_text_add(&out, "%c%s=%lld", mark, family->options[i], (long long)c->choice.option[i]);
        mark = ',';
    }
    if (c->may_have_strips) tgl_text_add(&out, "%c%s=%d", mark, strips_option, c->strip_count > 0);
    return text;
}
