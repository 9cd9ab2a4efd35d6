/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a setting (settings.h) by the measured times in the wisdom (plan/wisdom.h). A line of the
 * wisdom counts only if the device still lists a setting with the line's kernel string and source.
 */
#include "api/settings.h"
#include "plan/wisdom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES = TGL_C128 + 1, MIN_PRODUCTS = 8 };

/* Minimum speedup over the planner's own choice that another setting must have. MIN_GAIN: for one
 * product; MIN_MEAN_GAIN: in the mean over MIN_PRODUCTS products or more. A smaller difference may
 * be noise of the machine. Both times must have TGL_SETTING_SAMPLES samples. In the mean, a time
 * that is not below that of the planner's choice may have fewer. */
static const double MIN_GAIN = 1.02, MIN_MEAN_GAIN = 1.01;

/* The settings of a device. */
typedef struct setting_list {
    tgl_setting items[TGL_SETTINGS_MAX];
    int count;
} setting_list;

/* The usable lines of the wisdom for one product, and the setting that they suggest. */
typedef struct consulted {
    int chosen;          /* the index of the chosen setting; NONE: no usable line */
    tgl_measured line;   /* the line of the chosen setting */
    int measured, stale; /* number of usable lines, and of unusable ones */
    const char *why_stale;
} consulted;

enum { NONE = -1 };

static void list_settings(const tgl_device *dev, setting_list *list)
{
    list->count = dev->backend->settings->list(dev, list->items);
}

/* The index of the setting whose time a line has. NONE: the line must not be used, and *why is the
 * reason. */
static int find_setting(const setting_list *list, const tgl_measured *line, const char **why)
{
    *why = line->stale;
    if (line->stale != NULL) return NONE;
    *why = "of a setting that this version does not have";
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].kernel, line->kernel) != 0) continue;
        if (strcmp(list->items[i].source, line->source) == 0) return i;
        *why = "of other values of the setting";
    }
    return NONE;
}

/* ---- One product ----------------------------------------------------------------------------- */

/* Whether `line` replaces the line chosen so far. If there is one, it has a shorter time. setting:
 * the setting of `line`; 0 is the planner's own choice. */
static bool is_better(const consulted *said, int setting, const tgl_measured *line)
{
    const bool is_sure = line->samples >= TGL_SETTING_SAMPLES;
    if (setting != 0) return said->chosen == NONE && is_sure;
    return said->chosen == NONE || !is_sure || line->seconds <= MIN_GAIN * said->line.seconds;
}

/* Chooses the setting for a product. tgl_wisdom_find() sorts the lines by time. Setting 0 is the
 * planner's own choice. */
static void consult(const tgl_device *dev, const tgl_shape *shape, consulted *said)
{
    setting_list list;
    tgl_measured *lines;
    *said = (consulted){.chosen = NONE};
    const int count = tgl_wisdom_find(dev->wisdom, shape, &lines);
    if (count > 0) list_settings(dev, &list);
    for (int i = 0; i < count; i++) {
        const char *why;
        const int setting = find_setting(&list, &lines[i], &why);
        if (setting == NONE) {
            said->stale++;
            said->why_stale = why;
            continue;
        }
        said->measured++;
        if (!is_better(said, setting, &lines[i])) continue;
        said->chosen = setting;
        said->line = lines[i];
    }
    free(lines);
}

/* ---- The mean over products ------------------------------------------------------------------ */

typedef struct means {
    setting_list list;
    double log_gain[TGL_SETTINGS_MAX]; /* sums of log(time of the planner's choice / time) */
    int products[TGL_SETTINGS_MAX];    /* number of terms of each sum */
} means;

static void add_product(const tgl_measured *lines, int count, void *context)
{
    means *m = context;
    const char *why;
    double own = 0;
    for (int i = 0; i < count; i++)
        if (find_setting(&m->list, &lines[i], &why) == 0 && lines[i].samples >= TGL_SETTING_SAMPLES)
            own = lines[i].seconds;
    if (own == 0) return;
    for (int i = 0; i < count; i++) {
        const int setting = find_setting(&m->list, &lines[i], &why);
        const bool is_sure = lines[i].samples >= TGL_SETTING_SAMPLES || lines[i].seconds >= own;
        if (setting == NONE || !is_sure) continue;
        m->products[setting]++;
        m->log_gain[setting] += log(own / lines[i].seconds);
    }
}

static void find_usual(tgl_device *dev, means *m, tgl_type type)
{
    char types[24];
    int best = 0;
    tgl_usual_setting *usual = &dev->usual[type];
    snprintf(types, sizeof types, "%s,", tgl_type_name(type));
    memset(m->products, 0, sizeof m->products);
    memset(m->log_gain, 0, sizeof m->log_gain);
    tgl_wisdom_each(dev->wisdom, types, add_product, m);
    for (int i = 1; i < m->list.count; i++) {
        const double gain =
            m->products[i] < MIN_PRODUCTS ? 0 : exp(m->log_gain[i] / m->products[i]);
        if (gain <= usual->gain) continue;
        usual->gain = gain;
        usual->products = m->products[i];
        best = i;
    }
    if (usual->gain >= MIN_MEAN_GAIN)
        snprintf(usual->kernel, sizeof usual->kernel, "%s", m->list.items[best].kernel);
}

void tgl_usual_settings_find(tgl_device *dev)
{
    if (dev->backend->settings == NULL || tgl_wisdom_is_empty(dev->wisdom)) return;
    means *m = calloc(1, sizeof *m);
    dev->usual = m != NULL ? calloc(TYPES, sizeof *dev->usual) : NULL;
    if (dev->usual != NULL) {
        list_settings(dev, &m->list);
        for (tgl_type type = TGL_F32; (int)type < TYPES; type++)
            find_usual(dev, m, type);
    }
    free(m);
}

/* The setting for products of this shape that were not measured. NULL: the planner's own choice. */
static const tgl_usual_setting *usual_of(const tgl_device *dev, const tgl_shape *shape)
{
    const tgl_usual_setting *usual = dev->usual != NULL ? &dev->usual[shape->type_a] : NULL;
    return usual != NULL && usual->kernel[0] != '\0' ? usual : NULL;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

const char *tgl_settings_choose(const tgl_plan *plan, const tgl_plan_options *options,
                                char kernel[TGL_KERNEL_STRING_SIZE])
{
    consulted said;
    const tgl_device *dev = plan->dev;
    if (options->kernel != NULL) return options->kernel;
    if (dev->backend->settings == NULL || tgl_wisdom_is_empty(dev->wisdom)) return NULL;
    consult(dev, &plan->shape, &said);
    const tgl_usual_setting *usual = usual_of(dev, &plan->shape);
    if (said.chosen == 0 || (said.chosen == NONE && usual == NULL)) return NULL;
    snprintf(kernel, TGL_KERNEL_STRING_SIZE, "%s",
             said.chosen != NONE ? said.line.kernel : usual->kernel);
    return kernel;
}

void tgl_settings_explain(const tgl_plan *plan, tgl_text *out)
{
    consulted said;
    const tgl_device *dev = plan->dev;
    if (dev->backend->settings == NULL || tgl_wisdom_is_empty(dev->wisdom)) return;
    consult(dev, &plan->shape, &said);
    const tgl_usual_setting *usual = usual_of(dev, &plan->shape);
    const bool has_chosen = said.chosen != NONE && strcmp(said.line.kernel, plan->kernel) == 0;
    if (has_chosen)
        tgl_text_add(out, "choice      %s, measured to be fastest\n", said.line.kernel);
    else if (usual != NULL && strcmp(usual->kernel, plan->kernel) == 0)
        tgl_text_add(out,
                     "choice      %s: %.3f of the planner's speed in the mean over %d measured "
                     "products\n",
                     usual->kernel, usual->gain, usual->products);
    tgl_text_add(out, "wisdom      %s\n", tgl_wisdom_describe(dev->wisdom));
    if (has_chosen)
        tgl_text_add(
            out, "measured    %.2f us, %d samples, spread %.1f %%; settings measured: %d\n",
            1e6 * said.line.seconds, said.line.samples, 100 * said.line.spread, said.measured);
    if (said.stale > 0)
        tgl_text_add(out, "stale       %d lines of the wisdom not used: %s\n", said.stale,
                     said.why_stale);
}
