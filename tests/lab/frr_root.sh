#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Make a root file system with the newest FRR that Debian has, in directory $1. FRR 8.4 of Debian 12
# does not listen to feedback, and two versions of FRR cannot be installed side by side.
set -e
"$(dirname "$0")/../lib/debian_root.sh" "$1" sid frr
chroot "$1" /usr/lib/frr/zebra --version | head -1
