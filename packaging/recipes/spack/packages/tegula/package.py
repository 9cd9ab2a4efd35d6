# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class Tegula(CMakePackage):
    """Matrix multiplication on CPUs and NVIDIA GPUs: GEMM with epilogues, plans and explanations, a
    simulator for CUDA kernels, and drop-ins for BLAS and cuBLAS."""

    # A packager adds `url` and the sha256 of a release. Without them `spack dev-build` builds a checkout.
    license("Apache-2.0")

    version("0.2.0")

    variant("simulator", default=True, description="Include the device sim, which runs CUDA kernels without a GPU")
    variant("shims", default=True, description="Build the drop-ins for BLAS and cuBLAS")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("zlib-api")

    requires("platform=linux")

    def cmake_args(self):
        return [
            self.define_from_variant("TEGULA_SIM", "simulator"),
            self.define_from_variant("TEGULA_SHIMS", "shims"),
        ]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        tegula = Executable(self.prefix.bin.tegula)
        tegula("check", "--device", "cpu", "--cases", "50")
