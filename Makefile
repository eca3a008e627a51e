# fpm-dataplane. `make help` lists the targets. The fragments tests/test.mk, tests/fuzz/fuzz.mk,
# tests/bench/bench.mk, fpm-dataplane/dist/package.mk and fpm-dataplane/manual/manual.mk have the
# targets that are not here.
# Every build is in build/$(BUILD)/. Each folder's sources are found by wildcard.

BUILD   ?= release
O       := build/$(BUILD)
DAEMON_DIRS := base pci config fib hook port netlink fpm rtnl rib neigh fwd punt trace warn ruleset filter sflow bfd ui start restart manage nicd daemon
PY      := /usr/bin/python3
export PYTHONDONTWRITEBYTECODE := 1

# The version of clang and its tools: 14 in Debian 12, 19 in Debian 13. The style of the C code is that
# of clang-format-14.
CLANG      := $(shell . /etc/os-release && [ "$$VERSION_ID" = 12 ] && echo 14 || echo 19)
PKGS_BUILD := gcc pkg-config libdpdk-dev liburcu-dev libnl-3-dev libnl-route-3-dev \
	libmnl-dev libev-dev libyaml-dev libjansson-dev libmicrohttpd-dev
PKGS_RUN   := frr iproute2 iputils-ping traceroute ethtool python3 procps
# Programs that make the manual pages, and the manual as HTML.
PKGS_MAN   := python3-docutils
PKGS_BOOK  := cmark-gfm
# Programs with which README.md and the quick start examine the lab.
PKGS_LOOK  := curl tshark
# The compiler of programs of `fpmctl hook`; without it their tests skip.
PKGS_HOOK  := clang-$(CLANG)
PKGS_TEST  := $(PKGS_LOOK) libcmocka-dev python3-pytest python3-scapy python3-yaml python3-jsonschema \
	clang-format-$(CLANG) tcpdump groff-base tini nftables iptables snmp snmpd $(PKGS_HOOK) $(PKGS_MAN) $(PKGS_BOOK)
# Collectors of sFlow; without them their tests skip.
PKGS_SFLOW := nfdump-sflow pmacct
PKGS_LINT  := cppcheck clang-tidy-$(CLANG)
PKGS_PEERS := dpdk-dev dpkg-dev iproute2 procps ethtool clang-$(CLANG) libbpf-dev
PKGS_DEB   := build-essential debhelper $(PKGS_MAN)
# The guest has the files of this machine, and systemd as process 1.
PKGS_VM    := qemu-system-x86 busybox-static cpio kmod ipvsadm systemd udev pciutils \
	wireguard-tools zstd
PKGS_FUZZ  := clang-$(CLANG) libclang-rt-$(CLANG)-dev
PKGS_PLANT := python3-clang-$(CLANG) ccache
PKGS_BENCH := xz-utils bzip2 bgpdump python3-matplotlib

.DEFAULT_GOAL := all
.SUFFIXES:
.DELETE_ON_ERROR:

# --- flags -----------------------------------------------------------------------------
# The minimum of the CPU. Below x86-64-v2 gcc compiles __builtin_popcountll to a function call; the
# checkpoint uses the CRC instructions of arm64.
CPU     := $(if $(filter aarch64%,$(shell $(CC) -dumpmachine 2>/dev/null)),arm64,x86)
# base/x86 has headers that replace headers of the compiler which are slow to compile.
MARCH_x86   := -march=x86-64-v2 -Ifpm-dataplane/base/x86
MARCH_arm64 := -march=armv8-a+crc
# Files that the build for this kind of CPU leaves out: code for the other kind, and code that the other
# kind has in place of vector code.
NOT_x86   := %/no_vectors.c %_neon.c
NOT_arm64 := %_sse4.c %_avx2.c %_avx512.c %_x86.c
c_files    = $(filter-out $(NOT_$(CPU)),$(wildcard $(1)))
PC      := pkg-config
LIBS_PC := liburcu-qsbr liburcu-cds libnl-3.0 libnl-route-3.0 libmnl yaml-0.1 jansson \
	libmicrohttpd
CFLAGS_release := -O3 -g
CFLAGS_debug   := -Og -g3 -DDEBUG
# For ASan, gcc takes 1.5 times as long with -O1 as with -Og, and the tests run no faster. clang's -Og
# is -O1.
CFLAGS_asan    := -Og -g1 -DDEBUG -fsanitize=address,undefined -fno-omit-frame-pointer \
	-fno-sanitize-recover=undefined
# The flag `-mllvm -regalloc=fast` is not used, because clang-14 crashes with it.
CFLAGS_fuzz    := $(CFLAGS_asan) -fsanitize=fuzzer-no-link -Wno-missing-field-initializers
# DPDK's rings use C11 atomics, because ThreadSanitizer does not see compiler barriers.
# -Og in place of -O1 would save 15 % of the compiler's time for rib and 11 % for fwd, but only 4 s in
# all.
CFLAGS_tsan    := -O1 -g1 -DDEBUG -fsanitize=thread -fno-omit-frame-pointer \
	-DRTE_USE_C11_MEM_MODEL
# Each unit program is linked with the sanitizers, which takes ld.bfd twice the time of ld.gold.
LDFLAGS_asan   := $(if $(shell command -v ld.gold),-fuse-ld=gold)
LDFLAGS_tsan   := $(LDFLAGS_asan)
ifeq ($(CFLAGS_$(BUILD)),)
$(error BUILD=$(BUILD) is not one of release, debug, asan, tsan, fuzz)
endif
# The variables are evaluated once, at the first use: `make help` must work before any package is
# installed.
VERSION   = $(eval VERSION := $$(shell fpm-dataplane/dist/version.sh))$(VERSION)
PC_CFLAGS = $(eval PC_CFLAGS := $$(shell $(PC) --cflags libdpdk $(LIBS_PC)))$(PC_CFLAGS)
PC_LIBS   = $(eval PC_LIBS := $$(shell $(PC) --libs libdpdk $(LIBS_PC)) -lrte_net_bond -lev)$(PC_LIBS)
ALL_CFLAGS = -std=gnu17 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wno-unused-parameter -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API \
	-DURCU_INLINE_SMALL_FUNCTIONS -DEV_COMPAT3=0 \
	-I. -Ifpm-dataplane $(PC_CFLAGS) \
	$(MARCH_$(CPU)) -pthread $(CFLAGS_$(BUILD)) $(CFLAGS)

# --- programs --------------------------------------------------------------------------
POPTRIE_SRC := $(call c_files,poptrie/*.c)
TAP_SRC     := $(wildcard tap-bridge/*.c)
DAEMON_SRC  := fpm-dataplane/main.c \
	$(foreach d,$(DAEMON_DIRS),$(call c_files,fpm-dataplane/$(d)/*.c))
# fpmctl has the daemon's code for configuration files, because of `fpmctl config check`.
CTL_SRC     := $(wildcard $(addprefix fpm-dataplane/,ctl/*.c ctl/doctor/*.c config/*.c pci/*.c)) \
	$(addprefix fpm-dataplane/base/,base64.c edit_distance.c filter.c filter_tables.c prefix.c log.c log_out.c policer.c sysfs.c) \
	tap-bridge/netns.c
SUPER_SRC   := $(wildcard fpm-dataplane/supervise/*.c) \
	$(addprefix fpm-dataplane/base/,caps.c log.c log_out.c sched.c)
obj          = $(patsubst %.c,$(O)/obj/%.o,$(1))
# With ccache, a file is compiled only if its text or its flags have changed.
CCACHE      ?= $(shell command -v ccache)

# $(call program,FILE,OBJECTS,LIBRARIES) is the rule that links a program. $$ delays the expansion of
# the libraries until the program is linked, because pkg-config may not be installed before.
comma := ,
define program
$(1): $(2)
	@mkdir -p $$(@D)
	@echo "  LD    $$@"
	@$$(CC) $$(ALL_CFLAGS) -o $$@ $$(filter %.o,$$^) $(3) $$(LDFLAGS_$(BUILD)) $$(LDFLAGS)
endef

all: $(O)/fpm-dataplane $(O)/fpmctl $(O)/fpm-supervise ## build the daemon, its supervisor, fpmctl
	@:

# The daemon exports setsockopt, because fpm-dataplane/port/fanout.c replaces it for a driver of DPDK.
DAEMON_OBJ := $(call obj,$(DAEMON_SRC) $(POPTRIE_SRC) $(TAP_SRC))
$(eval $(call program,$(O)/fpm-dataplane,$(DAEMON_OBJ),-Wl$$(comma)--export-dynamic-symbol=setsockopt $$(PC_LIBS)))
$(eval $(call program,$(O)/fpmctl,$(call obj,$(CTL_SRC)),$$(shell $$(PC) --libs jansson yaml-0.1 libmnl)))
$(eval $(call program,$(O)/fpm-supervise,$(call obj,$(SUPER_SRC))))

$(O)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CCACHE) $(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The version is compiled only into the objects that print it. A commit that changes one file then
# leaves all other objects, and their copies in a compiler cache, valid.
VERSIONED := $(addprefix $(O)/obj/fpm-dataplane/,main.o daemon/workers.o start/options.o ctl/main.o supervise/main.o)
$(VERSIONED): ALL_CFLAGS += -DFPMDP_VERSION='"$(VERSION)"'
$(VERSIONED): $(O)/version
$(O)/version: FORCE
	@mkdir -p $(@D); echo "$(VERSION)" | cmp -s - $@ || echo "$(VERSION)" >$@
FORCE:

# Targets that compile nothing, or that compile by another make.
NO_OBJECTS := help deps build demo lab lab-vm lab-uml lab-down demo-down vtysh book check test test-all clean
ifneq ($(filter-out $(NO_OBJECTS),$(or $(MAKECMDGOALS),all)),)
-include $(shell find $(O) -name '*.d' 2>/dev/null)
endif

# --- set-up: apt installs the packages that are missing -----------------------------------
DEPS_ALL := $(PKGS_BUILD) $(PKGS_RUN) $(PKGS_TEST)
APT      := DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	-o DPkg::Lock::Timeout=120
deps: ## install the Debian packages that are missing (root)
	@missing() { { dpkg-query -W -f '$${Package} $${db:Status-Status}\n' $(DEPS_ALL) 2>/dev/null; \
		printf '%s wanted\n' $(DEPS_ALL); } | awk '$$2 == "installed" {there[$$1]} \
			$$2 == "wanted" && !($$1 in there) {print $$1}'; }; \
	want=$$(missing | xargs); [ -n "$$want" ] || exit 0; \
	[ "$$(id -u)" = 0 ] || { echo "deps: run as root once, to install: $$want"; exit 1; }; \
	echo "deps: installing, with their dependencies: $$want"; \
	mkdir -p build; { $(APT) $$want || { apt-get update && $(APT) $$want; }; } 2>&1 \
		| tee build/deps.log | awk '/^Waiting|newly installed/ {print "  " $$0} \
			/^Need to get/ {print "  " $$0 " A dot: ten unpacked; a colon: ten set up."} \
			/^Unpacking/ && ++u % 10 == 0 {printf "."} \
			/^Setting up/ && ++s % 10 == 0 {printf ":"} {fflush()} END {print ""}'; \
	[ -z "$$(missing)" ] || { tail -20 build/deps.log; exit 1; }

# Use a sub-make, because pkg-config works only after the packages are installed.
build:
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_LOOK)"
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(BUILD) all

demo: ## the lab, end to end: FRR, BGP, OSPF, the dataplane forwards (ROUTES=100000)
	@$(MAKE) --no-print-directory build
	@$(PY) tests/lab/demo.py

lab: ## run and check a scenario of frr-config, and leave it up (S=name; without it the list)
	@$(if $(S),$(MAKE) --no-print-directory build)
	@$(if $(filter flowspec,$(S)),$(MAKE) --no-print-directory peers)
	@$(if $(filter bird-%,$(S)),command -v bird >/dev/null || $(MAKE) --no-print-directory peers)
	@$(PY) tests/lab/scenario.py $(S)

lab-vm: ## run and check a scenario in a virtual machine, whose kernel has VLANs and VRFs (S=name; without it the list)
	@$(if $(S),$(MAKE) --no-print-directory deps DEPS_ALL="$(DEPS_ALL) $(PKGS_VM)")
	@$(if $(S),mkdir -p build/vm && $(MAKE) --no-print-directory -j$$(nproc) BUILD=release all)
	@$(PY) tests/vm/run.py --lab $(S)

lab-uml: ## run and check a scenario in user-mode-linux, a kernel that runs as a process and has one CPU (S=name ROUTES= UML_MIB=6144)
	@$(if $(S),$(MAKE) --no-print-directory deps DEPS_ALL="$(DEPS_ALL) $(PKGS_VM)")
	@$(if $(S),mkdir -p build/vm && $(MAKE) --no-print-directory -j$$(nproc) BUILD=release all)
	@$(PY) tests/vm/run.py --lab-uml $(S)

lab-down demo-down: ## remove the lab, in any state
	@$(PY) tests/lab/lab.py down

vtysh: ## a vtysh on the lab's router r1 (C="show ip route summary" for one command)
	@$(PY) tests/lab/lab.py vtysh $(if $(C),-c "$(C)")

format: ## clang-format over all C
	@find . \( -name build -o -name '.?*' \) -prune -o -name '*.[ch]' -print \
		| xargs clang-format-14 -i

clean: ## remove build/
	@rm -rf build

help: ## print this list
	@echo "fpm-dataplane: make TARGET [BUILD=release|debug|asan|tsan]"; echo; \
	sed -n 's/^\([a-z0-9 -]*\):.*## \(.*\)/  \1|\2/p' $(filter %Makefile %.mk,$(MAKEFILE_LIST)) | sort | \
		awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

.PHONY: all deps build demo demo-down lab lab-vm lab-uml lab-down vtysh format clean help

# The copy of the tree in a package or an image has no tests.
include $(wildcard tests/test.mk tests/fuzz/fuzz.mk tests/bench/bench.mk fpm-dataplane/dist/package.mk \
	fpm-dataplane/manual/manual.mk)
