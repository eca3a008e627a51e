#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run a command in the Debian root $1 (debian_root.sh) at the top of this tree, in namespaces of its
# own: mount, pid, ipc, uts, network. All mounts end with the command. For the command, build/ of the
# tree is a folder of the root, so that its files do not mix with the files that this machine builds.
# With --online the network is that of this machine, for apt-get. The script needs root.
set -e
net=--net
[ "$1" != --online ] || { net= && shift; }
[ $# -ge 2 ] || { echo "usage: $0 [--online] /ABSOLUTE/DIRECTORY COMMAND [ARGUMENT ...]" >&2; exit 2; }
root=$1 tree=$(cd "$(dirname "$0")/../.." && pwd)
shift
exec unshare --mount --propagation private --pid --fork --kill-child --ipc --uts $net sh -ec '
root=$1 tree=$2
hostname debian
[ -z "$3" ] || ip link set lo up
mkdir -p "$root/src" "$root/var/build"
# A plain chroot is not enough: `ip netns exec` needs a root that is a mount point.
mount --bind "$root" "$root"
mount --bind "$tree" "$root/src"
mkdir -p "$tree/build"
mount --bind "$root/var/build" "$root/src/build"
# The .git of a worktree names the folder of its repository.
git=$(git -C "$tree" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || git=
if [ -n "$git" ] && [ "$git" != "$tree/.git" ]; then
	mkdir -p "$root$git"
	mount --bind -o ro "$git" "$root$git"
fi
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
# Tests name folders by their process id, which is the same in the pid namespace of another command.
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -p "$root/run/lock" "$root/mnt/old"
cd "$root"
pivot_root . mnt/old
cd /
umount -l /mnt/old
cd /src
shift 3
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	LANG=C.UTF-8 TERM=dumb "$@"
' sh "$root" "$tree" "$net" "$@"
