# Fuzzers. Included by ../../Makefile.

# --- fuzzing: libFuzzer, seeded with the captures; new inputs are in build/fuzz/ --------
FUZZ_S    ?= 60
FUZZ_EACH_S ?= 5
FUZZ_SRC  := $(addprefix tests/fuzz/,fuzz_fpm_rib.c fresh.c invariants.c mutate.c)
FUZZ_LIB  := $(addprefix fpm-dataplane/,fpm/decode.c fpm/frame.c fpm/queue.c netlink/hops.c netlink/segments.c netlink/message.c netlink/kernel_message.c netlink/rule_message.c) \
	$(foreach d,rib fib base,$(wildcard fpm-dataplane/$(d)/*.c)) $(POPTRIE_SRC) \
	$(addprefix tests/unit/,rib_rig.c rig_kernel.c rib_stream.c rib_print.c grace.c oracle.c)
FUZZ_BIN  := $(addprefix build/fuzz/fuzz_,fpm fpm_rib kernel rules filter checkpoint packet pmtu bfd config request api)
FUZZ_ALL  := $(FUZZ_BIN) build/fuzz/fuzz_poptrie

# clang ignores `#pragma GCC target`, so the whole file gets the flags of its functions.
ifeq ($(BUILD),fuzz)
CC := clang-$(CLANG)
# poptrie has its own fuzzer. Its walks over large tables would take most of the time here.
$(O)/obj/poptrie/%.o: CFLAGS += -O2 -fno-sanitize=fuzzer-no-link
$(O)/obj/poptrie/lookup_avx2.o: CFLAGS += -mavx2 -mbmi -mbmi2 -mpopcnt -Wno-unknown-pragmas
$(O)/obj/poptrie/lookup_avx512.o: CFLAGS += -mavx512f -mavx512bw -mavx512dq -mavx512vl \
	-mavx512vpopcntdq -mavx2 -mbmi -mbmi2 -Wno-unknown-pragmas
# The code that makes and compares frames for fuzz_packet, the model of rules and the invariants are
# no code of the product, so their paths do not guide the fuzzer.
$(O)/obj/tests/fuzz/packet_%.o: CFLAGS += -O2 -fno-sanitize=fuzzer-no-link
$(addprefix $(O)/obj/tests/fuzz/,rules_oracle.o invariants.o): CFLAGS += -O2 -fno-sanitize=fuzzer-no-link
endif
build/fuzz/fuzz_fpm: $(call obj,tests/fuzz/fuzz_fpm.c $(FUZZ_LIB))
build/fuzz/fuzz_fpm_rib: $(call obj,$(FUZZ_SRC) $(FUZZ_LIB))
build/fuzz/fuzz_kernel: $(call obj,tests/fuzz/fuzz_kernel.c tests/fuzz/invariants.c $(FUZZ_LIB))
build/fuzz/fuzz_rules: $(call obj,$(addprefix tests/fuzz/,fuzz_rules.c rules_oracle.c invariants.c) \
	$(FUZZ_LIB))
build/fuzz/fuzz_filter: $(call obj,tests/fuzz/fuzz_filter.c $(call link_of,tests/unit/test_filter.c))
build/fuzz/fuzz_bfd: $(call obj,tests/fuzz/fuzz_bfd.c $(addprefix fpm-dataplane/bfd/,dplane.c fsm.c packet.c))
build/fuzz/fuzz_pmtu: $(call obj,tests/fuzz/fuzz_pmtu.c \
	$(filter-out tests/%,$(call link_of,tests/unit/test_punt_pmtu.c)))
build/fuzz/fuzz_checkpoint: $(call obj,tests/fuzz/fuzz_checkpoint.c tests/fuzz/invariants.c \
	$(FUZZ_LIB))
build/fuzz/fuzz_config: $(call obj,tests/fuzz/fuzz_config.c \
	$(filter-out tests/%,$(call link_of,tests/unit/test_config.c)))
build/fuzz/fuzz_request build/fuzz/fuzz_api: $(call obj,$(wildcard fpm-dataplane/base/*.c) \
	$(addprefix fpm-dataplane/ui/,request.c request_change.c request_watch.c))
build/fuzz/fuzz_request: $(call obj,tests/fuzz/fuzz_request.c)
build/fuzz/fuzz_api: $(call obj,tests/fuzz/fuzz_api.c fpm-dataplane/ui/api_request.c)
# packet_burst.c wraps functions and decides if a packet may take the fast path.
build/fuzz/fuzz_packet: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,fwd_fast fwd_label_fast_parse \
	fwd_label_fast_all fwd_fast_payloads fwd_tunnels_walk)
build/fuzz/fuzz_packet: $(call obj,$(addprefix tests/fuzz/,fuzz_packet.c packet_burst.c \
	packet_bfd.c packet_frames.c packet_labels.c packet_segments.c packet_tunnels.c packet_vxlan.c) \
	fpm-dataplane/port/bfd.c $(call link_of,tests/unit/test_fwd_explain.c))
$(FUZZ_BIN):
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(PC_LIBS) -lcmocka $(LDFLAGS)

# fuzz_poptrie has its own objects, because the poptrie of the others is not instrumented. Any
# octets are a valid script, so tracing comparisons would find nothing and take most of the time. -O1
# instead of -O2 makes the compiler slower: 15.7 s of CPU instead of 13.6 s.
build/fuzz/fuzz_poptrie: tests/fuzz/fuzz_poptrie.c tests/unit/oracle.c $(POPTRIE_SRC) \
		$(wildcard poptrie/*.h) tests/fuzz/must.h tests/unit/oracle.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(ALL_CFLAGS) -O2 -Wno-unknown-pragmas -fsanitize=fuzzer \
		-fno-sanitize-coverage=trace-cmp -o $@ $(filter %.c,$^) $(LDFLAGS)

fuzz: ## fuzz FPM, RIB, the kernel's routes, rules, nf_tables, checkpoint, packets, path MTUs, BFD, config, requests, API, poptrie with clang: T=900 seconds each (FUZZ_S=60 in all)
	@tests/fuzz/run.sh --check "$(or $(T),$(FUZZ_S))"
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(DEPS_ALL) $(PKGS_FUZZ)"
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=fuzz fuzz-bins
	@tests/fuzz/run.sh $(if $(T),--each "$(T)",$(FUZZ_S))

fuzz-bins: $(FUZZ_ALL)
	@:

fuzz-run: # run each fuzzer for some seconds, with its corpus
	@tests/fuzz/run.sh --each "$(FUZZ_EACH_S)"

fuzz-quick: ## run each fuzzer for some seconds, as make test does (FUZZ_EACH_S=5)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(DEPS_ALL) $(PKGS_FUZZ)"
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=fuzz fuzz-bins
	@$(MAKE) --no-print-directory fuzz-run

.PHONY: fuzz fuzz-bins fuzz-run fuzz-quick
