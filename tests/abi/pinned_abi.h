/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of enums and, for 64-bit machines, the offsets of members of structs that programs
 * contain if they were compiled with version 0.2. Included after the public header, that of today
 * or that of 0.2. Later versions may append values and members, but must not change these.
 */
#define PIN(what, value) _Static_assert((int)(what) == (value), #what)
#define AT(type, member, offset, size)                                                             \
    _Static_assert(offsetof(type, member) == (offset) && sizeof(((type *)NULL)->member) == (size), \
                   #type "." #member)

/* tgl_status */
PIN(TGL_OK, 0);
PIN(TGL_BAD_ARGUMENT, 1);
PIN(TGL_BAD_ORDER, 2);
PIN(TGL_BAD_TRANS_A, 3);
PIN(TGL_BAD_TRANS_B, 4);
PIN(TGL_BAD_TYPE, 5);
PIN(TGL_BAD_COMPUTE, 6);
PIN(TGL_BAD_M, 7);
PIN(TGL_BAD_N, 8);
PIN(TGL_BAD_K, 9);
PIN(TGL_BAD_LDA, 10);
PIN(TGL_BAD_LDB, 11);
PIN(TGL_BAD_LDC, 12);
PIN(TGL_BAD_BATCH, 13);
PIN(TGL_BAD_STRIDE_A, 14);
PIN(TGL_BAD_STRIDE_B, 15);
PIN(TGL_BAD_STRIDE_C, 16);
PIN(TGL_BAD_A, 17);
PIN(TGL_BAD_B, 18);
PIN(TGL_BAD_C, 19);
PIN(TGL_TOO_LARGE, 20);
PIN(TGL_UNSUPPORTED, 21);
PIN(TGL_NO_DEVICE, 22);
PIN(TGL_NO_MEMORY, 23);
PIN(TGL_NO_COMPILER, 24);
PIN(TGL_COMPILE, 25);
PIN(TGL_GRID_TOO_LARGE, 26);
PIN(TGL_DRIVER, 27);
PIN(TGL_DEVICE_LOST, 28);
PIN(TGL_KERNEL_FAULT, 29);
PIN(TGL_UNKNOWN_KERNEL, 30);
PIN(TGL_BAD_SETTING, 31);
PIN(TGL_BAD_BATCHING, 32);
PIN(TGL_BAD_ALIGNMENT, 33);
PIN(TGL_BAD_EPILOGUE, 34);
PIN(TGL_BAD_BIAS, 35);
PIN(TGL_BAD_RESIDUAL, 36);
PIN(TGL_BAD_LDD, 37);
PIN(TGL_BAD_STRIDE_D, 38);
PIN(TGL_BAD_D, 39);
PIN(TGL_BAD_SCALAR, 40);
PIN(TGL_BAD_SCALE, 41);
PIN(TGL_BAD_WORKSPACE, 42);
PIN(sizeof(tgl_status), 4);

/* tgl_number */
PIN(TGL_NUMBER_PROCESSORS, 0);
PIN(TGL_NUMBER_CLOCK_HZ, 1);
PIN(TGL_NUMBER_MEMORY_BYTES, 2);
PIN(TGL_NUMBER_MEMORY_BYTES_PER_S, 3);
PIN(TGL_NUMBER_L1_BYTES, 4);
PIN(TGL_NUMBER_L2_BYTES, 5);
PIN(TGL_NUMBER_L3_BYTES, 6);
PIN(TGL_NUMBER_CAPABILITY, 7);
PIN(TGL_NUMBER_FP32_LANES, 8);
PIN(TGL_NUMBER_THREADS, 9);
PIN(TGL_NUMBER_SHARED_BLOCK_BYTES, 10);
PIN(sizeof(tgl_number), 4);

/* tgl_ceiling */
PIN(TGL_CEILING_FMA_F32, 0);
PIN(TGL_CEILING_FMA_F64, 1);
PIN(TGL_CEILING_COPY, 2);
PIN(sizeof(tgl_ceiling), 4);

/* tgl_type */
PIN(TGL_F32, 1);
PIN(TGL_F64, 2);
PIN(TGL_F16, 3);
PIN(TGL_BF16, 4);
PIN(TGL_F8_E4M3, 5);
PIN(TGL_F8_E5M2, 6);
PIN(TGL_I8, 7);
PIN(TGL_I32, 8);
PIN(sizeof(tgl_type), 4);

/* tgl_compute */
PIN(TGL_COMPUTE_DEFAULT, 0);
PIN(TGL_COMPUTE_IEEE, 1);
PIN(TGL_COMPUTE_ACCURATE, 2);
PIN(TGL_COMPUTE_TF32, 3);
PIN(TGL_COMPUTE_FAST, 4);
PIN(sizeof(tgl_compute), 4);

/* tgl_order */
PIN(TGL_ROW_MAJOR, 101);
PIN(TGL_COL_MAJOR, 102);
PIN(sizeof(tgl_order), 4);

/* tgl_transpose */
PIN(TGL_NO_TRANS, 111);
PIN(TGL_TRANS, 112);
PIN(TGL_CONJ_TRANS, 113);
PIN(sizeof(tgl_transpose), 4);

/* tgl_batching */
PIN(TGL_STRIDED, 0);
PIN(TGL_POINTERS, 1);
PIN(sizeof(tgl_batching), 4);

/* tgl_scalars */
PIN(TGL_SCALARS_HOST, 0);
PIN(TGL_SCALARS_DEVICE, 1);
PIN(sizeof(tgl_scalars), 4);

/* tgl_scaling */
PIN(TGL_SCALING_NONE, 0);
PIN(TGL_SCALING_TENSOR, 1);
PIN(TGL_SCALING_LINE, 2);
PIN(TGL_SCALING_BLOCK, 3);
PIN(sizeof(tgl_scaling), 4);

/* tgl_bias */
PIN(TGL_BIAS_NONE, 0);
PIN(TGL_BIAS_ROW, 1);
PIN(TGL_BIAS_COLUMN, 2);
PIN(sizeof(tgl_bias), 4);

/* tgl_activation */
PIN(TGL_ACTIVATION_NONE, 0);
PIN(TGL_ACTIVATION_RELU, 1);
PIN(TGL_ACTIVATION_GELU, 2);
PIN(TGL_ACTIVATION_SILU, 3);
PIN(sizeof(tgl_activation), 4);

#if UINTPTR_MAX == UINT64_MAX
/* NOLINTBEGIN(bugprone-sizeof-expression): pointers are members, too */

/* tgl_device_options */
AT(tgl_device_options, size, 0, 8);
AT(tgl_device_options, threads, 8, 4);
AT(tgl_device_options, current_context, 12, 4);

/* tgl_problem */
AT(tgl_problem, size, 0, 8);
AT(tgl_problem, m, 8, 8);
AT(tgl_problem, n, 16, 8);
AT(tgl_problem, k, 24, 8);
AT(tgl_problem, order, 32, 4);
AT(tgl_problem, trans_a, 36, 4);
AT(tgl_problem, trans_b, 40, 4);
AT(tgl_problem, type_a, 44, 4);
AT(tgl_problem, type_b, 48, 4);
AT(tgl_problem, type_c, 52, 4);
AT(tgl_problem, type_d, 56, 4);
AT(tgl_problem, type_accumulate, 60, 4);
AT(tgl_problem, compute, 64, 4);
AT(tgl_problem, scalars, 68, 4);
AT(tgl_problem, lda, 72, 8);
AT(tgl_problem, ldb, 80, 8);
AT(tgl_problem, ldc, 88, 8);
AT(tgl_problem, ldd, 96, 8);
AT(tgl_problem, batch, 104, 8);
AT(tgl_problem, stride_a, 112, 8);
AT(tgl_problem, stride_b, 120, 8);
AT(tgl_problem, stride_c, 128, 8);
AT(tgl_problem, stride_d, 136, 8);
AT(tgl_problem, batching, 144, 4);
AT(tgl_problem, alignment, 152, 8);
AT(tgl_problem, scaling_a, 160, 4);
AT(tgl_problem, scaling_b, 164, 4);
AT(tgl_problem, scaling_d, 168, 4);
AT(tgl_problem, type_scale, 172, 4);

/* tgl_epilogue */
AT(tgl_epilogue, size, 0, 8);
AT(tgl_epilogue, bias, 8, 4);
AT(tgl_epilogue, activation, 12, 4);
AT(tgl_epilogue, residual, 16, 4);
AT(tgl_epilogue, expression, 24, 8);
AT(tgl_epilogue, ld_residual, 32, 8);
AT(tgl_epilogue, stride_bias, 40, 8);
AT(tgl_epilogue, stride_residual, 48, 8);
AT(tgl_epilogue, type_bias, 56, 4);
AT(tgl_epilogue, type_residual, 60, 4);

/* tgl_plan_options */
AT(tgl_plan_options, size, 0, 8);
AT(tgl_plan_options, kernel, 8, 8);
AT(tgl_plan_options, epilogue, 16, 8);
AT(tgl_plan_options, workspace_limit, 24, 8);

/* tgl_operands */
AT(tgl_operands, size, 0, 8);
AT(tgl_operands, alpha, 8, 8);
AT(tgl_operands, beta, 16, 8);
AT(tgl_operands, alpha_at, 24, 8);
AT(tgl_operands, beta_at, 32, 8);
AT(tgl_operands, A, 40, 8);
AT(tgl_operands, B, 48, 8);
AT(tgl_operands, C, 56, 8);
AT(tgl_operands, D, 64, 8);
AT(tgl_operands, A_array, 72, 8);
AT(tgl_operands, B_array, 80, 8);
AT(tgl_operands, C_array, 88, 8);
AT(tgl_operands, D_array, 96, 8);
AT(tgl_operands, bias, 104, 8);
AT(tgl_operands, residual, 112, 8);
AT(tgl_operands, scale_a, 120, 8);
AT(tgl_operands, scale_b, 128, 8);
AT(tgl_operands, scale_d, 136, 8);
AT(tgl_operands, workspace, 144, 8);
AT(tgl_operands, workspace_bytes, 152, 8);

/* tgl_counters */
AT(tgl_counters, size, 0, 8);
AT(tgl_counters, blocks, 8, 8);
AT(tgl_counters, threads, 16, 8);
AT(tgl_counters, shared_bytes, 24, 8);
AT(tgl_counters, barriers, 32, 8);
AT(tgl_counters, global_load_requests, 40, 8);
AT(tgl_counters, global_load_sectors, 48, 8);
AT(tgl_counters, global_load_bytes, 56, 8);
AT(tgl_counters, global_store_requests, 64, 8);
AT(tgl_counters, global_store_sectors, 72, 8);
AT(tgl_counters, global_store_bytes, 80, 8);
AT(tgl_counters, shared_load_requests, 88, 8);
AT(tgl_counters, shared_load_wavefronts, 96, 8);
AT(tgl_counters, shared_load_conflicts, 104, 8);
AT(tgl_counters, shared_load_bytes, 112, 8);
AT(tgl_counters, shared_store_requests, 120, 8);
AT(tgl_counters, shared_store_wavefronts, 128, 8);
AT(tgl_counters, shared_store_conflicts, 136, 8);
AT(tgl_counters, shared_store_bytes, 144, 8);
AT(tgl_counters, async_copy_requests, 152, 8);
AT(tgl_counters, async_copy_sectors, 160, 8);
AT(tgl_counters, async_copy_bytes, 168, 8);
AT(tgl_counters, async_copy_wavefronts, 176, 8);
AT(tgl_counters, async_copy_conflicts, 184, 8);
AT(tgl_counters, needed_bytes, 192, 8);

/* tgl_warm_report */
AT(tgl_warm_report, size, 0, 8);
AT(tgl_warm_report, kernel, 8, 8);
AT(tgl_warm_report, arch, 16, 8);
AT(tgl_warm_report, status, 24, 4);
AT(tgl_warm_report, message, 32, 8);
AT(tgl_warm_report, seconds, 40, 8);
AT(tgl_warm_report, from_cache, 48, 4);
AT(tgl_warm_report, is_clean, 52, 4);
AT(tgl_warm_report, registers, 56, 4);
AT(tgl_warm_report, shared_bytes, 60, 4);
AT(tgl_warm_report, local_bytes, 64, 4);
AT(tgl_warm_report, spill_bytes, 68, 4);
AT(tgl_warm_report, symbol, 72, 8);
AT(tgl_warm_report, image, 80, 8);
AT(tgl_warm_report, image_size, 88, 8);

/* tgl_warm_options */
AT(tgl_warm_options, size, 0, 8);
AT(tgl_warm_options, archs, 8, 8);
AT(tgl_warm_options, kernel, 16, 8);
AT(tgl_warm_options, report, 24, 8);
AT(tgl_warm_options, user, 32, 8);
AT(tgl_warm_options, type, 40, 4);
/* NOLINTEND(bugprone-sizeof-expression) */
#endif
