#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the simulator's counts with a GPU's hardware counters, in a table of docs/ladder.md.

    tegula ladder --device sim --size 512 --csv sim.csv
    bench/ncu_ladder.py -o counters.csv
    bench/compare_counters.py counters.csv sim.csv

A cell holds the simulator's count, and after a slash the chip's where it is another one. More tables have
what warps waited for, at the sizes whose sides are equal.
"""

import argparse

import ladder_table
import markdown

# The compared counts: name, the simulator's columns, which are added, and the hardware metrics: the first
# one that has a value. The hardware counts cp.async as loads from global memory, too.
PAIRS = [
    ("global loads", "global_load_requests+async_copy_requests",
     ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]),
    ("sectors", "global_load_sectors+async_copy_sectors",
     ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]),
    ("global stores", "global_store_requests",
     ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"]),
    ("sectors", "global_store_sectors", ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]),
    ("shared loads", "shared_load_requests", ["smsp__inst_executed_op_shared_ld.sum"]),
    ("wavefronts", "shared_load_wavefronts",
     ["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"]),
    ("bank conflicts", "shared_load_conflicts",
     ["smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"]),
    ("shared stores", "shared_store_requests", ["smsp__inst_executed_op_shared_st.sum"]),
    ("wavefronts", "shared_store_wavefronts",
     ["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"]),
    ("bank conflicts", "shared_store_conflicts",
     ["smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"]),
    ("cp.async", "async_copy_requests", ["smsp__inst_executed_op_ldgsts.sum"]),
    ("wavefronts", "async_copy_wavefronts",
     ["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"]),
]

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = ["long_scoreboard", "short_scoreboard", "mio_throttle", "lg_throttle", "barrier"]


def measured(row, metrics):
    """The first metric that the chip has, or None."""
    return next((float(row[metric]) for metric in metrics if row.get(metric)), None)


def simulated_count(row, columns):
    return sum(int(row[column]) for column in columns.split("+"))


def short(count):
    """1234567 as 1.235M, to keep the table narrow; small numbers are unchanged."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(count) >= 10 * unit:
            return f"{count / unit:.4g}{name}"
    return f"{count:.0f}"


def cell(simulated, chip):
    if simulated == 0 and not chip:
        return ""
    if chip is None:
        return short(simulated) + " / ?"
    if simulated == round(chip):
        return short(simulated)
    if short(simulated) == short(chip):
        return f"{simulated:.0f} / {chip:.0f}"
    return f"{short(simulated)} / {short(chip)}"


def comparison(simulated, counted, size):
    """The lines for one size that both files have."""
    chip = {row["rung"]: row for row in counted if ladder_table.size_of(row) == size}
    rows = []
    for row in simulated:
        if ladder_table.size_of(row) == size and row["rung"] in chip:
            cells = [cell(simulated_count(row, columns), measured(chip[row["rung"]], metrics))
                     for _, columns, metrics in PAIRS]
            rows.append([row["rung"]] + cells)
    return [f"{size}:", ""] + markdown.table(["rung"] + [name for name, _, _ in PAIRS], rows) + [""]


def millions(count):
    value = float(count or 0) / 1e6
    return "" if not count else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def stalls(counted, size):
    """The lines with the stall counters and the share of FMA instructions, at one size."""
    rows = []
    for row in counted:
        if ladder_table.size_of(row) != size:
            continue
        values = [row.get(STALL.format(name), "") for name in STALLS]
        fma, all_of_them = row["smsp__inst_executed_pipe_fma.sum"], row["smsp__inst_executed.sum"]
        share = f"{100 * float(fma) / float(all_of_them):.1f} %" if fma and all_of_them else ""
        issue = row["smsp__issue_active.avg.pct_of_peak_sustained_active"]
        dram = row["dram__bytes_read.sum"]
        rows.append([row["rung"]] + [f"{float(value):.2f}" if value else "" for value in values] +
                    [millions(all_of_them), share,
                     f"{float(issue):.1f} %" if issue else "",
                     f"{float(dram) / 1e6:.0f}" if dram else ""])
    header = ["rung"] + [name.replace("_", " ") for name in STALLS]
    return [f"{size}:", ""] + markdown.table(
        header + ["million instructions", "FMA pipe", "issue slots busy", "MB from DRAM"], rows) + [""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counted", help="a file that bench/ncu_ladder.py wrote")
    parser.add_argument("simulated", nargs="+",
                        help="a file that `tegula ladder --device sim --csv` wrote")
    parser.add_argument("--page", default="docs/ladder.md", help="the page (docs/ladder.md)")
    arguments = parser.parse_args()
    simulated = [row for path in arguments.simulated for row in ladder_table.read(path)]
    counted = ladder_table.read(arguments.counted)
    sizes = ladder_table.in_order(map(ladder_table.size_of, counted))
    both = [size for size in sizes if size in map(ladder_table.size_of, simulated)]
    lines = [line for size in both for line in comparison(simulated, counted, size)]
    markdown.fill_in(arguments.page, "comparison", lines[:-1])
    lines = [line for size in sizes if size.endswith("³") for line in stalls(counted, size)]
    markdown.fill_in(arguments.page, "stalls", lines[:-1])


if __name__ == "__main__":
    main()
