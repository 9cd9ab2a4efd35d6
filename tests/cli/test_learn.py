# SPDX-License-Identifier: Apache-2.0
"""tegula learn: every starter fails, every solution passes with a margin, and wrong solutions fail, each
with a message that says why."""

import os
import re
import shutil
import tempfile
import time
import unittest

from session import tegula

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "exercises")
GATE = re.compile(r"^gate +(.+?) +(\d+\.\d\d), wanted at (most|least) (\d+\.\d\d): (passed|FAILED)$",
                  re.MULTILINE)

# Figures that are counts: a solution has exactly the number that the gate wants.
COUNTS = ("barriers a block", "part loaded by cp.async", "part loaded by TMA", "part stored by TMA", "mma.sync / needed",
          "mma.sync / those of TF32", "wgmma / needed")

# Planted errors: the exercise, a text of its solution, what stands there instead, and what the check says.
WRONG = [
    ("coalesce", "row >= m || col >= n", "row > m || col >= n", "past the end of A"),
    ("coalesce", "row >= m || ", "", "past the end of A"),
    ("coalesce", "sum, alpha, beta", "sum, 1.0f, beta", "WRONG at"),
    ("coalesce", "threadIdx.x / BN", "threadIdx.x % BN", "race: writes row"),
    ("shared_tile", "        __syncthreads(); /* the tile is complete */\n", "", "no thread has written|race:"),
    ("shared_tile", "        __syncthreads(); /* all threads have read the tile */\n", "", "race:"),
    # The kernel keeps state in the environment, and is wrong in the run that is measured.
    ("shared_tile", "    float sum = 0.0f;",
     "    extern int setenv(const char *, const char *, int);\n    extern char *getenv(const char *);\n"
     "    if (m == 64 && row == 0 && col == 0) setenv(getenv(\"R1\") ? \"R2\" : \"R1\", \"\", 1);\n"
     "    float sum = getenv(\"R2\") ? 1.0f : 0.0f;", "WRONG at m = 64"),
    ("shared_tile", "row < m && tile + c < k ?", "tile + c < k ?", "past the end of A"),
    ("shared_tile", "row < m && tile + c < k ?", "row < m ?", "past the end of A"),
    ("shared_tile", "    float sum = 0.0f;", "    if (row >= m || col >= n) return;\n    float sum = 0.0f;",
     "has left the kernel"),
    ("shared_tile", "TILE    32", "TILE    16", "race: writes Bs|uses an index outside of an array"),
    ("register_tile", "a[4], b[4];", "a[3], b[4];", "uses an index outside of an array"),
    ("register_tile", "Bs[p][col + 16 * j]", "Bs[p][col + 15 * j]", "WRONG at"),
    ("register_tile", "row + 16 * i, c", "row + i, c", "race: writes row"),
    ("register_tile", "acc[i][j] += a[i] * b[j]", "acc[i][j] += a[i] * Bs[p][col + 16 * j]",
     "shared wavefronts an FFMA .*FAILED\n +most at own.cu:[0-9]+, shared load of"),
    ("bank_conflicts", "BM + 4", "BM + 1", "not a multiple of 16"),
    ("bank_conflicts", "BM + 4", "BM + 8", "bank conflicts .*FAILED\n +most at own.cu"),
    ("bank_conflicts", "tid % 16 * 4;", "tid % 16;", "not a multiple of 16"),
    ("ragged_float4", "aligned && count >= 4", "count >= 4", "not a multiple of 16"),
    ("ragged_float4", "aligned && count >= 4", "aligned && count > 0", "of A|of B|column"),
    ("ragged_float4", " && lda % 4 == 0", "", "not a multiple of 16"),
    ("ragged_float4", "(unsigned long long)A % 16 == 0 && ", "", "not a multiple of 16"),
    ("ragged_float4", "tile + b_p < k ? n", "tile + b_p <= k ? n", "past the end of B"),
    ("ragged_float4", "lda % 4 == 0", "lda % 4 == 1", "bytes a lane loads at once .*FAILED"),
    ("one_barrier", "As[2]", "As[1]", "race: writes Bs|past the end of As"),
    ("one_barrier", "load_tile(As[now ^ 1], Bs[now ^ 1]", "load_tile(As[now ^ 1], Bs[now]", "race:"),
    ("one_barrier", "Bs[0], m, n, k, A, lda, B, ldb, 0);\n    __syncthreads();",
     "Bs[0], m, n, k, A, lda, B, ldb, 0);", "no thread has written|race:"),
    ("one_barrier", "        __syncthreads(); /* the next",
     "        __syncthreads();\n        __syncthreads(); /* the next", "barriers a block .*FAILED"),
    ("async_groups", "ASYNC_WAIT(STAGES - 2)", "ASYNC_WAIT(STAGES - 1)", "before the cp.async|race:"),
    ("async_groups", "        __syncthreads(); /* tile t", "        /* tile t", "race:|no thread has written"),
    ("async_groups", "#define STAGES 3", "#define STAGES 1", "before the cp.async"),
    ("async_groups", "        async_commit();\n        multiply", "        multiply", "before the cp.async"),
    ("async_groups", "ASYNC_WAIT(STAGES - 2);\n        __syncthreads();",
     "__syncthreads();\n        ASYNC_WAIT(STAGES - 2);",
     "before the cp.async"),
    ("split_k", "if (!is_last_block(&counters[tile], splits)) return;", "if (split > 0) return;",
     "which no launch of this run has written"),
    ("split_k", "s < splits", "s < splits - 1", "WRONG at"),
    ("split_k", "(split + 1) * k_chunk)", "split * k_chunk + 128)", "WRONG at"),
    ("split_k", "sum += sums[s", "sum += sums[(s + split) % splits", "NOT REPEATABLE"),
    ("warp_sum", "distance = 16", "distance = 8", "WRONG at"),
    ("warp_sum", "    float sum = 0.0f;", "    if (lane >= k) return;\n    float sum = 0.0f;",
     "waits for lanes of its warp"),
    ("warp_sum", "lane == 0)", "lane >= 0)", "race: writes row"),
    ("warp_sum", "int p = lane; row < m && p < k; p += 32",
     "int p = lane * 2; row < m && p < k; p += lane % 2 ? 63 : 1", "WRONG at"),
    ("mma_fragments", "&As[r + 8][2 * t];", "&As[r][2 * t];", "WRONG at"),
    ("mma_fragments", "&Bs[c][2 * t + 8]", "&Bs[c][2 * t + 2]", "WRONG at"),
    ("mma_fragments", "[BK + 8]", "[BK]", "shared wavefronts an FFMA .*FAILED"),
    ("mma_fragments", "mma_f16(acc[i][j], a, b)", "if (g > 0) mma_f16(acc[i][j], a, b)", "mma|lanes"),
    ("swizzle", "chunk ^ row % 8", "chunk ^ row % 4", "bank conflicts .*FAILED"),
    ("swizzle", "chunk ^ row % 8", "(chunk + row) % 7", "race:|WRONG at"),
    ("tma_boxes", "i % 2", "0", "before the TMA copy|race:"),
    ("tma_boxes", "sizeof As + sizeof Bs", "sizeof As", "deadlock|bytes|before the TMA"),
    ("tma_boxes", "sizeof As + sizeof Bs", "2 * (sizeof As + sizeof Bs)", "never come|bytes"),
    ("tma_boxes", "        __syncthreads(); /* all", "        /* all", "race:"),
    ("tma_boxes", "        mbarrier_init_fence();\n", "", "mbarrier"),
    ("mbarrier_ring", "        mbarrier_arrive(&ring.empty[stage]);\n", "", "never come"),
    ("mbarrier_ring", "            mbarrier_wait(&ring.empty[stage], i / STAGES % 2);\n", "", "race:"),
    ("mbarrier_ring", "ring.empty[stage], i / STAGES % 2", "ring.empty[stage], (i / STAGES + 1) % 2", "race:"),
    ("mend_phase", "ring.full[stage], i / STAGES % 2", "ring.full[stage], 0", "before the TMA copy|race:"),
    ("wgmma_descriptors", "    wgmma_fence();\n", "", "wgmma_fence"),
    ("wgmma_descriptors", "    wgmma_commit();\n", "", "no wgmma_commit|no thread has waited"),
    ("wgmma_descriptors", "    WGMMA_WAIT(acc, 0);\n", "", "has not been waited for|no thread has waited"),
    ("wgmma_descriptors", "a + p * 2 / 16", "a + p * 2", "into a swizzle's pattern"),
    ("wgmma_descriptors", "b + p * 128 / 16", "b + p * 2 / 16", "WRONG at"),
    ("producer_consumers", "mbarrier_wait(&shared->empty[i % STAGES], (i / STAGES + 1) % 2);\n            ", "",
     "no thread has waited for|race:"),
    ("producer_consumers", "(i / STAGES + 1) % 2", "i / STAGES % 2", "never come|deadlock"),
    ("producer_consumers", "CONSUMERS * 128);\n        }", "128);\n        }", "race:|arriv"),
    ("producer_consumers", "        mbarrier_arrive(&shared->empty[stage]);\n",
     "        if (lane == 0) mbarrier_arrive(&shared->empty[stage]);\n", "never come|deadlock|lanes"),
    ("producer_consumers", "As + group * 64 * CHUNKS", "As", "WRONG at"),
    ("multicast", "        __syncwarp();\n        cluster_sync(); /* all", "        __syncthreads(); /* all",
     "before the TMA copy|race:"),
    ("multicast", "(1 << CLUSTER) - 1", "1 << rank", "never come|deadlock|before the TMA"),
    ("multicast", "sizeof As + sizeof Bs", "sizeof As + sizeof Bs / 2", "never come|bytes|before the TMA"),
    ("multicast", "&Bs[rank * HALF * CHUNKS]", "Bs", "before the TMA copy|race:|WRONG at"),
    ("multicast", "    cluster_sync(); /* the mbarriers", "    __syncthreads(); /* the mbarriers", "mbarrier"),
    ("tma_store", "        fence_proxy_async(); /* TMA", "        if (tid == 0) fence_proxy_async(); /* TMA", "async proxy"),
    ("tma_store", "will see what this thread has written */\n        __syncthreads();\n", "*/\n", "race:|no thread has written"),
    ("tma_store", "            TMA_STORE_WAIT_READ(0);\n", "", "TMA|store"),
    ("tma_store", "if (stores_by_tma) {", "if (k >= 0) {", "map"),
    ("tma_store", "is_inside ? beta : 0.0f", "beta", "past the end of C|column|padding"),
    ("persistent", "&work, s + STAGES,", "&work, s + 1,", "no thread has waited for|before the TMA copy|race:"),
    ("persistent", "s + STAGES < steps", "s + STAGES <= steps", "unread|TMA|copies|phase|bytes|in flight"),
    ("persistent", "s / STAGES % 2);\n            multiply", "i / STAGES % 2);\n            multiply",
     "before the TMA copy|race:|never come|deadlock"),
    ("persistent", "work.stride = (int)gridDim.x", "work.stride = 1", "race:|WRONG at"),
    ("words", "            mma_tf32(acc[i][j], a_hi[i], b_lo[j]);\n", "", "error of other numbers .*FAILED"),
    ("words", "x - __uint_as_float(*hi)", "x", "WRONG at"),
    ("words", "a_lo[i], b_hi[j]); /*", "a_lo[i], b_lo[j]); /*", "error of other numbers .*FAILED"),
    ("mend_fence", "        fence_proxy_async(); /* wgmma", "        if (tid == 0) fence_proxy_async(); /* wgmma",
     "through the async proxy"),
    ("mend_barrier", "        __syncthreads();\n        for", "        for", "race:|no thread has written"),
    ("mend_beta", "beta == 0.0f ? alpha * sum : ", "alpha == 0.0f ? 0.0f : ", "but beta is 0"),
    ("mend_beta", " + beta * *to", "", "WRONG at"),
    ("mend_alias", "memory + BK * PITCH", "memory + BK * PITCH + 4", "past the end of memory"),
    ("mend_alias", "#define PITCH (BM + 4)", "#define PITCH (BM + 2)", "not a multiple of 16"),
]


def names():
    return sorted(name[:-3] for name in os.listdir(ROOT) if name.endswith(".cu"))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def solution(name):
    return read(f"solutions/{name}_solution.cu")


def errors_of(result):
    """Standard error without the address sanitizer's note on longjmp() from a fiber."""
    return re.sub(r".*False positive error reports may follow\n.*\n", "", result.err)


class Learn(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tegula-learn-")
        self.addCleanup(shutil.rmtree, self.folder)

    def check(self, source, name="own.cu"):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(source)
        return tegula("learn", "check", name, cwd=self.folder)

    def test_list(self):
        result = tegula("learn", cwd=self.folder)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(sorted(re.findall(r"^  (\w+)", result.out, re.MULTILINE)), names())
        self.assertNotIn("solved", result.out)

    def test_starters_fail(self):
        for name in names():
            with self.subTest(name):
                result = tegula("learn", "start", name, cwd=self.folder)
                self.assertEqual(result.code, 0, result.err)
                path = os.path.join(self.folder, name + ".cu")
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(file.read(), read(name + ".cu"))
                result = tegula("learn", "check", name + ".cu", cwd=self.folder)
                self.assertEqual((result.code, errors_of(result)), (1, ""), result.out)
                self.assertNotIn("does not compile", result.out)
                self.assertRegex(result.out, "FAILED|NOT REPEATABLE|race:|but beta is 0|"
                                             "before the TMA copy|async proxy")
                self.assertIn(f"learn hint {name}", result.out)

    def test_solutions_pass_with_a_margin(self):
        for name in names():
            with self.subTest(name):
                self.assertEqual(tegula("learn", "solution", name).out, solution(name))
                result = self.check(solution(name), name + ".cu")
                self.assertEqual((result.code, errors_of(result)), (0, ""), result.out)
                self.assertIn("\nsolved\n", result.out)
                for what, seen, side, limit, _ in GATE.findall(result.out):
                    seen, limit = float(seen), float(limit)
                    if limit > 0 and what not in COUNTS:
                        margin = limit / seen if side == "most" else seen / limit
                        self.assertGreaterEqual(margin, 1.1, what)

    def test_wrong_solutions_fail(self):
        for name, old, new, says in WRONG:
            with self.subTest(f"{name}: {new}"):
                source = solution(name)
                self.assertIn(old, source)
                result = self.check(source.replace(old, new))
                self.assertEqual(result.code, 1, result.out)
                self.assertRegex(result.out, says)

    def test_places(self):
        result = self.check(read("coalesce.cu"))
        line = 1 + read("coalesce.cu").splitlines().index(
            "        sum += A[row * lda + p] * B[p * ldb + col];")
        self.assertIn(f"most at own.cu:{line}, global load of A", result.out)

    # What a reader may do to the process that checks.
    BODY = {
        "for (;;) row = row + 1;": "endless loop",
        "for (int i = 0; i < 2000000000; i++) if (i % 3 == 5) __syncthreads();": "endless loop",
        "if (threadIdx.x > 0) __syncthreads();": "barrier",
        "*(float *)(row + 64) = 1.0f;": "address",
        "for (int i = 0; i < 100000000; i++) if (i < 0) row = i;": "stopped after (9|30) s", # 30 s on a busy machine
        "__builtin_trap();": "the kernel crashed .*a trap",
        "extern void abort(void); abort();": "the kernel crashed .*abort",
        "extern void exit(int); exit(10);": "exit code 10",
        "float x[4]; float *volatile far = x; far[1 << 28] = 1.0f;": "in no matrix|crashed .* at address",
        # It ends its process group.
        "extern int kill(int, int); kill(0, 9);": "ended by a signal .Killed",
        "static char big[1ull << 36] = {1}; row = big[row];": "does not compile",
        "static float global; global = 1.0f;": "global, a variable that is not __shared__",
        "__asm__ volatile(\"\");": "line 19: .__asm__. hides accesses",
        "int asm_ = 0; asm(\"\");": "line 19: .asm. hides accesses",
        "char *volatile p = (char *)__builtin_frame_address(0); for (long i = 0; ; i += 4096) p[i] = 1;":
            "which is in no matrix|crashed",
        "this is not C": "does not compile",
        "missing_function();": "own.cu:.*missing_function",
    }

    def test_bad_kernels(self):
        for body, says in self.BODY.items():
            with self.subTest(body):
                source = solution("coalesce").replace("    if (row >= m", f"    {body}\n    if (row >= m")
                source = source.replace("const int row", "int row")
                began = time.monotonic()
                result = self.check(source)
                self.assertEqual(result.code, 1, result.out)
                self.assertRegex(result.out, re.compile("^error .*(" + says + ")", re.M | re.S))
                self.assertEqual(result.out.count("error  "), 1)
                if "TEGULA_SANITIZED" not in os.environ: # a sanitizer reports crashes, too
                    self.assertEqual(result.err, "")
                    self.assertLess(time.monotonic() - began, 60) # 10 s of processor time

    def test_loads_that_are_not_counted(self):
        source = solution("coalesce")
        hidden = ("__attribute__((no_sanitize_thread, noinline)) static float get(const float *p) { return *p; }\n"
                  "__global__")
        result = self.check(source.replace("__global__", hidden).replace("A[row * lda + p]", "get(&A[row * lda + p])"))
        self.assertIn('"no_sanitize_thread" hides accesses', result.out)
        # A word that the preprocessor puts together is not found, but the missing loads are.
        pasted = hidden.replace("no_sanitize_thread", "WORD").replace("__attr", "#define PASTE(a, b) a##b\n"
                                "#define WORD PASTE(no_sani, tize_thread)\n__attr")
        both = source.replace("__global__", pasted).replace("A[row * lda + p] * B[p * ldb + col]",
                                                            "get(&A[row * lda + p]) * get(&B[p * ldb + col])")
        result = self.check(both)
        self.assertRegex(result.out, "loads of 0 bytes are counted, but A and B have 32768: FAILED")
        self.assertEqual(result.code, 1)
        # In comments and strings the words are permitted.
        self.assertEqual(self.check(source.replace("*/", "asm */", 1) + 'static const char s[] __attribute__((unused))'
                                    ' = "asm";\n').code, 0)

    def test_a_kernel_without_tiles(self):
        """A kernel without tiles has no barriers, conflicts or shared loads, but does not solve these exercises."""
        kernel = solution("coalesce").split("__global__")[1]
        for name in ("register_tile", "one_barrier", "bank_conflicts", "mend_alias"):
            with self.subTest(name):
                loop = ("int row = (int)blockIdx.y * 64 + i / 64, col = (int)blockIdx.x * 64 + i % 64;\n"
                        "if (row >= m || col >= n) continue;")
                body = re.sub(r"const int row = .*?return;", "for (int i = (int)threadIdx.x; i < 4096; i += 256) { " + loop,
                              kernel, flags=re.S)
                result = self.check(f'/* Exercise {name}: */\n#include "lib/load_store.h"\n#define BM 16\n#define BN 16\n'
                                    "__global__" + body.replace("coalesce", name) + "}\n")
                self.assertRegex(result.out, "bytes loaded / bytes needed .*FAILED")

    def test_names_and_parameters(self):
        source = solution("coalesce")
        self.assertIn("there is no function coalesce", self.check(source.replace(" coalesce(", " mine(")).out)
        result = self.check(source.replace("float alpha", "float alpha, int more"))
        self.assertIn("cannot be launched: it keeps its name and the parameters", result.out)
        self.assertEqual(result.out.count("\n"), 3)

    def test_heads(self):
        source = solution("coalesce")
        self.assertIn('own.cu is for the exercise "nothing", which does not exist',
                      self.check(source.replace("Exercise coalesce", "Exercise nothing")).err)
        self.assertIn("own.cu has the heads of two exercises, coalesce and swizzle",
                      self.check(source + "/* Exercise swizzle: */\n").err)

    def test_gates_are_explained(self):
        result = self.check(solution("coalesce"))
        self.assertIn("gates     at m = 64, n = 64, k = 64\n", result.out)
        self.assertRegex(result.out, "passed\n +.= sectors of 32 bytes / requests of warps")

    def test_names_and_files(self):
        self.check(solution("coalesce"), "coalesce.cu")
        for operand in ("coalesce", "coalesce.cu", os.path.join(self.folder, "coalesce.cu")):
            with self.subTest(operand):
                self.assertEqual(tegula("learn", "check", operand, cwd=self.folder).code, 0)
                for word in ("hint", "solution"):
                    self.assertEqual(tegula("learn", word, operand, cwd=self.folder).out, tegula("learn", word, "coalesce").out)
        self.check(solution("coalesce"), "swizzle.cu") # the head says what a file is for
        self.assertIn("hint coalesce 2", tegula("learn", "hint", "swizzle.cu", cwd=self.folder).out)

    def test_list_finds_files(self):
        self.check(read("shared_tile.cu"), "mine.cu")
        self.check(solution("coalesce"), "other.cu")
        self.check(read("coalesce.cu"), "coalesce.cu")
        for words, cwd in (([], self.folder), (["--folder", self.folder], "/")):
            out = tegula("learn", *words, cwd=cwd).out
            self.assertRegex(out, r"\n  shared_tile +begun +.*\(mine.cu\)\n")
            self.assertRegex(out, r"  coalesce +solved +.*\(other.cu\)\n")
            self.assertEqual(out.count("begun") + out.count(" solved "), 2)
        result = tegula("learn", cwd=self.folder, env={"TEGULA_CC": "/nothing"})
        self.assertEqual((result.code, result.out), (1, ""))
        self.assertEqual(result.err.count("\n"), 1)
        self.assertIn("/nothing", result.err)
        self.assertIn("cannot read", tegula("learn", "--folder", "/nothing").err)

    def test_hints(self):
        for name in names():
            with self.subTest(name):
                first = tegula("learn", "hint", name).out
                self.assertRegex(first, r"^[^\n]*\?") # a question
                self.assertIn(f"learn hint {name} 2", first)
                hints = [tegula("learn", "hint", name, i) for i in (1, 2, 3, 4)]
                given = [hint.out for hint in hints if hint.code == 0]
                self.assertEqual(len(set(given)), len(given))
                self.assertIn("the last hint", given[-1])
                self.assertEqual(hints[3].code, 2)
        self.assertEqual(tegula("learn", "hint", "coalesce", "0").code, 2)

    @unittest.skipUnless("FAKE_LIBCUDA" in os.environ, "no fake driver")
    def test_on_a_gpu(self):
        """The stand-in for the driver computes the kernel `coalesce`, and no other exercise."""
        env = {"TEGULA_LIBCUDA": os.environ["FAKE_LIBCUDA"], "TEGULA_NVRTC": os.environ["FAKE_LIBNVRTC"],
               "TEGULA_CACHE": self.folder, "TEGULA_CUBLAS": os.environ["FAKE_LIBCUBLAS"]}
        self.check(solution("coalesce"))
        self.check(solution("shared_tile"), "other.cu")
        result = tegula("learn", "check", "--device", "cuda", "--size", 48, "own.cu", cwd=self.folder, env=env)
        self.assertEqual((result.code, errors_of(result)), (0, ""), result.out)
        self.assertIn("results   right at 8 sizes\ntimes     at m = 48, n = 48, k = 48\n", result.out)
        self.assertRegex(result.out, r"time +own.cu +[0-9.]+ ms, +[0-9.]+ TFLOP/s\ntime +ladder/coalesced +[0-9.]+ ms")
        self.assertNotIn("solved", result.out)
        self.assertRegex(result.out, r"\ntime +cuBLAS +[0-9.]+ ms, +[0-9.]+ TFLOP/s\n")
        env["TEGULA_CUBLAS"] = "/nothing"
        result = tegula("learn", "check", "--device", "cuda", "--size", 48, "own.cu", cwd=self.folder, env=env)
        self.assertEqual((result.code, errors_of(result)), (0, ""), result.out)
        self.assertRegex(result.out, r"\ntime +cuBLAS .*/nothing")
        result = tegula("learn", "check", "--device", "cuda", "--size", 48, "other.cu", cwd=self.folder, env=env)
        self.assertEqual(result.code, 1)
        self.assertIn("WRONG at m = 64", result.out)
        env["TEGULA_LIBCUDA"] = "/nothing"
        result = tegula("learn", "check", "--device", "cuda", "own.cu", cwd=self.folder, env=env)
        self.assertEqual((result.code, result.err.count("\n")), (1, 1))
        self.assertEqual(tegula("learn", "check", "--device", "cpu", "own.cu", cwd=self.folder).code, 2)

    def test_misuse(self):
        for words in (["start"], ["start", "nothing"], ["begin", "coalesce"], ["check", "a b.cu"],
                      ["check", "coalesce.c"], ["hint", "nothing"], ["solution", "a", "b"], ["check", "nothing"], ["hint", "coalesce", "1", "2"]):
            with self.subTest(words):
                result = tegula("learn", *words, cwd=self.folder)
                self.assertEqual(result.code, 2)
                self.assertTrue(result.err.startswith("tegula learn: "), result.err)
        self.assertIn("cannot read", tegula("learn", "check", "none.cu", cwd=self.folder).err)
        self.assertIn("names no exercise", self.check("int x;\n").err)
        os.mkfifo(os.path.join(self.folder, "coalesce.cu")) # without a writer
        self.assertIn("names no exercise", tegula("learn", "check", "coalesce.cu", cwd=self.folder).err)

    def test_start_keeps_a_file(self):
        path = os.path.join(self.folder, "coalesce.cu")
        with open(path, "w", encoding="utf-8") as file:
            file.write("mine")
        result = tegula("learn", "start", "coalesce", cwd=self.folder)
        self.assertEqual(result.code, 1)
        self.assertIn("is kept", result.err)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")


if __name__ == "__main__":
    unittest.main()
