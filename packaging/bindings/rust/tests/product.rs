// SPDX-License-Identifier: Apache-2.0
//! A product, an error, and the layout of the struct.

use std::ffi::CStr;
use std::mem::{size_of, MaybeUninit};
use std::ptr::{null, null_mut};
use tegula_sys::*;

fn open_cpu() -> *mut tgl_device {
    let mut device = null_mut();
    let status = unsafe { tgl_device_open(b"cpu\0".as_ptr().cast(), null(), &mut device) };
    assert_eq!(status, TGL_OK);
    device
}

fn make_problem(m: i64, n: i64, k: i64) -> tgl_problem {
    let mut problem = MaybeUninit::<tgl_problem>::zeroed();
    let status = unsafe { tgl_problem_init(problem.as_mut_ptr(), size_of::<tgl_problem>(), TGL_F32, m, n, k) };
    assert_eq!(status, TGL_OK);
    unsafe { problem.assume_init() }
}

#[test]
fn multiplies() {
    let device = open_cpu();
    let (a, b, mut c) = ([1f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1f32, 0.0, 0.0, 1.0, 1.0, 1.0], [1f32; 4]);
    let problem = make_problem(2, 2, 3);
    let status = unsafe {
        tgl_gemm(device, &problem, 1.0, a.as_ptr().cast(), b.as_ptr().cast(), 2.0, c.as_mut_ptr().cast(), null_mut())
    };
    assert_eq!(status, TGL_OK);
    assert_eq!(c, [6.0, 7.0, 12.0, 13.0]);
    unsafe { tgl_device_close(device) };
}

#[test]
fn the_members_are_where_the_library_has_them() {
    let mut problem = make_problem(4, 5, 6);
    assert_eq!((problem.size, problem.m, problem.n, problem.k), (size_of::<tgl_problem>(), 4, 5, 6));
    assert_eq!((problem.order, problem.trans_a, problem.trans_b), (TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS));
    assert_eq!((problem.type_a, problem.type_c, problem.batch), (TGL_F32, TGL_F32, 1));
    problem.lda = 5; // fewer than k
    let device = open_cpu();
    let mut zeros = [0f32; 64];
    let at = zeros.as_mut_ptr();
    let status = unsafe { tgl_gemm(device, &problem, 1.0, at.cast(), at.cast(), 0.0, at.cast(), null_mut()) };
    assert_eq!(status, TGL_BAD_LDA);
    assert_eq!(unsafe { CStr::from_ptr(tgl_status_name(status)) }.to_str(), Ok("TGL_BAD_LDA"));
    unsafe { tgl_device_close(device) };
}
