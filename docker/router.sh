#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The container's main program: makes a router of the interfaces that the container was given.
#
# An interface that becomes a port moves to a namespace of its own, "wire", with no addresses
# and no forwarding: the kernel must not forward a second time. In the container itself a TAP
# takes its name and its addresses, and there FRR runs: vtysh, ping, ip look as ever.
#
#   PORTS      which: NAME=INTERFACE or NAME=SUBNET (the interface with an address in it), or
#              an INTERFACE alone, blank-separated. Default: all eth1, eth2, ... but not eth0,
#              which is for management (as containerlab has it).
#   CLAB_INTFS how many interfaces besides eth0 to wait for (containerlab sets it)
#   FRR_CONF   FRR's configuration at the first start, if /etc/frr itself is not a volume
#   CONFIG     a configuration file of your own, used as it is; PORTS then only moves interfaces
#   /etc/fpm-dataplane/extra.yaml  more keys for the file that is made otherwise
set -eu
generated=/run/fpm-dataplane/config.yaml
wire=(nsenter --net=/run/netns/wire)

say() { echo "router: $*"; }
fail() { say "$*" >&2; exit 2; }

# "INTERFACE ADDRESS/LEN ..." a line for what there is besides lo.
interfaces() { ip -o link show | awk -F': ' '{sub(/@.*/, "", $2); if ($2 != "lo") print $2}'; }

addresses() { ip -o addr show dev "$1" scope global | awk '{print $4}'; }

# The interface that has an address in subnet $1.
interface_in() {
	ip -o addr show scope global to "$1" | awk '{print $2; exit}'
}

wait_for() { # SECONDS WHAT CONDITION...
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "waited in vain for $what"
		sleep 0.1
	done
}

enough_interfaces() { [ "$(interfaces | grep -c '^eth[1-9]')" -ge "${CLAB_INTFS:-0}" ]; }
is_there() { ip link show dev "$1" >/dev/null 2>&1; }
resolved() { # NAME=WHERE -> sets name, iface; false while it is not there
	name=${1%%=*} iface=${1#*=}
	case $iface in */*) iface=$(interface_in "$iface") ;; esac
	[ -n "$iface" ] && is_there "$iface"
}

namespaces() {
	mkdir -p /run/netns
	[ -e /run/netns/control ] || { touch /run/netns/control
		mount --bind /proc/self/ns/net /run/netns/control; }
	[ -e /run/netns/wire ] || ip netns add wire
	"${wire[@]}" sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.disable_ipv6=1 \
		net.ipv6.conf.default.disable_ipv6=1
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
		net.ipv6.conf.default.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
		net.ipv4.conf.default.rp_filter=0 || fail "sysctl: see docker/README.md, rights"
}

# Moves port $1 (NAME=WHERE); its addresses go to $addr/NAME until the TAP is there.
take() {
	wait_for 60 "port $1" resolved "$1"
	addresses "$iface" >"$addr/$name"
	mtu[${#taps[@]}]=$(cat "/sys/class/net/$iface/mtu")
	ip link set dev "$iface" down
	ip link set dev "$iface" netns wire name "port-$name"
	"${wire[@]}" ethtool -K "port-$name" tx off gso off tso off gro off >/dev/null 2>&1 || true
	"${wire[@]}" ip link set dev "port-$name" up
	taps+=("$name")
}

generate() {
	mkdir -p "${generated%/*}"
	{
		echo "# Made by the container's entrypoint; put more into /etc/fpm-dataplane/extra.yaml."
		echo "ports:"
		for i in "${!taps[@]}"; do
			echo "  - {tap: ${taps[i]}, device: \"net_af_packet,iface=port-${taps[i]}\"," \
				"mtu: $((mtu[i] < 1500 ? mtu[i] : 1500))}"
		done
		echo "control-netns: control"
		cat /etc/fpm-dataplane/extra.yaml 2>/dev/null || true
	} >"$generated"
}

give_addresses() {
	local a
	for name in "${taps[@]}"; do
		wait_for 60 "TAP $name: see the log above" is_there "$name"
		ip link set dev "$name" up
		while read -r a; do
			ip addr add "$a" dev "$name" 2>/dev/null || true
		done <"$addr/$name"
	done
}

stop() {
	trap - TERM INT
	/usr/lib/frr/frrinit.sh stop >/dev/null 2>&1 || true
	kill -TERM "$dataplane" 2>/dev/null || true
	wait "$dataplane" || true
	exit 0
}

taps=() mtu=() addr=$(mktemp -d)
wait_for 60 "${CLAB_INTFS:-0} interfaces (CLAB_INTFS)" enough_interfaces
namespaces
for port in ${PORTS:-$(interfaces | grep '^eth[1-9]' || true)}; do
	take "$port"
done
config=${CONFIG:-$generated}
if [ -z "${CONFIG:-}" ]; then
	[ ${#taps[@]} -gt 0 ] || fail "no interface to make a port of: give it networks, or PORTS"
	generate
fi
"${wire[@]}" fpm-dataplane --check -c "$config" || exit 2

"${wire[@]}" fpm-supervise fpm-dataplane -c "$config" &
dataplane=$!
trap stop TERM INT
give_addresses
[ ! -e "${FRR_CONF:-}" ] || cp "$FRR_CONF" /etc/frr/frr.conf
grep -q '^fpm address' /etc/frr/frr.conf || say "frr.conf has no line 'fpm address 127.0.0.1':" \
	"zebra will tell the dataplane nothing"
chown frr:frr /etc/frr/*.conf 2>/dev/null || true
/usr/lib/frr/frrinit.sh start
say "ports ${taps[*]}"
code=0
wait "$dataplane" || code=$?
say "the dataplane ended with $code"
exit "$code"
