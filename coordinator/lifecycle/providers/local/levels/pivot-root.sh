#!/bin/sh
# Assembles a box's file-system view in new namespaces, makes it the root with pivot_root, and executes the command.
# Arguments: ROOT_DIR HOSTNAME {ro SOURCE PATH | rw SOURCE PATH | symlink TARGET PATH | tmpfs - PATH}... -- COMMAND...
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 022
root=$1
hostname "$2"
shift 2

# In a user namespace a remount must repeat the flags that the host has set (nosuid, ...), else it fails.
remount_read_only() {
  mount -o remount,bind,ro "$1" 2>/dev/null && return
  flags=$(findmnt -n -o VFS-OPTIONS -T "$1")
  mount -o "remount,bind,ro,${flags#r[ow],}" "$1"
}

bind_mount() {
  if [ -d "$1" ]; then
    mkdir -p "$2"
  else
    mkdir -p "${2%/*}"
    : >"$2"
  fi
  mount --rbind "$1" "$2"
}

mount -t tmpfs -o mode=755 boxwood "$root"
mkdir -p "$root/proc" "$root/dev"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
for name in sys sysrq-trigger irq bus; do
  [ -e "$root/proc/$name" ] || continue
  mount --bind "$root/proc/$name" "$root/proc/$name"
  mount -o remount,bind,ro,nosuid,nodev,noexec "$root/proc/$name"
done

mount -t tmpfs -o mode=755,nosuid,noexec boxwood "$root/dev"
for device in null zero full random urandom tty; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,nosuid,noexec devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev boxwood "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"

while [ "$1" != -- ]; do
  path=$root$3
  case $1 in
    ro)
      bind_mount "$2" "$path"
      remount_read_only "$path"
      ;;
    rw) bind_mount "$2" "$path" ;;
    symlink)
      mkdir -p "${path%/*}"
      ln -s "$2" "$path"
      ;;
    tmpfs) mount -t tmpfs -o mode=755,ro boxwood "$path" ;;
  esac
  shift 3
done
shift

cd "$root"
mkdir .host
pivot_root . .host
umount -l /.host
rmdir /.host
mount -o remount,bind,ro /
cd /
exec "$@"
