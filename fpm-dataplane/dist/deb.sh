#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build the Debian package from the source tree that has this file, and put it into build/deb/. The
# source package is built from a copy of the tree, because debian/ has to be at the top of the copy. $1
# is the version of the programs. ARCH=arm64 builds for another architecture; RUN_BY is then an emulator
# for its programs.
set -e
cd "$(dirname "$0")/../.."
out=$PWD/build/deb src=$PWD/build/deb/src
# A release has the version 0.N. The versions of other commits are lower than 0.N and rise with every
# commit.
number=$(sed 's/-.*//' VERSION)
when=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y VERSION)
version=$number
[ "$1" = "$number" ] || version=$number~$(date -u -d "@$when" +%Y%m%d.%H%M%S).$(
	echo "${1#"$number"-}" | tr -c 'a-zA-Z0-9.\n' .)

rm -rf "$out"
mkdir -p "$src"
tar -c --exclude=./build --exclude=./.?* --exclude=./tests --exclude=__pycache__ . | tar -x -C "$src"
mv "$src/fpm-dataplane/dist/debian" "$src/"
cp fpm-dataplane/dist/fpm-dataplane.service fpm-dataplane/dist/fpm-dataplane.sysusers "$src/debian/"
echo "$1" >"$src/VERSION"
cat >"$src/debian/changelog" <<END
fpm-dataplane ($version) unstable; urgency=medium

  * Built as version $1.

 -- $(sed -n 's/^Maintainer: //p' "$src/debian/control")  $(date -u -R -d "@$when")
END

cd "$src"
dpkg-buildpackage -b -us -uc ${ARCH:+-a"$ARCH"} >"$out/build.log" 2>&1 || { tail -30 "$out/build.log"; exit 1; }
cd "$out"
rm -rf "$src"
ls "$out"/*.deb
