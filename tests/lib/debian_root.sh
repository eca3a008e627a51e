#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Make a small Debian in directory $1: suite $2 with the packages $3 and on. They come from the server
# of this machine's own packages. If $1 is complete already, do nothing. The script needs root.
set -e
[ $# -ge 2 ] || { echo "usage: $0 /ABSOLUTE/DIRECTORY SUITE [PACKAGE ...]" >&2; exit 2; }
case $1 in /?*) dir=$1 suite=$2 ;; *) echo "$0: $1 is not absolute" >&2; exit 2 ;; esac
shift 2
[ ! -e "$dir/.complete" ] || exit 0
command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap
mirror=$("$(dirname "$0")/mirror.sh")
rm -rf --one-file-system "$dir"
# Use sid's script: it is the same for all suites, and Debian 12 has none for later suites.
debootstrap --variant=minbase --include=ca-certificates "$suite" "$dir" "$mirror" \
	/usr/share/debootstrap/scripts/sid
# The root can be made again, so dpkg need not wait for the disk.
echo force-unsafe-io >"$dir/etc/dpkg/dpkg.cfg.d/unsafe-io"
cp /etc/apt/apt.conf.d/* "$dir/etc/apt/apt.conf.d/"
echo "deb [trusted=yes] $mirror $suite main" >"$dir/etc/apt/sources.list"
printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
chmod +x "$dir/usr/sbin/policy-rc.d"
chroot "$dir" apt-get update
[ $# = 0 ] || DEBIAN_FRONTEND=noninteractive chroot "$dir" \
	apt-get install -y --no-install-recommends "$@"
touch "$dir/.complete"
