#!/bin/sh
# sandbox.sh hold NAME: holds namespaces and cgroups for an engine until standard input is closed, and then ends every
# process in them. Prints "ready". Requires root.
# sandbox.sh enter COMMAND...: runs a command in the cgroups of the sandbox whose namespaces it has entered with nsenter.
# sandbox.sh clean NAME: removes the cgroups that an ended sandbox has left.
set -eu

cgroup_mounts() { # Prints the directory, type and options of each hierarchy.
  while read -r _ dir type options _; do
    case $type in cgroup | cgroup2) echo "$dir $type $options" ;; esac
  done </proc/self/mounts
}

join_cgroups() { # SUBDIRECTORY
  cgroup_mounts | while read -r dir _; do echo $$ >"$dir/$1/cgroup.procs"; done
}

# A new mount of a hierarchy shows the cgroup of this process as its root. /sys shows the network namespace of its mount.
mount_cgroups() {
  # In a sandbox of a sandbox, the hierarchies are mounted twice.
  mounts=$(cgroup_mounts | sort -u)
  root=$(findmnt --noheadings --output FSTYPE --mountpoint /sys/fs/cgroup | tail -n 1)
  mount -t sysfs sysfs /sys
  [ "$root" != tmpfs ] || mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  echo "$mounts" | while read -r dir type options; do
    mkdir -p "$dir"
    case $options in
    *name=*) options=none,name=${options##*name=} ;;
    *) options=$(echo "$options" | sed -E 's/\b(rw|ro|relatime|noatime|nosuid|nodev|noexec),//g') ;;
    esac
    if [ "$type" = cgroup ]; then mount -t cgroup -o "$options" cgroup "$dir"; else mount -t cgroup2 cgroup2 "$dir"; fi
  done
}

# Containers of an ordinary user need these devices, which only root may open on some machines.
open_devices() {
  copies=/run/boxwood-devices
  mkdir -p "$copies"
  mount -t tmpfs -o mode=755 tmpfs "$copies"
  for name in fuse tun; do
    device=/dev/fuse
    [ "$name" = fuse ] || device=/dev/net/tun
    [ -c "$device" ] || continue
    mknod "$copies/$name" c "0x$(stat -c %t "$device")" "0x$(stat -c %T "$device")"
    chmod 666 "$copies/$name"
    mount --bind "$copies/$name" "$device"
  done
}

case $1 in
hold)
  cgroup_mounts | while read -r dir _; do
    mkdir -p "$dir/$2"
    for file in cpuset.cpus cpuset.mems; do
      # A cpuset without CPUs accepts no process.
      [ ! -e "$dir/$file" ] || cat "$dir/$file" >"$dir/$2/$file"
    done
  done
  join_cgroups "$2"
  exec unshare --net --mount --uts --ipc --cgroup --pid --fork --kill-child --mount-proc "$0" init
  ;;
init)
  mount --make-rprivate /
  mount_cgroups
  open_devices
  # A private /run: engines write to fixed paths below it.
  mount -t tmpfs -o mode=755 tmpfs /run
  ip link set lo up
  echo ready
  exec 3<&0
  # While the shell waits, it collects the exit statuses of processes whose parents have ended.
  cat <&3 >/dev/null &
  wait $!
  ;;
enter)
  shift
  join_cgroups .
  exec "$@"
  ;;
clean)
  cgroup_mounts | while read -r dir _; do
    [ ! -e "$dir/$2/freezer.state" ] || find "$dir/$2" -depth -name freezer.state
  done | while read -r file; do echo THAWED >"$file"; done # Killed processes exit when they are not frozen.
  cgroup_mounts | while read -r dir _; do
    [ ! -d "$dir/$2" ] || find "$dir/$2" -depth -type d -exec rmdir {} +
  done
  ;;
esac
