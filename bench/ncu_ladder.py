#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the hardware counters of the rungs of a chapter of the ladder with Nsight Compute, into a CSV file.

    bench/ncu_ladder.py -o bench/results/h200/ladder_counters.csv
    bench/ncu_ladder.py --chapter 2 -o bench/results/h200/ladder_counters_2.csv

Needs a GPU whose counters this user may read, `ncu`, and a built `tegula`. Each rung runs once for each
size (`tegula ladder --once`). A metric that the chip or this version of ncu does not have is left out, with a
message. The clocks are not locked, because times are not measured under the profiler.
"""

import argparse
import csv
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import ladder_table
import results_csv

# Two sizes that the simulator can count too, 512 cubed and one with partial tiles; and a size that fills
# the chip, for the stall counters.
SIZES = ["512x512x512", "500x510x520", "4096x4096x4096"]

METRICS = [
    # Global memory: instructions of warps, and sectors of 32 bytes.
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_inst_executed_op_global_ld.sum",
    # Shared memory: instructions of warps, wavefronts, and wavefronts that bank conflicts add.
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_ldsm.sum",  # ldmatrix and wmma.load, which shared_ld leaves out
    "smsp__inst_executed_op_shared_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    # cp.async.
    "smsp__inst_executed_op_ldgsts.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    # Stalled cycles of warps per issued instruction, by reason; and the issued instructions.
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",  # also waits for wgmma
    "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio",  # Hopper only
    "smsp__inst_executed.sum",
    "smsp__inst_executed_pipe_fma.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    # Tensor cores: mma.sync and wgmma instructions, and the cycles in which tensor cores work.
    "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "sm__inst_executed_pipe_tensor_op_gmma.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    # Traffic below L1.
    "l1tex__t_sectors_lookup_hit.sum",
    "lts__t_sectors_op_read.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
]


def find_ncu():
    """The path of ncu, from PATH or the usual folders of the CUDA toolkit. None: it is not found."""
    toolkits = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    folders = [os.path.join(toolkit, "bin") for toolkit in toolkits if toolkit]
    folders += sorted(glob.glob("/opt/nvidia/nsight-compute/*"), reverse=True)
    return shutil.which("ncu") or shutil.which("ncu", path=os.pathsep.join(folders))


def listed(ncu, metrics):
    """Those of the metrics that ncu lists for the chips of this machine."""
    query = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, check=False)
    names = set(re.findall(r"^(\w+__\w+)\b", query.stdout, re.MULTILINE))
    return [metric for metric in metrics if metric.split(".")[0] in names]


def named_in_error(log, metrics):
    """The metrics that a line of ncu's log reports as unknown."""
    lines = [line for line in log.splitlines() if "==ERROR==" in line or "==WARNING==" in line]
    return {metric for metric in metrics for line in lines
            if metric in line or re.search(rf"\b{metric.split('.')[0]}\b", line)}


def profile(ncu, tegula, chapter, size, metrics):
    """Profiles the rungs at one size. Returns ncu's log, which contains the table, and the output of the
    program."""
    m, n, k = size.split("x")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        command = [ncu, "--clock-control", "none", "--csv", "--page", "raw",
                   "--print-units", "base", "--kernel-name-base", "function",
                   "--kernel-name", "regex:^[sh]gemm_", "--metrics", ",".join(metrics),
                   "--log-file", path, tegula, "ladder", "--chapter", str(chapter), "--once",
                   "--device", "cuda", "-m", m, "-n", n, "-k", k]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        log = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                log = file.read()
        return log, done.stdout + done.stderr


def rows_of(log):
    """The rows of ncu's raw page as dictionaries, without the row of units."""
    lines = [line for line in log.splitlines() if line.startswith('"')]
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    return [row for row in csv.DictReader(lines[start:]) if row["ID"]]


def number(text):
    """A number of ncu without separators of thousands; empty if ncu has none (n/a, nan)."""
    text = (text or "").replace(",", "")
    return text if re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", text, re.IGNORECASE) else ""


def measure(ncu, tegula, chapter, size, metrics):
    """Profiles until ncu knows all metrics, at most ten times, because ncu fails if it does not know one. Returns
    the rows and the metrics that remain."""
    log = said = ""
    for attempt in range(10):
        log, said = profile(ncu, tegula, chapter, size, metrics)
        rows = rows_of(log)
        if rows:
            return rows, metrics
        unknown = named_in_error(log + said, metrics)
        left = [metric for metric in metrics if metric not in unknown]
        if not left or not unknown or attempt >= 8:
            left = listed(ncu, metrics)
        if not left or left == metrics:
            break
        metrics = left
    raise SystemExit(f"ncu counted nothing at {size}:\n{log}{said}")


def rung_of(row, number):
    """The rung of a kernel: "naive" for "sgemm_naive", "f16_wmma" for "hgemm_wmma". All kernels of chapter 3
    have the same name; `number` is the position of the row among them."""
    name = re.match(r"([sh])gemm_(\w+)", row["Kernel Name"])
    if not name:
        return None
    if name.group(2) == "words":
        return ladder_table.WORD_RUNGS[number]
    return ("f16_" if name.group(1) == "h" else "") + name.group(2)


def chip(tegula):
    """Chip, driver and NVRTC, as `tegula info` prints them."""
    info = subprocess.run([tegula, "info", "--device", "cuda"], capture_output=True, text=True,
                          check=False).stdout
    found = [re.search(rf"^  {key} +(.*)$", info, re.MULTILINE)
             for key in ("chip", "driver", "NVRTC")]
    return [match.group(1) if match else "" for match in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, help="the .csv file to write")
    parser.add_argument("--chapter", type=int, default=1, choices=(1, 2, 3), help="of the ladder (1)")
    parser.add_argument("--size", action="append", metavar="MxNxK",
                        help=f"may be repeated ({' '.join(SIZES)})")
    parser.add_argument("--tegula", default="build/tegula", help="the program (build/tegula)")
    parser.add_argument("--ncu", default=find_ncu(), help="Nsight Compute's program")
    arguments = parser.parse_args()
    if arguments.ncu is None:
        raise SystemExit("ncu is not found; it comes with the CUDA toolkit (Nsight Compute)")
    metrics = METRICS
    place = chip(arguments.tegula)
    with open(arguments.output, "w", newline="", encoding="utf-8") as file:
        file.write(results_csv.origin())
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["chip", "driver", "nvrtc", "m", "n", "k", "rung"] + METRICS)
        for size in arguments.size or SIZES:
            rows, metrics = measure(arguments.ncu, arguments.tegula, arguments.chapter, size, metrics)
            for i, row in enumerate(rows):
                counts = [number(row.get(metric)) for metric in METRICS]
                table.writerow(place + size.split("x") + [rung_of(row, i)] + counts)
            print(f"{size}: {len(rows)} kernels", file=sys.stderr)
            file.flush()
    for metric in METRICS:
        if metric not in metrics:
            print("omitted, because ncu does not know it here:", metric, file=sys.stderr)


if __name__ == "__main__":
    main()
