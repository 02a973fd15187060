#!/bin/sh
# hold.sh TREE DIR [DISK]: mounts what a machine keeps over reboots, in the mount namespace and network namespace of this
# process. DIR/root is a writable overlay of the root file system TREE, DIR/cgroup the cgroup 2 hierarchy. The upper layer
# starts as a copy of DISK, the upper layer of another machine. Prints a line when everything is mounted, and runs until
# its standard input is closed.
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root" "$2/cgroup"
chmod 755 "$2" "$2/upper"
[ -z "${3:-}" ] || cp -a "$3/." "$2/upper/"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
mount -t cgroup2 cgroup2 "$2/cgroup"
ip link set lo up
echo mounted
exec cat >/dev/null
