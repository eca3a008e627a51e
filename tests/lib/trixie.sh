#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run targets of make ($2 and on, by default unit and demo) on Debian 13, in the Debian root $1, which
# is made if it is missing. The targets have no network, so all packages are installed before. The
# variables T and S choose tests and scenarios of these targets. The script needs root.
set -e
here=$(dirname "$0") root=$1 target=test-trixie log=$1.log
shift
. "$here/not_installed.sh"
[ "$(id -u)" = 0 ] || skip "needs root, for a Debian root"
mkdir -p "$(dirname "$root")"
{ "$here/debian_root.sh" "$root" trixie make git &&
	"$here/in_root.sh" --online "$root" make deps; } >"$log" 2>&1 ||
	not_installed trixie
[ $# -gt 0 ] || set -- unit demo
packages() {
	"$here/in_root.sh" --online "$root" make --no-print-directory "$@" >>"$log" 2>&1 || not_installed trixie
}
# Tests and guests that lack these files are skipped.
fetch() {
	"$here/in_root.sh" --online "$root" make --no-print-directory "$@" >>"$log" 2>&1 ||
		echo "test-trixie: make $* failed, see $log"
}
case " $* " in *" test"* | *" system"*)
	for target in peers collectors prometheus; do fetch $target; done
	packages deps DEPS_ALL="strace keepalived dpdk-dev" ;;
esac
case " $* " in *" test "* | *" test-all "* | *" fuzz"*) packages deps 'DEPS_ALL=$(PKGS_FUZZ)' ;; esac
case " $* " in *" deb "*) packages deps-deb ;; esac
case " $* " in *" test "* | *" test-all "* | *" test-vm"* | *" lab-vm "*) fetch vm-kernel ;; esac
case " $* " in
*" topotests"*)
	"$here/in_root.sh" --online "$root" make --no-print-directory topotests-source >>"$log" 2>&1 ||
		not_installed trixie ;;
esac
exec "$here/in_root.sh" "$root" sh -ec '
git config --global --replace-all safe.directory "*"
make --no-print-directory -j$(nproc) all
T=$1 S=$2
shift 2
for target; do make --no-print-directory "$target" ${T:+T="$T"} ${S:+S="$S"}; done' sh "${T:-}" "${S:-}" "$@"
