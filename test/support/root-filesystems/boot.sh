#!/bin/sh
# boot.sh ROOT INIT…: the first process of a machine. Runs as pid 1 in namespaces of its own, mounts what a container
# runtime mounts and becomes INIT with ROOT as its root directory.
set -eu
root=$1
shift
mount --make-rprivate /
# The shutdown of sysvinit disables the interfaces.
ip link set lo up
ip link set tap0 up
ip route replace default via 10.0.2.2 dev tap0
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,nosuid,noexec devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
hostname "$(cat "$root/etc/hostname")"
cd "$root"
pivot_root . mnt
exec chroot . /bin/sh -c 'umount -l /mnt && exec env -i container=lxc TERM=linux PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' sh "$@"
