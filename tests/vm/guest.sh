#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guest, as process 1 or as a service of systemd. Mounts the missing file systems, runs
# the command of the exchange directory, writes its exit code there, and powers the guest off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
there() { grep -q "^[^ ]* $1 " /proc/mounts || { mkdir -p "$1" && mount -t "${@:2}" "$1"; }; }
there /dev/pts devpts devpts
there /dev/shm tmpfs tmpfs
there /dev/hugepages hugetlbfs -o pagesize=2M hugetlbfs
there /sys/fs/cgroup cgroup2 cgroup2
modprobe tun
# scapy reads this whole list of NIC vendors at each import. The tests do not need it.
rm -f /usr/share/wireshark/manuf
ip link set lo up
exec >/dev/ttyS0 2>&1 </dev/null
stty -F /dev/ttyS0 -opost
echo "guest: up after $(cut -d' ' -f1 /proc/uptime) s"
timeout -k 5 "$(cat /run/vm/seconds)" bash /run/vm/command
echo $? >/run/vm/code
sync
echo o >/proc/sysrq-trigger
# Process 1 must not end before the guest is off. This loop needs no other program.
while :; do :; done
