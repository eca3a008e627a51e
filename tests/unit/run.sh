#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run the C unit tests that the command line names. Two programs run at a time for each CPU,
# because they wait for half of their time. Print a line when a program has ended, the end of its
# output if it failed, and the sum at the end. A test that is skipped prints the reason in a line
# `skipped: ...`. RUN_BY is a command that runs the programs, for example an emulator. A program
# that has not ended after UNIT_LIMIT_S seconds is terminated, and has failed.

# $1 build, $2 directory for the output and for one line "passed skipped failed", $3 program
one() {
	name=$(basename "$3")
	out=$2/$name start=$(date +%s) failed=1 code= why=
	# In the foreground, so that Ctrl-C reaches the program.
	timeout --foreground -k 10 "$UNIT_LIMIT_S" ${RUN_BY:-} "$3" >"$out" 2>&1
	code=$?
	[ $code -ne 124 ] || echo "ERROR: not ended after $UNIT_LIMIT_S s" >>"$out"
	[ $code -eq 0 ] && failed=0
	ok=$(grep -c '^\[ *OK *\]' "$out")
	# cmocka names a skipped test twice: when it runs, and in the list at the end, which begins with
	# "3 test(s)", or from cmocka 1.1.7 on with "tests: 3 test(s)".
	skip=$(sed -n 's/^\[ *SKIPPED *\] .*\b\([0-9][0-9]*\) test(s).*/\1/p' "$out" |
		awk '{n += $1} END {print n + 0}')
	# Exit code 0 without a test is no success.
	if [ $failed -eq 0 ] && [ $((ok + skip)) -gt 0 ]; then
		printf 'unit %-8s %-28s %3d passed, %d skipped, %d s\n' "$1" "$name" \
			"$ok" "$skip" $(($(date +%s) - start))
		grep '^skipped: ' "$out" | sort -u | sed 's/^/    /'
	else
		ok=0 skip=0 failed=1
		# The first line that names the fault is in the summary of `make test`, too.
		why=$(grep -m 1 -E ': not so: |^fact [0-9]|^\[ *LINE *\]|ERROR: |runtime error: |ThreadSanitizer: |ssertion ' "$out" |
			cut -c 1-150)
		printf 'unit %-8s %-28s FAILED %s\n' "$1" "$name" "${why:-with code $code}"
		tail -60 "$out" | sed 's/^/    /'
	fi >"$out.said"
	echo "$ok $skip $failed" >"$out.sum"
	cat "$out.said" # in one piece, because other programs write, too
}

export UNIT_LIMIT_S="${UNIT_LIMIT_S:-1800}"
if [ "$1" = --one ]; then
	shift
	one "$@"
	exit 0
fi
build=$1
shift
begin=$(date +%s)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0" UBSAN_OPTIONS="print_stacktrace=1"
export TSAN_OPTIONS="ignore_noninstrumented_modules=1"
printf '%s\n' "$@" | xargs -P $((2 * $(nproc))) -n 1 "$0" --one "$build" "$dir"
cat "$dir"/*.sum | awk -v build="$build" -v n=$# -v s=$(($(date +%s) - begin)) '
	{passed += $1; skipped += $2; failed += $3; ran++}
	END {
		failed += n - ran # a run that was killed has no .sum file
		printf "unit %s: %d passed, %d skipped, %d of %d programs failed, %d s\n",
			build, passed, skipped, failed, n, s
		exit failed > 0
	}'
