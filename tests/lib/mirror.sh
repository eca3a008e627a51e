#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Print the address of the server of this machine's Debian packages. With a suite $1, print nothing, and
# return 0 only if this server answers and has the suite. APT_HELPER is apt's program for downloads.
set -e
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
	grep -v security | head -1)
[ $# -gt 0 ] || { echo "$mirror"; exit 0; }
got=$(mktemp)
trap 'rm -f "$got"' EXIT
"${APT_HELPER:-/usr/lib/apt/apt-helper}" download-file "${mirror%/}/dists/$1/Release" "$got" >/dev/null 2>&1
