#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A root file system with the newest FRR that Debian has, in directory $1: FRR 8.4 of Debian
# 12 does not listen to feedback, and both cannot be installed side by side. Taken from where
# this machine's own packages come from.
set -e
dir=$1
case $dir in /?*) ;; *) echo "usage: $0 /ABSOLUTE/DIRECTORY" >&2; exit 2 ;; esac
[ ! -x "$dir/usr/lib/frr/zebra" ] || exit 0
command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap
mirror=$(grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
	grep -v security | head -1)
debootstrap --variant=minbase --include=ca-certificates sid "$dir" "$mirror" \
	/usr/share/debootstrap/scripts/sid
cp /etc/apt/apt.conf.d/* "$dir/etc/apt/apt.conf.d/"
echo "deb [trusted=yes] $mirror sid main" >"$dir/etc/apt/sources.list"
printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
chmod +x "$dir/usr/sbin/policy-rc.d"
chroot "$dir" sh -c 'apt-get update &&
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends frr'
chroot "$dir" /usr/lib/frr/zebra --version | head -1
