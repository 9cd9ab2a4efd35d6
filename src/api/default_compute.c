/* SPDX-License-Identifier: Apache-2.0
 *
 * What TGL_COMPUTE_DEFAULT means for products of F32 and C64. docs/accuracy.md gives the reasons.
 */
#include "api/default_compute.h"
#include "api/handles.h"

#include <stdlib.h>
#include <string.h>

tgl_status tgl_compute_of_environment(tgl_compute *compute)
{
    static const tgl_compute modes[] = {TGL_COMPUTE_DEFAULT, TGL_COMPUTE_IEEE,
                                        TGL_COMPUTE_ACCURATE};
    const char *text = getenv("TEGULA_COMPUTE");
    *compute = TGL_COMPUTE_DEFAULT;
    if (text == NULL || text[0] == '\0') return TGL_OK;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(text, tgl_compute_name(modes[i])) != 0) continue;
        *compute = modes[i];
        return TGL_OK;
    }
    return tgl_fail(TGL_BAD_SETTING,
                    "TEGULA_COMPUTE is \"%s\"; it must be default, ieee or accurate", text);
}

tgl_compute tgl_compute_for(tgl_compute asked, const tgl_chip *chip)
{
    /* The compute capability, times 10, of the chips on which the accuracy of ACCURATE was
     * measured. */
    enum { MEASURED = 90 };
    if (asked != TGL_COMPUTE_DEFAULT || chip == NULL) return asked;
    return chip->capability == MEASURED ? TGL_COMPUTE_ACCURATE : TGL_COMPUTE_IEEE;
}

void tgl_shape_set_compute(tgl_shape *s, tgl_compute compute)
{
    const bool is_single = tgl_type_is_single(s->type_a) && s->type_a == s->type_b;
    if (is_single && s->compute == TGL_COMPUTE_DEFAULT) s->compute = compute;
}

tgl_status tgl_device_shape(const tgl_device *dev, const tgl_problem *problem, bool zero_is_tight,
                            tgl_shape *shape)
{
    TGL_TRY(tgl_shape_make(problem, zero_is_tight, shape));
    tgl_shape_set_compute(shape, dev->f32_compute);
    return TGL_OK;
}
