#!/bin/sh
# Installs the Debian packages that some tests and the benchmarks need: bubblewrap, slirp4netns, mmdebstrap, OpenSSH,
# PostgreSQL, tmux, vim, rsync, curl, busybox, shellcheck, attr, acl, zsh, fish, bash-completion, gh, Python with pip, requests and pipx, cargo, Chromium,
# nginx, Caddy, OpenSSL, and a desktop (Xvfb, openbox, x11vnc, xterm). Requires root.
# Tests whose packages are missing are skipped with a reason. Idempotent, and fast when everything is installed.
set -eu

missing=
# Adds PACKAGE to `missing` when PROGRAM is not installed.
require() { # PROGRAM PACKAGE
  command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing="$missing $2"
}
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
require top procps
require chromium chromium
require nginx nginx-light
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
# Debian installs the server binaries outside the PATH.
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || require postgres postgresql

if [ -z "$missing" ]; then
  echo 'test packages: all installed'
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "test packages: apt-get not found. Install these packages manually:$missing"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "test packages: cannot install$missing without root. Run: sudo apt-get install$missing"
  exit 0
fi

# policy-rc.d keeps apt from starting services: the tests start their own, on their own ports and directories.
# An existing policy file is left unchanged.
policy=/usr/sbin/policy-rc.d
created_policy=
cleanup() { [ -z "$created_policy" ] || rm -f "$policy"; }
trap cleanup EXIT
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  created_policy=1
fi

export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of package names
install_missing() { apt-get install -y -q --no-install-recommends $missing >/dev/null; }
if install_missing 2>/dev/null || { apt-get update -q >/dev/null && install_missing; }; then
  echo "test packages: installed$missing"
else
  echo "test packages: failed to install$missing. Run: sudo apt-get install$missing" >&2
  exit 1
fi
