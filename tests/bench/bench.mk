# Benchmarks. Included by ../../Makefile.

# This tests that each command of the page works. It does not test the figures.
test-bench: ## run every command of tests/bench/README.md in its shortest form: a quarter of an hour; ignore the figures
	@if $(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_BENCH) $(PKGS_PEERS) python3-pytest"; \
	then $(MAKE) --no-print-directory -j$$(nproc) BUILD=release all bench-bins $(O)/tests/flood \
		$(SYNC_BIN) $(BLIND_BIN) && $(PY) -m pytest --no-header -p no:cacheprovider \
		--basetemp=build/pytest-bench -rs -rP --durations=0 tests/bench/test_commands.py $(if $(T),-k "$(T)"); \
	else echo "test-bench: skipped: not installable here: $(PKGS_BENCH) $(PKGS_PEERS)"; fi

# --- benchmarks: JSON on stdout, tables on stderr; no test fails because of a time ------------
BENCHES := bench-quick bench-forward bench-loss bench-latency bench-sync bench-watch bench-tags bench-slow-path bench-fpm bench-fib
bench: ## ten benchmarks, then the report (QUICK=1: each in its short form)
	@mkdir -p build/bench
	@failed=; for b in $(BENCHES); do echo "== make $$b" >&2; \
		$(MAKE) --no-print-directory -s $$b >build/bench/$$b.jsonl || failed="$$failed $$b"; \
	done; $(MAKE) --no-print-directory -s bench-report; \
	[ -z "$$failed" ] || { echo "bench: failed:$$failed" >&2; exit 1; }

bench-report: ## write build/bench/report.md: tables and plots of the results of `make bench` (ACCEPT=1: also into the manual, with its plots)
	@ACCEPT="$(ACCEPT)" $(PY) tests/bench/bench_report.py build/bench

bench-fib: ## lookup benchmark against DPDK's rte_fib and rte_lpm (QUICK=1, TABLE=file, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_BENCH)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release build/release/tests/bench/bench_fib >&2
	@$(PY) tests/bench/bench_fib.py build/release/tests/bench/bench_fib

bench-fpm: ## from a route of zebra to its forwarding: rates, latencies, memory (QUICK=1, ROWS=bgp, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all >&2
	@$(PY) tests/bench/bench_fpm.py

bench-slow-path: ## the slow path through the kernel: rates, CPU time, sessions and transit beside it (QUICK=1, RATES=50000, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all build/release/tests/flood >&2
	@$(PY) tests/bench/bench_slow_path.py build/release

bench-bfd: ## BFD of FRR in the dataplane and over the TAP, under load: sessions lost, detection times, time to leave a dead next hop (QUICK=1, SESSIONS=64, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all peers >&2
	@$(PY) tests/bench/bench_bfd.py build/release

bench-filter: ## from nft to the filter: ms until 1,000 rules, and an element of 100,000 prefixes, are in force; rates with rules against the kernel's (ROWS=rate, QUICK=1, REPS=21, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all build/release/tests/flood >&2
	@$(PY) tests/bench/bench_filter.py build/release

# `make test` links these programs, so that it notices a change of the product that breaks them.
bench-bins: $(addprefix $(O)/tests/bench/bench_,fib frames tags)
	@:

.PHONY: bench-bins bench-report bench-forwarder bench-loss bench-latency bench-sync bench-watch bench-tags bench-tags-bins bench-dpdk \
	bench-labels-vm bench-tunnels-vm bench-quick bench-scale bench-large bench-filter

# The packages and programs that the forwarding benchmarks need.
bench-forwarder:
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_BENCH) $(PKGS_PEERS)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all \
		$(addprefix build/release/tests/,bench/bench_frames bench/bench_fib flood) >&2

bench-forward: bench-forwarder ## forwarding rate of a core against testpmd and l3fwd (ROWS=tables, TABLE=files, ...)
	@$(PY) tests/bench/bench_forward.py build/release

bench-loss: bench-forwarder ## frames lost and wrong at 10..100 % load, while routes change (SECONDS=60, QUICK=1, ...)
	@$(PY) tests/bench/bench_loss.py build/release

bench-latency: bench-forwarder ## latency of frames at 10..95 % load, and the machine's own gaps (QUICK=1, ...)
	@$(PY) tests/bench/bench_latency.py build/release

bench-sync: bench-forwarder ## QSBR, other RCU flavours, locks: rate, and time to publish a FIB (QUICK=1, ...)
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release $(SYNC_BIN) >&2
	@$(PY) tests/bench/bench_sync.py build/release

bench-watch: bench-forwarder ## the cost of traces, sFlow, filters and uRPF while they are off, and of sFlow (QUICK=1, ...)
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release $(BLIND_BIN) >&2
	@$(PY) tests/bench/bench_watch.py build/release

# The example programs of `fpmctl hook`, which bench_tags loads for its interfaces.
HOOK_OBJECTS := $(patsubst fpm-dataplane/hook/examples/%.c,build/release/tests/bench/hooks/%.o,$(wildcard fpm-dataplane/hook/examples/*.c))
$(HOOK_OBJECTS): build/release/tests/bench/hooks/%.o: fpm-dataplane/hook/examples/%.c fpm-dataplane/base/fpm_hook.h
	@mkdir -p $(@D)
	@clang-$(CLANG) -target bpf -mcpu=v2 -O2 -ffreestanding -I fpm-dataplane/base -c $< -o $@

bench-tags: ## the cost of a tag, of two tags, of VRFs, labels, tunnels, filters and programs per packet, in turns in one process (QUICK=1, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_BENCH) $(PKGS_HOOK)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release build/release/fpm-dataplane bench-tags-bins >&2
	@$(PY) tests/bench/bench_tags.py build/release

bench-tags-bins: $(addprefix build/release/tests/bench/bench_,frames tags) $(HOOK_OBJECTS)
	@:

bench-dpdk: ## rates of this tree with DPDK 24.11, built on Debian 13, relative to this machine's build, in turns (QUICK=1, ROWS=VXLAN, PAIRS=15, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_BENCH) $(PKGS_HOOK)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release build/release/fpm-dataplane bench-tags-bins >&2
	@$(MAKE) --no-print-directory test-trixie WHAT=bench-tags-bins T= S= >&2
	@$(PY) tests/bench/bench_dpdk.py build/release build/trixie-root

bench-labels-vm: ## packets with labels in a virtual machine, whose kernel has mpls_router: Linux against the daemon (REPS=7, QUICK=1)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_VM)" >&2
	@mkdir -p build/vm
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all build/release/tests/flood >&2
	@$(PY) tests/bench/bench_labels_vm.py build/release

bench-tunnels-vm: ## 4,000 tunnels, 1,000 VNIs and 10,000 SIDs in a virtual machine, whose kernel has all kinds: time and memory (REPS=3, ROWS=tunnels, QUICK=1)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_VM)" >&2
	@mkdir -p build/vm
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all >&2
	@$(PY) tests/bench/bench_tunnels_vm.py

bench-scale: ## a model of N boxes in a mesh, from the figures of other benchmarks: throughput, mesh load, loss, memory (BOXES=4, CORES=4, ...)
	@$(PY) tests/bench/bench_scale.py

bench-large: ## route servers: 4 M paths of 1 M prefixes, and filters before FPM: time, memory of bgpd, zebra and the dataplane (PEERS=4, CHOICES=all,no-rib, ...)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN)" >&2
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all >&2
	@$(PY) tests/bench/bench_large.py

bench-quick: bench-forwarder ## the ratios to the peers beside the last accepted ones (ACCEPT=1)
	@$(PY) tests/bench/bench_quick.py build/release

# This file gets a call before every load; tests/bench/trace.c gives the reason.
$(O)/obj/tests/bench/trace.o: ALL_CFLAGS += -mavx -fsanitize=kernel-address \
	--param=asan-instrumentation-with-call-threshold=0 --param=asan-stack=0 \
	--param=asan-globals=0

$(eval $(call program,$(O)/tests/bench/bench_fib,$(call obj,$(wildcard tests/bench/*.c) $(POPTRIE_SRC)),$$(PC_LIBS) -lm))

BENCH_TABLE := $(addprefix tests/bench/,table.c generate.c streams.c)

$(eval $(call program,$(O)/tests/bench/bench_frames,$(call obj,tests/bench/forward/frames.c $(BENCH_TABLE)),$$(PC_LIBS)))

# The objects of the forwarder, with functions in place of ports.
TAGS_LINK := $(wildcard tests/bench/tags/*.c) tests/bench/forward/stream.c $(POPTRIE_SRC) \
	$(foreach d,fwd fib base ruleset,$(call c_files,fpm-dataplane/$(d)/*.c)) \
	$(addprefix fpm-dataplane/port/,bfd.c rings.c rxq.c rxq_set.c watch.c) \
	$(addprefix fpm-dataplane/filter/,attr.c build.c dump.c elements.c events.c expr.c kept.c messages.c part.c) \
	fpm-dataplane/netlink/exchange.c fpm-dataplane/ctl/bpf_object.c \
	$(addprefix fpm-dataplane/hook/,check.c program.c range.c verify.c)

$(eval $(call program,$(O)/tests/bench/bench_tags,$(call obj,$(TAGS_LINK)),$$(PC_LIBS)))

# Link the daemon once for each way to synchronise: the same object files, with other functions in
# place of QSBR's. KIND: file in tests/bench/sync, and the flags to compile it.
SYNC_qsbr         := qsbr
SYNC_turns        := turns
SYNC_mb           := flavor -DFLAVOR=mb '-DHEADER=<urcu/urcu-mb.h>'
SYNC_memb         := flavor -DFLAVOR=memb '-DHEADER=<urcu/urcu-memb.h>'
SYNC_signal       := flavor -DFLAVOR=signal '-DHEADER=<urcu/urcu-signal.h>' -DUNBLOCK=SIGUSR1
SYNC_thread-mutex := locks -DLOCK_THREAD
SYNC_global-mutex := locks -DLOCK_GLOBAL
SYNC_rwlock       := locks -DLOCK_RW
SYNC_none         := locks -DLOCK_NONE
# liburcu has no signal flavor from 0.15 on (Debian 13).
SYNC_HAS_SIGNAL   := $(if $(wildcard /usr/include/urcu/urcu-signal.h /usr/include/*/urcu/urcu-signal.h),signal)
SYNC_KINDS        := turns qsbr mb memb $(SYNC_HAS_SIGNAL) thread-mutex global-mutex rwlock none
SYNC_BIN          := $(SYNC_KINDS:%=build/sync-%/fpm-dataplane)

$(SYNC_BIN): build/sync-%/fpm-dataplane: $(DAEMON_OBJ) \
		$(wildcard tests/bench/sync/*.[ch]) $(O)/fpmctl
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@cp $(O)/fpmctl $(@D)/
	@$(CC) $(ALL_CFLAGS) $(wordlist 2,9,$(SYNC_$*)) -o $@ $(filter %.o,$^) \
		tests/bench/sync/publisher.c tests/bench/sync/$(firstword $(SYNC_$*)).c \
		-Wl,--export-dynamic-symbol=setsockopt -lurcu-mb -lurcu-memb $(SYNC_HAS_SIGNAL:%=-lurcu-%) \
		$(PC_LIBS) $(LDFLAGS)
	@[ $* = qsbr ] || [ $* = turns ] || ! nm -D $@ | grep "U urcu_qsbr_" || { rm $@; \
		echo "$@: tests/bench/sync/instead.h has no replacement for these functions"; exit 1; }

# Link the daemon with forwarders that have no code for traces, sFlow, filters and uRPF (FWD_BLIND),
# and in the same way with forwarders that have it.
BLIND_SRC := $(call c_files,$(addprefix fpm-dataplane/fwd/,loop.c dispatch.c tx.c decap_fast.c fast*.c few.c \
	inner.c tunnel.c vlan.c))
BLIND_BIN := $(addsuffix /fpm-dataplane,build/watch-blind build/watch-asking)
$(BLIND_BIN): build/watch-%/fpm-dataplane: $(DAEMON_OBJ) $(O)/fpmctl
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@cp $(O)/fpmctl $(@D)/
	@$(CC) $(ALL_CFLAGS) $(if $(filter blind,$*),-DFWD_BLIND=1) -o $@ $(BLIND_SRC) \
		$(filter-out $(call obj,$(BLIND_SRC)),$(filter %.o,$^)) \
		-Wl,--export-dynamic-symbol=setsockopt $(PC_LIBS) $(LDFLAGS)

.PHONY: test-bench bench bench-fib bench-fpm bench-forward
