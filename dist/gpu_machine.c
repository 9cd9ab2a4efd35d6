/* SPDX-License-Identifier: Apache-2.0
 *
 * The speeds of a GPU and of its links that the planner assumes.
 */
#include "gpu_machine.h"

/* Columns: minimum compute capability; fraction of the chip's FP32 peak that FP32 products reach;
 * FLOP/s of F64 products and of 16-bit products, relative to FP32 products; bytes/s between two
 * GPUs of a host. H200 with NVLink 4: measured, 2026-11 (bench/dist.sh). Others: estimated from
 * data sheets. */
static const struct {
    double capability, f32_part, f64_rate, half_rate, link;
} chips[] = {
    {100, 0.75, 0.6, 25, 700e9}, /* B200 */
    {90, 0.78, 1.1, 13, 350e9},  /* H100, H200 */
    {89, 0.7, 0.02, 3, 20e9},    /* L4, L40: no NVLink */
    {80, 0.8, 1, 14, 200e9},     /* A100 */
    {0, 0.7, 0.03, 4, 10e9},     /* others */
};

/* Bytes/s between two GPUs of different hosts. Not measured: 0.9 times 400 Gbit/s, the rate of the
 * network card that each GPU has in NVIDIA's DGX H100. */
static const double network = 45e9;

/* Elements of C that an SM computes at a time: the largest tiles of the families for 16 bits. */
enum { TILE = 128 * 256 };

static double number_of(const tgl_device *dev, tgl_number number, double otherwise)
{
    double value = 0;
    return tgl_device_number(dev, number, &value) == TGL_OK && value > 0 ? value : otherwise;
}

static double given_or(double given, double otherwise)
{
    return given > 0 ? given : otherwise;
}

tgl_dist_machine gpu_machine_of(const tgl_device *dev, bool has_several_hosts,
                                const tgl_dist_machine *given)
{
    const double f32 = 2 * number_of(dev, TGL_NUMBER_PROCESSORS, 100) *
                       number_of(dev, TGL_NUMBER_FP32_LANES, 128) *
                       number_of(dev, TGL_NUMBER_CLOCK_HZ, 1.5e9);
    const double memory = number_of(dev, TGL_NUMBER_MEMORY_BYTES_PER_S, 1e12);
    const double capability = number_of(dev, TGL_NUMBER_CAPABILITY, 80);
    int chip = 0;
    while (chips[chip].capability > capability)
        chip++;
    const double f64 = f32 * chips[chip].f32_part * chips[chip].f64_rate;
    return (tgl_dist_machine){
        .size = sizeof(tgl_dist_machine),
        .flops_per_s = given_or(given->flops_per_s, f64),
        .f32_rate = given_or(given->f32_rate, 1 / chips[chip].f64_rate),
        .half_rate = given_or(given->half_rate, chips[chip].half_rate / chips[chip].f64_rate),
        .operand_bytes_per_s = given_or(given->operand_bytes_per_s, 0.85 * memory),
        .moves_alone = 1,
        .product_s = given_or(given->product_s, 4e-6),
        .bytes_per_s =
            given_or(given->bytes_per_s,
                     has_several_hosts && network < chips[chip].link ? network : chips[chip].link),
        .latency_s = given_or(given->latency_s, 20e-6),
        .memory_per_s = given_or(given->memory_per_s, 0.4 * memory),
        .collective_s = given_or(given->collective_s, 15e-6),
        .wave_elements =
            given_or(given->wave_elements, TILE * number_of(dev, TGL_NUMBER_PROCESSORS, 100))};
}
