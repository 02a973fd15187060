#!/bin/sh
# Assembles a box's file-system view in new namespaces, makes it the root with pivot_root, and executes the command.
# Arguments: ROOT_DIR HOSTNAME {ro SOURCE PATH | rw SOURCE PATH | symlink TARGET PATH | tmpfs - PATH}... -- COMMAND...
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 022
root=$1
fstab=$root/.fstab
hostname "$2"
shift 2

bind_mount() {
  if [ -d "$1" ]; then
    [ -d "$2" ] || mkdir -p "$2"
  else
    [ -d "${2%/*}" ] || mkdir -p "${2%/*}"
    : >"$2"
  fi
  # Includes the mounts below the source.
  case $1$2 in
    # fstab has escapes for spaces and other characters.
    *[!A-Za-z0-9/._:@%+=,-]*)
      flush_mounts
      mount --rbind "$1" "$2"
      ;;
    *) echo "$1 $2 none rbind 0 0" >>"$fstab" ;;
  esac
}

# Creates the directories of all mounts in one process, where no other mount covers them. Arguments: the mounts.
create_directories() {
  while [ "$1" != -- ]; do
    if [ "$1" != symlink ] && [ -d "$2" ]; then printf '%s\0' "$root$3"; else printf '%s\0' "$root${3%/*}"; fi
    shift 3
  done | xargs -0 mkdir -p
}

# One process for all mounts that bind_mount has collected: a process for each takes most of the time of a start.
flush_mounts() {
  [ ! -e "$fstab" ] || mount -a -T "$fstab"
  rm -f "$fstab"
}

# Lists the mounts of the view, except /proc and /dev, that are not nosuid, nodev, and read-only outside the writable paths,
# which are the arguments. Prints the path, as mountinfo escapes it, and the options of a remount.
list_unrestricted() {
  while read -r _ _ _ _ path flags _; do
    case $path in
      /proc | /proc/* | /dev | /dev/*) continue ;;
    esac
    mode=ro
    for writable_path in "$@"; do
      case $path in
        "$writable_path" | "$writable_path"/*) mode=${flags%%,*} ;;
      esac
    done
    # mountinfo prints these flags first.
    case $flags, in
      $mode,nosuid,nodev,*) continue ;;
    esac
    # In a user namespace a remount must repeat the flags that the host has set (noexec, ...), else it fails.
    # echo of dash would replace the escapes.
    printf '%s\n' "$path remount,bind,$flags,$mode,nosuid,nodev"
  done </proc/self/mountinfo
}

# Remounts every mount that list_unrestricted lists: all in one process, then one by one what is left, such as the root, which
# `mount -a` skips. The lists are in the root: the box can write to /tmp.
restrict_mounts() {
  list_unrestricted "$@" >/.unrestricted
  while read -r path options; do
    printf '%s\n' "none $path none $options 0 0"
  done </.unrestricted >/.fstab
  mount -a -T /.fstab 2>/dev/null || :
  list_unrestricted "$@" >/.unrestricted
  exec 3</.unrestricted
  rm /.fstab /.unrestricted
  while read -r path options <&3; do
    # mountinfo escapes spaces and other characters as octal numbers.
    case $path in
      *\\*) path=$(printf '%b' "$path") ;;
    esac
    # A mount that cannot be accessed is covered by another mount.
    mount -o "$options" "$path" || [ ! -e "$path" ] || exit 1
  done
  exec 3<&-
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
  bind_mount "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,nosuid,noexec devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev boxwood "$root/dev/shm"
ln -s pts/ptmx /proc/self/fd "$root/dev"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"

# Most mounts are of entries of /etc. A bind mount inherits the flags of its source, so that none of them needs a remount. The
# remount fails in a user namespace where the host has set other flags: restrict_mounts then remounts each.
mount --rbind /etc /etc && mount -o remount,bind,ro,nosuid,nodev /etc 2>/dev/null || :

create_directories "$@"
writable=
while [ "$1" != -- ]; do
  path=$root$3
  case $1 in
    ro) bind_mount "$2" "$path" ;;
    rw)
      bind_mount "$2" "$path"
      writable="$writable $3"
      ;;
    symlink)
      [ -d "${path%/*}" ] || mkdir -p "${path%/*}"
      ln -s "$2" "$path"
      ;;
    tmpfs)
      flush_mounts
      mount -t tmpfs -o mode=755 boxwood "$path"
      ;;
  esac
  shift 3
done
shift
flush_mounts

cd "$root"
mkdir .host
pivot_root . .host
umount -l /.host
rmdir /.host
# shellcheck disable=SC2086 # a list of paths
restrict_mounts $writable
cd /
exec "$@"
