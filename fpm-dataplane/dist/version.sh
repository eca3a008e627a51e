#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Print the version of the programs. The file VERSION has its number, 0.N. The commit with the tag
# v0.N has the version 0.N, each other commit the version 0.N-COMMIT. In a tarball `git archive` has
# written the commit into the file VERSION.
cd "$(dirname "$0")/../.." || exit 1
number=$(sed 's/-.*//' VERSION)
if [ ! -e .git ] || ! commit=$(git describe --always --dirty --exclude='*' 2>/dev/null); then
	sed 's/-.Format.*//' VERSION
elif [ "$(git describe --exact-match --dirty --match "v$number" 2>/dev/null)" = "v$number" ]; then
	echo "$number"
else
	echo "$number-$commit"
fi
