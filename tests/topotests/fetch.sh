#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Unpack the topotests of the installed FRR in directory $1, from its Debian source package. Do
# nothing if those of this version are there. apt has a list of sources, a state and a cache of its
# own below $1, so the machine's configuration of apt does not change.
set -e
case $1 in /?*) dir=$1 ;; *) echo "usage: $0 /ABSOLUTE/DIRECTORY" >&2; exit 2 ;; esac
version=$(dpkg-query -W -f '${source:Version}' frr)
[ "$(cat "$dir/.complete" 2>/dev/null)" != "$version" ] || exit 0
rm -rf "$dir"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
cd "$dir"
# The servers are those of the machine's binary packages, in their order.
apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' \
	'Created-By: Packages' 'Origin: Debian' | awk '!seen[$0]++' |
	sed 's,^deb-src,& [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg],' >apt/sources.list
private() {
	apt-get -qq -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$dir/apt/lists" -o Dir::Cache="$dir/apt/cache" \
		-o APT::Sandbox::User=root "$@"
}
private update
private source --download-only "frr=$version"
tar -x --strip-components=3 --wildcards -f frr_*.orig.tar.* '*/tests/topotests'
rm -rf apt frr_*
echo "$version" >.complete
