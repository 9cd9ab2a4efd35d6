/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers of the public header. A backend without timers of its own completes each run before the
 * call returns. Its timers therefore read the host's clock.
 */
#include "backend/backend.h"
#include "base/clock.h"

#include <stdlib.h>

tgl_status tgl_timer_create(tgl_device *dev, tgl_timer **out)
{
    if (out == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the output pointer for the timer is NULL");
    *out = NULL;
    if (dev == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the device is NULL");
    tgl_timer *timer = calloc(1, sizeof *timer);
    if (timer == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a timer");
    timer->dev = dev;
    if (dev->backend->timer_create != NULL) {
        const tgl_status status = dev->backend->timer_create(timer);
        if (status != TGL_OK) {
            free(timer);
            return status;
        }
    }
    *out = timer;
    return TGL_OK;
}

void tgl_timer_destroy(tgl_timer *timer)
{
    if (timer == NULL) return;
    if (timer->dev->backend->timer_destroy != NULL) timer->dev->backend->timer_destroy(timer);
    free(timer);
}

tgl_status tgl_timer_start(tgl_timer *timer, void *stream)
{
    if (timer == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the timer is NULL");
    if (timer->dev->backend->timer_start != NULL)
        TGL_TRY(timer->dev->backend->timer_start(timer, stream));
    else
        timer->started = tgl_clock();
    timer->is_started = true;
    return TGL_OK;
}

tgl_status tgl_timer_stop(tgl_timer *timer, void *stream, double *seconds)
{
    if (timer == NULL || seconds == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "%s is NULL",
                        timer == NULL ? "the timer" : "the output pointer for the seconds");
    if (!timer->is_started)
        return tgl_fail(TGL_BAD_ARGUMENT, "tgl_timer_stop() without a tgl_timer_start()");
    if (timer->dev->backend->timer_stop != NULL)
        return timer->dev->backend->timer_stop(timer, stream, seconds);
    *seconds = tgl_clock() - timer->started;
    return TGL_OK;
}

tgl_status tgl_timer_passed(const tgl_timer *timer, int *passed)
{
    if (timer == NULL || passed == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "%s is NULL",
                        timer == NULL ? "the timer" : "the output pointer");
    if (!timer->is_started)
        return tgl_fail(TGL_BAD_ARGUMENT, "tgl_timer_passed() without a tgl_timer_start()");
    if (timer->dev->backend->timer_passed != NULL)
        return timer->dev->backend->timer_passed(timer, passed);
    *passed = 1; /* runs are complete when their calls return */
    return TGL_OK;
}
