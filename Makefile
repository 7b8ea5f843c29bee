# SPDX-License-Identifier: BSD-3-Clause
# A thin front: CMake does the work. `make help` lists the targets.
.DEFAULT_GOAL := all
.PHONY: all ina install uninstall hooks deb rpm demo demo-ina demo-gpu check lint format check-long soak lab lab-long bench coverage clean help

all: ## build everything into build/
	@scripts/install-deps build
	@cmake --preset dev >/dev/null
	@cmake --build build

ina: ## the same with controller, switches and backend of in-network aggregation, whose packages nothing else needs
	@scripts/install-deps ina
	@$(MAKE) --no-print-directory all

PREFIX ?= /usr/local
install: all ## what was built into PREFIX (/usr/local): plugin, ha, software NIC, daemons, netccl
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX) >/dev/null
	@cp build/install_manifest.txt build/installed.txt
	@echo "installed into $(DESTDIR)$(PREFIX): lib/libnccl-net-ha.so, lib/hawser/softroce/, bin/ha, bin/ha-agent, bin/softroce-run, lib/libhawser-ina.so and netccl; after make ina also bin/ha-controller, bin/ha-switch, bin/ha-switch-xdp, bin/ha-backend"

uninstall: ## what `make install` with the same PREFIX has put there
	@cmake -DMANIFEST=build/installed.txt -DPREFIX=$(PREFIX) -P scripts/uninstall.cmake

deb: ## the Debian packages: plugin, tools, software NIC, softcuda, agent, sums in the network, GPU library; in build/deb/
	@scripts/install-deps deb
	@scripts/deb build/deb

rpm: ## the same packages for distributions with RPM, by rpmbuild; in build/rpm/
	@scripts/install-deps rpm
	@scripts/rpm build/rpm

demo: ## the main job: NCCL's own all-reduce over the plugin and the software NIC; a cable is cut, also under NCCL's own IB transport
	@scripts/demo

demo-ina: ## reduction in the network: controller, switch and four hosts in network namespaces; packets are lost, switch, rank and backend are killed (root)
	@scripts/install-deps ina demo
	@$(MAKE) --no-print-directory all
	@scripts/demo-ina

demo-gpu: all ## GPU-initiated traffic on the host: tokens to experts and back (MoE) over software NICs that are killed in the middle
	@build/ha gpu-moe

check: ## every test: unit, contract, foreign programs, sanitizers, the core of the lab
	@scripts/install-deps test lab
	@scripts/install-deps nccl-all || echo "NCCL is not there: what runs under it is skipped and counted"
	@scripts/check

lint: all ## calls go down, files do not call in circles, standard words, short functions, and what clang-tidy finds (.clang-tidy)
	@scripts/check-layers
	@scripts/check-words
	@scripts/check-functions
	@scripts/lint

hooks: ## offers git two hooks: format and tidiness of what is committed, and the length of its subject, in a second or two
	@git config core.hooksPath scripts/hooks
	@echo "git runs scripts/hooks/pre-commit and commit-msg from now on; git config --unset core.hooksPath ends that"

format: ## clang-format over all C sources (.clang-format, 100 columns)
	@scripts/check-format --fix

check-long: ## the long hunts: more seeds, 40 seconds per fuzzer, coverage
	@scripts/install-deps test long lab
	@scripts/install-deps nccl-all || echo "NCCL is not there: what runs under it is skipped and counted"
	@scripts/check --long

MINUTES ?= 60
soak: all ## an hour (MINUTES=60) of NCCL on softcuda, faults at random, exporter, agent, top, doctor and page beside it; table and plot in build/soak
	@scripts/install-deps test
	@scripts/install-deps nccl
	@scripts/soak --minutes $(MINUTES) --out build/soak

lab: all ## QEMU machines with the kernel's rdma_rxe: cables pulled, ports downed, loss, softroce against the kernel
	@scripts/install-deps lab
	@lab/run --set standard

lab-long: all ## the rest of the lab, with an hour of chaos; its page with plots in build-lab/page
	@scripts/install-deps lab-long
	@lab/timeouts-virtual 200
	@lab/run --set long; status=$$?; lab/plot; exit $$status

bench: ## side-by-side ratios and instruction counts; prints, never fails on time
	@scripts/install-deps test
	@scripts/install-deps nccl || echo "NCCL is not there: what is measured under it is left out"
	@$(MAKE) --no-print-directory all
	@scripts/bench

coverage: ## line coverage per folder
	@scripts/install-deps test
	@scripts/coverage

clean:
	rm -rf build build-*

help:
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 14
