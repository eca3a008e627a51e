# fpm-dataplane: one Makefile. `make help` lists what a person calls.
# Every build lands in build/$(BUILD)/; sources are found by folder, one folder a thread.

BUILD   ?= release
O       := build/$(BUILD)
DAEMON_DIRS := base fpm rib neigh fwd punt ui fib port
PY      := /usr/bin/python3

PKGS_BUILD := gcc pkg-config libdpdk-dev liburcu-dev libnl-3-dev libnl-route-3-dev \
	libmnl-dev libev-dev libyaml-dev libjansson-dev libmicrohttpd-dev
PKGS_RUN   := frr iproute2 iputils-ping traceroute ethtool python3 procps
PKGS_TEST  := libcmocka-dev python3-pytest python3-scapy python3-yaml clang-format-14 \
	tcpdump

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
CFLAGS_tsan    := -O1 -g3 -DDEBUG -fsanitize=thread -fno-omit-frame-pointer
ifeq ($(CFLAGS_$(BUILD)),)
$(error BUILD=$(BUILD) is not one of release, debug, asan, tsan)
endif
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
# Evaluated once, when first used: `make help` must work before anything is installed.
PC_CFLAGS = $(eval PC_CFLAGS := $$(shell $(PC) --cflags libdpdk $(LIBS_PC)))$(PC_CFLAGS)
PC_LIBS   = $(eval PC_LIBS := $$(shell $(PC) --libs libdpdk $(LIBS_PC)) -lev)$(PC_LIBS)
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
CTL_SRC     := $(wildcard fpm-dataplane/ctl/*.c)
obj          = $(patsubst %.c,$(O)/%.o,$(1))

all: $(O)/fpm-dataplane $(O)/fpmctl ## build the daemon and fpmctl

$(O)/fpm-dataplane: $(call obj,$(DAEMON_SRC) $(POPTRIE_SRC) $(TAP_SRC))
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(PC_LIBS) $(LDFLAGS)

$(O)/fpmctl: $(call obj,$(CTL_SRC))
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(shell $(PC) --libs jansson) $(LDFLAGS)

$(O)/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -DFPMDP_VERSION='"$(VERSION)"' -MMD -MP -c -o $@ $<

# --- unit tests: the first lines of each test name what it links (`link: dir/ file.c`) ----
# tests/unit/test_x.c becomes build/.../tests/unit/test_x; helpers sit beside as non-test_*.c
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(patsubst %.c,$(O)/%,$(UNIT_SRC))
link_of   = $(foreach p,$(shell sed -n 's/^ \* link: *//p' $(1)),$(if $(filter %/,$(p)),$(wildcard $(p)*.c),$(p)))

define unit_rule
$(O)/tests/unit/$(1): $(call obj,tests/unit/$(1).c $(call link_of,tests/unit/$(1).c))
	@echo "  LD    $$@"
	@$$(CC) $$(ALL_CFLAGS) -o $$@ $$^ $$(PC_LIBS) -lcmocka $$(LDFLAGS)
endef
$(foreach t,$(patsubst tests/unit/%.c,%,$(UNIT_SRC)),$(eval $(call unit_rule,$(t))))

unit-bins: $(UNIT_BIN)

-include $(shell find $(O) -name '*.d' 2>/dev/null)
