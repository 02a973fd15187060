#!/bin/sh
# Installs the Debian packages of the engines that some tests and benchmarks start: Docker, Podman and Incus, with what they
# need to run without root, and a registry. Incus is in the backports of Debian 12: where the distribution has no Incus, the
# backports are added in /etc/apt/sources.list.d/boxwood-backports.list. Requires root.
# Starts no service, and changes no other configuration. Tests whose engines are missing are skipped with a reason.
# Idempotent, and fast when everything is installed.
set -eu

missing=
# shellcheck source=install/apt-install.sh
. "$(dirname "$0")/apt-install.sh"
require dockerd docker.io
require podman podman
require crun crun
require runc runc
require newuidmap uidmap
require slirp4netns slirp4netns
require fuse-overlayfs fuse-overlayfs
require iptables iptables
require mkfs.btrfs btrfs-progs
require dnsmasq dnsmasq-base
require skopeo skopeo
require docker-registry docker-registry
require mmdebstrap mmdebstrap
require xz xz-utils
# Podman creates the networks of containers with them.
[ -x /usr/lib/cni/bridge ] || [ -x /usr/lib/podman/netavark ] || missing="$missing containernetworking-plugins"
[ -x /usr/libexec/incus/incusd ] || require incusd incus-base
require incus incus-client

# Adds the backports of the mirror from which this machine has its packages.
add_backports() {
  # shellcheck disable=SC2016 # apt-get expands the variables
  release=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Origin: Debian' 'Label: Debian' | head -n 1)
  [ -n "$release" ] || return 1
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  [ ! -e "$keyring" ] || release="[signed-by=$keyring] $release"
  echo "deb $release-backports main" >/etc/apt/sources.list.d/boxwood-backports.list
  apt-get update -q >/dev/null
}

has_package() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

check_missing 'test engines'
forbid_services
# One missing package does not keep the others out.
failed=
apt-get update -q >/dev/null || true
for package in $missing; do
  case $package in
  incus-*) has_package "$package" || add_backports || true ;;
  esac
  apt_install "$package" || failed="$failed $package"
done
if [ -z "$failed" ]; then
  echo "test engines: installed$missing"
else
  echo "test engines: failed to install$failed" >&2
  exit 1
fi
