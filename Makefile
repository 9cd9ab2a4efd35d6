# The front door: `make help` lists what there is. CMake does the work, in build/ unless BUILD says
# otherwise; CMAKE_FLAGS are passed to it, such as CMAKE_FLAGS=-DTEGULA_OPENMP=OFF.
BUILD ?= build
JOBS ?= $(shell nproc)
SOURCES = $(shell find include src cli tests examples kernels -name "*.[ch]" -o -name "*.cu")
SCRIPTS = .ci/run $(shell find bench tests examples -name "*.sh")
MAKEFLAGS += --no-print-directory

.PHONY: build help run test bench check gpu fuzz format lint install clean

build: ## The library and the program
	@cmake -S . -B $(BUILD) $(CMAKE_FLAGS) >/dev/null
	@cmake --build $(BUILD) -j$(JOBS)

help: ## This list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

run: build ## Multiplies a pair of matrices, checks the product, shows how fast it was
	@sh examples/run_examples.sh $(BUILD)

test: ## Builds and runs the tests (needs cmocka)
	@$(MAKE) build CMAKE_FLAGS="-DTEGULA_TESTS=ON $(CMAKE_FLAGS)"
	@ctest --test-dir $(BUILD) --output-on-failure -j$(JOBS) $(CTEST_FLAGS)

bench: build ## Speed beside the other libraries on this machine
	$(BUILD)/tegula bench

check: build ## Random problems against a reference in double precision
	$(BUILD)/tegula check

gpu: ## Tests, checks and measures on an NVIDIA GPU (needs the CUDA toolkit and cmocka)
	@$(MAKE) build CMAKE_FLAGS="-DTEGULA_TESTS=ON $(CMAKE_FLAGS)" || \
		$(MAKE) build CMAKE_FLAGS="-DTEGULA_TESTS=OFF $(CMAKE_FLAGS)"
	@sh bench/gpu.sh $(BUILD)

fuzz: ## Fuzzes the API and the file reader, FUZZ_SECONDS each (needs clang)
	@sh tests/fuzz.sh $(BUILD)-fuzz

format: ## Lays out the sources as .clang-format says
	clang-format -i $(SOURCES)

lint: ## Layout, clang-tidy, cppcheck, shellcheck
	@sh tests/lint.sh $(BUILD)-lint "$(strip $(SOURCES))" "$(SCRIPTS)"

install: build ## To /usr/local, or where CMAKE_FLAGS=-DCMAKE_INSTALL_PREFIX=... said
	cmake --install $(BUILD)

clean: ## Forgets everything that was built
	rm -rf $(BUILD) $(BUILD)-*
