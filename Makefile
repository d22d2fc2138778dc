# SPDX-License-Identifier: GPL-2.0-or-later
#
# The one way in. It drives Kbuild for tern.ko and CMake for all C++.

MAKEFLAGS += --no-print-directory
BUILD := build
CMAKE_BUILD := $(BUILD)/cmake
JOBS := $(shell nproc)

# Known only once the headers are installed, hence not evaluated before its use.
KERNEL = $(shell scripts/guest-kernel)

.PHONY: help setup build module configure cmake image hosts run test test-quick lint lab clean

help:
	@echo 'make run         two hosts, stock RDMA programs between them, a table of results'
	@echo 'make test        everything that a change must pass'
	@echo 'make test-quick  of these, what needs no virtual machine'
	@echo 'make lint        the static checks'
	@echo 'make lab         bring up two hosts and leave them to you: scripts/lab --help'
	@echo 'make build       tern.ko, the provider, the card and the tests'
	@echo 'make setup       install the Debian packages that all of it needs'
	@echo 'make clean       remove what was built; the cache stays, in ~/.cache/tern'

setup:
	@scripts/setup

build: module cmake

module: setup
	@scripts/build-module $(KERNEL) $(BUILD)/kernel/$(KERNEL)

configure: setup
	@[ -e $(CMAKE_BUILD)/build.ninja ] || \
		cmake -S . -B $(CMAKE_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo

cmake: configure
	@cmake --build $(CMAKE_BUILD)

# What hosts need, which is much less than the tests.
hosts: module configure image
	@cmake --build $(CMAKE_BUILD) --target tern-switch tern-qemu tern_provider

image: setup
	@scripts/image >/dev/null

run: hosts
	@scripts/demo

# CTest runs what is independent side by side; scenarios with VMs ask to be alone.
test: build image
	@ctest --test-dir $(CMAKE_BUILD) --output-on-failure -j$(JOBS)

test-quick: cmake
	@ctest --test-dir $(CMAKE_BUILD) --output-on-failure -j$(JOBS) -LE vm

lint: cmake
	@scripts/lint

lab: hosts
	@scripts/lab up

clean:
	@rm -rf $(BUILD)
