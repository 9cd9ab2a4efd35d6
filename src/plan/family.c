/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the row of a choice in its family's table of configurations.
 */
#include "plan/family.h"

const void *tgl_choice_row(const tgl_choice *choice)
{
    const tgl_family *family = choice->family;
    return (const char *)family->rows + (size_t)choice->configuration * family->row_bytes;
}

const char *tgl_choice_name(const tgl_choice *choice)
{
    const char *const *first_member = tgl_choice_row(choice);
    return *first_member;
}

int tgl_choice_lines(const tgl_choice *choice)
{
    return choice->family->lines != NULL ? choice->family->lines(choice->configuration) : 0;
}
