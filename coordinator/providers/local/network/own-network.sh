#!/bin/sh
# Runs a command in a network namespace of its own, which slirp4netns connects to the network of the host.
# Arguments: DIR UNSHARE_ARGUMENT... -- COMMAND...  DIR is used for two FIFOs.
# The command inherits descriptor 9, and the init of a box keeps it open: slirp4netns exits when no process has it open.
set -eu

if [ "$1" = --attach ]; then
  # In the new namespace.
  shift
  echo >&9
  ready=
  read -r ready <&6 || :
  exec 6<&-
  if [ "$ready" != 1 ]; then
    echo 'slirp4netns did not start' >&2
    exit 1
  fi
  # Link-local addresses: the metadata services of clouds. The host would forward the connections.
  ip route add blackhole 169.254.0.0/16
  exec "$@"
fi

script=$0
# slirp4netns detaches its old root. Without a mount namespace of its own, the machine would lose every file system that is
# mounted below a shared one. Under an ordinary user the namespaces of the box have this effect.
own_mounts=
[ "$(id -u)" != 0 ] || own_mounts='unshare --mount --propagation private --'
pid=$$
control=$1/network-control
ready=$1/network-ready
shift
rm -f "$control" "$ready"
mkfifo -m 600 "$control" "$ready"
# Opening one end of a FIFO blocks until the other end is open, except for reading and writing.
exec 7<>"$control" 8<>"$ready"
exec 5<"$control" 9>"$control" 6<"$ready" 4>"$ready"
exec 7>&- 8>&-
rm "$control" "$ready"
{
  exec 6<&- 9>&-
  # Fails when the namespace could not be created.
  read -r _ <&5
  # No access to the host's loopback addresses. No messages: packets of the box can cause any number of them.
  # shellcheck disable=SC2086 # no argument, or several
  exec $own_mounts slirp4netns --configure --mtu=65520 --disable-host-loopback --enable-sandbox --enable-seccomp \
    --exit-fd=5 --ready-fd=4 "$pid" tap0 >/dev/null 2>&1
} &
exec 4>&- 5<&-

unshare_arguments=
while [ "$1" != -- ]; do
  unshare_arguments="$unshare_arguments $1"
  shift
done
shift
# shellcheck disable=SC2086 # a list of options without spaces
exec unshare $unshare_arguments --net -- /bin/sh "$script" --attach "$@"
