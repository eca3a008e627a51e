#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The second part of uml.sh, in the overlay: /old is this machine's root file system.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
there() { mkdir -p "$1" && mount -t "${@:2}" "$1"; }
there /dev devtmpfs dev
there /dev/pts devpts devpts
there /dev/shm tmpfs tmpfs
there /run tmpfs -o mode=755 tmpfs
there /tmp tmpfs -o mode=1777 tmpfs
there /sys/fs/cgroup cgroup2 cgroup2
mkdir -p "/lib/modules/$(uname -r)"
mount --bind "/old$modules" "/lib/modules/$(uname -r)"
while read -r shared; do [ -z "$shared" ] || there "$shared" hostfs -o "$shared" none; done <"/old$exchange/shares"
there /run/vm hostfs -o "$exchange" none
modprobe -a tun veth bridge vrf mpls_router mpls_iptunnel
# scapy reads this whole list of NIC vendors at each import. The tests do not need it.
rm -f /usr/share/wireshark/manuf
ip link set lo up
exec >/dev/console 2>&1 </dev/null
timeout -k 5 "$(cat /run/vm/seconds)" bash /run/vm/command
echo $? >/run/vm/code
sync
echo o >/proc/sysrq-trigger
# Process 1 must not end before the kernel does.
sleep 60
