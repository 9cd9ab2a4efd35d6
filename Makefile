# `make help` lists the targets. CMake does the work, in build/ or the folder that BUILD names;
# CMAKE_FLAGS are passed to it, such as CMAKE_FLAGS=-DTEGULA_SIM=OFF.
BUILD ?= build
JOBS ?= $(shell nproc)
PYTHON ?= python3
SOURCES = $(shell find include src dist cli shims tests examples kernels exercises python -name "*.[ch]" -o -name "*.cu")
SCRIPTS = .ci/run $(shell find bench tests examples packaging -name "*.sh") packaging/completion.bash
MAKEFLAGS += --no-print-directory

# The labels of the tests that `make test` leaves out: the sweeps over all kernels and the samples of them, tests
# that take more than 20 seconds, and those that build the library anew.
LEAVE_OUT ?= long|sample|slow|build
TESTS = -DTEGULA_TESTS=ON $(CMAKE_FLAGS)
CTEST = ctest --test-dir $(BUILD) --output-on-failure -j$(JOBS)
INSTALL = cmake --install $(BUILD) $(if $(PREFIX),--prefix "$$(realpath -ms -- "$(PREFIX)")")

.PHONY: build help run test test-all test-aarch64 bench check performance gpu fuzz format lint deb dsc wheel sdist notebook site install uninstall clean

build: ## The library and the program
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) >/dev/null
	@cmake --build $(BUILD) -j$(JOBS)

help: ## This list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

run: build ## Multiplies two matrices, checks the product, and compares the speed with other libraries
	@sh examples/run_examples.sh $(BUILD)

test: ## Builds and runs the quick tests: 3 to 4 minutes on two cores after the build (needs cmocka)
	@echo "These are the quick tests, which take 3 to 4 minutes on two cores after the build. \`make test-all\` runs all."
	@$(MAKE) build CMAKE_FLAGS="$(TESTS)"
	@$(CTEST) -LE '$(LEAVE_OUT)' $(CTEST_FLAGS)

test-all: ## All tests, with every kernel on the simulator: several times as long
	@echo "All tests take several times as long as the quick ones, and less from the second time on."
	@$(MAKE) build CMAKE_FLAGS="$(TESTS)"
	@$(CTEST) -LE sample $(CTEST_FLAGS)

test-aarch64: ## Builds for aarch64 and checks its tiers under qemu (cross compiler, qemu-user)
	@sh tests/aarch64.sh $(BUILD)-aarch64

bench: build ## Compares the speed with the other libraries on this machine
	$(BUILD)/tegula bench

check: build ## Compares random products with a reference in double precision
	$(BUILD)/tegula check

performance: ## Writes docs/performance.md from bench/results
	@$(PYTHON) bench/summary.py

gpu: ## Tests, checks and measures on an NVIDIA GPU (needs the CUDA toolkit and cmocka)
	@$(MAKE) build CMAKE_FLAGS="$(TESTS)" || \
		$(MAKE) build CMAKE_FLAGS="-DTEGULA_TESTS=OFF $(CMAKE_FLAGS)"
	@sh bench/gpu.sh $(BUILD)

fuzz: ## Fuzzes the API and the file reader, FUZZ_SECONDS each (needs clang)
	@sh tests/fuzz.sh $(BUILD)-fuzz

format: ## Formats the sources with clang-format
	clang-format -i $(SOURCES)

lint: ## Checks the format; clang-tidy, cppcheck, shellcheck, mypy
	@ANALYZED=$(ANALYZED) sh tests/lint.sh $(BUILD)-lint "$(strip $(SOURCES))" "$(SCRIPTS)"

# Debian's flags, but the optimisation of a release. The packages hold no rpath.
deb: ## Debian packages of the library, the program and the drop-ins, in build-deb/packages
	@CFLAGS="$$(DEB_CFLAGS_MAINT_STRIP='-g -O2' dpkg-buildflags --get CFLAGS) $$(dpkg-buildflags --get CPPFLAGS)" \
		LDFLAGS="$$(dpkg-buildflags --get LDFLAGS)" \
		cmake -S . -B $(BUILD)-deb -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_SKIP_INSTALL_RPATH=ON \
		-DTEGULA_SHIMS=ON $(CMAKE_FLAGS) >/dev/null
	@cmake --build $(BUILD)-deb -j$(JOBS)
	@cmake --build $(BUILD)-deb --target debian_files
	@rm -rf $(BUILD)-deb/packages
	@cd $(BUILD)-deb && cpack -B packages

dsc: ## The Debian source package, in build/dsc (needs dpkg-dev)
	@$(PYTHON) packaging/make_dsc.py $(BUILD)/dsc

wheel: ## The Python package as a wheel, in build/wheel (needs Python 3.9 with pip; uses auditwheel)
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PYTHON) -m pip wheel --no-deps --wheel-dir $(BUILD)/wheel ./python
	@if $(PYTHON) -c "import auditwheel" 2>/dev/null && command -v patchelf >/dev/null; then \
		$(PYTHON) -m auditwheel repair --exclude libtegula.so.0 --wheel-dir $(BUILD)/wheel $(BUILD)/wheel/*-linux_*.whl && \
		rm $(BUILD)/wheel/*-linux_*.whl; \
	else echo "Without auditwheel and patchelf the wheel has no manylinux tag, which PyPI needs."; fi

sdist: ## A source distribution of the Python package, in build/sdist
	@$(PYTHON) packaging/make_sdist.py $(BUILD)/sdist

notebook: build ## Runs python/ladder.ipynb and writes it with its plots, to build (needs nbclient, ipykernel, matplotlib)
	@TEGULA_LIBRARY=$(abspath $(BUILD))/libtegula.so PYTHONPATH=$(CURDIR)/python \
		$(PYTHON) python/run_notebook.py python/ladder.ipynb $(BUILD)/ladder.ipynb
	@echo "$(BUILD)/ladder.ipynb: open it with Jupyter"

site: build ## The documents as a site, in build/site/html (needs mkdocs and mkdocs-material)
	@$(PYTHON) docs/site/make_site.py $(BUILD)/site $(abspath $(BUILD))/tegula
	@echo "$(BUILD)/site/html: a web server shows it, such as \`python3 -m http.server -d $(BUILD)/site/html\`"

install: build ## Installs to /usr/local, or to PREFIX=DIR; DESTDIR=DIR is put before the prefix
	@DESTDIR="$(DESTDIR)" $(INSTALL)

uninstall: ## Removes what `make install` with the same PREFIX and DESTDIR installed
	@DESTDIR="$(DESTDIR)" $(INSTALL) --component uninstall

clean: ## Deletes everything that was built
	rm -rf $(BUILD) $(BUILD)-*
