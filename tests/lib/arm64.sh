#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Cross-build for arm64 in the Debian root $1, which is made if it is missing, and run unit tests by
# qemu-user: those whose names match the patterns $2 and on (without test_; by default poptrie's).
# qemu-user on x86-64 keeps memory accesses in order, so this finds no missing fence. root.
set -e
here=$(dirname "$0") root=$1
shift
skip() { echo "test-arm64: skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "needs root, for a Debian root with packages of arm64"

# A root of its own, because libdpdk-dev cannot be there for two architectures.
packages="make gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user pkg-config git"
for lib in dpdk urcu nl-3 nl-route-3 mnl ev yaml jansson microhttpd cmocka; do
	packages="$packages lib$lib-dev:arm64"
done
log=$root.log
mkdir -p "$(dirname "$root")"
# shellcheck disable=SC2086
{ "$here/debian_root.sh" "$root" trixie && { [ -e "$root/.arm64" ] ||
	"$here/in_root.sh" --online "$root" sh -ec '
		dpkg --add-architecture arm64
		apt-get update
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
		touch /.arm64' sh $packages; }; } >"$log" 2>&1 ||
	{ tail -5 "$log" >&2; skip "its packages cannot be installed here, see $log"; }

[ $# -gt 0 ] || set -- 'poptrie*'
"$here/in_root.sh" "$root" sh -ec '
export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
git config --global --replace-all safe.directory "*"
tests=$(for t; do ls tests/unit/test_$t.c; done | sed "s|^|build/arm64/|; s|\.c$||")
make --no-print-directory -j$(nproc) O=build/arm64 CC=aarch64-linux-gnu-gcc all $tests
RUN_BY="qemu-aarch64 -cpu max" tests/unit/run.sh arm64 $tests
# A CPU without FEAT_LSE2 has the other layout of nodes.
RUN_BY="qemu-aarch64 -cpu cortex-a72" tests/unit/run.sh cortex-a72 build/arm64/tests/unit/test_poptrie
' sh "$@"
