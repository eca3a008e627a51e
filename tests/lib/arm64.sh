#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Cross-build for arm64 in the Debian root $1, which is made if it is missing. Run the unit tests whose
# names without test_ match the patterns $2 and on by qemu-user, by default all except those of the list
# below. With WHAT=deb: build the Debian package for arm64, install it in that root, and run its
# programs. qemu-user on x86-64 keeps memory accesses in order, so this finds no missing fence. The script needs root.
set -e
here=$(dirname "$0") root=$1 target=test-arm64 log=$1.log
shift
. "$here/not_installed.sh"
[ "$(id -u)" = 0 ] || skip "needs root, for a Debian root with packages of arm64"

# The root is for arm64 alone, because it cannot have libdpdk-dev for two architectures.
packages="make iproute2 gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user pkg-config git"
for lib in dpdk urcu nl-3 nl-route-3 mnl ev yaml jansson microhttpd cmocka; do
	packages="$packages lib$lib-dev:arm64"
done
mkdir -p "$(dirname "$root")"
# shellcheck disable=SC2086
{ "$here/debian_root.sh" "$root" trixie && { [ -e "$root/.arm64" ] ||
	"$here/in_root.sh" --online "$root" sh -ec '
		dpkg --add-architecture arm64
		apt-get update
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
		touch /.arm64' sh $packages; }; } >"$log" 2>&1 ||
	not_installed trixie

if [ "${WHAT:-}" = deb ]; then
	"$here/in_root.sh" --online "$root" sh -ec '
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends build-essential \
		crossbuild-essential-arm64 debhelper python3-docutils
	git config --global --replace-all safe.directory "*"' >>"$log" 2>&1 ||
		not_installed trixie
	"$here/in_root.sh" "$root" sh -ec '
	export ARCH=arm64 RUN_BY="qemu-aarch64 -cpu max"
	fpm-dataplane/dist/deb.sh "$(fpm-dataplane/dist/version.sh)"'
	# The installation may need DPDK packages that the build did not.
	exec "$here/in_root.sh" --online "$root" sh -ec '
	deb=$(ls "$PWD"/build/deb/fpm-dataplane_*_arm64.deb)
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$deb" >build/deb/install.log 2>&1 ||
		{ tail -20 build/deb/install.log; exit 1; }
	run="qemu-aarch64 -cpu max"
	$run /usr/sbin/fpm-dataplane --version
	$run /usr/bin/fpmctl --version
	$run /usr/sbin/fpm-supervise --version
	$run /usr/bin/fpmctl config check /etc/fpm-dataplane/config.yaml
	ls /usr/share/man/man8/fpm-dataplane.8.gz
	dpkg --purge fpm-dataplane >>build/deb/install.log 2>&1
	[ ! -e /etc/fpm-dataplane ] || { echo "test-arm64: /etc/fpm-dataplane is left after the purge"; exit 1; }
	echo "test-arm64: the package was built, installed and purged, and its programs ran"'
fi

# Unit programs that cannot run by qemu-user on x86-64, with the reasons.
not_here='
config_machine reads a program of amd64
fwd_spread tests code for x86-64
neigh qemu-user refuses the requests of rtnetlink for neighbors and settings
neigh_adj qemu-user refuses the requests of rtnetlink for neighbors and settings
neigh_few qemu-user refuses the requests of rtnetlink for neighbors and settings
nicd starts itself as another process, which the kernel cannot do without qemu-user
rtnl qemu-user refuses the requests of rtnetlink for rules
rtnl_changes qemu-user refuses the requests of rtnetlink for rules
rtnl_cut qemu-user refuses the requests of rtnetlink for rules
rtnl_memory qemu-user refuses the requests of rtnetlink for rules
seccomp qemu-user has no seccomp
spawn counts descriptors, of which qemu-user has some of its own
supervise fails by qemu-user after descriptors in messages; the cause is not known
tap_bridge_kmon qemu-user refuses the requests of rtnetlink for neighbors and settings
tap_bridge_neigh qemu-user refuses the requests of rtnetlink for neighbors and settings
'
if [ $# = 0 ]; then
	for name in "$here"/../unit/test_*.c; do
		name=$(basename "$name" .c)
		case $not_here in *"
${name#test_} "*) ;; *) set -- "$@" "${name#test_}" ;; esac
	done
	echo "$not_here" | sed -n 's/^\([^ ]*\) \(..*\)/    skipped: \1: \2/p'
fi
"$here/in_root.sh" "$root" sh -ec '
export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
git config --global --replace-all safe.directory "*"
tests=$(for t; do ls tests/unit/test_$t.c; done | sed "s|^|build/arm64/|; s|\.c$||")
make --no-print-directory -j$(nproc) O=build/arm64 CC=aarch64-linux-gnu-gcc all $tests
RUN_BY="qemu-aarch64 -cpu max" tests/unit/run.sh arm64 $tests
# A CPU without FEAT_LSE2 has the other layout of nodes.
RUN_BY="qemu-aarch64 -cpu cortex-a72" tests/unit/run.sh cortex-a72 build/arm64/tests/unit/test_poptrie
' sh "$@"
