# fpm-dataplane: one Makefile. `make help` lists what a person calls.
# Every build lands in build/$(BUILD)/; sources are found by folder, one folder a thread.
# With ccache installed, `make CC="ccache gcc"` compiles a file again only when it differs.

BUILD   ?= release
O       := build/$(BUILD)
DAEMON_DIRS := base fpm rib neigh fwd punt trace ui fib port nics
PY      := /usr/bin/python3
export PYTHONDONTWRITEBYTECODE := 1

PKGS_BUILD := gcc pkg-config libdpdk-dev liburcu-dev libnl-3-dev libnl-route-3-dev \
	libmnl-dev libev-dev libyaml-dev libjansson-dev libmicrohttpd-dev
PKGS_RUN   := frr iproute2 iputils-ping traceroute ethtool python3 procps
# What README tells who looks at the lab to type.
PKGS_LOOK  := curl tshark
PKGS_TEST  := $(PKGS_LOOK) libcmocka-dev python3-pytest python3-scapy python3-yaml python3-jsonschema \
	clang-format-14 tcpdump groff-base tini
PKGS_LINT  := cppcheck clang-tidy-14
PKGS_PEERS := dpdk-dev dpkg-dev iproute2 procps ethtool clang-14 libbpf-dev
PKGS_DEB   := build-essential debhelper
# The guest has this machine's files, with systemd as process 1.
PKGS_VM    := qemu-system-x86 busybox-static cpio kmod systemd udev pciutils
PKGS_FUZZ  := clang-14 libclang-rt-14-dev
PKGS_BENCH := xz-utils bzip2 bgpdump python3-matplotlib

.DEFAULT_GOAL := all
.SUFFIXES:
.DELETE_ON_ERROR:

# --- flags -----------------------------------------------------------------------------
# x86-64-v2 at least: without it gcc turns __builtin_popcountll into a function call.
PC      := pkg-config
LIBS_PC := liburcu-qsbr liburcu-cds libnl-3.0 libnl-route-3.0 libmnl yaml-0.1 jansson \
	libmicrohttpd
CFLAGS_release := -O3 -g
CFLAGS_debug   := -Og -g3 -DDEBUG
CFLAGS_asan    := -O1 -g3 -DDEBUG -fsanitize=address,undefined -fno-omit-frame-pointer \
	-fno-sanitize-recover=undefined
CFLAGS_fuzz    := $(CFLAGS_asan) -fsanitize=fuzzer-no-link
# DPDK's rings by C11's atomics: ThreadSanitizer knows them, and no barriers of the compiler.
CFLAGS_tsan    := -O1 -g3 -DDEBUG -fsanitize=thread -fno-omit-frame-pointer \
	-DRTE_USE_C11_MEM_MODEL
ifeq ($(CFLAGS_$(BUILD)),)
$(error BUILD=$(BUILD) is not one of release, debug, asan, tsan, fuzz)
endif
# A tarball has no history: `git archive` writes the commit into the file VERSION.
# Evaluated once, when first used: `make help` must work before anything is installed.
VERSION   = $(eval VERSION := $$(shell test -e .git && git describe --always --dirty \
	2>/dev/null || sed 's/-.Format.*//' VERSION))$(VERSION)
PC_CFLAGS = $(eval PC_CFLAGS := $$(shell $(PC) --cflags libdpdk $(LIBS_PC)))$(PC_CFLAGS)
PC_LIBS   = $(eval PC_LIBS := $$(shell $(PC) --libs libdpdk $(LIBS_PC)) -lrte_net_bond -lev)$(PC_LIBS)
ALL_CFLAGS = -std=gnu17 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wno-unused-parameter -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API \
	-DURCU_INLINE_SMALL_FUNCTIONS -DEV_COMPAT3=0 \
	-Ifpm-dataplane -Ipoptrie -Itap-bridge $(PC_CFLAGS) \
	-march=x86-64-v2 -pthread $(CFLAGS_$(BUILD)) $(CFLAGS)

# --- what is built ---------------------------------------------------------------------
POPTRIE_SRC := $(wildcard poptrie/*.c)
TAP_SRC     := $(wildcard tap-bridge/*.c)
DAEMON_SRC  := $(wildcard fpm-dataplane/*.c) \
	$(foreach d,$(DAEMON_DIRS),$(wildcard fpm-dataplane/$(d)/*.c))
# With the daemon's own eyes for a configuration file: `fpmctl config check`.
CTL_SRC     := $(wildcard $(addprefix fpm-dataplane/,ctl/*.c ctl/doctor/*.c config*.c device*.c)) \
	$(addprefix fpm-dataplane/base/,base64.c choose.c prefix.c log.c sink.c policer.c) tap-bridge/netns.c
SUPER_SRC   := $(wildcard fpm-dataplane/supervise/*.c) \
	$(addprefix fpm-dataplane/base/,caps.c log.c sink.c)
obj          = $(patsubst %.c,$(O)/obj/%.o,$(1))

all: $(O)/fpm-dataplane $(O)/fpmctl $(O)/fpm-supervise ## build the daemon, its supervisor, fpmctl
	@:

# setsockopt: see fpm-dataplane/port/fanout.c
$(O)/fpm-dataplane: $(call obj,$(DAEMON_SRC) $(POPTRIE_SRC) $(TAP_SRC))
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ -Wl,--export-dynamic-symbol=setsockopt $(PC_LIBS) $(LDFLAGS)

$(O)/fpmctl: $(call obj,$(CTL_SRC))
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(shell $(PC) --libs jansson yaml-0.1) $(LDFLAGS)

$(O)/fpm-supervise: $(call obj,$(SUPER_SRC))
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDFLAGS)

$(O)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The version is compiled into the objects that print it, and into no other: a commit that
# changes one file then leaves all other objects, and what a compiler cache has of them, valid.
VERSIONED := $(addprefix $(O)/obj/fpm-dataplane/,main.o options.o ctl/main.o supervise/main.o)
$(VERSIONED): ALL_CFLAGS += -DFPMDP_VERSION='"$(VERSION)"'
$(VERSIONED): $(O)/version
$(O)/version: FORCE
	@mkdir -p $(@D); echo "$(VERSION)" | cmp -s - $@ || echo "$(VERSION)" >$@
FORCE:

# --- unit tests: the first lines of each test name what it links (`link: dir/ file.c`) ----
# tests/unit/test_x.c becomes build/.../tests/unit/test_x; helpers sit beside as non-test_*.c
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(patsubst %.c,$(O)/%,$(UNIT_SRC))
link_of   = $(foreach p,$(if $(wildcard $(1)),$(shell sed -n 's/^ \* link: *//p' $(1))),$(if $(filter %/,$(p)),$(wildcard $(p)*.c),$(p)))

define unit_rule
$(O)/tests/unit/$(1): $(call obj,tests/unit/$(1).c $(call link_of,tests/unit/$(1).c))
	@mkdir -p $$(@D)
	@echo "  LD    $$@"
	@$$(CC) $$(ALL_CFLAGS) -o $$@ $$^ $$(PC_LIBS) -lcmocka $$(LDFLAGS)
endef
# Most of the time that make takes by itself: not for who builds nothing, or has make called.
ifneq ($(filter-out help deps build demo lab lab-vm lab-down demo-down vtysh,$(or $(MAKECMDGOALS),all)),)
$(foreach t,$(patsubst tests/unit/%.c,%,$(UNIT_SRC)),$(eval $(call unit_rule,$(t))))
-include $(shell find $(O) -name '*.d' 2>/dev/null)
endif

unit-bins: $(UNIT_BIN)
	@:

# --- set-up: apt by package name, only what is missing -----------------------------------
DEPS_ALL := $(PKGS_BUILD) $(PKGS_RUN) $(PKGS_TEST)
APT      := DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	-o DPkg::Lock::Timeout=120
deps: ## install the Debian packages that are missing (root)
	@missing() { { dpkg-query -W -f '$${Package} $${db:Status-Status}\n' $(DEPS_ALL) 2>/dev/null; \
		printf '%s wanted\n' $(DEPS_ALL); } | awk '$$2 == "installed" {there[$$1]} \
			$$2 == "wanted" && !($$1 in there) {print $$1}'; }; \
	want=$$(missing | xargs); [ -n "$$want" ] || exit 0; \
	[ "$$(id -u)" = 0 ] || { echo "deps: run as root once, to install: $$want"; exit 1; }; \
	echo "deps: installing, with what they need: $$want"; \
	mkdir -p build; { $(APT) $$want || { apt-get update && $(APT) $$want; }; } 2>&1 \
		| tee build/deps.log | awk '/^Waiting|newly installed/ {print "  " $$0} \
			/^Need to get/ {print "  " $$0 " A dot: ten unpacked; a colon: ten set up."} \
			/^Unpacking/ && ++u % 10 == 0 {printf "."} \
			/^Setting up/ && ++s % 10 == 0 {printf ":"} {fflush()} END {print ""}'; \
	[ -z "$$(missing)" ] || { tail -20 build/deps.log; exit 1; }

# A sub-make: what pkg-config says is known only after the packages are there.
build:
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_LOOK)"
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD) all

demo: ## the main job, end to end: FRR, BGP, OSPF, the dataplane forwards (ROUTES=100000)
	@$(MAKE) --no-print-directory build
	@$(PY) tests/lab/demo.py

lab: ## a scenario of frr-config, proved and left up (S=name; without it the list)
	@$(if $(S),$(MAKE) --no-print-directory build)
	@$(PY) tests/lab/scenario.py $(S)

lab-vm: ## a scenario proved in a virtual machine, whose kernel has VLANs and VRFs (S=name; without it the list)
	@$(if $(S),$(MAKE) --no-print-directory deps DEPS_ALL="$(DEPS_ALL) $(PKGS_VM)")
	@$(if $(S),mkdir -p build/vm && $(MAKE) --no-print-directory -j$$(nproc) BUILD=release all)
	@$(PY) tests/vm/run.py --lab $(S)

lab-down demo-down: ## take the lab down, whatever state it is in
	@$(PY) tests/lab/lab.py down

vtysh: ## a vtysh on the lab's router r1 (C="show ip route summary" for one command)
	@$(PY) tests/lab/lab.py vtysh $(if $(C),-c "$(C)")

# --- tests -------------------------------------------------------------------------------
T ?=
test: ## lint, analyze, unit, sanitizers, fuzzers, system, system-asan, test-vm; says what it skipped and why (not: test-deb, test-image, test-bench) (T=...)
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all unit-bins bench-bins
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=asan all unit-bins
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=tsan tsan-bins
	@$(PY) tests/all.py $(MAKE) --no-print-directory

unit: unit-bins ## C unit tests (BUILD=...)
	@tests/unit/run.sh $(BUILD) $(UNIT_BIN)

unit-asan:
	@$(MAKE) --no-print-directory BUILD=asan unit

# Those in which threads meet; the rest has one.
TSAN_BIN := $(addprefix $(O)/tests/unit/test_,base fpm_feedback fpm_listen fpm_server fwd_threads idle life neigh neigh_adj policer \
	poptrie_stress port rib_thread ui ui_api ui_metrics)
tsan-bins: $(TSAN_BIN)
	@:

unit-tsan: ## the unit tests in which threads meet, under ThreadSanitizer
	@$(MAKE) --no-print-directory BUILD=tsan tsan-run

tsan-run: tsan-bins
	@tests/unit/run.sh $(BUILD) $(TSAN_BIN)

# The flood generator of tests/system/test_flood.py.
$(O)/tests/flood: $(call obj,tests/lib/flood.c)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDFLAGS)

# Loaded into the daemon: a wall clock that jumps, a driver that oversteps its bounds, a kernel
# that refuses an MTU, or to take privileges away; into fpmctl: a poll that waits for a tenth.
PRELOADS := $(addprefix $(O)/tests/,wall_clock.so overstep.so mtu_refused.so prctl_refused.so hasty.so)
$(PRELOADS): $(O)/tests/%.so: tests/lib/%.c
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) -shared -fPIC -o $@ $< -ldl

system: all $(O)/tests/flood $(PRELOADS) ## system tests against the real daemon (T=expression to choose)
	@$(PY) -m pytest --no-header -p no:cacheprovider --basetemp=build/pytest -rfEs \
		tests/system $(if $(T),-k "$(T)")

system-asan: ## all but those of the pages against programs with AddressSanitizer and UBSan, a file a core (T=expression to choose)
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=asan sanitized-bins
	@BUILD=asan FDP_ENDS_WELL=1 FDP_PATIENCE=4 $(PY) tests/abreast.py system-asan $(if $(T),"$(T)")

sanitized-bins: all $(O)/tests/flood $(PRELOADS)

chaos: all $(O)/tests/flood ## everything goes wrong at random, each packet is checked (T=60 SEED= ROUTES=20000; ONLY=fault,... REPEAT=10)
	@REPEAT="$(REPEAT)" T="$(T)" SEED="$(SEED)" ROUTES="$(ROUTES)" RATE="$(RATE)" ONLY="$(ONLY)" $(PY) tests/chaos/run.py

# What wears a daemon out, and nothing that would give it a fresh start.
SOAK := churn,table,core_flap,isp_dies,isp_moves,core_dies,neighbours_forgotten,mtu_changes,$\
	address_goes,nonsense_frames,nonsense_channels,questions,flood,bgpd_dies,ospfd_dies,zebra_dies
soak: ## hours of chaos without a kill of the daemon: a line a minute, a verdict (H=8)
	@$(MAKE) --no-print-directory chaos T=$$(awk 'BEGIN {print "$(or $(H),8)" * 3600}') RATE=300 ONLY=$(SOAK)

test-vm: ## in virtual machines, the last part of `make test`: each NIC, links, a bond, scenarios (T=expression: of test-vm-all)
	$(call in_guests,$(if $(T),"$(T)"))

test-vm-all: ## all tests for a virtual machine: PCI NICs, bonds, VLANs, VRFs, scenarios, no IOMMU (T=expression)
	$(call in_guests,--all $(if $(T),"$(T)"))

test-vm-package: ## tests in a virtual machine: the package, systemd, upgrades, the manual (T=expression)
	$(call in_guests,--package $(if $(T),"$(T)"),$(PKGS_DEB))

define in_guests
@$(MAKE) --no-print-directory deps
@if $(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_VM) $(2)"; then \
	mkdir -p build/vm && $(MAKE) --no-print-directory -j$$(nproc) BUILD=release all && \
	$(PY) tests/vm/run.py $(1); \
else echo "$@: skipped: not installable here: $(PKGS_VM) $(2)"; fi
endef

frr-root: ## a newer FRR in build/frr-root, for the tests of feedback
	@tests/lab/frr_root.sh $(CURDIR)/build/frr-root

reference: all ## the manual's pages of configuration keys and of reasons, out of the daemon's own tables; those of performance
	@$(PY) fpm-dataplane/manual/configuration.py $(O)/fpmctl
	@$(PY) fpm-dataplane/manual/reasons.py
	@$(PY) tests/bench/measured.py

lint: ## layers, format, words
	@$(PY) tests/lint/lint.py

# Each file with each tool: findings are argued in analyze.py, or mended.
analyze: ## gcc -fanalyzer, cppcheck, clang-tidy over the programs
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_LINT)"
	@$(PY) tests/lint/analyze.py $(CC) -- $(ALL_CFLAGS) -DFPMDP_VERSION='"$(VERSION)"'

format: ## clang-format over all C
	@find . \( -name build -o -name '.?*' \) -prune -o -name '*.[ch]' -print \
		| xargs clang-format-14 -i

# --- packages ------------------------------------------------------------------------------
deps-deb:
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_DEB)"

deb: deps-deb ## a Debian package of the daemon, its supervisor and fpmctl, in build/deb/
	@fpm-dataplane/dist/deb.sh "$(VERSION)"

test-deb: deb ## install, run, upgrade and purge the package in a clean Debian root; README's commands there
	@$(MAKE) --no-print-directory deps DEPS_ALL="python3-pytest debootstrap lintian"
	@tests/lib/debian_root.sh $(CURDIR)/build/deb-root bookworm >build/deb-root.log 2>&1 || \
		{ tail -20 build/deb-root.log; exit 1; }
	@DEB=$$(ls $(CURDIR)/build/deb/fpm-dataplane_*.deb) DEB_ROOT=$(CURDIR)/build/deb-root \
		$(PY) -m pytest --no-header -p no:cacheprovider --basetemp=build/pytest-deb \
		-rs tests/package/test_deb.py tests/package/test_newcomer.py

# Unpacked, not installed: Debian's package would start a service. Without it tests skip.
PROMETHEUS := build/prometheus
prometheus: ## Debian's Prometheus in build/prometheus, for the tests of the metrics page
	@[ -x $(PROMETHEUS)/usr/bin/promtool ] || { mkdir -p $(PROMETHEUS) && cd $(PROMETHEUS) && \
		apt-get download prometheus >/dev/null && dpkg-deb -x prometheus_*.deb .; }

# The engine that answers; podman's own image format has no health checks.
CONTAINERS = $(eval CONTAINERS := $$(firstword $$(foreach c,docker podman,\
	$$(shell $$(c) info >/dev/null 2>&1 && echo $$(c)))))$(CONTAINERS)
image: ## the container image fpm-dataplane, with docker or podman
	@[ -n "$(CONTAINERS)" ] || { echo "image: neither docker nor podman answers here"; exit 1; }
	@$(CONTAINERS) build $(if $(filter podman,$(CONTAINERS)),--format docker) --network host \
		--build-arg VERSION="$(VERSION)" -f docker/Dockerfile -t fpm-dataplane .

test-image: ## packets through two routers in containers, the labs of compose and containerlab (podman)
	@if [ -n "$(CONTAINERS)" ]; then $(MAKE) --no-print-directory image test-image-run; \
	else echo "test-image: skipped: neither docker nor podman answers here"; fi

test-image-run:
	@$(MAKE) --no-print-directory deps DEPS_ALL="python3-pytest ethtool iproute2"
	@$(MAKE) --no-print-directory prometheus || true
	@IMAGE=localhost/fpm-dataplane VERSION="$(VERSION)" $(PY) -m pytest --no-header -p no:cacheprovider -rs \
		--basetemp=build/pytest-image $(addprefix tests/package/test_,image.py compose.py containerlab.py)

# Not the figures: that each command of the page does what it says.
test-bench: ## every command of tests/bench/README.md, in its shortest form: a quarter of an hour; figures mean nothing
	@if $(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_BENCH) $(PKGS_PEERS) python3-pytest"; \
	then $(MAKE) --no-print-directory -j$$(nproc) BUILD=release all bench-bins $(O)/tests/flood \
		$(SYNC_BIN) $(BLIND_BIN) && $(PY) -m pytest --no-header -p no:cacheprovider \
		--basetemp=build/pytest-bench -rs -rP --durations=0 tests/bench/test_commands.py $(if $(T),-k "$(T)"); \
	else echo "test-bench: skipped: not installable here: $(PKGS_BENCH) $(PKGS_PEERS)"; fi

# --- benchmarks: JSON on stdout, tables on stderr; never a verdict on a time ------------------
BENCHES := bench-quick bench-forward bench-loss bench-latency bench-sync bench-watch bench-tags bench-fpm bench-fib
bench: ## all benchmarks, then the report (QUICK=1: each in its short form)
	@mkdir -p build/bench
	@failed=; for b in $(BENCHES); do echo "== make $$b" >&2; \
		$(MAKE) --no-print-directory -s $$b >build/bench/$$b.jsonl || failed="$$failed $$b"; \
	done; $(MAKE) --no-print-directory -s bench-report; \
	[ -z "$$failed" ] || { echo "bench: failed:$$failed" >&2; exit 1; }

bench-report: ## build/bench/report.md, tables and plots of what `make bench` left there (ACCEPT=1: into the manual, too)
	@ACCEPT="$(ACCEPT)" $(PY) tests/bench/bench_report.py build/bench

bench-fib: ## lookup benchmark against DPDK's rte_fib and rte_lpm (QUICK=1, TABLE=file, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_BENCH)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release build/release/tests/bench/bench_fib >&2
	@$(PY) tests/bench/bench_fib.py build/release/tests/bench/bench_fib

bench-fpm: ## from what zebra says to what is forwarded: rates, latencies, memory (QUICK=1, ROWS=bgp, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all >&2
	@$(PY) tests/bench/bench_fpm.py

# What `make test` links, so that a function that comes to a library breaks none unseen.
bench-bins: $(addprefix $(O)/tests/bench/bench_,fib frames tags)
	@:

.PHONY: bench-bins bench-report bench-forwarder bench-loss bench-latency bench-sync bench-watch bench-tags bench-quick

# What the forwarding benchmarks need: the packages, the programs.
bench-forwarder:
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_BENCH) $(PKGS_PEERS)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all \
		$(addprefix build/release/tests/,bench/bench_frames bench/bench_fib flood) >&2

bench-forward: bench-forwarder ## forwarding rate of a core against testpmd and l3fwd (ROWS=tables, TABLE=files, ...)
	@$(PY) tests/bench/bench_forward.py build/release

bench-loss: bench-forwarder ## frames lost and wrong at 10..100 % load, while routes change (SECONDS=60, QUICK=1, ...)
	@$(PY) tests/bench/bench_loss.py build/release

bench-latency: bench-forwarder ## how late frames leave at 10..95 % load, and the machine's own gaps (QUICK=1, ...)
	@$(PY) tests/bench/bench_latency.py build/release

bench-sync: bench-forwarder ## QSBR, other RCU flavours, locks: rate, and time to publish a FIB (QUICK=1, ...)
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release $(SYNC_BIN) >&2
	@$(PY) tests/bench/bench_sync.py build/release

bench-watch: bench-forwarder ## what trace and capture cost while nobody looks (QUICK=1, ...)
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release $(BLIND_BIN) >&2
	@$(PY) tests/bench/bench_watch.py build/release

bench-tags: ## what a tag, two, and VRFs cost a packet, in turns in one process (QUICK=1, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_BENCH)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release build/release/fpm-dataplane \
		$(addprefix build/release/tests/bench/bench_,frames tags) >&2
	@$(PY) tests/bench/bench_tags.py build/release

bench-quick: bench-forwarder ## the ratios to the peers beside the last accepted ones (ACCEPT=1)
	@$(PY) tests/bench/bench_quick.py build/release

# A call before every load of this one file: tests/bench/trace.c says why.
$(O)/obj/tests/bench/trace.o: ALL_CFLAGS += -mavx -fsanitize=kernel-address \
	--param=asan-instrumentation-with-call-threshold=0 --param=asan-stack=0 \
	--param=asan-globals=0

$(O)/tests/bench/bench_fib: $(call obj,$(wildcard tests/bench/*.c) $(POPTRIE_SRC))
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(PC_LIBS) -lm $(LDFLAGS)

BENCH_TABLE := $(addprefix tests/bench/,table.c generate.c streams.c)

$(O)/tests/bench/bench_frames: $(call obj,tests/bench/forward/frames.c $(BENCH_TABLE))
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(PC_LIBS) $(LDFLAGS)

# The forwarder's own objects, between ports that are functions.
TAGS_LINK := $(wildcard tests/bench/tags/*.c) tests/bench/forward/stream.c $(POPTRIE_SRC) \
	$(foreach d,fwd fib base,$(wildcard fpm-dataplane/$(d)/*.c)) \
	$(addprefix fpm-dataplane/port/,rings.c rxq.c serve.c watch.c)

$(O)/tests/bench/bench_tags: $(call obj,$(TAGS_LINK))
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(PC_LIBS) $(LDFLAGS)

# The daemon once for each way to synchronise: the same object files, other functions in
# place of QSBR's. KIND: file in tests/bench/sync, what it is compiled with, libraries.
SYNC_qsbr         := qsbr
SYNC_turns        := turns
SYNC_mb           := flavor -DFLAVOR=mb '-DHEADER=<urcu/urcu-mb.h>'
SYNC_memb         := flavor -DFLAVOR=memb '-DHEADER=<urcu/urcu-memb.h>'
SYNC_signal       := flavor -DFLAVOR=signal '-DHEADER=<urcu/urcu-signal.h>' -DUNBLOCK=SIGUSR1
SYNC_thread-mutex := locks -DLOCK_THREAD
SYNC_global-mutex := locks -DLOCK_GLOBAL
SYNC_rwlock       := locks -DLOCK_RW
SYNC_none         := locks -DLOCK_NONE
SYNC_KINDS        := turns qsbr mb memb signal thread-mutex global-mutex rwlock none
SYNC_BIN          := $(SYNC_KINDS:%=build/sync-%/fpm-dataplane)

$(SYNC_BIN): build/sync-%/fpm-dataplane: $(call obj,$(DAEMON_SRC) $(POPTRIE_SRC) $(TAP_SRC)) \
		$(wildcard tests/bench/sync/*.[ch]) $(O)/fpmctl
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@cp $(O)/fpmctl $(@D)/
	@$(CC) $(ALL_CFLAGS) $(wordlist 2,9,$(SYNC_$*)) -o $@ $(filter %.o,$^) \
		tests/bench/sync/publisher.c tests/bench/sync/$(firstword $(SYNC_$*)).c \
		-Wl,--export-dynamic-symbol=setsockopt -lurcu-mb -lurcu-memb -lurcu-signal \
		$(PC_LIBS) $(LDFLAGS)
	@[ $* = qsbr ] || [ $* = turns ] || ! nm -D $@ | grep "U urcu_qsbr_" || { rm $@; \
		echo "$@: tests/bench/sync/instead.h has nothing in place of that"; exit 1; }

# The daemon with forwarders that nobody can look at (FWD_BLIND), twice: what is between the two
# is chance. And as it is, linked in the same way.
BLIND_SRC := fpm-dataplane/fwd/loop.c fpm-dataplane/fwd/dispatch.c
BLIND_BIN := $(addsuffix /fpm-dataplane,build/watch-blind build/watch-asking)
$(BLIND_BIN): build/watch-%/fpm-dataplane: $(call obj,$(DAEMON_SRC) $(POPTRIE_SRC) $(TAP_SRC)) $(O)/fpmctl
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@cp $(O)/fpmctl $(@D)/
	@$(CC) $(ALL_CFLAGS) $(if $(filter blind,$*),-DFWD_BLIND=1) -o $@ $(BLIND_SRC) \
		$(filter-out $(call obj,$(BLIND_SRC)),$(filter %.o,$^)) \
		-Wl,--export-dynamic-symbol=setsockopt $(PC_LIBS) $(LDFLAGS)

# --- fuzzing: libFuzzer, seeded with the captures; what it finds new lands in build/fuzz/ --
FUZZ_S    ?= 60
FUZZ_EACH_S ?= 8
FUZZ_SRC  := $(addprefix tests/fuzz/,fuzz_fpm_rib.c fresh.c invariants.c mutate.c)
FUZZ_LIB  := $(addprefix fpm-dataplane/fpm/,decode.c hops.c frame.c queue.c) \
	$(foreach d,rib fib base,$(wildcard fpm-dataplane/$(d)/*.c)) $(POPTRIE_SRC) \
	$(addprefix tests/unit/,rib_rig.c rib_stream.c rib_print.c grace.c oracle.c)
FUZZ_BIN  := $(addprefix build/fuzz/fuzz_,fpm fpm_rib checkpoint packet config request api)
FUZZ_ALL  := $(FUZZ_BIN) build/fuzz/fuzz_poptrie

# clang knows no `#pragma GCC target`: what each file of poptrie asks for, it gets whole.
ifeq ($(BUILD),fuzz)
# Its walks over large tables would be most of the time, and it has tests of its own.
$(O)/obj/poptrie/%.o: CFLAGS += -O2 -fno-sanitize=fuzzer-no-link
$(O)/obj/poptrie/lookup_avx2.o: CFLAGS += -mavx2 -mbmi -mbmi2 -mpopcnt -Wno-unknown-pragmas
$(O)/obj/poptrie/lookup_avx512.o: CFLAGS += -mavx512f -mavx512bw -mavx512dq -mavx512vl \
	-mavx512vpopcntdq -mavx2 -mbmi -mbmi2 -Wno-unknown-pragmas
# How frames are made up for fuzz_packet, and compared, is no path of the product to look for (but
# for the look without vectors, which is in packet_burst.c once more).
$(O)/obj/tests/fuzz/packet_%.o: CFLAGS += -O2 -fno-sanitize=fuzzer-no-link
endif
build/fuzz/fuzz_fpm: $(call obj,tests/fuzz/fuzz_fpm.c $(FUZZ_LIB))
build/fuzz/fuzz_fpm_rib: $(call obj,$(FUZZ_SRC) $(FUZZ_LIB))
build/fuzz/fuzz_checkpoint: $(call obj,tests/fuzz/fuzz_checkpoint.c tests/fuzz/invariants.c \
	$(FUZZ_LIB))
build/fuzz/fuzz_config: $(call obj,tests/fuzz/fuzz_config.c \
	$(filter-out tests/%,$(call link_of,tests/unit/test_config.c)))
build/fuzz/fuzz_request build/fuzz/fuzz_api: $(call obj,$(wildcard fpm-dataplane/base/*.c) \
	$(addprefix fpm-dataplane/ui/,request.c change.c watch.c))
build/fuzz/fuzz_request: $(call obj,tests/fuzz/fuzz_request.c)
build/fuzz/fuzz_api: $(call obj,tests/fuzz/fuzz_api.c fpm-dataplane/ui/api_request.c)
# packet_burst.c stands between, and says which form of the forwarder it is.
build/fuzz/fuzz_packet: LDFLAGS += -Wl,--wrap=fwd_plain \
	$(foreach f,look plain rewrite spread,-Wl,--wrap=fwd_$(f)_avx512)
build/fuzz/fuzz_packet: $(call obj,$(addprefix tests/fuzz/,fuzz_packet.c packet_burst.c \
	packet_frames.c) $(call link_of,tests/unit/test_fwd_explain.c))
$(FUZZ_BIN):
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(PC_LIBS) -lcmocka $(LDFLAGS)

# Its own objects: the others have a poptrie that the fuzzer does not look into. Any octets
# are a script, so there is nothing to guess by tracing comparisons: most of the time went there.
build/fuzz/fuzz_poptrie: tests/fuzz/fuzz_poptrie.c tests/unit/oracle.c $(POPTRIE_SRC) \
		$(wildcard poptrie/*.h) tests/fuzz/must.h tests/unit/oracle.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -O2 -Wno-unknown-pragmas -Itests/unit -fsanitize=fuzzer \
		-fno-sanitize-coverage=trace-cmp -o $@ $(filter %.c,$^) $(LDFLAGS)

fuzz: ## fuzz FPM, RIB, checkpoint, packets, config, requests, API, poptrie with clang: T=900 seconds each (FUZZ_S=60 in all)
	@tests/fuzz/run.sh --check "$(or $(T),$(FUZZ_S))"
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(DEPS_ALL) $(PKGS_FUZZ)"
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=fuzz CC=clang-14 $(FUZZ_ALL)
	@tests/fuzz/run.sh $(if $(T),--each "$(T)",$(FUZZ_S))

fuzz-quick: ## what make test runs of fuzz: each target for some seconds, with its corpus (FUZZ_EACH_S=8)
	@if $(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_FUZZ)"; then \
		$(MAKE) --no-print-directory -j$$(nproc) BUILD=fuzz CC=clang-14 $(FUZZ_ALL) && \
		tests/fuzz/run.sh --each "$(FUZZ_EACH_S)"; \
	else echo "fuzz: skipped: not installable here: $(PKGS_FUZZ)"; fi

clean: ## remove build/
	@rm -rf build

help: ## this list
	@echo "fpm-dataplane: make TARGET [BUILD=release|debug|asan|tsan]"; echo; \
	sed -n 's/^\([a-z -]*\):.*## \(.*\)/  \1|\2/p' Makefile | sort | \
		awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

.PHONY: chaos soak reference all deps build demo demo-down lab lab-vm lab-down vtysh test unit unit-asan unit-tsan tsan-bins tsan-run unit-bins system system-asan sanitized-bins frr-root lint analyze \
	format test-bench test-vm test-vm-all test-vm-package bench bench-fib bench-fpm bench-forward fuzz fuzz-quick deb deps-deb test-deb image test-image test-image-run prometheus clean help
