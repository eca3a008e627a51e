# SPDX-License-Identifier: BSD-3-Clause
# Functions of the targets that run in a Debian root. The file that reads this one sets $here, the
# folder of these scripts, $target, the name of the target, and $log, the output of the commands.

# End the target because the machine lacks something that it needs.
skip() { echo "$target: skipped: $*"; exit 0; }

# End the target because packages of suite $1 were not installed. The cause is not ours if no server
# of packages answers. Otherwise a name of a package is wrong, or a command of ours: a failure.
not_installed() {
	tail -5 "$log" >&2
	"$here/mirror.sh" "$1" || skip "no server of Debian packages with the suite $1 answers, see $log"
	echo "$target: FAILED: packages of $1 were not installed, although the server answers, see $log"
	exit 1
}
