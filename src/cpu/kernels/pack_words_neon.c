/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs operands of bf16 and int8 for the tiers neon_dot and neon_mm (cpu_words.h). A line is a row
 * of op(A) or a column of op(B); a panel has CPU_NEON_LINES lines, padded with zeros. A panel is a
 * sequence of chunks: CPU_NEON_CHUNK bytes of each line, cut into groups of 4 or 8 bytes. A chunk
 * holds the first group of all lines, then the second group of all lines, and so on. A and B are
 * packed alike.
 *
 * SDOT multiplies groups of 4 bytes of int8. SMMLA and BFMMLA take two lines in a vector, with 8
 * bytes each, which is 8 int8 or 4 bf16.
 */
#include "cpu/kernels/cpu_words.h"
#include "cpu/kernels/transpose.h"
#include "cpu/kernels/unroll.h"

#include <arm_neon.h>
#include <string.h>

enum { LINES = CPU_NEON_LINES, CHUNK = CPU_NEON_CHUNK, UNITS = CHUNK / 2 };

/* ---- Exponents of bf16 ----------------------------------------------------------------------- */

/* The range of the magnitudes of the elements seen so far, separately for each lane. most: the
 * largest magnitude. least: the minimum of (magnitude - 1), unsigned, so that a zero wraps around
 * to the largest number and is ignored. */
typedef struct magnitudes {
    uint16x8_t least, most;
} magnitudes;

static inline void note(magnitudes *seen, uint8x16_t x)
{
    const uint16x8_t magnitude = vandq_u16(vreinterpretq_u16_u8(x), vdupq_n_u16(0x7fff));
    seen->most = vmaxq_u16(seen->most, magnitude);
    seen->least = vminq_u16(seen->least, vsubq_u16(magnitude, vdupq_n_u16(1)));
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* Loads min(bytes, whole) bytes, followed by zeros. whole: 8 or 16. bytes: number of valid bytes
 * from `from` on; it may be negative. */
static inline uint8x16_t load_bytes(const uint8_t *from, int64_t bytes, const int whole)
{
    uint8_t some[16] = {0};
    if (bytes >= whole)
        return whole == 16 ? vld1q_u8(from) : vcombine_u8(vld1_u8(from), vdup_n_u8(0));
    if (bytes > 0) memcpy(some, from, (size_t)bytes);
    return vld1q_u8(some);
}

/* Stores a chunk as groups of `group` bytes: group 0 of all lines, then group 1, and so on.
 * lines[i]: the CPU_NEON_CHUNK bytes of line i. */
static inline void store_lines(uint8_t *to, const uint8x16_t lines[LINES], const int group)
{
    UNROLL
    for (int i = 0; i < LINES && group == 8; i += 2) {
        const uint64x2_t x = vreinterpretq_u64_u8(lines[i]), y = vreinterpretq_u64_u8(lines[i + 1]);
        vst1q_u8(to + 8 * i, vreinterpretq_u8_u64(vzip1q_u64(x, y)));
        vst1q_u8(to + 8 * i + 8 * LINES, vreinterpretq_u8_u64(vzip2q_u64(x, y)));
    }
    UNROLL
    for (int i = 0; i < LINES && group == 4; i += 4) {
        uint32x4_t x[4];
        UNROLL
        for (int j = 0; j < 4; j++)
            x[j] = vreinterpretq_u32_u8(lines[i + j]);
        CPU_TRANSPOSE_4(x);
        UNROLL
        for (int j = 0; j < 4; j++)
            vst1q_u8(to + 4 * i + 4 * LINES * j, vreinterpretq_u8_u32(x[j]));
    }
}

/* Stores a chunk as store_lines() does, but from vectors in another order: units[i] has bytes 2i
 * and 2i + 1 of each of the 8 lines. */
static inline void store_units(uint8_t *to, const uint16x8_t units[UNITS], const int group)
{
    uint16_t *at = (void *)to;
    UNROLL
    for (int i = 0; i < UNITS && group == 8; i += 4) {
        const uint16x8x4_t x = {{units[i], units[i + 1], units[i + 2], units[i + 3]}};
        vst4q_u16(at + LINES * i, x);
    }
    UNROLL
    for (int i = 0; i < UNITS && group == 4; i += 2) {
        const uint16x8x2_t x = {{units[i], units[i + 1]}};
        vst2q_u16(at + LINES * i, x);
    }
}

/* Packs a chunk of a block that is contiguous along k. ld, k: in bytes. */
static inline void pack_chunk_of_lines(uint8_t *to, const uint8_t *from, int64_t ld, int64_t lines,
                                       int64_t k, const int group, magnitudes *seen)
{
    uint8x16_t x[LINES];
    UNROLL
    for (int i = 0; i < LINES; i++) {
        x[i] = i < lines ? load_bytes(from + i * ld, k, CHUNK) : vdupq_n_u8(0);
        if (seen != NULL) note(seen, x[i]);
    }
    store_lines(to, x, group);
}

/* Packs a chunk of a block in which the elements of each step of k are contiguous. ld, lines: in
 * bytes. element: bytes of an element. */
static inline void pack_chunk_of_steps(uint8_t *to, const uint8_t *from, int64_t ld, int64_t lines,
                                       int64_t k, const int element, const int group,
                                       magnitudes *seen)
{
    uint16x8_t units[UNITS];
    UNROLL
    for (int i = 0; i < UNITS; i++) {
        uint8x16_t steps[2];
        for (int j = 0; j < 2 / element; j++) {
            const int p = 2 / element * i + j;
            steps[j] = p < k ? load_bytes(from + p * ld, lines, LINES * element) : vdupq_n_u8(0);
            if (seen != NULL) note(seen, steps[j]);
        }
        units[i] = vreinterpretq_u16_u8(element == 2 ? steps[0] : vzip1q_u8(steps[0], steps[1]));
    }
    store_units(to, units, group);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Packs a block. element, group: bytes of an element and of a group, both compile-time constants.
 * seen: receives the range of the elements; NULL for int8. */
static inline __attribute__((always_inline)) void pack_chunks(uint8_t *to,
                                                              const cpu_words_source *s,
                                                              const int element, const int group,
                                                              magnitudes *seen)
{
    const int64_t ld = s->ld * element, steps = CHUNK / element;
    for (int64_t i = 0; i < s->lines; i += LINES)
        for (int64_t p = 0; p < s->k; p += steps, to += LINES * CHUNK) {
            const int64_t lines = s->lines - i, k = s->k - p;
            const uint8_t *from = s->from;
            if (s->k_contiguous)
                pack_chunk_of_lines(to, from + i * ld + p * element, ld, lines, k * element, group,
                                    seen);
            else
                pack_chunk_of_steps(to, from + p * ld + i * element, ld, lines * element, k,
                                    element, group, seen);
        }
}

cpu_exponents tgl_pack_bf16_by_8(void *to, const cpu_words_source *source)
{
    magnitudes seen = {vdupq_n_u16(0xffff), vdupq_n_u16(0)};
    pack_chunks(to, source, 2, 8, &seen);
    return (cpu_exponents){.least = (vminvq_u16(seen.least) + 1) >> 7,
                           .most = vmaxvq_u16(seen.most) >> 7};
}

cpu_exponents tgl_pack_i8_by_4(void *to, const cpu_words_source *source)
{
    pack_chunks(to, source, 1, 4, NULL);
    return (cpu_exponents){0};
}

cpu_exponents tgl_pack_i8_by_8(void *to, const cpu_words_source *source)
{
    pack_chunks(to, source, 1, 8, NULL);
    return (cpu_exponents){0};
}
