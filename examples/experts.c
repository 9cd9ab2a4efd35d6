/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of a mixture of experts in bf16: Y := silu(X*Up[e]) * Down[e]. A row of X is a token, and
 * e is the expert of that token. The tokens are sorted by expert; the array `ends` says after which
 * row the tokens of each expert end. It is in device memory and may change between runs of the
 * plans of the two products; the host never reads it. The argument of the program names the device;
 * without it, the device is "auto".
 */
#include <tegula/tegula.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 8, EXPERTS = 4, WIDTH = 16, HIDDEN = 32 };

typedef uint16_t bf16;

/* Cuts off the low 16 bits, which are 0 for the numbers of this example. */
static bf16 to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bf16)(bits >> 16);
}

static float from_bf16(bf16 x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The operands, in memory of the device. */
typedef struct layer {
    void *x, *up, *hidden, *down, *y, *ends;
} layer;

/* A plan of d := activation(x*w[e]), where e is the expert of the row. x: TOKENS x k; w: EXPERTS
 * matrices of k x n. */
static tgl_status make_plan(tgl_device *dev, int64_t n, int64_t k, tgl_activation activation,
                            tgl_plan **plan)
{
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .activation = activation};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
    tgl_problem problem;
    const tgl_status status = tgl_problem_init(&problem, sizeof problem, TGL_BF16, TOKENS, n, k);
    if (status != TGL_OK) return status;
    problem.grouping = TGL_GROUPED_ROWS;
    problem.group_form = TGL_GROUP_ENDS;
    problem.batch = EXPERTS;
    problem.stride_b = n * k;
    return tgl_plan_create(dev, &problem, &options, plan);
}

static tgl_status multiply(const tgl_plan *plan, const void *x, const void *w, void *d,
                           const void *ends)
{
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = 1, .A = x, .B = w, .C = d, .groups = ends};
    return tgl_plan_run_operands(plan, &operands, NULL);
}

static tgl_status make_layer(tgl_device *dev, layer *l)
{
    static bf16 x[TOKENS * WIDTH], up[EXPERTS * WIDTH * HIDDEN], down[EXPERTS * HIDDEN * WIDTH];
    /* Expert 0 has three tokens, expert 1 none, expert 2 one, expert 3 the others. */
    static const int32_t ends[EXPERTS] = {3, 3, 4, TOKENS};
    const struct {
        void **memory;
        const void *host;
        size_t bytes;
    } parts[] = {{&l->x, x, sizeof x},
                 {&l->up, up, sizeof up},
                 {&l->down, down, sizeof down},
                 {&l->ends, ends, sizeof ends},
                 {&l->hidden, NULL, TOKENS * HIDDEN * sizeof(bf16)},
                 {&l->y, NULL, TOKENS * WIDTH * sizeof(bf16)}};
    for (int i = 0; i < TOKENS * WIDTH; i++)
        x[i] = to_bf16((float)(i % 7 - 3) / 4);
    for (int i = 0; i < EXPERTS * WIDTH * HIDDEN; i++) {
        up[i] = to_bf16((float)(i % 5 - 2) / 4);
        down[i] = to_bf16((float)(i % 3 - 1) / 2);
    }
    tgl_status status = TGL_OK;
    for (size_t i = 0; status == TGL_OK && i < sizeof parts / sizeof parts[0]; i++) {
        status = tgl_alloc(dev, parts[i].bytes, parts[i].memory);
        if (status == TGL_OK && parts[i].host != NULL)
            status = tgl_upload(dev, *parts[i].memory, parts[i].host, parts[i].bytes, NULL);
    }
    return status;
}

static tgl_status run_layer(tgl_device *dev, const layer *l)
{
    tgl_plan *up = NULL, *down = NULL;
    bf16 y[TOKENS * WIDTH];
    tgl_status status = make_plan(dev, HIDDEN, WIDTH, TGL_ACTIVATION_SILU, &up);
    if (status == TGL_OK) status = make_plan(dev, WIDTH, HIDDEN, TGL_ACTIVATION_NONE, &down);
    if (status == TGL_OK) status = multiply(up, l->x, l->up, l->hidden, l->ends);
    if (status == TGL_OK) status = multiply(down, l->hidden, l->down, l->y, l->ends);
    if (status == TGL_OK) status = tgl_download(dev, y, l->y, sizeof y, NULL);
    for (int row = 0; status == TGL_OK && row < TOKENS; row++)
        printf("token %d: %8.4f %8.4f ...\n", row, (double)from_bf16(y[row * WIDTH]),
               (double)from_bf16(y[row * WIDTH + 1]));
    tgl_plan_destroy(up);
    tgl_plan_destroy(down);
    return status;
}

int main(int argc, char **argv)
{
    tgl_device *dev;
    layer l = {NULL, NULL, NULL, NULL, NULL, NULL};
    tgl_status status = tgl_device_open(argc > 1 ? argv[1] : "auto", NULL, &dev);
    if (status == TGL_OK) status = make_layer(dev, &l);
    if (status == TGL_OK) status = run_layer(dev, &l);
    if (status != TGL_OK) {
        char text[2000];
        tgl_last_error(text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    tgl_free(dev, l.x), tgl_free(dev, l.up), tgl_free(dev, l.hidden);
    tgl_free(dev, l.down), tgl_free(dev, l.y), tgl_free(dev, l.ends);
    tgl_device_close(dev);
    return status == TGL_OK ? 0 : 1;
}
