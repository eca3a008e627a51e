#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The container's main program: make a router of the interfaces of the container.
#
# An interface that becomes a port moves to another namespace, "wire", without addresses and
# without forwarding, because the kernel must not forward its packets a second time. In the
# container's namespace a TAP gets its name and its addresses. FRR runs there, and vtysh, ping
# and ip work as usual.
#
#   PORTS      the ports: NAME=INTERFACE or NAME=SUBNET (the interface with an address in it), or
#              an INTERFACE alone, blank-separated. Default: all eth1, eth2, ... but not eth0,
#              which is for management (as in containerlab).
#   CLAB_INTFS how many interfaces besides eth0 to wait for (containerlab sets it)
#   WAIT_S     seconds to wait for interfaces that do not exist yet: 60
#   FRR_CONF   FRR's configuration at the first start; a configuration that FRR writes later is kept
#   CONFIG     your own configuration file, used unchanged; PORTS then only moves interfaces
#   /etc/fpm-dataplane/extra.yaml  more keys for the generated configuration file
#
# An error in a variable or a file of this list is printed in one line, and the container exits
# with code 2.
set -eu
generated=/run/fpm-dataplane/config.yaml extra=/etc/fpm-dataplane/extra.yaml
frr_conf=/etc/frr/frr.conf begun=/etc/frr/frr.conf.begun
wire=(nsenter --net=/run/netns/wire)
rights="(docker/README.md, Rights: --privileged)"
dataplane='' frr='' ifaces=() from=()

say() { echo "router: $*"; }
fail() { say "$*" >&2; end 2; }

# Move the interfaces back to the container's namespace, because podman looks for them there. It
# removes a bridge together with the last interface of the bridge.
give_back() {
	local i
	for i in "${!ifaces[@]}"; do
		"${wire[@]}" ip link set dev "${ifaces[i]}" down netns control name "${from[i]}" \
			2>/dev/null || true
	done
}

# Stop FRR and the dataplane, and exit with code $1. tini passes a signal to the dataplane, too.
end() {
	trap - TERM INT
	[ -z "$frr" ] || /usr/lib/frr/frrinit.sh stop >/dev/null 2>&1 || true
	[ -z "$dataplane" ] || kill -TERM "$dataplane" 2>/dev/null || true
	[ -z "$dataplane" ] || wait "$dataplane" || true
	give_back
	exit "$1"
}
asked() { say "stopping"; end 0; }
trap asked TERM INT

interfaces() { ip -o link show | awk -F': ' '{sub(/@.*/, "", $2); if ($2 != "lo") print $2}'; }

addresses() { ip -o addr show dev "$1" scope global | awk '{print $4}'; }

# Print the interface that has an address in subnet $1.
interface_in() {
	ip -o addr show scope global to "$1" | awk '{print $2; exit}'
}

wait_for() { # WHAT CONDITION...
	local end=$((SECONDS + wait)) what=$1
	shift
	until "$@"; do
		# shellcheck disable=SC2046
		[ $SECONDS -lt $end ] || fail "$what did not appear in $wait s; present interfaces:" \
			$(interfaces)
		sleep 0.1
	done
}

enough_interfaces() { [ "$(interfaces | grep -c '^eth[1-9]')" -ge "${CLAB_INTFS:-0}" ]; }
is_there() { ip link show dev "$1" >/dev/null 2>&1; }
resolved() { # NAME=WHERE; set name and iface. False while the interface does not exist.
	name=${1%%=*} iface=${1#*=}
	case $iface in */*) iface=$(interface_in "$iface") ;; esac
	[ -n "$iface" ] && is_there "$iface"
}
tap_is_there() {
	kill -0 "$dataplane" 2>/dev/null || ended "before port $1 existed"
	is_there "$1"
}

# Exit after the dataplane has exited.
ended() {
	local code=0
	wait "$dataplane" || code=$?
	dataplane=''
	say "the dataplane ended with exit code $code${1:+ $1}; see the lines above" >&2
	end "$code"
}

# Check that a file is readable. Docker mounts a directory for a file that does not exist.
is_file() { # WORDS PATH
	[ -z "$2" ] || { [ -f "$2" ] && [ -r "$2" ]; } ||
		fail "$1 is no readable file in the container; check that the file exists and is mounted"
}

# Check the variables before waiting for interfaces and moving them.
judge() {
	local port where seen=' '
	case $wait in *[!0-9]* | '') fail "WAIT_S=$wait is not a number of seconds" ;; esac
	case ${CLAB_INTFS:-0} in *[!0-9]*) fail "CLAB_INTFS=$CLAB_INTFS is not a number of interfaces" ;; esac
	is_file "FRR_CONF=${FRR_CONF:-}" "${FRR_CONF:-}"
	is_file "CONFIG=${CONFIG:-}" "${CONFIG:-}"
	[ ! -e $extra ] || is_file $extra $extra
	for port in ${PORTS:-}; do
		name=${port%%=*} where=${port#*=}
		case $name in
		*/*) fail "PORTS: '$port' is a subnet without a port name; write NAME=$port" ;;
		'' | . | .. | lo | *[!A-Za-z0-9._-]* | ????????????????*)
			fail "PORTS: '$name' of '$port' is not a valid port name; expected at most 15 letters," \
				"digits, '.', '_', '-'" ;;
		esac
		case $where in
		'') fail "PORTS: '$port' names no interface; write $name=eth1, or $name=10.0.1.0/24" ;;
		*/*) ip -o addr show to "$where" >/dev/null 2>&1 ||
			fail "PORTS: '$where' of '$port' is not a subnet" ;;
		esac
		case $seen in
		*" $name "*) fail "PORTS: two ports have the name $name" ;;
		*"=$where "*) fail "PORTS: two ports use $where" ;;
		esac
		seen="$seen$name =$where "
	done
	[ -c /dev/net/tun ] || fail "there is no /dev/net/tun: --device /dev/net/tun $rights"
}

namespaces() {
	local which
	mkdir -p /run/netns
	# A container that is started again has the names of namespaces that no longer exist.
	for which in control wire; do
		mountpoint -q /run/netns/$which || rm -f /run/netns/$which
	done
	[ -e /run/netns/control ] || { touch /run/netns/control
		mount --bind /proc/self/ns/net /run/netns/control; } ||
		fail "not permitted to name its network namespace $rights"
	[ -e /run/netns/wire ] || ip netns add wire || fail "not permitted to make a network namespace $rights"
	"${wire[@]}" sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.disable_ipv6=1 \
		net.ipv6.conf.default.disable_ipv6=1 &&
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
		net.ipv6.conf.default.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
		net.ipv4.conf.default.rp_filter=0 || fail "not permitted to write sysctls of the network $rights"
}

# Move the interface of port $1 (NAME=WHERE). Its addresses are saved until the TAP exists.
take() {
	local to=port-${1%%=*}
	[ ${#to} -le 15 ] || to=port-${#taps[@]}
	wait_for "the interface of port $1" resolved "$1"
	addr[$name]=$(addresses "$iface")
	mtu+=("$(cat "/sys/class/net/$iface/mtu")")
	ip link set dev "$iface" down
	ip link set dev "$iface" netns wire name "$to" || fail "not permitted to move $iface $rights"
	ifaces+=("$to") from+=("$iface")
	"${wire[@]}" ethtool -K "$to" tx off gso off tso off gro off >/dev/null 2>&1 || true
	"${wire[@]}" ip link set dev "$to" up
	taps+=("$name")
}

generate() {
	local i most=1500 # the maximum of DPDK's net_af_packet
	mkdir -p "${generated%/*}"
	{
		echo "# Generated by the container's entrypoint; put more keys into $extra."
		echo "ports:"
		for i in "${!taps[@]}"; do
			[ "${mtu[i]}" -le $most ] || say "${from[i]} has MTU ${mtu[i]} and port ${taps[i]}" \
				"$most, which is the maximum; set the same MTU at its other end" \
				"(containerlab: mtu: $most at the link)" >&2
			echo "  - {tap: ${taps[i]}, device: \"net_af_packet,iface=${ifaces[i]}\"," \
				"mtu: $((mtu[i] < most ? mtu[i] : most))}"
		done
		echo "control-netns: control"
	} >"$generated"
	ours=$(wc -l <"$generated")
	[ ! -e $extra ] || cat $extra >>"$generated"
}

give_addresses() {
	local a
	for name in "${taps[@]}"; do
		wait_for "the TAP of port $name" tap_is_there "$name"
		ip link set dev "$name" up
		for a in ${addr[$name]}; do
			ip addr add "$a" dev "$name" 2>/dev/null || true
		done
	done
}

# Start FRR. FRR_CONF is only for the first start: a restart keeps changes by `write memory`.
frr_begins() {
	if [ -n "${FRR_CONF:-}" ] && [ -e $begun ] && ! cmp -s $begun $frr_conf; then
		say "$frr_conf was changed after it was copied from $FRR_CONF, and is kept"
	elif [ -n "${FRR_CONF:-}" ]; then
		cp "$FRR_CONF" $frr_conf
		cp "$FRR_CONF" $begun
	fi
	vtysh --dryrun --inputfile $frr_conf 2>&1 | sed "s|^|router: $frr_conf: |"
	grep -q '^fpm address' $frr_conf || say "$frr_conf has no line 'fpm address 127.0.0.1':" \
		"zebra does not connect to the dataplane"
	chown frr:frr /etc/frr/*.conf 2>/dev/null || true
	frr=started
	/usr/lib/frr/frrinit.sh start || fail "FRR does not start; see the lines above"
}

declare -A addr=() # of each port
taps=() mtu=() wait=${WAIT_S:-60} ours=0
judge
wait_for "${CLAB_INTFS:-0} interfaces besides eth0 (CLAB_INTFS)" enough_interfaces
namespaces
for port in ${PORTS:-$(interfaces | grep '^eth[1-9]' || true)}; do
	take "$port"
done
for name in "${taps[@]}"; do
	! is_there "$name" || fail "PORTS: a port cannot have the name $name, because another interface has it"
done
config=${CONFIG:-$generated}
if [ -z "${CONFIG:-}" ]; then
	[ ${#taps[@]} -gt 0 ] || fail "no interface for a port; give the container networks (eth1, eth2, ...)," \
		"or name the interface in PORTS"
	generate
fi
"${wire[@]}" fpm-dataplane --check -c "$config" || {
	[ -n "${CONFIG:-}" ] || say "the lines from $((ours + 1)) on are from $extra" >&2
	fail "the dataplane refuses its configuration; see the lines above"
}

"${wire[@]}" fpm-supervise fpm-dataplane -c "$config" &
dataplane=$!
give_addresses
frr_begins
say "ports ${taps[*]}"
ended
