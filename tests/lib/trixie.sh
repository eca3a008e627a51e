#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run targets of make ($2 and on, by default unit and demo) on Debian 13, in the Debian root $1, which
# is made if it is missing. The targets have no network, so all packages are installed before. The
# variables T and S choose tests and scenarios of these targets. The script needs root.
set -e
here=$(dirname "$0") root=$1
shift
skip() { echo "test-trixie: skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "needs root, for a Debian root"
log=$root.log
mkdir -p "$(dirname "$root")"
{ "$here/debian_root.sh" "$root" trixie make git &&
	"$here/in_root.sh" --online "$root" make deps; } >"$log" 2>&1 ||
	{ tail -5 "$log" >&2; skip "its packages cannot be installed here, see $log"; }
[ $# -gt 0 ] || set -- unit demo
# Tests and guests that lack these files or packages are skipped.
fetch() {
	"$here/in_root.sh" --online "$root" make --no-print-directory "$@" >>"$log" 2>&1 ||
		echo "test-trixie: make $* failed, see $log"
}
case " $* " in *" test"* | *" system"*)
	for target in peers collectors prometheus; do fetch $target; done
	fetch deps DEPS_ALL="strace keepalived dpdk-dev" ;;
esac
case " $* " in *" test "* | *" test-all "* | *" fuzz"*) fetch deps 'DEPS_ALL=$(PKGS_FUZZ)' ;; esac
case " $* " in *" deb "*) fetch deps-deb ;; esac
case " $* " in *" test "* | *" test-all "* | *" test-vm"* | *" lab-vm "*) fetch vm-kernel ;; esac
case " $* " in
*" topotests"*)
	"$here/in_root.sh" --online "$root" make --no-print-directory topotests-source >>"$log" 2>&1 ||
		{ tail -5 "$log" >&2; skip "FRR's sources cannot be had here, see $log"; } ;;
esac
exec "$here/in_root.sh" "$root" sh -ec '
git config --global --replace-all safe.directory "*"
make --no-print-directory -j$(nproc) all
T=$1 S=$2
shift 2
for target; do make --no-print-directory "$target" ${T:+T="$T"} ${S:+S="$S"}; done' sh "${T:-}" "${S:-}" "$@"
