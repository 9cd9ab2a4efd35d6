/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of families and the numbering of their configurations. A new family adds a line here.
 */
#include "plan/family.h"

#include <string.h>

extern const tgl_family tgl_family_ladder, tgl_family_simt, tgl_family_skinny, tgl_family_gemv,
    tgl_family_small_batch, tgl_family_batch_mma, tgl_family_mma, tgl_family_dmma, tgl_family_wgmma,
    tgl_family_accurate, tgl_family_dequant;

static const tgl_family *const families[] = {
    &tgl_family_ladder,      &tgl_family_simt,      &tgl_family_skinny,  &tgl_family_gemv,
    &tgl_family_small_batch, &tgl_family_batch_mma, &tgl_family_mma,     &tgl_family_dmma,
    &tgl_family_wgmma,       &tgl_family_accurate,  &tgl_family_dequant,
};
enum { FAMILIES = sizeof families / sizeof families[0] };

const tgl_family *tgl_family_at(int index)
{
    return index >= 0 && index < FAMILIES ? families[index] : NULL;
}

/* A choice with default options. */
static tgl_choice make_choice(const tgl_family *family, int configuration)
{
    tgl_choice choice = {.family = family, .configuration = configuration};
    for (int i = 0; i < TGL_OPTIONS_MAX; i++)
        choice.option[i] = TGL_UNSET;
    return choice;
}

bool tgl_configuration_at(int index, tgl_choice *choice)
{
    if (index < 0) return false;
    for (int i = 0; i < FAMILIES; index -= families[i++]->row_count)
        if (index < families[i]->row_count) {
            *choice = make_choice(families[i], index);
            return true;
        }
    return false;
}

bool tgl_configuration_find(const char *name, size_t length, tgl_choice *choice)
{
    for (int i = 0; tgl_configuration_at(i, choice); i++) {
        const char *known = tgl_choice_name(choice);
        if (strlen(known) == length && memcmp(known, name, length) == 0) return true;
    }
    return false;
}
