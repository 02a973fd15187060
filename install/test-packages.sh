#!/bin/sh
# Installs the Debian packages that some tests and the benchmarks need: bubblewrap, slirp4netns, mmdebstrap, OpenSSH,
# PostgreSQL, tmux, vim, rsync, curl, busybox, shellcheck, attr, acl, xfsprogs, btrfs-progs, zsh, fish, bash-completion, gh, Python with pip, requests and pipx, cargo, Chromium,
# nginx, Caddy, OpenSSL, the AWS CLI, and a desktop (Xvfb, openbox, x11vnc, xterm). Requires root.
# Tests whose packages are missing are skipped with a reason. Idempotent, and fast when everything is installed.
set -eu

missing=
# shellcheck source=install/apt-install.sh
. "$(dirname "$0")/apt-install.sh"
require bwrap bubblewrap
require slirp4netns slirp4netns
require mmdebstrap mmdebstrap
require ip iproute2
require sshd openssh-server
require ssh openssh-client
require tmux tmux
require vim vim
require rsync rsync
require git git
require gh gh
require curl curl
require busybox busybox
require shellcheck shellcheck
require getfattr attr
require setfacl acl
require mkfs.xfs xfsprogs
require mkfs.btrfs btrfs-progs
require top procps
require chromium chromium
require nginx nginx-light
require nft nftables
require caddy caddy
require openssl openssl
require zsh zsh
require fish fish
require Xvfb xvfb
require xauth xauth
require openbox openbox
require x11vnc x11vnc
require xterm xterm
[ -e /usr/share/bash-completion/bash_completion ] || missing="$missing bash-completion"
# Boxes see only the programs in /usr.
[ -x /usr/bin/pip3 ] || missing="$missing python3-pip"
/usr/bin/python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
/usr/bin/python3 -c 'import requests' 2>/dev/null || missing="$missing python3-requests"
[ -x /usr/bin/pipx ] || missing="$missing pipx"
[ -x /usr/bin/cargo ] || missing="$missing cargo"
[ -x /usr/bin/aws ] || missing="$missing awscli"
# Debian installs the server binaries outside the PATH.
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || require postgres postgresql

check_missing 'test packages'
forbid_services
# shellcheck disable=SC2086 # a list of package names
install_missing() { apt_install $missing; }
if install_missing 2>/dev/null || { apt-get update -q >/dev/null && install_missing; }; then
  echo "test packages: installed$missing"
else
  echo "test packages: failed to install$missing. Run: sudo apt-get install$missing" >&2
  exit 1
fi
