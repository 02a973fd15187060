# shellcheck shell=sh
# Functions of test-packages.sh and test-engines.sh, which collect the missing packages in `missing` and install them.

# Adds PACKAGE to `missing` when PROGRAM is not installed.
require() { # PROGRAM PACKAGE
  command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing="$missing $2"
}

# Exits when nothing is missing, or when this machine or user cannot install packages.
check_missing() { # TITLE
  if [ -z "$missing" ]; then
    echo "$1: all installed"
    exit 0
  fi
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "$1: apt-get not found. Install these packages manually:$missing"
    exit 0
  fi
  if [ "$(id -u)" != 0 ]; then
    echo "$1: cannot install$missing without root. Run: sudo apt-get install$missing"
    exit 0
  fi
}

# Keeps apt from starting services until the script exits: the tests start their own, on their own ports and directories.
# An existing policy file is left unchanged.
forbid_services() {
  policy=/usr/sbin/policy-rc.d
  [ ! -e "$policy" ] || return 0
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
}

apt_install() { # PACKAGE...
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null
}
