# SPDX-License-Identifier: Apache-2.0
#
# `include("tegula_blas.jl")` lets Tegula compute Julia's matrix products (A * B, mul!) and products of a matrix and a
# vector. All other functions stay with the BLAS that Julia has loaded. It sets forwards of libblastrampoline one by
# one, because Tegula's drop-in is not a whole BLAS. Julia 1.9 or later.
# TEGULA_BLAS names the library; without it the loader searches for libtegula_blas.so.
module TegulaBLAS

using LinearAlgebra: BLAS
using Libdl

const FUNCTIONS = [string(letter, name) for letter in "sdcz" for name in ("gemm_", "gemv_")]

# Julia's own arrays use 64-bit integers; libraries that programs load may use 32-bit ones.
function forward(path = get(ENV, "TEGULA_BLAS", "libtegula_blas.so"))
    library = dlopen(path)
    for name in FUNCTIONS
        for (suffix, interface) in (("", BLAS.LBT_INTERFACE_LP64), ("64_", BLAS.LBT_INTERFACE_ILP64))
            BLAS.lbt_set_forward(name, dlsym(library, name * suffix), interface) == 0 || error("libblastrampoline knows no $name")
        end
    end
    return path
end

forward()

end
