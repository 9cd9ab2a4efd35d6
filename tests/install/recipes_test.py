# SPDX-License-Identifier: Apache-2.0
"""Tests that the recipes in packaging/recipes and the bindings in packaging/bindings agree with the
project: versions, options of CMake, constants and functions. Commands of a recipe are run if this
machine has the tools. Also tests the content of Debian's source package and of the source
distribution of Python. The argument is the build folder."""

import ctypes
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RECIPES = os.path.join(ROOT, "packaging", "recipes")
BUILD = os.path.abspath(sys.argv.pop() if len(sys.argv) > 1 and os.path.isdir(sys.argv[-1]) else os.path.join(ROOT, "build"))


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


CMAKE = read("CMakeLists.txt")
VERSION = re.search(r"project\(tegula VERSION ([0-9.]+)", CMAKE)[1]

# Replacements of vcpkg's functions, which print their arguments and set the same variables.
VCPKG = r"""
cmake_policy(VERSION 3.18)
set(CURRENT_PACKAGES_DIR "$ENV{STAGE}")
function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  list(GET arg_FEATURES 0 feature)
  list(GET arg_FEATURES 1 option)
  set(value OFF)
  if(feature IN_LIST FEATURES)
    set(value ON)
  endif()
  set(${arg_OUT_FEATURE_OPTIONS} "-D${option}=${value}" PARENT_SCOPE)
endfunction()
foreach(name cmake_configure cmake_install cmake_config_fixup fixup_pkgconfig copy_tools install_copyright)
  cmake_language(EVAL CODE "function(vcpkg_${name})\nmessage(\"${name} \${ARGN}\")\nendfunction()")
endforeach()
include("$ENV{PORT}")
"""


def unknown(options):
    """The options in a recipe that the project does not have."""
    known = set(re.findall(r"^ *option\((TEGULA_\w+)", CMAKE, re.M))
    return [name for name in re.findall(r"-D(TEGULA_\w+)=(?:ON|OFF)", " ".join(options)) if name not in known]


class Recipes(unittest.TestCase):
    def test_versions(self):
        for path, pattern in (("recipes/conda/meta.yaml", r'set version = "(.*)"'), ("recipes/nix/default.nix", r'version = "(.*)"'),
                              ("recipes/spack/packages/tegula/package.py", r'    version\("(.*?)"\)'),
                              ("recipes/vcpkg/tegula/vcpkg.json", r'"version": "(.*)"'), ("bindings/rust/Cargo.toml", r'^version = "(.*)"'),
                              ("recipes/README.md", r"tegula@([0-9.]+)`")):
            self.assertEqual(re.findall(pattern, read("packaging", path), re.M), [VERSION], path)

    def test_options_exist(self):
        self.assertEqual(unknown(["-DTEGULA_NOTHING=ON"]), ["TEGULA_NOTHING"])
        for path in ("conda/meta.yaml", "nix/default.nix"):
            options = re.findall(r"-DTEGULA_\w+=\w+", read("packaging", "recipes", path))
            self.assertTrue(options)
            self.assertEqual(unknown(options), [])

    @unittest.skipUnless(subprocess.run(["cmake", "-E", "true"], check=False).returncode == 0, "no CMake")
    def test_vcpkg(self):
        manifest = json.loads(read("packaging", "recipes", "vcpkg", "tegula", "vcpkg.json"))
        self.assertEqual(manifest["name"], "tegula")
        for features, program in (("core", "OFF"), ("core;tools", "ON")):
            with tempfile.TemporaryDirectory() as folder:
                script = os.path.join(folder, "port.cmake")
                with open(script, "w", encoding="utf-8") as file:
                    file.write(VCPKG)
                ran = subprocess.run(["cmake", f"-DFEATURES={features}", "-P", script], capture_output=True, text=True, check=False,
                                     env={**os.environ, "STAGE": folder,
                                          "PORT": os.path.join(RECIPES, "vcpkg", "tegula", "portfile.cmake")})
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn(f"cmake_configure SOURCE_PATH;{ROOT};OPTIONS;", ran.stderr)
            options = re.findall(r"-DTEGULA_\w+=\w+", ran.stderr)
            self.assertIn(f"-DTEGULA_PROGRAM={program}", options)
            self.assertEqual(unknown(options), [])
            self.assertEqual("copy_tools" in ran.stderr, program == "ON")
            self.assertIn("lib/cmake/tegula", ran.stderr)
        self.assertIn("/cmake/tegula", read("cmake", "install.cmake"))

    def test_spack(self):
        """Runs the recipe with replacements of the functions of spack.package."""
        facts = {}
        package = types.ModuleType("spack.package")
        package.CMakePackage = type("CMakePackage", (), {
            "define_from_variant": lambda self, option, variant: f"-D{option}={'ON' if facts['variant'][variant] else 'OFF'}"})
        for name in ("license", "depends_on", "requires", "version"):
            setattr(package, name, lambda *args, name=name, **_: facts.setdefault(name, []).append(args))
        package.variant = lambda name, default, description: facts.setdefault("variant", {}).update({name: default})
        package.run_after = package.on_package_attributes = lambda *_, **__: lambda function: function
        package.Executable = None
        sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), package
        self.addCleanup(lambda: [sys.modules.pop(name) for name in ("spack", "spack.package")])
        spec = importlib.util.spec_from_file_location("recipe", os.path.join(RECIPES, "spack", "packages", "tegula", "package.py"))
        recipe = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(recipe)
        self.assertEqual(facts["version"], [(VERSION,)])
        self.assertEqual(unknown(recipe.Tegula().cmake_args()), [])
        least = re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)\)", CMAKE)[1]
        self.assertIn((f"cmake@{least}:",), facts["depends_on"])

    @unittest.skipUnless(shutil.which("nix-instantiate"), "no Nix")
    def test_nix(self):
        ran = subprocess.run(["nix-instantiate", "--parse", os.path.join(RECIPES, "nix", "default.nix")],
                             capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_commands_that_check(self):
        """The command by which the recipes check their installation works."""
        for path in ("conda/meta.yaml", "nix/default.nix"):
            self.assertIn("check --device cpu --cases 50", read("packaging", "recipes", path))
        ran = subprocess.run([os.path.join(BUILD, "tegula"), "check", "--device", "cpu", "--cases", "2"], capture_output=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)


class Bindings(unittest.TestCase):
    RUST = os.path.join(ROOT, "packaging", "bindings", "rust")

    def test_constants_of_rust(self):
        header = read("include", "tegula", "tegula.h")
        constants = re.findall(r"pub const (TGL_\w+): c_int = (\d+);", read("packaging", "bindings", "rust", "src", "lib.rs"))
        self.assertGreater(len(constants), 5)
        for name, value in constants:
            self.assertRegex(header, rf"\b{name} = {value}\b")

    def test_functions_of_rust(self):
        header = re.sub(r"/\*.*?\*/", "", read("include", "tegula", "tegula.h"), flags=re.S)
        for name, parameters in re.findall(r"pub fn (tgl_\w+)\((.*?)\)", read("packaging", "bindings", "rust", "src", "lib.rs")):
            found = re.search(rf"\b{name}\(([^)]*)\);", header)
            self.assertIsNotNone(found, name)
            count = 0 if found[1].strip() == "void" else found[1].count(",") + 1
            self.assertEqual(parameters.count(":"), count, name)

    @unittest.skipUnless(shutil.which("cargo"), "no cargo")
    def test_rust(self):
        with tempfile.TemporaryDirectory() as folder:
            crate = os.path.join(folder, "crate")
            shutil.copytree(self.RUST, crate)
            ran = subprocess.run(["cargo", "test", "--offline", "--quiet"], cwd=crate, capture_output=True, text=True, check=False,
                                 env={**os.environ, "TEGULA_LIB_DIR": BUILD, "CARGO_TARGET_DIR": os.path.join(folder, "target")})
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("2 passed", ran.stdout)

    def test_functions_of_julia(self):
        """The drop-in exports each function that the bindings forward, for 32-bit and 64-bit integers."""
        library = os.path.join(BUILD, "libtegula_blas.so")
        if not os.path.exists(library):
            self.skipTest("no drop-in of BLAS in the build")
        text = read("packaging", "bindings", "julia", "tegula_blas.jl")
        letters, names = re.search(r'for letter in "(\w+)" for name in \((.*?)\)', text).groups()
        blas = ctypes.CDLL(library)
        for name in [letter + name for letter in letters for name in re.findall(r'"(\w+)"', names)]:
            for suffix in re.findall(r'\("(\w*)", BLAS\.LBT_INTERFACE', text):
                self.assertTrue(hasattr(blas, name + suffix), name + suffix)

    @unittest.skipUnless(shutil.which("julia"), "no Julia")
    def test_julia(self):
        ran = subprocess.run(["julia", "--startup-file=no", os.path.join(ROOT, "packaging", "bindings", "julia", "test.jl")],
                             capture_output=True, text=True, check=False,
                             env={**os.environ, "TEGULA_BLAS": os.path.join(BUILD, "libtegula_blas.so")})
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


@unittest.skipUnless(os.path.exists(os.path.join(ROOT, ".git")), "no checkout")
class DebianSource(unittest.TestCase):
    @unittest.skipUnless(shutil.which("dpkg-source"), "no dpkg-source")
    def test_content(self):
        """The source package unpacks, and its control file names the packages that CMake describes."""
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([sys.executable, os.path.join(ROOT, "packaging", "make_dsc.py"), folder],
                                  capture_output=True, text=True, check=True).stdout.strip()
            tree = os.path.join(folder, "unpacked")
            subprocess.run(["dpkg-source", "--extract", made, tree], capture_output=True, check=True)
            self.assertTrue(os.access(os.path.join(tree, "debian", "rules"), os.X_OK))
            with open(os.path.join(tree, "debian", "control"), encoding="utf-8") as file:
                control = file.read()
            with open(os.path.join(tree, "debian", "changelog"), encoding="utf-8") as file:
                self.assertTrue(file.read().startswith(f"tegula ({VERSION}-1) "))
        described = re.findall(r"^describe\(([\w-]+)", read("cmake", "debian.cmake"), re.M)
        self.assertEqual(re.findall(r"^Package: (.*)$", control, re.M), described)
        self.assertNotIn("@", re.sub(r"<\S+@\S+>", "", control))


@unittest.skipUnless(os.path.exists(os.path.join(ROOT, ".git")), "no checkout")
class SourceDistribution(unittest.TestCase):
    def test_content(self):
        with tempfile.TemporaryDirectory() as folder:
            made = [subprocess.run([sys.executable, os.path.join(ROOT, "packaging", "make_sdist.py"), os.path.join(folder, part)],
                                   capture_output=True, text=True, check=True).stdout.strip() for part in ("a", "b")]
            with open(made[0], "rb") as first, open(made[1], "rb") as second:
                self.assertEqual(first.read(), second.read())
            with tarfile.open(made[0]) as archive:
                names = set(archive.getnames())
                text = archive.extractfile(f"tegula-{VERSION}/pyproject.toml").read().decode()
                facts = archive.extractfile(f"tegula-{VERSION}/PKG-INFO").read().decode()
        self.assertIn(f"\nVersion: {VERSION}\n", facts)
        for name in ("python/CMakeLists.txt", "python/tegula/__init__.py", "include/tegula/tegula.h", "kernels/gemm/simt.cu",
                     "exercises/coalesce.cu"):
            self.assertTrue(f"tegula-{VERSION}/{name}" in names, name)
        self.assertFalse([name for name in names if "/tests/" in name or "/docs/" in name])
        # Each path that pyproject.toml names exists in the archive.
        for path in re.findall(r'^(?:readme|cmake.source-dir|input) = "(.*)"$', text, re.M) + re.findall(r'wheel.packages = \["(.*)"\]', text):
            self.assertTrue([name for name in names if name.startswith(f"tegula-{VERSION}/{path}")], path)


if __name__ == "__main__":
    unittest.main()
