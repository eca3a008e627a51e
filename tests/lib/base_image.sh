#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Make debian:$2-slim, the base image of docker/Dockerfile, with podman from Debian's packages. It is for
# machines that reach Debian's servers but no registry of images. The content of the image is a root that
# is made in directory $1 and removed afterwards. If podman has the image, do nothing. The script needs
# root.
set -e
[ $# -eq 2 ] || { echo "usage: $0 /ABSOLUTE/DIRECTORY SUITE" >&2; exit 2; }
root=$1 name=docker.io/library/debian:$2-slim
podman image exists "$name" && exit 0
"$(dirname "$0")/debian_root.sh" "$root" "$2" >"$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 1; }
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/usr/share/doc/* "$root"/usr/share/man/* \
	"$root"/usr/share/locale/*
tar -C "$root" -c . | podman import --quiet - "$name"
rm -rf --one-file-system "$root"
