#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# First process of a kernel that is a process of this machine (uml.py). Its root file system is this
# machine's, read-only, below an overlay in memory. Runs the command of the exchange directory, writes
# its exit code there, and ends the kernel. The kernel's words set `exchange` and `modules`.
B=/bin/busybox
export exchange modules
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B insmod "$modules/kernel/fs/overlayfs/overlay.ko"
$B mount -t tmpfs -o size=90% tmpfs /mnt
$B mkdir /mnt/u /mnt/w /mnt/new
$B mount -t overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w overlay /mnt/new
for d in proc sys; do $B mount --move /$d /mnt/new/$d; done
cd /mnt/new || exit 1
$B mkdir -p old
# After chroot alone, a process that enters another mount namespace would leave the overlay.
$B pivot_root . old
exec $B chroot . /bin/bash "/old$exchange/uml_run.sh"
