#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the simulator's counts with a GPU's hardware counters, in tables of docs/ladder.md.

    tegula ladder --device sim --size 512 --csv sim.csv
    bench/ncu_ladder.py -o counters.csv
    bench/compare_counters.py counters.csv sim.csv

Both files are of one chapter of the ladder. A cell holds the simulator's count and, if the chip's count
differs, that count after a slash. For squares there are also tables with the reasons of warp stalls.
"""

import argparse

import ladder_table
import markdown

# ---- What is compared --------------------------------------------------------------------------


def simulated(**factors):
    """A function that returns the sum of columns of the simulator's row, each times its factor."""
    return lambda row: sum(factor * int(row[column]) for column, factor in factors.items())


def chip(*metrics):
    """A function that returns the sum of metrics of the chip's row; None: one of them was not measured."""
    def count(row):
        values = [row.get(metric) for metric in metrics]
        return sum(map(float, values)) if all(values) else None
    return count


def wavefronts(operation):
    """A function that returns the wavefronts of shared memory. The counter by instruction leaves out LDSM
    and STSM. If the kernel has LDSM, or no STS, the counter of the pipe is used instead, which other traffic
    increases a little. A kernel is assumed to have STS or STSM, not both."""
    by_instruction = chip(f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{operation}.sum")
    by_pipe = chip(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{operation}.sum")
    matrices = chip("smsp__inst_executed_op_ldsm.sum")
    def count(row):
        has_matrices = matrices(row) if operation == "ld" else not by_instruction(row)
        use_pipe = has_matrices or by_instruction(row) is None
        return by_pipe(row) if use_pipe else by_instruction(row)
    return count


def conflicts(operation):
    by_instruction = chip(f"smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_{operation}.sum")
    by_pipe = chip(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{operation}.sum")
    return lambda row: by_pipe(row) if by_instruction(row) is None else by_instruction(row)


# Only for chapters 2 and 3: in FP32 kernels the HMMA counter also counts HFMA2.MMA. The four warps of
# a warpgroup each execute a wgmma.
TENSOR = [
    ("HMMA and HGMMA", simulated(mma_requests=1, wgmma_requests=4),
     chip("sm__inst_executed_pipe_tensor_op_hmma.sum")),
    ("HGMMA", simulated(wgmma_requests=4), chip("sm__inst_executed_pipe_tensor_op_gmma.sum")),
]
# The hardware counts cp.async also as a load from global memory.
MEMORY = [
    ("global loads",
     simulated(global_load_requests=1, async_copy_requests=1, tma_load_requests=-1),
     chip("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")),
    ("sectors", simulated(global_load_sectors=1, async_copy_sectors=1, tma_load_sectors=-1),
     chip("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")),
    ("global stores", simulated(global_store_requests=1, tma_store_requests=-1),
     chip("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")),
    ("sectors", simulated(global_store_sectors=1, tma_store_sectors=-1),
     chip("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum")),
    ("shared loads", simulated(shared_load_requests=1),
     chip("smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_ldsm.sum")),
    ("wavefronts", simulated(shared_load_wavefronts=1), wavefronts("ld")),
    ("bank conflicts", simulated(shared_load_conflicts=1), conflicts("ld")),
    ("shared stores", simulated(shared_store_requests=1), chip("smsp__inst_executed_op_shared_st.sum")),
    ("wavefronts", simulated(shared_store_wavefronts=1), wavefronts("st")),
    ("bank conflicts", simulated(shared_store_conflicts=1), conflicts("st")),
    ("cp.async", simulated(async_copy_requests=1, tma_load_requests=-1),
     chip("smsp__inst_executed_op_ldgsts.sum")),
    ("wavefronts", simulated(async_copy_wavefronts=1),
     chip("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum")),
]
# The simulator counts the sectors of all loads, including TMA. The chip counts reads of the L2 cache; the L1
# caches serve a part of the loads.
READS = [("all sectors read", simulated(global_load_sectors=1, async_copy_sectors=1),
          chip("lts__t_sectors_op_read.sum"))]

# ---- Tables ------------------------------------------------------------------------------------


def short(count):
    """A count as short text, such as 12.35M. Counts below 10,000 are not shortened."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(count) >= 10 * unit:
            return f"{count / unit:.4g}{name}"
    return f"{count:.0f}"


def cell(by_simulator, by_chip):
    if by_simulator == 0 and not by_chip:
        return ""
    if by_chip is None:
        return short(by_simulator) + " / ?"
    if by_simulator == round(by_chip):
        return short(by_simulator)
    if short(by_simulator) == short(by_chip):
        return f"{by_simulator:.0f} / {by_chip:.0f}"
    return f"{short(by_simulator)} / {short(by_chip)}"


def comparison(counted, by_simulator, size, chapter):
    """The lines of the table for a size that both files have. Columns in which nothing is counted are left
    out."""
    of_chip = {row["rung"]: row for row in counted if ladder_table.size_of(row) == size}
    columns = MEMORY if chapter == 1 else TENSOR + MEMORY + READS
    rows = [[row["rung"]] + [cell(count(row), measured(of_chip[row["rung"]]))
                             for _, count, measured in columns]
            for row in by_simulator
            if ladder_table.size_of(row) == size and row["rung"] in of_chip]
    table = zip(*([["rung"] + [name for name, _, _ in columns]] + rows))
    header, *shown = zip(*(column for column in table if any(column[1:])))
    return [f"{size}:", ""] + markdown.table(list(header), shown) + [""]


STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = ["long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle", "barrier"]
ALL_INSTRUCTIONS = "smsp__inst_executed.sum"


def shown(row, metric, unit, text):
    return text.format(float(row[metric]) / unit) if row.get(metric) else ""


def fma_pipe(row):
    """The instructions of the FMA pipe, as a percentage of all instructions."""
    share = float(row["smsp__inst_executed_pipe_fma.sum"]) / float(row[ALL_INSTRUCTIONS])
    return f"{100 * share:.1f} %"


def tensor_cores(row):
    return shown(row, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 1, "{:.1f} %")


def stalls(counted, size, chapter):
    """The lines of the table of a size with the stall counters and the use of the pipes."""
    rows = []
    for row in counted:
        if ladder_table.size_of(row) == size:
            digits = 2 if float(row[ALL_INSTRUCTIONS]) < 1e8 else 0
            rows.append([row["rung"]] +
                        [shown(row, STALL.format(name), 1, "{:.2f}") for name in STALLS] +
                        [shown(row, ALL_INSTRUCTIONS, 1e6, f"{{:.{digits}f}}"),
                         fma_pipe(row) if chapter == 1 else tensor_cores(row),
                         shown(row, "smsp__issue_active.avg.pct_of_peak_sustained_active", 1, "{:.1f} %"),
                         shown(row, "dram__bytes_read.sum", 1e6, "{:.0f}")])
    header = ["rung"] + [name.replace("_", " ") for name in STALLS]
    return [f"{size}:", ""] + markdown.table(
        header + ["million instructions", "FMA pipe" if chapter == 1 else "tensor cores busy",
                  "issue slots busy", "MB from DRAM"], rows) + [""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counted", help="a file that bench/ncu_ladder.py wrote")
    parser.add_argument("simulated", nargs="+",
                        help="a file that `tegula ladder --device sim --csv` wrote")
    parser.add_argument("--page", default="docs/ladder.md", help="the page (docs/ladder.md)")
    arguments = parser.parse_args()
    counted = ladder_table.read(arguments.counted)
    chapter = ladder_table.chapter_of(counted[0]["rung"])
    by_simulator = [row for path in arguments.simulated for row in ladder_table.read(path)
                    if ladder_table.chapter_of(row["rung"]) == chapter]
    sizes = ladder_table.in_order(map(ladder_table.size_of, counted))
    both = [size for size in sizes if size in map(ladder_table.size_of, by_simulator)]
    if not both:
        raise SystemExit("the files have no chapter and size in common")
    compared = [line for size in both for line in comparison(counted, by_simulator, size, chapter)]
    waits = [line for size in sizes if size.endswith("³") for line in stalls(counted, size, chapter)]
    markdown.fill_in(arguments.page, ladder_table.section("comparison", chapter), compared[:-1])
    markdown.fill_in(arguments.page, ladder_table.section("stalls", chapter), waits[:-1])


if __name__ == "__main__":
    main()
