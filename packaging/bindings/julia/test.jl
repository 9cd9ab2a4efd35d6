# SPDX-License-Identifier: Apache-2.0
# Products of all four types with and without Tegula, and that its library is the one that computes.

using LinearAlgebra, Test

operands = [(randn(T, 65, 33), randn(T, 33, 17), randn(T, 33)) for T in (Float32, Float64, ComplexF32, ComplexF64)]
before = [(A * B, A * x) for (A, B, x) in operands]
include("tegula_blas.jl")
for ((A, B, x), (AB, Ax)) in zip(operands, before)
    @test A * B ≈ AB
    @test A * x ≈ Ax
end
address = BLAS.lbt_get_forward("dgemm_", BLAS.LBT_INTERFACE_ILP64)
@test address == TegulaBLAS.dlsym(TegulaBLAS.dlopen(get(ENV, "TEGULA_BLAS", "libtegula_blas.so")), "dgemm_64_")
println("passed")
