/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of a neural network in one kernel, Y := gelu(X*W + bias) + X, by a plan. A plan is made
 * and compiled once, and can run for any number of inputs. The argument of the program names a
 * device with a compiler (cuda, sim). With this argument, an expression in C, compiled into the
 * kernel, replaces gelu(X*W + bias).
 */
#include <tegula/tegula.h>

#include <stdio.h>

enum { ROWS = 3, WIDTH = 4 }; /* X and Y: ROWS x WIDTH, W: WIDTH x WIDTH, bias: WIDTH */

/* Returns a copy in memory of the device, which the caller frees; NULL: it failed. */
static void *copy_of(tgl_device *dev, const float *host, size_t bytes)
{
    void *memory;
    if (tgl_alloc(dev, bytes, &memory) == TGL_OK &&
        tgl_upload(dev, memory, host, bytes, NULL) != TGL_OK) {
        tgl_free(dev, memory);
        memory = NULL;
    }
    return memory;
}

static tgl_status run_layer(tgl_device *dev, const tgl_plan *plan)
{
    const float x[ROWS * WIDTH] = {1, 2, 3, 4, -1, -2, -3, -4, 0.5F, 0, -0.5F, 1};
    const float w[WIDTH * WIDTH] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, -1};
    const float bias[WIDTH] = {0, 0.25F, 0.5F, 0.75F};
    float y[ROWS * WIDTH] = {0};
    void *X = copy_of(dev, x, sizeof x), *W = copy_of(dev, w, sizeof w);
    void *b = copy_of(dev, bias, sizeof bias), *Y = copy_of(dev, y, sizeof y);
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = 1, .A = X, .B = W, .C = Y, .bias = b, .residual = X};

    tgl_status status = tgl_plan_run_operands(plan, &operands, NULL);
    if (status == TGL_OK) status = tgl_download(dev, y, Y, sizeof y, NULL);
    for (int i = 0; status == TGL_OK && i < ROWS * WIDTH; i++)
        printf("%9.5f%s", (double)y[i], i % WIDTH == WIDTH - 1 ? "\n" : " ");

    tgl_free(dev, X), tgl_free(dev, W), tgl_free(dev, b), tgl_free(dev, Y);
    return status;
}

static tgl_status show_layer(tgl_device *dev, const char *expression)
{
    tgl_problem problem;
    const tgl_epilogue epilogue = {.size = sizeof epilogue,
                                   .bias = TGL_BIAS_COLUMN,
                                   .activation = expression == NULL ? TGL_ACTIVATION_GELU
                                                                    : TGL_ACTIVATION_NONE,
                                   .residual = 1,
                                   .expression = expression};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
    tgl_plan *plan = NULL;
    tgl_status status = tgl_problem_init(&problem, sizeof problem, TGL_F32, ROWS, WIDTH, WIDTH);
    if (status == TGL_OK) status = tgl_plan_create(dev, &problem, &options, &plan);
    if (status == TGL_OK) status = run_layer(dev, plan);
    if (status != TGL_OK) {
        char text[2000];
        tgl_last_error(text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    tgl_plan_destroy(plan);
    return status;
}

int main(int argc, char **argv)
{
    tgl_device *dev;
    tgl_status status = tgl_device_open(argc > 1 ? argv[1] : "auto", NULL, &dev);
    if (status != TGL_OK) {
        fprintf(stderr, "%s\n", tgl_status_text(status));
        return 1;
    }
    status = show_layer(dev, argc > 1 ? "0.5f * tanhf(acc + bias)" : NULL);
    tgl_device_close(dev);
    return status == TGL_OK ? 0 : 1;
}
