# SPDX-License-Identifier: Apache-2.0
"""test_dist_launched.py TEGULA: `tegula dist bench` on ranks with the environment of torchrun or srun, on
the replacements of the CUDA driver and of NCCL. The ranks are processes that cannot map each other's memory."""
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time

tegula = sys.argv[1]
COMMAND = ["dist", "bench", "--type", "f32", "-m", "70", "-n", "40", "-k", "50", "--repeats", "1"]
folder = tempfile.TemporaryDirectory()
common = {name: value for name, value in os.environ.items()
          if not name.startswith(("SLURM_", "OMPI_", "PMI", "MASTER_"))}
common.update(FAKE_CUDA_FAIL="cuIpcGetMemHandle=801", FAKE_NCCL_FOLDER=folder.name)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def torchrun(rank, ranks, port):
    return {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port - 1}


def srun(rank, ranks, job):
    return {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": ranks, "SLURM_LOCALID": rank, "SLURM_JOB_ID": job,
            "SLURM_STEP_ID": 3, "SLURM_STEP_NODELIST": "local[host,1-7]-,x"}


def start(variables, command=COMMAND, limits=None):
    """Starts the program with these environment variables. limits: the soft and the hard limit of open files."""
    environment = {**common, **{name: str(value) for name, value in variables.items()}}
    return subprocess.Popen([tegula, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, preexec_fn=limits and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits)))


def finish(processes, status=0):
    done = [process.communicate(timeout=60) for process in processes]
    assert all(process.returncode == status for process in processes), done
    return ["".join(streams) for streams in done]


def only_rank_0_reports(texts):
    assert f"f32 on {len(texts)} ranks, cuda:0" in texts[0] and "bound MB" in texts[0], texts
    assert not any(texts[1:]), texts


# Ranks may connect in any order. A connection that is not of a rank gets no answer, and has no effect.
port = free_port()
late = [start(torchrun(rank, 3, port)) for rank in (1, 2)]
time.sleep(0.2)
first = start(torchrun(0, 3, port))
for text in (b"GET / HTTP/1.0\r\n\r\n", b""):
    for _ in range(100):
        try:
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(text)
                break
        except OSError:
            time.sleep(0.02)
only_rank_0_reports(finish([first, *late]))

# Under Slurm rank 0's host is the first of Slurm's list, unless MASTER_ADDR is set.
job = 1000 * os.getpid()
processes = [start({**srun(rank, 2, job), "MASTER_ADDR": "127.0.0.1"}) for rank in range(2)]
only_rank_0_reports(finish(processes))
processes = [start({**srun(rank, 2, job + 1), "SLURM_STEP_NODELIST": "local[host,1-7],x"}) for rank in range(2)]
only_rank_0_reports(finish(processes))

# If srun has started torchrun, the ranks also have the variables of MPI and Slurm.
port = free_port()
only_rank_0_reports(finish([start({**srun(0, 1, job), "PMI_RANK": 0, "PMIX_RANK": 0, **torchrun(rank, 2, port)})
                            for rank in range(2)]))
# Without the variables of torchrun, `dist mm` takes MPI if a variable of PMI is set or if the step of Slurm has one
# rank. Otherwise it refuses.
MM = ["dist", "mm", "A.npy"]
assert "mpirun only" in finish([start(srun(0, 2, job), MM)], 2)[0]
for variables in (srun(0, 1, job), {**srun(0, 2, job), "PMI_RANK": 0}):
    assert "give two files" in finish([start(variables, MM)], 2)[0]

# A rank uses the GPU with its local number and no other. It fails if the machine does not have this GPU.
port = free_port()
texts = finish([start({**torchrun(rank, 3, port), "FAKE_CUDA_DEVICES": 2}) for rank in range(3)], 1)
assert "cannot open the device \"cuda:2\"" in texts[2], texts
texts = finish([start({"FAKE_CUDA_DEVICES": 1}, [*COMMAND, "--gpus", "2"])], 1)
assert "cannot open the device \"cuda:1\"" in texts[0], texts

# Rank 0 has a socket for each rank: it raises the soft limit of open files. If the hard one is too low, it fails at
# once. The other ranks are sockets of this test.
OTHERS = 60
for hard in (4096, 32):
    port = free_port()
    begun = time.monotonic()
    first = start(torchrun(0, OTHERS + 1, port), limits=(32, hard))
    others = []
    while len(others) < OTHERS and time.monotonic() - begun < 30 and (first.poll() is None or not others):
        try:
            others.append(socket.create_connection(("127.0.0.1", port)))
            others[-1].sendall(struct.pack("8s3i", b"tegula2", len(others), OTHERS + 1, 1))
        except OSError:
            time.sleep(0.02)
    if hard > OTHERS:
        answers = [struct.unpack("i", other.recv(4))[0] for other in others]
        assert answers == [1] * OTHERS, answers
        first.kill()
        first.communicate()
    else:
        text = finish([first], 1)[0]
        assert f"cannot take the connections of {OTHERS} ranks: Too many open files" in text, text
        assert "have not come" not in text and time.monotonic() - begun < 30, text
    for other in others:
        other.close()

# Both ranks fail at once if they have one GPU, or if one rank has no NCCL or no GPU.
port = free_port()
for text in finish([start({**torchrun(rank, 2, port), "FAKE_CUDA_DEVICES": 1}) for rank in range(2)], 1):
    assert "ranks 0 and 1 have the same GPU" in text, text
for without, library, message in ((0, "TEGULA_LIBNCCL", "NCCL was not found"), (0, "TEGULA_LIBCUDA", "cannot open"),
                                  (1, "TEGULA_LIBNCCL", "NCCL was not found"),
                                  (1, "TEGULA_LIBCUDA", "cannot open the device \"cuda:1\"")):
    port = free_port()
    begun = time.monotonic()
    texts = finish([start({**torchrun(rank, 2, port), **({library: "/nonexistent.so"} if rank == without else {})})
                    for rank in range(2)], 1)
    assert time.monotonic() - begun < 30 and message in texts[without], texts

for wrong in ({"WORLD_SIZE": "two"}, {"RANK": 2}, {"MASTER_PORT": 70000}):
    assert "--help" in finish([start({**torchrun(0, 2, port), **wrong})], 2)[0]
assert "--help" in finish([start(torchrun(0, 1, port), ["dist", "mm", "A.npy", "B.npy", "-o", "C.npy"])], 2)[0]
folder.cleanup()
