#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In the guest, as process 1 or as a service of systemd: mount what nobody has mounted yet,
# run the command of the exchange directory, leave its exit code there, power off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
there() { grep -q "^[^ ]* $1 " /proc/mounts || { mkdir -p "$1" && mount -t "${@:2}" "$1"; }; }
there /dev/pts devpts devpts
there /dev/shm tmpfs tmpfs
there /dev/hugepages hugetlbfs -o pagesize=2M hugetlbfs
there /sys/fs/cgroup cgroup2 cgroup2
modprobe tun
# Names of makers of NICs, which scapy reads all of whenever it is imported, and nobody asks for.
rm -f /usr/share/wireshark/manuf
ip link set lo up
exec >/dev/ttyS0 2>&1 </dev/null
stty -F /dev/ttyS0 -opost
echo "guest: up after $(cut -d' ' -f1 /proc/uptime) s"
timeout -k 5 "$(cat /run/vm/seconds)" bash /run/vm/command
echo $? >/run/vm/code
sync
echo o >/proc/sysrq-trigger
# Process 1 must not end before the power does; programs there are none any more.
while :; do :; done
