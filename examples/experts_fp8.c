/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of a mixture of experts in fp8: Y := silu(X*Up[e]) * Down[e]. A row of X is a token, and
 * e is the expert of that token; experts.c explains the groups. All matrices but Y are of e4m3,
 * with scale factors in F32:
 *   - X: a factor for each token and each 128 of k
 *   - Up[e]: a factor for each block of 128 x 128
 *   - hidden: one factor, HIDDEN_SCALE. The first product multiplies its results by it (scale_d);
 *     scale_a of the second product is 1 / HIDDEN_SCALE.
 *   - Down[e]: a factor for each expert
 *
 * The program compares Y with the layer of the unrounded matrices. It fails if their difference is
 * larger than the rounding to e4m3 explains. The argument of the program names the device; without
 * it, the device is "auto".
 */
#include <tegula/tegula.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 8, EXPERTS = 4, WIDTH = 256, HIDDEN = 384, BLOCK = 128 };
enum { WIDTH_BLOCKS = WIDTH / BLOCK, HIDDEN_BLOCKS = HIDDEN / BLOCK };

static const float E4M3_MAX = 448, HIDDEN_SCALE = 64;

/* Expert 0 has three tokens, expert 1 none, expert 2 one, expert 3 the others. */
static const int32_t ends[EXPERTS] = {3, 3, 4, TOKENS};

/* The layer without rounding. The weights are stored transposed, k is contiguous. */
static float x[TOKENS][WIDTH], up[EXPERTS][HIDDEN][WIDTH], down[EXPERTS][WIDTH][HIDDEN];

/* The matrices in e4m3, and their factors in the order of tgl_scaling. */
static uint8_t x8[TOKENS][WIDTH], up8[EXPERTS][HIDDEN][WIDTH], down8[EXPERTS][WIDTH][HIDDEN];
static float scale_x[WIDTH_BLOCKS][TOKENS];
static float scale_up[EXPERTS][HIDDEN_BLOCKS][WIDTH_BLOCKS], scale_down[EXPERTS];
static const float scale_hidden = HIDDEN_SCALE, unscale_hidden = 1 / HIDDEN_SCALE;

/* ---- Quantization ---------------------------------------------------------------------------- */

/* The nearest e4m3 of a number with |value| <= E4M3_MAX, ties away from 0. */
static uint8_t to_e4m3(float value)
{
    enum { FRACTION = 3, BIAS = 7, LEAST = -6 /* exponent of the least normal number */ };
    int exponent;
    frexpf(value, &exponent);
    exponent = exponent - 1 > LEAST ? exponent - 1 : LEAST;
    const int units = (int)roundf(ldexpf(fabsf(value), FRACTION - exponent));
    const int bits =
        ((exponent + BIAS - 1) << FRACTION) + units; /* 8 units carry into the exponent */
    return (uint8_t)(bits | (value < 0 ? 0x80 : 0));
}

/* to := from / factor in `rows` rows of `columns` elements, `ld` apart, where the returned factor
 * makes the largest element E4M3_MAX. */
static float quantize(const float *from, uint8_t *to, int rows, int columns, int ld)
{
    float largest = 0;
    for (int i = 0; i < rows * columns; i++)
        largest = fmaxf(largest, fabsf(from[i / columns * ld + i % columns]));
    const float factor = largest > 0 ? largest / E4M3_MAX : 1;
    for (int i = 0; i < rows * columns; i++) {
        const int at = i / columns * ld + i % columns;
        to[at] = to_e4m3(from[at] / factor);
    }
    return factor;
}

/* Random numbers from -limit to limit. */
static void fill(float *to, int count, float limit, unsigned *state)
{
    for (int i = 0; i < count; i++) {
        *state = *state * 1664525u + 1013904223u;
        to[i] = limit * ((float)(*state >> 8) / 0x1p23f - 1);
    }
}

static void make_matrices(void)
{
    unsigned state = 1;
    fill(x[0], TOKENS * WIDTH, 1, &state);
    fill((float *)up, EXPERTS * HIDDEN * WIDTH, 0.125f, &state);
    fill((float *)down, EXPERTS * HIDDEN * WIDTH, 0.125f, &state);
}

static void quantize_matrices(void)
{
    for (int q = 0; q < WIDTH_BLOCKS; q++)
        for (int row = 0; row < TOKENS; row++)
            scale_x[q][row] = quantize(&x[row][q * BLOCK], &x8[row][q * BLOCK], 1, BLOCK, WIDTH);
    for (int e = 0; e < EXPERTS; e++) {
        for (int i = 0; i < HIDDEN_BLOCKS; i++)
            for (int q = 0; q < WIDTH_BLOCKS; q++)
                scale_up[e][i][q] = quantize(&up[e][i * BLOCK][q * BLOCK],
                                             &up8[e][i * BLOCK][q * BLOCK], BLOCK, BLOCK, WIDTH);
        scale_down[e] = quantize(down[e][0], down8[e][0], WIDTH, HIDDEN, HIDDEN);
    }
}

/* ---- The layer ------------------------------------------------------------------------------- */

/* The operands, in memory of the device. */
enum { X, SCALE_X, UP, SCALE_UP, HIDDEN_8, SCALE_H, UNSCALE_H, DOWN, SCALE_DOWN, Y, ENDS, PARTS };

/* A problem of grouped rows: TOKENS x k times the n x k matrices of the experts. */
static tgl_status make_problem(tgl_problem *p, int64_t n, int64_t k, tgl_type result)
{
    const tgl_status status = tgl_problem_init(p, sizeof *p, TGL_F8_E4M3, TOKENS, n, k);
    p->type_c = result;
    p->trans_b = TGL_TRANS;
    p->grouping = TGL_GROUPED_ROWS;
    p->group_form = TGL_GROUP_ENDS;
    p->batch = EXPERTS;
    p->stride_b = n * k;
    return status;
}

static tgl_status make_up(tgl_device *dev, tgl_plan **plan)
{
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .activation = TGL_ACTIVATION_SILU};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
    tgl_problem p;
    const tgl_status status = make_problem(&p, HIDDEN, WIDTH, TGL_F8_E4M3);
    if (status != TGL_OK) return status;
    p.scaling_a = TGL_SCALING_LINE_128;
    p.scaling_b = TGL_SCALING_BLOCK;
    p.scaling_d = TGL_SCALING_TENSOR;
    return tgl_plan_create(dev, &p, &options, plan);
}

static tgl_status make_down(tgl_device *dev, tgl_plan **plan)
{
    tgl_problem p;
    const tgl_status status = make_problem(&p, WIDTH, HIDDEN, TGL_F32);
    if (status != TGL_OK) return status;
    p.scaling_a = TGL_SCALING_TENSOR;
    p.scaling_b = TGL_SCALING_TENSOR;
    return tgl_plan_create(dev, &p, NULL, plan);
}

static tgl_status upload(tgl_device *dev, void **parts)
{
    const struct {
        const void *host;
        size_t bytes;
    } from[PARTS] = {[X] = {x8, sizeof x8},
                     [SCALE_X] = {scale_x, sizeof scale_x},
                     [UP] = {up8, sizeof up8},
                     [SCALE_UP] = {scale_up, sizeof scale_up},
                     [HIDDEN_8] = {NULL, (size_t)TOKENS * HIDDEN},
                     [SCALE_H] = {&scale_hidden, sizeof scale_hidden},
                     [UNSCALE_H] = {&unscale_hidden, sizeof unscale_hidden},
                     [DOWN] = {down8, sizeof down8},
                     [SCALE_DOWN] = {scale_down, sizeof scale_down},
                     [Y] = {NULL, TOKENS * WIDTH * sizeof(float)},
                     [ENDS] = {ends, sizeof ends}};
    tgl_status status = TGL_OK;
    for (int i = 0; status == TGL_OK && i < PARTS; i++) {
        status = tgl_alloc(dev, from[i].bytes, &parts[i]);
        if (status == TGL_OK && from[i].host != NULL)
            status = tgl_upload(dev, parts[i], from[i].host, from[i].bytes, NULL);
    }
    return status;
}

/* y := the layer. The second product starts after the first one, because both are in the default
 * stream. */
static tgl_status run_layer(tgl_device *dev, void *const *parts, float (*y)[WIDTH])
{
    const tgl_operands of_up = {.size = sizeof of_up,
                                .alpha = 1,
                                .A = parts[X],
                                .B = parts[UP],
                                .C = parts[HIDDEN_8],
                                .scale_a = parts[SCALE_X],
                                .scale_b = parts[SCALE_UP],
                                .scale_d = parts[SCALE_H],
                                .groups = parts[ENDS]};
    const tgl_operands of_down = {.size = sizeof of_down,
                                  .alpha = 1,
                                  .A = parts[HIDDEN_8],
                                  .B = parts[DOWN],
                                  .C = parts[Y],
                                  .scale_a = parts[UNSCALE_H],
                                  .scale_b = parts[SCALE_DOWN],
                                  .groups = parts[ENDS]};
    tgl_plan *up_plan = NULL, *down_plan = NULL;
    tgl_status status = make_up(dev, &up_plan);
    if (status == TGL_OK) status = make_down(dev, &down_plan);
    if (status == TGL_OK) status = tgl_plan_run_operands(up_plan, &of_up, NULL);
    if (status == TGL_OK) status = tgl_plan_run_operands(down_plan, &of_down, NULL);
    if (status == TGL_OK)
        status = tgl_download(dev, y, parts[Y], TOKENS * WIDTH * sizeof(float), NULL);
    tgl_plan_destroy(up_plan);
    tgl_plan_destroy(down_plan);
    return status;
}

/* ---- Comparison ------------------------------------------------------------------------------ */

/* exact := the row of the layer for one token of expert e, without rounding. */
static void multiply_token(const float *token, int e, float *exact)
{
    float hidden[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) {
        float sum = 0;
        for (int k = 0; k < WIDTH; k++)
            sum += token[k] * up[e][i][k];
        hidden[i] = sum / (1 + expf(-sum));
    }
    for (int i = 0; i < WIDTH; i++) {
        exact[i] = 0;
        for (int k = 0; k < HIDDEN; k++)
            exact[i] += hidden[k] * down[e][i][k];
    }
}

/* The norm of the difference of y and the exact layer, divided by the norm of the layer. */
static float error_of(float (*y)[WIDTH])
{
    float difference = 0, all = 0, exact[WIDTH];
    for (int row = 0, e = 0; row < TOKENS; row++) {
        while (row >= ends[e])
            e++;
        multiply_token(x[row], e, exact);
        printf("token %d, expert %d: %8.4f %8.4f ... exactly %8.4f %8.4f ...\n", row, e,
               (double)y[row][0], (double)y[row][1], (double)exact[0], (double)exact[1]);
        for (int i = 0; i < WIDTH; i++) {
            difference += (y[row][i] - exact[i]) * (y[row][i] - exact[i]);
            all += exact[i] * exact[i];
        }
    }
    return sqrtf(difference / all);
}

int main(int argc, char **argv)
{
    /* Four matrices are rounded, each with errors of up to 2^-4, which are 2.6 % on average. */
    static const float ERROR_MAX = 0.0625f;
    tgl_device *dev;
    void *parts[PARTS] = {NULL};
    float y[TOKENS][WIDTH], error = INFINITY;
    make_matrices();
    quantize_matrices();
    tgl_status status = tgl_device_open(argc > 1 ? argv[1] : "auto", NULL, &dev);
    if (status == TGL_OK) status = upload(dev, parts);
    if (status == TGL_OK) status = run_layer(dev, parts, y);
    if (status == TGL_OK) {
        error = error_of(y);
        printf("relative error %.4f\n", (double)error);
    } else {
        char text[2000];
        tgl_last_error(text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    for (int i = 0; i < PARTS; i++)
        tgl_free(dev, parts[i]);
    tgl_device_close(dev);
    return error <= ERROR_MAX ? 0 : 1;
}
