# SPDX-License-Identifier: GPL-2.0-or-later
#
# The one way in. It drives Kbuild for tern.ko and CMake for all C++.

MAKEFLAGS += --no-print-directory
GOALS := $(or $(MAKECMDGOALS),help)

# Programs in other folders read it, too.
ifeq ($(filter /%,$(firstword $(TERN_CACHE) /)),)
override export TERN_CACHE := $(CURDIR)/$(TERN_CACHE)
endif

# What is for the stack of another Debian is done there.
ifneq ($(filter-out help clean,$(GOALS)),)
FOREIGN := $(shell scripts/stack --foreign 2>&1)
ifneq ($(.SHELLSTATUS),0)
$(error $(FOREIGN))
endif
endif
ifneq ($(FOREIGN),)
ifneq ($(filter install,$(GOALS)),)
$(error what is for Debian $(FOREIGN) would be installed here; make packages takes it there)
endif

.PHONY: $(GOALS)
$(GOALS):
	@scripts/on-stack $(MAKE) $@

else

export CTEST_OUTPUT_ON_FAILURE ?= 1
BUILD := build
CMAKE_BUILD := $(BUILD)/cmake
# What runs in guests of another architecture has a folder of its own.
ARCH := $(shell scripts/stack arch)
ifneq ($(ARCH),amd64)
GUEST_BUILD := $(CMAKE_BUILD)-$(ARCH)
endif

# Known only once the headers are installed, hence not evaluated before its use.
ifdef TERN_KDIR
KERNEL = $(or $(shell cat $(TERN_KDIR)/include/config/kernel.release 2>/dev/null),\
	$(error $(TERN_KDIR) is neither a kernel tree that was prepared for modules nor its headers))
else
KERNEL = $(shell scripts/guest-kernel)
endif

.PHONY: help setup build module configure cmake image kernels hosts programs run test test-quick test-all \
	test-debug test-threads stress-test soak report fuzz fuzz-quick lint bench bench-apps bench-core bench-fabric \
	bench-sim lab install packages clean

help:
	@echo 'make run         two hosts, stock RDMA programs between them, a table of results'
	@echo 'make test        everything that a change must pass'
	@echo 'make test-quick  of these, what needs no virtual machine'
	@echo 'make test-all    these and more: each scenario with both kernels and over both wires'
	@echo 'make test-debug  six scenarios on kernels with KASAN, lockdep, kmemleak and more'
	@echo 'make test-threads'
	@echo '                 unit tests of what has threads, with ThreadSanitizer'
	@echo 'make stress-test unit, sim, qtest and scenarios five times, two of them on a busy machine'
	@echo 'make soak        seeds of the simulation for TERN_SOAK_TIME hours (1): scripts/soak --help'
	@echo 'make fuzz        each fuzzer for TERN_FUZZ_TIME seconds (60): see scripts/fuzz --help'
	@echo 'make bench       Tern, rxe, siw and TCP side by side: a table and plots in build/bench'
	@echo 'make report      one page of what these have found: build/report/index.html'
	@echo 'make bench-apps  NVMe-oF, NFS, iSER, SRP, RNBD, SMC-R, RDS, Valkey, libfabric, UCX and Open MPI'
	@echo '                 over Tern next to TCP and rxe'
	@echo 'make lint        the static checks'
	@echo 'make bench-core  what a message costs the card, next to memcpy, how long others wait, and memory'
	@echo 'make bench-sim   what a packet costs tern-sim, by the number of cards'
	@echo 'make bench-fabric'
	@echo '                 four hosts write to one, with and without DCQCN: queue and shares, plotted'
	@echo 'make lab         bring up two hosts and leave them to you: scripts/lab --help'
	@echo 'make build       tern.ko, the provider, the card and the tests'
	@echo 'make install     the card, the switch, the provider, the lab and the driver for DKMS'
	@echo '                 into $$(DESTDIR)$$(PREFIX), by default /usr/local'
	@echo 'make packages    Debian packages of these, in build/packages'
	@echo 'make setup       install the Debian packages that all of it needs'
	@echo 'make clean       remove what was built; the cache stays, in ~/.cache/tern'
	@echo
	@echo 'TERN_STACK=bookworm-6.12 make ... has another stack: scripts/stacks.txt names them'

setup:
	@scripts/setup

build: module cmake

module: setup
	@scripts/build-module $(KERNEL) $(BUILD)/kernel/$(KERNEL)

# Headers of QEMU that nobody has asked for in a month go from the cache.
configure: setup
	@scripts/qemu-headers >/dev/null
	@[ -e $(CMAKE_BUILD)/build.ninja ] || \
		cmake -S . -B $(CMAKE_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo
ifdef GUEST_BUILD
	@[ -e $(GUEST_BUILD)/build.ninja ] || \
		cmake -S . -B $(GUEST_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
			-DCMAKE_TOOLCHAIN_FILE=scripts/toolchain.cmake
endif

cmake: configure
	@cmake --build $(CMAKE_BUILD)
ifdef GUEST_BUILD
	@cmake --build $(GUEST_BUILD)
endif

# Module and image for each stack of this Debian.
kernels: setup
	@for stack in $$(scripts/stack --list); do \
		TERN_STACK=$$stack $(MAKE) module image || exit; \
	done

# What hosts need, which is much less than the tests.
hosts: module configure image
	@cmake --build $(CMAKE_BUILD) --target tern-switch card
	@cmake --build $(or $(GUEST_BUILD),$(CMAKE_BUILD)) --target tern_provider terntop terntrace

# What scenarios need beside hosts.
programs: configure
	@cmake --build $(or $(GUEST_BUILD),$(CMAKE_BUILD)) --target guest_programs

image: setup
	@TERN_STACK=$$(scripts/stack stock) scripts/image >/dev/null

run: hosts
	@scripts/demo

# The quick checks first: a mistake should cost minutes.
test: setup
	@scripts/lint --quick
	@$(MAKE) cmake kernels
	@scripts/newest --cached
	@scripts/suite

test-all: lint kernels test-threads
	@scripts/newest
	@scripts/suite --all

# These tests count what ThreadSanitizer itself takes: addresses, and a thread.
COUNT_ADDRESSES := Segment.LeavesAddressesForOthers:SharedWireTest.ALinkThatOneEndCannotMapIsClosed
test-threads: setup
	@[ -e $(BUILD)/tsan/build.ninja ] || cmake -S . -B $(BUILD)/tsan -G Ninja \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo '-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g' \
		-DTERN_SANITIZE=thread
	@cmake --build $(BUILD)/tsan --target engine_test shm_test vfio_test wire_test
	@GTEST_FILTER=-$(COUNT_ADDRESSES):PeerFilesTest.MoreThanThereAreThreads \
		ctest --test-dir $(BUILD)/tsan --output-on-failure -R '^(engine|shm|vfio|wire)$$'

test-quick: cmake
	@scripts/suite --quick

test-debug: cmake
	@for stack in $$(scripts/stack --debug); do \
		TERN_STACK=$$stack $(MAKE) module image || exit; \
	done
	@scripts/suite --debug

stress-test: cmake kernels
	@scripts/newest --cached
	@scripts/suite --stress

soak: setup
	@scripts/soak --hours $(or $(TERN_SOAK_TIME),1)

report: setup
	@scripts/report

fuzz: setup
	@scripts/fuzz --time $(or $(TERN_FUZZ_TIME),60)

fuzz-quick: setup
	@scripts/fuzz --quick

bench: hosts
	@tests/bench/compare.py

bench-sim: configure
	@cmake --build $(CMAKE_BUILD) --target tern-sim
	@tests/bench/sim_cost.py $(CMAKE_BUILD)/qemu/sim/tern-sim

bench-fabric: hosts
	@tests/bench/fabric.py

bench-apps: hosts
	@cmake --build $(CMAKE_BUILD) --target tern_io tern_messages
	@tests/bench/compare_apps.py

lint: cmake
	@scripts/lint

# Five runs of each, of which it tells the median; alone on the machine, if you can.
bench-core: configure
	@cmake --build $(CMAKE_BUILD) --target bench_core bench_pauses bench_memory bench_fairness
	@$(CMAKE_BUILD)/tests/bench/bench_core --benchmark_repetitions=5 --benchmark_min_time=0.1
	@$(CMAKE_BUILD)/tests/bench/bench_pauses
	@$(CMAKE_BUILD)/tests/bench/bench_memory
	@$(CMAKE_BUILD)/tests/bench/bench_fairness

lab: hosts
	@scripts/lab up

PREFIX ?= /usr/local
install: configure
	@cmake -S . -B $(CMAKE_BUILD) -DCMAKE_INSTALL_PREFIX="$(PREFIX)" >/dev/null
	@cmake --build $(CMAKE_BUILD) --target tern-card tern-switch tern-sim card tern_provider terntop terntrace
	@DESTDIR="$(DESTDIR)" cmake --install $(CMAKE_BUILD) --strip

packages: setup
	@scripts/setup --packages
	@scripts/packages

clean:
	@rm -rf $(BUILD)

endif
