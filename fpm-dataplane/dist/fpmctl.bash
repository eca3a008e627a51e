# SPDX-License-Identifier: BSD-3-Clause
# bash completion for fpmctl: the program itself knows its words, and the daemon its ports.

_fpmctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local word words=() option= socket=()

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
	case "${words[0]} $prev" in
	*" -s" | *" --socket" | *" -w" | *" --write" | "config check" | "config reload")
		COMPREPLY=($(compgen -f -- "$cur"))
		;;
	"port set" | "port del" | "show ports" | [!p]*" port")
		COMPREPLY=($(compgen -W "$(fpmctl "${socket[@]}" --complete=ports \
			2> /dev/null)" -- "$cur"))
		;;
	"port add" | "port device" | "port mtu" | "port queues" | "port cores" | "set "*rate | "set "*burst) ;;
	*)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "--socket --json --help --version --watch \
				--rates --repair --vtysh --write --dry-run -4 -6" -- "$cur"))
		else
			COMPREPLY=($(compgen -W "$(fpmctl --complete -- "${words[@]}" \
				2> /dev/null)" -- "$cur"))
		fi
		;;
	esac
}
complete -F _fpmctl fpmctl
