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

# One process for all mounts that bind_mount has collected: a process for each takes most of the time of a start.
flush_mounts() {
  [ ! -e "$fstab" ] || mount -a -T "$fstab"
  rm -f "$fstab"
}

# Remounts every mount of the view, except /proc and /dev: nosuid, nodev, and read-only outside the writable paths, which
# are the arguments.
restrict_mounts() {
  while read -r _ _ _ _ path flags _; do
    # mountinfo escapes spaces and other characters as octal numbers.
    case $path in
      *\\*) path=$(printf '%b' "$path") ;;
    esac
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
    # A mount that cannot be accessed is covered by another mount.
    mount -o "remount,bind,$flags,$mode,nosuid,nodev" "$path" || [ ! -e "$path" ] || exit 1
  done </proc/self/mountinfo
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
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"

# Most mounts are of entries of /etc. A bind mount inherits the flags of its source, so that none of them needs a remount. The
# remount fails in a user namespace where the host has set other flags: restrict_mounts then remounts each.
mount --rbind /etc /etc && mount -o remount,bind,ro,nosuid,nodev /etc 2>/dev/null || :

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
      mkdir -p "${path%/*}"
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
