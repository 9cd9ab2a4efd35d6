// SPDX-License-Identifier: Apache-2.0
//! Declarations of the C library Tegula, for single products. The header `tegula/tegula.h` is the manual: it
//! has units, ownership and errors of each function.
#![no_std]
#![allow(non_camel_case_types)]

use core::ffi::{c_char, c_int, c_void};

/// The element types, tgl_type.
pub const TGL_F32: c_int = 1;
pub const TGL_F64: c_int = 2;

pub const TGL_OK: c_int = 0;
pub const TGL_BAD_LDA: c_int = 10;

pub const TGL_ROW_MAJOR: c_int = 101;
pub const TGL_COL_MAJOR: c_int = 102;
pub const TGL_NO_TRANS: c_int = 111;
pub const TGL_TRANS: c_int = 112;

/// An opaque handle.
#[repr(C)]
pub struct tgl_device {
    _private: [u8; 0],
}

/// Options of a device: pass NULL for the defaults.
#[repr(C)]
pub struct tgl_device_options {
    _private: [u8; 0],
}

/// C := alpha*op(A)*op(B) + beta*C. `tgl_problem_init` fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tgl_problem {
    pub size: usize,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub order: c_int,
    pub trans_a: c_int,
    pub trans_b: c_int,
    pub type_a: c_int,
    pub type_b: c_int,
    pub type_c: c_int,
    pub type_d: c_int,
    pub type_accumulate: c_int,
    pub compute: c_int,
    pub scalars: c_int,
    pub lda: i64,
    pub ldb: i64,
    pub ldc: i64,
    pub ldd: i64,
    pub batch: i64,
    pub stride_a: i64,
    pub stride_b: i64,
    pub stride_c: i64,
    pub stride_d: i64,
    pub batching: c_int,
    pub alignment: i64,
    pub scaling_a: c_int,
    pub scaling_b: c_int,
    pub scaling_d: c_int,
    pub type_scale: c_int,
}

extern "C" {
    pub fn tgl_version() -> *const c_char;
    pub fn tgl_status_name(status: c_int) -> *const c_char;
    pub fn tgl_last_error(text: *mut c_char, size: usize) -> usize;
    pub fn tgl_device_open(name: *const c_char, options: *const tgl_device_options, device: *mut *mut tgl_device) -> c_int;
    pub fn tgl_device_close(device: *mut tgl_device);
    pub fn tgl_alloc(device: *mut tgl_device, bytes: usize, memory: *mut *mut c_void) -> c_int;
    pub fn tgl_free(device: *mut tgl_device, memory: *mut c_void);
    pub fn tgl_upload(device: *mut tgl_device, to: *mut c_void, from: *const c_void, bytes: usize, stream: *mut c_void) -> c_int;
    pub fn tgl_download(device: *mut tgl_device, to: *mut c_void, from: *const c_void, bytes: usize, stream: *mut c_void) -> c_int;
    pub fn tgl_problem_init(problem: *mut tgl_problem, size: usize, element: c_int, m: i64, n: i64, k: i64) -> c_int;
    pub fn tgl_gemm(device: *mut tgl_device, problem: *const tgl_problem, alpha: f64, a: *const c_void, b: *const c_void, beta: f64, c: *mut c_void, stream: *mut c_void) -> c_int;
}
