# SPDX-License-Identifier: Apache-2.0
# What a person types. The build itself is Meson's: meson.build in every folder. make bench BENCH=--quick for short runs.
BUILD ?= build
OPTIONS ?=

# With make -j, too, one after the other, in the order below: apt runs once at a time, and before what needs its packages.
# Ninja has its own jobs.
.NOTPARALLEL:

all: configured
	@ninja -C $(BUILD) program
	@$(BUILD)/sonde version | grep 'built without' || true

# Tests and benchmarks, too.
everything: deps-everything configured
	@ninja -C $(BUILD)

configured:
	@tools/configure $(BUILD) $(OPTIONS)

deps-%:
	@tools/deps $*

demo: deps-demo all
	@tools/demo $(BUILD)/sonde

test: deps-test everything
	meson test -C $(BUILD) --no-rebuild --no-suite e2e --no-suite vendor --no-suite slow --print-errorlogs
	SONDE=$(BUILD)/sonde tests/e2e/run -rs $(PYTEST)

test-all: deps-test everything
	tools/venv torch2 || true
	meson test -C $(BUILD) --no-rebuild --suite vendor --suite slow --print-errorlogs
	tools/tidy $(BUILD)
	$(MAKE) test PYTEST=--slow

# What unwinds stacks, built for aarch64 and run under an emulator.
test-arm64: deps-arm64
	tools/cross/test $(BUILD)-arm64

# All of sonde, built for aarch64, records programs under an emulated kernel. It takes minutes.
test-arm64-kernel: deps-arm64-kernel
	tools/cross/kernel-test $(BUILD)-arm64

# The files that people install, for aarch64: made here and run under an emulator. RELEASE=dist-aarch64 for those that are there.
test-arm64-release: deps-arm64 deps-release deps-test all
	tools/cross/release-test $(BUILD) $(BUILD)-arm64 $(RELEASE)

# That release on Debian's arm64 kernel, emulated: the tests of a kernel, for docs/record.md. GUEST="-k test_the_example" for some.
test-arm64-guest: deps-arm64-kernel
	tools/cross/guest-test $(BUILD)-arm64 $(or $(RELEASE),$(BUILD)-arm64/dist) $(GUEST)

# Kernels of Debian's archive run tests over this build, in an emulator: minutes each. KERNELS="6.1 6.12" for some of them.
test-kernels: deps-kernels everything
	tools/kernels/test $(BUILD) $(KERNELS)

# FUZZ_SECONDS=600 for longer runs of each target, FUZZ="elf wire" for some of them.
fuzz: deps-test
	tools/fuzz $(FUZZ)

bench: deps-bench everything
	bench/run.py --install --build $(BUILD) $(BENCH)

install: all
	meson install -C $(BUILD) --no-rebuild

# What `make install` wrote.
uninstall:
	ninja -C $(BUILD) uninstall

docs: configured
	@ninja -C $(BUILD) docs

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

.PHONY: all everything configured demo test test-all test-arm64 test-arm64-kernel test-arm64-release test-arm64-guest test-kernels fuzz bench install uninstall docs format
