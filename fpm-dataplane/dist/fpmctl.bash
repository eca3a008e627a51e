# SPDX-License-Identifier: BSD-3-Clause
# bash completion for fpmctl. The words come from fpmctl, the names of ports from the daemon.

_fpmctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local word words=() option= socket=() names=

	for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
		case $option in
		-s | --socket) socket=(-s "$word") option= && continue ;;
		-w | --write | --vtysh) option= && continue ;;
		esac
		case $word in
		-*) option=$word ;;
		*) words+=("$word") ;;
		esac
	done
	if [[ ${words[0]} == device && $cur$prev == *:* ]]; then
		# A colon ends a word for readline: complete only the rest of an address.
		word=${COMP_LINE:0:COMP_POINT}
		word=${word##* }
		COMPREPLY=($(compgen -W "$(fpmctl --complete -- device bind 2> /dev/null)" \
			-- "$word"))
		COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
		return
	fi
	case "${words[0]} $prev" in
	*" -s" | *" --socket" | *" -w" | *" --write" | "config check" | "config reload" | "hook load")
		# Readline completes files: it continues below a folder and quotes blanks.
		compopt -o default 2> /dev/null
		COMPREPLY=()
		return
		;;
	"port add" | "port device" | "port mtu" | "port queues" | "port cores" | "set "*rate | "set "*burst)
		return
		;;
	"port set" | "port del" | [!p]*" port") names=ports ;;
	"show vrf") names=vrfs ;;
	"show dev" | "hook dev") names=interfaces ;;
	"trace reason" | "capture reason") names=reasons ;;
	"show ports" | "show interfaces" | "show hooks" | "show fib" | "show vrfs" | "show counters" | "show drops" | "show punt" | "show cycles" | "show threads")
		names=$prev
		;;
	"show groups" | "show nexthops")
		# A full table has thousands of numbers: list them only after the first digit.
		[[ $cur == [0-9]* ]] && names=$prev
		;;
	esac
	if [[ $cur == -* ]]; then
		names="--socket --json --help --version --watch --rates --repair --vtysh --write --dry-run --force -4 -6"
	elif [[ -n $names ]]; then
		names=$(fpmctl "${socket[@]}" --complete="$names" 2> /dev/null)
	else
		names=$(fpmctl --complete -- "${words[@]}" 2> /dev/null)
	fi
	COMPREPLY=($(compgen -W "$names" -- "$cur"))
}
complete -F _fpmctl fpmctl
