/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions that a warp executes together, with operands in the registers of all lanes:
 * mma.sync, ldmatrix and stmatrix. Each lane provides its operands and waits for the others; the
 * first lane that continues computes for all. These instructions are not barriers: they do not
 * order other accesses of the lanes.
 */
#include "sim/warp_mma.h"

#include "sim/shadow_memory.h"
#include "sim/tensor_cores.h"

#include <string.h>

enum { ROW = 16 /* bytes of a row of an 8 x 8 matrix of ldmatrix */ };

typedef enum warp_instruction { MMA, MMA_F64, MMA_S8, LDMATRIX, STMATRIX } warp_instruction;

/* The operands of a lane. They are on the lane's stack until the instruction has been executed. */
typedef struct tgl_warp_operands {
    warp_instruction instruction;
    bool is_done;
    tgl_tensor_type type;
    void *to;          /* registers that are written; for mma also read */
    const void *a, *b; /* registers that are read */
    char *row;         /* ldmatrix, stmatrix: this lane's matrix row in shared memory */
    int count;         /* ldmatrix, stmatrix: number of matrices, 1, 2 or 4 */
    bool is_transposed;
} tgl_warp_operands;

static void check_registers(tgl_machine *machine, const void *registers, const void *pc)
{
    if (!tgl_machine_is_register(machine, registers))
        tgl_machine_fault(machine, pc,
                          "an operand of an mma, ldmatrix or stmatrix is not in registers: it must "
                          "be an array of the thread");
}

/* Waits for all lanes of the warp. Returns true to the one thread that must execute the instruction
 * for all of them; lanes: their operands. */
static bool meet_lanes(tgl_machine *machine, tgl_warp_operands *own,
                       tgl_warp_operands *lanes[TGL_WARP], const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    const unsigned first = thread->index / TGL_WARP * TGL_WARP;
    if (first + TGL_WARP > machine->launch->threads)
        tgl_machine_fault(machine, pc, "an instruction of the whole warp in a warp of %u threads",
                          machine->launch->threads - first);
    thread->operands = own;
    thread->waits_for = ~0u;
    tgl_machine_wait(machine, TGL_THREAD_AT_WARP, pc);
    if (own->is_done) return false;
    for (unsigned i = 0; i < TGL_WARP; i++) {
        const tgl_sim_thread *lane = &machine->now->threads[first + i];
        lanes[i] = lane->operands;
        if (lane->operands != NULL && lane->waits_at == pc) continue;
        tgl_machine_fault(machine, pc,
                          "an instruction of the whole warp: thread %u executes another one at %s",
                          lane->index, tgl_sim_place(machine->launch->module, lane->waits_at).text);
    }
    for (unsigned i = 0; i < TGL_WARP; i++) {
        lanes[i]->is_done = true;
        machine->now->threads[first + i].operands = NULL;
    }
    return true;
}

/* ---- mma.sync -------------------------------------------------------------------------------- */

/* The shape is m16n8k32 (I8), m16n8k16 (16-bit types) or m16n8k8 (TF32 and F64). kernels/lib/mma.h
 * describes the fragments. */
enum { M = 16, N = 8 };

static uint32_t half_of(const void *registers, int number)
{
    const unsigned *words = registers;
    return words[number / 2] >> number % 2 * 16 & 0xffff;
}

/* Collects the fragments of all lanes into matrices. A register holds two elements, adjacent in K.
 * With g = lane / 4 and t = lane % 4: registers 0 to 3 of a hold rows g, g+8, g, g+8 from k = 2t,
 * 2t, 2t+8, 2t+8 on; registers 0 and 1 of b hold column g from k = 2t, 2t+8 on. */
static void collect_16_bit(tgl_warp_operands *lanes[TGL_WARP], uint32_t a[M][16], uint32_t b[16][N])
{
    for (int lane = 0; lane < TGL_WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 8; i++)
            a[g + i / 2 % 2 * 8][2 * t + i % 2 + i / 4 * 8] = half_of(lanes[lane]->a, i);
        for (int i = 0; i < 4; i++)
            b[2 * t + i % 2 + i / 2 * 8][g] = half_of(lanes[lane]->b, i);
    }
}

/* As collect_16_bit(), but a register holds four elements, adjacent in K. */
static void collect_s8(tgl_warp_operands *lanes[TGL_WARP], uint32_t a[M][32], uint32_t b[32][N])
{
    for (int lane = 0; lane < TGL_WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        const unsigned *of_a = lanes[lane]->a, *of_b = lanes[lane]->b;
        for (int i = 0; i < 16; i++)
            a[g + i / 4 % 2 * 8][4 * t + i % 4 + i / 8 * 16] = of_a[i / 4] >> i % 4 * 8 & 0xff;
        for (int i = 0; i < 8; i++)
            b[4 * t + i % 4 + i / 4 * 16][g] = of_b[i / 4] >> i % 4 * 8 & 0xff;
    }
}

static void collect_tf32(tgl_warp_operands *lanes[TGL_WARP], uint32_t a[M][8], uint32_t b[8][N])
{
    for (int lane = 0; lane < TGL_WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++)
            a[g + i % 2 * 8][t + i / 2 * 4] = ((const unsigned *)lanes[lane]->a)[i];
        for (int i = 0; i < 2; i++)
            b[t + i * 4][g] = ((const unsigned *)lanes[lane]->b)[i];
    }
}

static int row_of(int lane, int i)
{
    return lane / 4 + i / 2 * 8;
}

static int column_of(int lane, int i)
{
    return lane % 4 * 2 + i % 2;
}

static void multiply_to_f32(tgl_warp_operands *lanes[TGL_WARP])
{
    const tgl_tensor_type type = lanes[0]->type;
    const int k = type == TGL_TENSOR_TF32 ? 8 : 16;
    uint32_t a[M * 16], b[16 * N];
    float sums[M][N];
    if (type == TGL_TENSOR_TF32)
        collect_tf32(lanes, (uint32_t(*)[8])a, (uint32_t(*)[N])b);
    else
        collect_16_bit(lanes, (uint32_t(*)[16])a, (uint32_t(*)[N])b);
    for (int lane = 0; lane < TGL_WARP; lane++)
        for (int i = 0; i < 4; i++)
            sums[row_of(lane, i)][column_of(lane, i)] = ((const float *)lanes[lane]->to)[i];
    tgl_tensor_multiply(&tgl_tensor_hopper, type, M, N, k, a, b, sums[0]);
    for (int lane = 0; lane < TGL_WARP; lane++)
        for (int i = 0; i < 4; i++)
            ((float *)lanes[lane]->to)[i] = sums[row_of(lane, i)][column_of(lane, i)];
}

static void multiply_s8(tgl_warp_operands *lanes[TGL_WARP])
{
    uint32_t a[M][32], b[32][N], sums[M][N];
    collect_s8(lanes, a, b);
    for (int lane = 0; lane < TGL_WARP; lane++)
        for (int i = 0; i < 4; i++)
            sums[row_of(lane, i)][column_of(lane, i)] = ((const uint32_t *)lanes[lane]->to)[i];
    tgl_tensor_multiply_s8(M, N, 32, a[0], b[0], sums[0]);
    for (int lane = 0; lane < TGL_WARP; lane++)
        for (int i = 0; i < 4; i++)
            ((uint32_t *)lanes[lane]->to)[i] = sums[row_of(lane, i)][column_of(lane, i)];
}

static void multiply_f64(tgl_warp_operands *lanes[TGL_WARP])
{
    double a[M][8], b[8][N], sums[M][N];
    for (int lane = 0; lane < TGL_WARP; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4; i++)
            a[g + i % 2 * 8][t + i / 2 * 4] = ((const double *)lanes[lane]->a)[i];
        for (int i = 0; i < 2; i++)
            b[t + i * 4][g] = ((const double *)lanes[lane]->b)[i];
        for (int i = 0; i < 4; i++)
            sums[row_of(lane, i)][column_of(lane, i)] = ((const double *)lanes[lane]->to)[i];
    }
    tgl_tensor_multiply_f64(M, N, 8, a[0], b[0], sums[0]);
    for (int lane = 0; lane < TGL_WARP; lane++)
        for (int i = 0; i < 4; i++)
            ((double *)lanes[lane]->to)[i] = sums[row_of(lane, i)][column_of(lane, i)];
}

/* Determines the fragments: fills each register with its lane and number instead of a value, and
 * collects the registers into matrices. */
void tgl_warp_mma_fragments(int type, tgl_fragments *fragments)
{
    uint32_t numbers[TGL_WARP][4];
    tgl_warp_operands operands[TGL_WARP], *lanes[TGL_WARP];
    /* The factor `each` copies a number to all elements of a register: one (TF32), four (I8) or
     * two. */
    const uint32_t each = type == TGL_F32 ? 1 : type == TGL_I8 ? 0x1010101 : 0x10001;
    for (int lane = 0; lane < TGL_WARP; lane++) {
        for (int i = 0; i < 4; i++) {
            const uint32_t number = (uint32_t)(lane + TGL_WARP * i);
            numbers[lane][i] = number * each;
            fragments->sums[row_of(lane, i) * N + column_of(lane, i)] = number;
        }
        operands[lane] = (tgl_warp_operands){.a = numbers[lane], .b = numbers[lane]};
        lanes[lane] = &operands[lane];
    }
    if (type == TGL_F32)
        collect_tf32(lanes, (uint32_t(*)[8])fragments->a, (uint32_t(*)[N])fragments->b);
    else if (type == TGL_I8)
        collect_s8(lanes, (uint32_t(*)[32])fragments->a, (uint32_t(*)[N])fragments->b);
    else
        collect_16_bit(lanes, (uint32_t(*)[16])fragments->a, (uint32_t(*)[N])fragments->b);
}

/* Counts an mma.sync, which the current thread executes for its warp. */
static void count_mma(tgl_machine *machine, int type, const void *pc)
{
    tgl_trace_step *step =
        tgl_tally_step(&machine->tally, tgl_machine_count(machine, pc, TGL_TENSOR_MMA, 0, 0, 0));
    if (step == NULL) return;
    step->type = type;
    step->m = M;
    step->n = N;
    step->k = type == TGL_I8 ? 32 : type == TGL_F16 || type == TGL_BF16 ? 16 : 8;
}

void tgl_warp_mma(tgl_machine *machine, int type, void *acc, const void *a, const void *b,
                  const void *pc)
{
    static const tgl_tensor_type types[] = {[TGL_F16] = TGL_TENSOR_F16,
                                            [TGL_BF16] = TGL_TENSOR_BF16,
                                            [TGL_F32] = TGL_TENSOR_TF32,
                                            [TGL_F64] = TGL_TENSOR_TF32,
                                            [TGL_I8] = TGL_TENSOR_TF32};
    tgl_warp_operands own = {.instruction = type == TGL_F64  ? MMA_F64
                                            : type == TGL_I8 ? MMA_S8
                                                             : MMA,
                             .type = types[type],
                             .to = acc,
                             .a = a,
                             .b = b};
    tgl_warp_operands *lanes[TGL_WARP];
    check_registers(machine, acc, pc);
    check_registers(machine, a, pc);
    check_registers(machine, b, pc);
    if (!meet_lanes(machine, &own, lanes, pc)) return;
    count_mma(machine, type, pc);
    if (own.instruction == MMA_F64)
        multiply_f64(lanes);
    else if (own.instruction == MMA_S8)
        multiply_s8(lanes);
    else
        multiply_to_f32(lanes);
}

/* ---- ldmatrix and stmatrix ------------------------------------------------------------------- */

/* Checks and records the access of the current lane to its row of a matrix in shared memory. */
static void access_row(tgl_machine *machine, char *row, bool is_write, const void *pc)
{
    const tgl_sim_module *module = machine->launch->module;
    if ((uintptr_t)row - module->shared_base >= module->shared_size)
        tgl_machine_fault(machine, pc, "%s a row of a matrix outside shared memory",
                          tgl_verb(is_write));
    tgl_memory_access(machine, row, ROW, is_write, pc);
}

/* The lane that holds element (r, column) of matrix m of ldmatrix. The element is in the lane's
 * register m, in the half that half_number() returns (0: low). */
static int lane_of(int r, int column, bool is_transposed)
{
    return is_transposed ? 4 * column + r / 2 : 4 * r + column / 2;
}

static int half_number(int r, int column, bool is_transposed)
{
    return (is_transposed ? r : column) % 2;
}

static void move_rows(tgl_warp_operands *lanes[TGL_WARP])
{
    const bool is_load = lanes[0]->instruction == LDMATRIX, trans = lanes[0]->is_transposed;
    for (int i = 0; i < 8 * lanes[0]->count; i++)
        for (int column = 0; column < 8; column++) {
            const int m = i / 8, r = i % 8;
            char *at = lanes[i]->row + 2 * column;
            const tgl_warp_operands *lane = lanes[lane_of(r, column, trans)];
            const void *registers = is_load ? lane->to : lane->a;
            char *half = (char *)registers + 4 * m + 2 * half_number(r, column, trans);
            memcpy(is_load ? half : at, is_load ? at : half, 2);
        }
}

static void move_matrices(tgl_machine *machine, tgl_warp_operands *own, const void *pc)
{
    tgl_warp_operands *lanes[TGL_WARP];
    check_registers(machine, own->instruction == LDMATRIX ? own->to : own->a, pc);
    if (machine->current->index % TGL_WARP < 8 * (unsigned)own->count)
        access_row(machine, own->row, own->instruction == STMATRIX, pc);
    if (meet_lanes(machine, own, lanes, pc)) move_rows(lanes);
}

void tgl_warp_ldmatrix(tgl_machine *machine, unsigned *to, const void *row, int count,
                       int is_transposed, const void *pc)
{
    tgl_warp_operands own = {.instruction = LDMATRIX,
                             .to = to,
                             .row = (char *)row,
                             .count = count,
                             .is_transposed = is_transposed != 0};
    move_matrices(machine, &own, pc);
}

void tgl_warp_stmatrix(tgl_machine *machine, void *row, const unsigned *from, int count,
                       int is_transposed, const void *pc)
{
    tgl_warp_operands own = {.instruction = STMATRIX,
                             .a = from,
                             .row = row,
                             .count = count,
                             .is_transposed = is_transposed != 0};
    move_matrices(machine, &own, pc);
}
