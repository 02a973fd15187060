#!/bin/sh
# Installs what the tests and the bench compare with or run on, where this machine lets us: a Debian (or Ubuntu), as root.
# Without them the tests that need them are skipped with the reason. Safe to run again; quick when all is there.
set -eu

missing=
need() { # PROGRAM PACKAGE
  command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing="$missing $2"
}
need bwrap bubblewrap
need sshd openssh-server
need ssh openssh-client
# Debian keeps the server's programs out of the PATH.
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || need postgres postgresql

if [ -z "$missing" ]; then
  echo 'test engines: all there'
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "test engines: not a Debian, so these were not installed:$missing"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "test engines: not root, so these were not installed; run: sudo apt-get install$missing"
  exit 0
fi

# No service is to start because of us: the tests start their own, on ports and folders of their own.
# A policy that is there already is somebody's, and stays.
policy=/usr/sbin/policy-rc.d
made_policy=
cleanup() { [ -z "$made_policy" ] || rm -f "$policy"; }
trap cleanup EXIT
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  made_policy=1
fi

export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of package names
install_missing() { apt-get install -y -q --no-install-recommends $missing >/dev/null; }
if install_missing 2>/dev/null || { apt-get update -q >/dev/null && install_missing; }; then
  echo "test engines: installed$missing"
else
  echo "test engines: could not install$missing" >&2
  exit 1
fi
