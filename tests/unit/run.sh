#!/bin/sh
# Run the C unit tests named on the command line; one line each, the whole output on failure,
# the sum at the end. A test that skips says why in a line `skipped: ...`.
# SPDX-License-Identifier: BSD-3-Clause
build=$1
shift
passed=0 skipped=0 failed=0 begin=$(date +%s)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
trap 'exit 130' INT TERM
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0" UBSAN_OPTIONS="print_stacktrace=1"
export TSAN_OPTIONS="ignore_noninstrumented_modules=1"
for bin in "$@"; do
	start=$(date +%s)
	if "$bin" >"$out" 2>&1; then
		ok=$(grep -c '^\[ *OK *\]' "$out")
		# cmocka names a skipped test twice: when it runs, and in the list at the end.
		skip=$(awk '/^\[ *SKIPPED *\] [0-9]+ test/ {n += $4} END {print n + 0}' "$out")
		printf 'unit %-8s %-28s %3d passed, %d skipped, %d s\n' "$build" \
			"$(basename "$bin")" "$ok" "$skip" $(($(date +%s) - start))
		grep '^skipped: ' "$out" | sort -u | sed 's/^/    /'
		passed=$((passed + ok)) skipped=$((skipped + skip))
	else
		printf 'unit %-8s %-28s FAILED\n' "$build" "$(basename "$bin")"
		tail -60 "$out" | sed 's/^/    /'
		failed=$((failed + 1))
	fi
done
printf 'unit %s: %d passed, %d skipped, %d of %d programs failed, %d s\n' "$build" \
	$passed $skipped $failed $# $(($(date +%s) - begin))
[ $failed -eq 0 ]
