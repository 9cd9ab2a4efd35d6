# SPDX-License-Identifier: Apache-2.0
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "tegula";
  version = "0.2.0";
  src = pkgs.lib.cleanSource ../../..;

  nativeBuildInputs = [ pkgs.cmake ];
  buildInputs = [ pkgs.zlib ];
  cmakeFlags = [ "-DTEGULA_SHIMS=ON" ];

  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/tegula check --device cpu --cases 50
  '';

  meta = {
    description = "Matrix multiplication on CPUs and NVIDIA GPUs";
    license = pkgs.lib.licenses.asl20;
    platforms = [ "x86_64-linux" "aarch64-linux" ];
    mainProgram = "tegula";
  };
}
