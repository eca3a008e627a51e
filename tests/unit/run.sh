#!/bin/sh
# Run the C unit tests named on the command line; one line each, the whole output on failure.
# SPDX-License-Identifier: BSD-3-Clause
build=$1
shift
failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT INT TERM
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0" UBSAN_OPTIONS="print_stacktrace=1"
export TSAN_OPTIONS="ignore_noninstrumented_modules=1"
for bin in "$@"; do
	start=$(date +%s)
	if "$bin" >"$out" 2>&1; then
		ok=$(grep -c '^\[ *OK *\]' "$out")
		skipped=$(grep -c '^\[ *SKIPPED *\] [a-z]' "$out")
		printf 'unit %-8s %-28s %3d passed, %d skipped, %d s\n' "$build" \
			"$(basename "$bin")" "$ok" "$skipped" $(($(date +%s) - start))
		grep -i '^skip' "$out" | sort -u | sed 's/^/    /'
	else
		printf 'unit %-8s %-28s FAILED\n' "$build" "$(basename "$bin")"
		tail -60 "$out" | sed 's/^/    /'
		failed=1
	fi
done
exit $failed
