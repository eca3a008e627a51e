#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run the fuzzers of build/fuzz:
#
#     run.sh SECONDS         run the fuzzer of the RIB for half of SECONDS, then each other fuzzer for a
#                            sixteenth of SECONDS and one second: the decoder alone, poptrie, packets, path
#                            MTUs, BFD, checkpoints, the kernel's routes, rules, nf_tables, configuration
#                            files, requests, the API
#     run.sh --each SECONDS  run each fuzzer for SECONDS, but the fuzzer of the RIB, which is slowest, three
#                            times as long; as many at a time as there are CPUs
#     run.sh --check SECONDS fail unless SECONDS is a number of seconds
#
# New inputs stay in build/fuzz/corpus-*; an input that failed is build/fuzz/crash-*.
work=build/fuzz
targets="fuzz_fpm_rib fuzz_fpm fuzz_kernel fuzz_rules fuzz_filter fuzz_poptrie fuzz_packet fuzz_pmtu fuzz_bfd fuzz_checkpoint fuzz_config fuzz_request fuzz_api"

# Run one target. $1: directory for a file of one line, "number-of-inputs 0", which is written if the
# target is clean. $2: target. $3: seconds.
one() {
	log=$work/log-$2
	inputs=$work/corpus-${2#fuzz_}
	case $2 in
	# Both targets read the same input language, so they share a corpus.
	fuzz_fpm | fuzz_fpm_rib) inputs="-dict=tests/fuzz/fpm.dict $work/corpus-fpm" ;;
	# For these targets any octets are a valid script of changes. By default libFuzzer would try
	# short scripts only.
	fuzz_poptrie | fuzz_pmtu | fuzz_bfd | fuzz_checkpoint | fuzz_kernel | fuzz_rules | fuzz_filter) inputs="-len_control=0 $inputs" ;;
	esac
	if $work/"$2" -max_total_time="$3" -max_len=3000 -timeout=20 -print_final_stats=1 \
		-artifact_prefix=$work/ $inputs >"$log" 2>&1; then
		n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "fuzz: $2 clean, $n inputs in $3 s"
		echo "$n 0" >"$1/$2"
	else
		tail -40 "$log" | sed "s/^/    /"
		# The first line that names the fault, for the summary: `make test` prints it last.
		why=$(grep -m 1 -E '^[^ ]+\.[ch]:[0-9]+: |ERROR: |runtime error: |ssertion ' "$log" | cut -c 1-150)
		echo "fuzz: $2 FAILED: ${why:-no reason in $log}; again with: $work/$2 $(sed -n 's/.*Test unit written to //p' "$log")"
	fi
}

if [ "$1" = --one ]; then
	one "$2" "$3" "$4"
	exit 0
fi

for seconds; do :; done # the last argument
case $seconds in
"" | *[!0-9]* | 0*)
	echo "fuzz: \"$seconds\" is no number of seconds (T=, FUZZ_S=, FUZZ_EACH_S=), as in: make fuzz T=900" >&2
	exit 2
	;;
esac
[ "$1" = --check ] && exit 0

/usr/bin/python3 tests/fuzz/corpus.py unpack $work || exit 1
# Add random scripts of lengths that the kept corpus of poptrie lacks. They reach a seventh more of the
# features.
for kib in 1 2 3; do
	for n in 1 2 3 4 5 6 7 8; do
		[ -e $work/corpus-poptrie/seed-$kib-$n ] ||
			head -c ${kib}000 /dev/urandom >$work/corpus-poptrie/seed-$kib-$n
	done
done
# Start with the examples of the documents.
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

sums=$(mktemp -d)
trap 'rm -rf "$sums"' EXIT
trap 'exit 130' INT TERM
begin=$(date +%s)
for target in $targets; do
	case $1$target in
	--eachfuzz_fpm_rib) echo "$target $(($2 * 3))" ;;
	--each*) echo "$target $2" ;;
	*fuzz_fpm_rib) echo "$target $(($1 / 2))" ;;
	*) echo "$target $(($1 / 16 + 1))" ;;
	esac
done >"$sums/all"
[ "$1" = --each ] && at_once=$(nproc) || at_once=1
xargs -P "$at_once" -n 2 "$0" --one "$sums" <"$sums/all"
rc=0 failed=
for target in $targets; do
	[ -e "$sums/$target" ] || { rc=1 failed="$failed $target"; }
done
cat "$sums"/fuzz_* 2>/dev/null | awk -v failed="$failed" -v s=$(($(date +%s) - begin)) '
	{n += $1}
	END {
		printf "fuzz: %d targets clean, %d inputs, %d s%s\n", NR, n, s,
			failed == "" ? "" : "; FAILED:" failed
	}'
exit $rc
