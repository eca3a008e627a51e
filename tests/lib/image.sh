#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build the container image of suite $2 by container engine $1 and test it, by make $3. The target is
# skipped if the engine does not have the base image and no registry of images answers. If the engine does
# not get the image for another reason, the target fails.
set -e
[ $# -ge 3 ] || { echo "usage: $0 ENGINE SUITE MAKE ..." >&2; exit 2; }
here=$(dirname "$0") engine=$1 base=docker.io/library/debian:$2-slim target=test-image
log=$here/../../build/base-image.log
shift 2
# shellcheck source=/dev/null
. "$here/not_installed.sh"

# Return 0 if the engine found no registry that answers.
no_answer() {
	grep -Eiq 'no such host|name resolution|timeout|timed out|connection (refused|reset)|unreachable|no route' "$log"
}

mkdir -p "$(dirname "$log")"
if ! "$engine" image inspect "$base" >/dev/null 2>&1 && ! "$engine" pull "$base" >"$log" 2>&1; then
	tail -5 "$log" >&2
	! no_answer || skip "no registry of images answers, and $engine does not have $base (\`make base-image\` makes it for podman)"
	echo "$target: FAILED: $engine did not get $base, although a registry answers"
	exit 1
fi
exec "$@" image test-image-run
