#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fuzz for $1 seconds: half of them the RIB; the decoder alone, poptrie, packets, checkpoints,
# configuration files, requests and the API, which have languages and corpora of their own, share
# the rest.
# What is new stays in build/fuzz/corpus*; an input that failed is build/fuzz/crash-*.
seconds=$1
work=build/fuzz
log=$work/log
/usr/bin/python3 tests/fuzz/corpus.py unpack $work/corpus || exit 1
mkdir -p $work/corpus-poptrie
# Any octets are a script; left to itself libFuzzer would try none longer than a few changes.
for kib in 1 2 3; do
	for n in 1 2 3 4 5 6 7 8; do
		[ -e $work/corpus-poptrie/seed-$kib-$n ] ||
			head -c ${kib}000 /dev/urandom >$work/corpus-poptrie/seed-$kib-$n
	done
done
failed=0
mkdir -p $work/corpus-packet $work/corpus-checkpoint $work/corpus-config $work/corpus-request \
	$work/corpus-api
# What the documents show is where to begin.
for file in fpm-dataplane/dist/fpm-dataplane.yaml frr-config/*/fpm-dataplane.yaml; do
	cp "$file" "$work/corpus-config/seed-$(echo "$file" | tr / -)"
done
grep -o '{"[a-z]*": .*}' fpm-dataplane/base/rows.md | split -l 1 - $work/corpus-request/seed-
sed -n 's|^  \(/[^:]*\):.*|\1|p' fpm-dataplane/dist/openapi.yaml | while read -r path; do
	for method in GET POST PATCH DELETE; do
		printf '%s\n/v1%s\nport=lan0\ncount=1\n\n{"mtu": 1400}' $method "$path" \
			>"$work/corpus-api/seed-$method$(echo "$path" | tr / -)"
	done
done
for target in fuzz_fpm fuzz_poptrie fuzz_packet fuzz_checkpoint fuzz_config fuzz_request \
	fuzz_api fuzz_fpm_rib; do
	[ $target = fuzz_fpm_rib ] && part=$((seconds / 2)) || part=$((seconds / 14 + 1))
	inputs="-dict=tests/fuzz/fpm.dict $work/corpus"
	[ $target = fuzz_poptrie ] && inputs="-len_control=0 $work/corpus-poptrie"
	[ $target = fuzz_packet ] && inputs=$work/corpus-packet
	[ $target = fuzz_config ] && inputs=$work/corpus-config
	[ $target = fuzz_api ] && inputs=$work/corpus-api
	[ $target = fuzz_request ] && inputs=$work/corpus-request
	[ $target = fuzz_checkpoint ] && inputs="-len_control=0 $work/corpus-checkpoint"
	if $work/$target -max_total_time=$part -max_len=3000 -timeout=20 -print_final_stats=1 \
		-artifact_prefix=$work/ $inputs >$log 2>&1; then
		sed -n 's/^stat::\(number_of_executed_units\|average_exec_per_sec\): */\1 /p' $log |
			tr '\n' ' ' | sed "s/^/fuzz: $target clean, /; s/ *$/\n/"
	else
		failed=1
		tail -40 $log
		echo "fuzz: $target failed; again with: $work/$target $(ls -t $work/crash-* \
			$work/leak-* $work/timeout-* $work/oom-* 2>/dev/null | head -1)"
	fi
done
exit $failed
