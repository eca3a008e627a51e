# Tests: tiers, unit programs, system tests, guests, lint. Included by ../Makefile.

# --- unit tests: the first lines of each test name the files it links (`link: dir/ file.c`) ----
# tests/unit/test_x.c becomes build/.../tests/unit/test_x. Helpers are the other files there.
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(patsubst %.c,$(O)/%,$(UNIT_SRC))
link_of   = $(foreach p,$(if $(wildcard $(1)),$(shell sed -n 's/^ \* link: *//p' $(1))),$(if $(filter %/,$(p)),$(call c_files,$(p)*.c),$(p)))

# The next lines take most of make's own time, so targets that link no unit test skip them.
ifneq ($(filter-out $(NO_OBJECTS),$(or $(MAKECMDGOALS),all)),)
$(foreach t,$(UNIT_SRC:.c=),$(eval $(call program,$(O)/$(t),$(call obj,$(t).c $(call link_of,$(t).c)),$$(PC_LIBS) -lcmocka)))
endif

# Optimization is a quarter to a half of the time that the compiler takes for a file with
# AddressSanitizer or ThreadSanitizer. Only code with long loops needs it.
ifneq ($(filter asan tsan,$(BUILD)),)
LONG_TESTS := $(filter tests/unit/test_poptrie% tests/unit/test_bfd_link.c,$(UNIT_SRC))
NOT_LONG := config ctl ctl/doctor daemon filter manage neigh netlink nicd pci port punt restart rtnl start \
	supervise trace ui warn
# With UBSan, gcc needs twice as long for these files with -O0 as with -Og, because the inline functions
# of DPDK's rings and mbufs become long, and -Og makes them shorter.
MANY_INLINES := $(if $(filter asan,$(BUILD)),$(wildcard fpm-dataplane/punt/*.c) fpm-dataplane/port/rings.c \
	$(addprefix tests/unit/test_,fwd_threads.c punt_outer.c punt_forward.c))
$(call obj,$(filter-out $(LONG_TESTS) $(MANY_INLINES),$(UNIT_SRC) \
	$(foreach d,$(NOT_LONG),$(wildcard fpm-dataplane/$(d)/*.c)) $(TAP_SRC))): CFLAGS += -O0
$(call obj,$(LONG_TESTS) $(POPTRIE_SRC) $(wildcard fpm-dataplane/fib/*.c)): CFLAGS += -O1
endif

unit-bins: $(UNIT_BIN)
	@:

# --- tiers and parts -----------------------------------------------------------------------
T ?=
check: ## lint, unit tests and a smoke set of system tests, with sanitizers: three minutes
test: ## the tests of CI: all unit and system tests, sanitizers, fuzzers, a guest: a quarter of an hour
test-all: ## all tests: also all guests, packages, images, chaos, system tests under ASan
check test test-all: deps
	@$(PY) tests/suite.py $@ $(MAKE) --no-print-directory

unit: unit-bins ## C unit tests (BUILD=...)
	@tests/unit/run.sh $(BUILD) $(UNIT_BIN)

unit-asan: ## the unit tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory BUILD=asan unit

# The tests with several threads.
TSAN_BIN := $(addprefix $(O)/tests/unit/test_,base fpm_feedback fpm_listen fpm_server fwd_threads idle members_reader published watchdog neigh neigh_adj policer \
	poptrie_stress port rib_thread ui ui_api ui_metrics)
tsan-bins: $(TSAN_BIN)
	@:

unit-tsan: ## the unit tests with several threads, under ThreadSanitizer
	@$(MAKE) --no-print-directory BUILD=tsan tsan-run

tsan-run: tsan-bins
	@tests/unit/run.sh $(BUILD) $(TSAN_BIN)

# The flood generator of tests/system/test_flood.py.
$(eval $(call program,$(O)/tests/flood,$(call obj,tests/lib/flood.c)))

# Libraries that are preloaded into the daemon: a wall clock that jumps, a driver that writes out of
# its bounds, a kernel that refuses an MTU, a kernel that refuses to drop privileges, sysctls that are
# read-only, a kernel that refuses netlink of netfilter or does not answer, a kernel that makes no memory
# executable.
PRELOADS := $(addprefix $(O)/tests/,wall_clock.so overstep.so mtu_refused.so prctl_refused.so \
	sysctl_refused.so nfnetlink_refused.so netlink_mute.so exec_refused.so)
$(PRELOADS): $(O)/tests/%.so: tests/lib/%.c
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) -shared -fPIC -o $@ $< -ldl

# Programs that system tests run besides the product's programs.
system-bins: all $(O)/tests/flood $(PRELOADS)
	@:

# To choose tests by marker: PYTEST_ADDOPTS="-m smoke".
system: system-bins ## system tests, one after the other (T=expression to choose, BUILD=asan)
	@BUILD=$(BUILD) $(if $(filter asan,$(BUILD)),FDP_ENDS_WELL=1 FDP_PATIENCE=4) $(PY) -m pytest \
		--no-header -p no:cacheprovider --basetemp=build/pytest -rfEs tests/system $(if $(T),-k "$(T)")

system-asan: ## system tests under AddressSanitizer and UBSan (T=expression to choose)
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=release all
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=asan system-bins
	@$(MAKE) --no-print-directory BUILD=asan system T="$(T)"

# PACKETS is a multiple of three. SEED is the first ruleset; SEED=n RULESETS=1 repeats ruleset n.
filter-twin: system-bins ## random nft rulesets and packets: our router against Linux (RULESETS=1000 PACKETS=1002 SEED=1)
	@FDP_FILTER_RULESETS=$(or $(RULESETS),1000) FDP_FILTER_PACKETS=$(or $(PACKETS),1002) \
		FDP_FILTER_SEED=$(or $(SEED),1) $(MAKE) --no-print-directory system T=random_rulesets

filter-commands: system-bins ## random nft commands, one transaction after another: our router against Linux (SEQUENCES=100 STEPS=40 SEED=1)
	@FDP_FILTER_SEQUENCES=$(or $(SEQUENCES),100) FDP_FILTER_STEPS=$(or $(STEPS),40) \
		FDP_FILTER_SEED=$(or $(SEED),1) $(MAKE) --no-print-directory system T=random_commands

route-commands: system-bins ## random commands about routes: our router against Linux (SEQUENCES=1000 SEED=1)
	@FDP_ROUTE_SEEDS=$(or $(SEED),1):$(or $(SEQUENCES),1000) $(MAKE) --no-print-directory system T=test_route_random

selftest: system-bins ## tests of the test tools
	@$(PY) -m pytest --no-header -p no:cacheprovider --basetemp=build/pytest-selftest -rfEs tests/selftest

chaos: all $(O)/tests/flood ## random faults, while each packet is checked (T=60 SEED= ROUTES=20000; ONLY=fault,... REPEAT=10, EACH=1)
	@REPEAT="$(REPEAT)" EACH="$(EACH)" T="$(T)" SEED="$(SEED)" ROUTES="$(ROUTES)" RATE="$(RATE)" ONLY="$(ONLY)" $(PY) tests/chaos/run.py

# All faults under which the daemon keeps running.
SOAK := churn,labels_churn,table,core_flap,isp_dies,isp_moves,core_dies,neighbors_forgotten,mtu_changes,$\
	address_goes,nonsense_frames,nonsense_channels,questions,flood,bgpd_dies,ospfd_dies,zebra_dies
soak: ## hours of chaos in which the daemon is not killed: a line a minute, a verdict (H=8)
	@$(MAKE) --no-print-directory chaos T=$$(awk 'BEGIN {print "$(or $(H),8)" * 3600}') RATE=300 ONLY=$(SOAK)

# tests/plant/README.md explains the variables.
plant: ## plant faults in the C code, one at a time; say which tests find them (N=100 SEED=1; LIST=1 RESUME=1 FULL=1)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(DEPS_ALL) $(PKGS_LINT) $(PKGS_FUZZ) $(PKGS_PLANT)"
	@N="$(N)" SEED="$(SEED)" LIST="$(LIST)" RESUME="$(RESUME)" FULL="$(FULL)" GUEST="$(GUEST)" \
		TIERS="$(TIERS)" FOLDERS="$(FOLDERS)" KINDS="$(KINDS)" SOURCES="$(sort $(DAEMON_SRC) $(POPTRIE_SRC) $(TAP_SRC) $(CTL_SRC) $(SUPER_SRC))" \
		$(PY) tests/plant/plant.py $(CC) -- $(ALL_CFLAGS) \
		-DFPMDP_VERSION='"$(VERSION)"'

test-vm: ## tests in a virtual machine: one model of NIC, with VLANs and VRFs (T=expression: of test-vm-all)
	$(call in_guests,$(if $(T),"$(T)"))

test-vm-all: ## all tests for a virtual machine: PCI NICs, bonds, VLANs, VRFs, scenarios, no IOMMU (T=expression)
	$(call in_guests,--all $(if $(T),"$(T)"))

test-vm-package: ## tests in a virtual machine: the package, systemd, upgrades, the manual (T=expression)
	$(call in_guests,--package $(if $(T),"$(T)"),$(PKGS_DEB))

# After `make vm-kernel` the guests need no network.
vm-kernel:
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_VM)"
	@$(PY) tests/vm/run.py --fetch

define in_guests
@$(MAKE) --no-print-directory deps
@if $(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_VM) $(2)"; then \
	mkdir -p build/vm && $(MAKE) --no-print-directory -j$$(nproc) BUILD=release all && \
	$(PY) tests/vm/run.py $(1); \
else echo "$@: skipped: not installable here: $(PKGS_VM) $(2)"; fi
endef

frr-root: ## unpack a newer FRR in build/frr-root, for the tests of feedback
	@tests/lab/frr_root.sh $(CURDIR)/build/frr-root

# tests/topotests/README.md explains the variables. frr-pythontools has frr-reload.py, which FRR's
# tests call.
PKGS_TOPO := python3-pytest frr-pythontools xz-utils
topotests: topotests-source ## FRR's topotests with a dataplane in every router (T=module, FULL=1, KILL=1, TOPOTESTS=folder)
	@$(MAKE) --no-print-directory BUILD=$(BUILD) all
	@BUILD=$(BUILD) $(PY) tests/topotests/run.py $(if $(FULL),--full) $(if $(KILL),--kill) \
		--topotests $(or $(TOPOTESTS),build/topotests/frr) $(T)

topotests-vm: topotests-source ## the same in a virtual machine, whose kernel has VRFs and MPLS (T=module, FULL=1, KILL=1)
	$(call in_guests,--topotests --topotests $(or $(TOPOTESTS),build/topotests/frr) $(if $(FULL),--full) $(if $(KILL),--kill) $(T),$(PKGS_TOPO))

# user-mode-linux runs programs natively, but it has one CPU.
topotests-uml: topotests-source ## the same with Debian's user-mode-linux in place of the virtual machine (T=module, FULL=1, KILL=1)
	@$(MAKE) --no-print-directory deps DEPS_ALL="busybox-static kmod" && mkdir -p build/vm && \
	$(MAKE) --no-print-directory BUILD=release all && \
	$(PY) tests/vm/run.py --topotests-uml --topotests $(or $(TOPOTESTS),build/topotests/frr) $(if $(FULL),--full) $(if $(KILL),--kill) $(T)

topotests-source:
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_TOPO)"
	@$(if $(TOPOTESTS),:,tests/topotests/fetch.sh $(CURDIR)/build/topotests/frr)

# The first run makes the Debian roots in build/, which takes minutes and 1 GB for each. Remove them to
# have new ones.
test-arm64: ## cross-build for arm64, and run the unit tests by qemu-user (T="poptrie* fib*": names without test_; WHAT=deb: the package)
	@WHAT="$(WHAT)" tests/lib/arm64.sh $(CURDIR)/build/arm64-root $(T:%='%')

test-trixie: ## build on Debian 13 in a root of debootstrap, and run targets there (WHAT="unit demo"; T, S: as those targets take them)
	@T="$(T)" S="$(S)" tests/lib/trixie.sh $(CURDIR)/build/trixie-root $(WHAT)

# Unpack the packages, because their installation would start services. Without them the tests skip.
PEERS_DIR := build/peers
peers: ## unpack Debian's BIRD, GoBGP, ExaBGP and the SNMP exporter in build/peers, for the tests with foreign peers
	@[ -x $(PEERS_DIR)/usr/sbin/bird -a -x $(PEERS_DIR)/usr/bin/gobgpd -a -x $(PEERS_DIR)/usr/sbin/python3-exabgp -a \
		-x $(PEERS_DIR)/usr/bin/prometheus-snmp-exporter ] || \
		{ mkdir -p $(PEERS_DIR) && cd $(PEERS_DIR) && apt-get -o APT::Sandbox::User=root download \
		bird2 $$(apt-cache depends bird2 | awk '$$2 ~ /^libssh/ {print $$2}') gobgpd exabgp python3-exabgp python3-pkg-resources prometheus-snmp-exporter >/dev/null && \
		for deb in *.deb; do dpkg-deb -x $$deb . || exit 1; done && rm -f *.deb; }

collectors: ## install Debian's nfdump and pmacct, for the tests of sFlow
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_SFLOW)"

reference: all ## write the manual's pages of configuration keys, commands, reasons and metrics from the programs, and its alerts, and its tables and plots of performance
	@$(PY) fpm-dataplane/manual/configuration.py $(O)/fpmctl
	@$(PY) fpm-dataplane/manual/commands.py $(O)
	@$(PY) fpm-dataplane/manual/reasons.py
	@$(PY) fpm-dataplane/manual/metrics.py
	@$(PY) fpm-dataplane/manual/alerts.py
	@$(PY) tests/bench/measured.py

lint: ## check layers, format, words
	@$(PY) tests/lint/lint.py

# Run each tool on each file. Each finding is fixed, or excused in analyze.py.
analyze: ## gcc -fanalyzer, cppcheck, clang-tidy over the programs
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_LINT)"
	@$(PY) tests/lint/analyze.py $(CC) -- $(ALL_CFLAGS) -DFPMDP_VERSION='"$(VERSION)"'
.PHONY: check test test-all unit unit-bins unit-asan unit-tsan tsan-bins tsan-run system system-asan filter-twin filter-commands route-commands system-bins selftest \
	chaos soak plant test-vm test-vm-all test-vm-package vm-kernel test-arm64 test-trixie frr-root topotests topotests-vm topotests-uml topotests-source peers collectors \
	reference lint analyze
