#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# First process of the guest (guest.py makes the initramfs). Mounts the root file system of the
# machine, read-only over 9p, below an overlay in memory. Then the program that `init` of the exchange
# directory names becomes process 1.
B=/bin/busybox
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
for m in /mods/*; do $B insmod "$m" || echo "insmod $m failed"; done
p9=trans=virtio,version=9p2000.L,msize=1048576
$B mount -t 9p -o $p9,cache=loose,ro hostroot /host
$B mount -t tmpfs -o size=60% tmpfs /rw
$B mkdir -p /rw/u /rw/w
$B mount -t overlay -o lowerdir=/host,upperdir=/rw/u,workdir=/rw/w overlay /new
for d in proc sys dev; do $B mount --move /$d /new/$d; done
$B mount -t tmpfs -o mode=755 tmpfs /new/run
$B mkdir -p /new/run/vm
$B mount -t 9p -o $p9,cache=none exchange /new/run/vm
modules=/new/lib/modules/$($B uname -r)
$B mkdir -p "$modules"
$B mount --bind "/host$($B cat /new/run/vm/modules)" "$modules"
# systemd looks for units below /run, and keeps a /run that is mounted already.
if [ -d /new/run/vm/systemd ]; then
	$B cp -r /new/run/vm/systemd /new/run/
fi
init=$($B cat /new/run/vm/init)
# shellcheck disable=SC2086
exec $B switch_root /new $init
