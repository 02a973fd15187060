#!/bin/sh
# Installs the Boxwood agent, which makes this Linux machine a box. A coordinator serves this script as /install.sh with
# its settings. It runs in dash, bash and busybox sh. `sh install.sh --help` prints the options.
#
# Everything is in functions, and the last line calls main: a download that is cut off does nothing.

MIN_KERNEL=4.18
MIN_GLIBC=2.28
MAX_CLOCK_SECONDS=300

settings() {
  fail_unrendered # replaced by the coordinator with its settings
}

usage() {
  cat <<'EOF'
Usage: sh install.sh --token TOKEN [options]

  --token TOKEN       enrols this machine; printed by `box machine add`. Instead of the option: the variable BOXWOOD_TOKEN
  --url URL           the coordinator's URL, if it is not the one from which this script was downloaded
  --prefix DIR        where to install; default: /opt/boxwood for root, otherwise ~/.local/share/boxwood
  --user NAME         the user who runs the commands of the box; only root can choose one; default: the current user
  --ca FILE           certificates (PEM) of the private authority that has signed the coordinator's certificate
  --service KIND      what starts the agent: systemd, systemd-user, or none, which runs it until the machine stops;
                      default: what this machine has
  --no-service        install, and start nothing
  --uninstall         stop the agent and the commands of the box, and remove everything that was installed
  --help              print this text
EOF
}

print() {
  printf '%s\n' "$*"
}

# Prints what happened and what to do, and exits. The trap removes what was created.
fail() {
  printf 'boxwood: %s\n' "$*" >&2
  exit 1
}

fail_unrendered() {
  fail "This file is a template. Download the script from your coordinator: curl -fsSL https://COORDINATOR/install.sh"
}

has() {
  command -v "$1" >/dev/null 2>&1
}

parse_options() {
  token=${BOXWOOD_TOKEN-}
  unset BOXWOOD_TOKEN
  url=$coordinator_url
  prefix='' user='' ca_file='' service=1 service_kind='' action=install
  while [ $# -gt 0 ]; do
    case $1 in
      --token | --url | --prefix | --user | --ca | --service)
        [ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value. Run with --help to see the options."
        case $1 in
          --token) token=$2 ;;
          --url) url=$2 ;;
          --prefix) prefix=$2 ;;
          --user) user=$2 ;;
          --ca) ca_file=$2 ;;
          --service) service_kind=$2 ;;
        esac
        shift
        ;;
      --no-service) service='' ;;
      --uninstall) action=uninstall ;;
      --help | -h)
        usage
        exit 0
        ;;
      *) fail "Unknown option $1. Run with --help to see the options." ;;
    esac
    shift
  done
  url=${url%/}
  case $url in
    http://?* | https://?*) ;;
    *) fail "$url is not an http:// or https:// URL. Pass the URL of the coordinator with --url." ;;
  esac
  host=${url#*://}
  host=${host%%/*}
}

choose_prefix() {
  if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then
      prefix=/opt/boxwood
    else
      [ -n "${HOME-}" ] || fail "HOME is not set. Pass a directory with --prefix."
      prefix=$HOME/.local/share/boxwood
    fi
  fi
  prefix=${prefix%/}
  case $prefix in
    /?*) ;;
    *) fail "The directory $prefix is not an absolute path. Pass one with --prefix." ;;
  esac
  # The path is part of unit files and of command lines.
  case $prefix in
    *[!A-Za-z0-9._/@+-]* | */../* | */./* | */.. | */.)
      fail "The path $prefix has characters other than letters, digits and ._-@+/. Pass another directory with --prefix."
      ;;
  esac
}

# ---- checks of the machine

check_system() {
  [ "$(uname -s)" = Linux ] || fail "Boxes run Linux; this machine runs $(uname -s)."
  case $(uname -m) in
    x86_64 | amd64) platform=linux-x64 loader=/lib64/ld-linux-x86-64.so.2 ;;
    aarch64 | arm64) platform=linux-arm64 loader=/lib/ld-linux-aarch64.so.1 ;;
    *) fail "There is no agent for the architecture $(uname -m). Machines with x86_64 or aarch64 can become boxes." ;;
  esac
  kernel=$(uname -r)
  is_at_least "$kernel" $MIN_KERNEL ||
    fail "The kernel of this machine is $kernel; the agent needs $MIN_KERNEL or newer. Upgrade the distribution."
  check_libc
}

check_libc() {
  if [ ! -e "$loader" ]; then
    for musl in /lib/ld-musl-*; do
      [ -e "$musl" ] || continue
      fail "This distribution uses musl; the agent needs glibc. Use a distribution with glibc, such as Debian, Ubuntu, Fedora or Arch, also in a container."
    done
    case $(getconf LONG_BIT 2>/dev/null) in
      32) fail "The programs of this distribution are for 32 bits; the agent needs a 64-bit one." ;;
    esac
    fail "The agent needs glibc, and $loader does not exist. Use a distribution with glibc, such as Debian, Ubuntu, Fedora or Arch."
  fi
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || glibc=$("$loader" --version 2>/dev/null) || glibc=''
  # "glibc 2.36", or a first line that ends with "version 2.36." The version of older loaders is not known.
  glibc=$(printf '%s\n' "$glibc" | sed -n '1s/.*[^0-9]\([0-9][0-9]*\.[0-9][0-9]*\)\.\{0,1\}$/\1/p')
  [ -z "$glibc" ] || is_at_least "$glibc" $MIN_GLIBC ||
    fail "This distribution has glibc $glibc; the agent needs $MIN_GLIBC or newer. Upgrade the distribution."
}

# Whether version $1 is at least $2. Compares the first two numbers.
is_at_least() {
  major=${1%%.*}
  minor=${1#*.}
  minor=${minor%%[!0-9]*}
  case $major$minor in
    '' | *[!0-9]*) return 0 ;;
  esac
  [ "$major" -gt "${2%%.*}" ] || { [ "$major" -eq "${2%%.*}" ] && [ "${minor:-0}" -ge "${2#*.}" ]; }
}

check_programs() {
  for program in tar gzip; do
    has $program || fail "The program $program is missing. Install it, for example with: apt-get install $program"
  done
  has sha256sum || has openssl ||
    fail "Neither sha256sum nor openssl is installed. Install one of them, for example with: apt-get install coreutils"
  has curl || has wget ||
    fail "Neither curl nor wget is installed. Install one of them, for example with: apt-get install curl"
}

# The coordinator wrote its time into this script.
check_clock() {
  now=$(date +%s)
  [ "$now" -ge $((coordinator_time - MAX_CLOCK_SECONDS)) ] ||
    fail "The clock of this machine is wrong: it is $(date), which is $(((coordinator_time - now) / 60)) minutes before the coordinator sent this script. Set the clock, for example with: timedatectl set-ntp true"
}

check_ca() {
  [ -n "$ca_file" ] || return 0
  [ -r "$ca_file" ] || fail "The file $ca_file of --ca cannot be read. Pass a file with certificates in the PEM format."
  grep -q 'BEGIN CERTIFICATE' "$ca_file" ||
    fail "The file $ca_file of --ca has no certificate. Pass a file with certificates in the PEM format."
}

# Sets the variables of the bundle of this platform.
find_bundle() {
  found=$(printf '%s\n' "$bundles" | grep "^$platform ") || found=''
  [ -n "$found" ] ||
    fail "The coordinator has no agent for $platform. Run this on the coordinator, and then this installer again: boxwood platform add $platform"
  # shellcheck disable=SC2086 # seven words without spaces
  set -- $found
  version=$2 build_id=$3 size=$4 unpacked_size=$5 sha256=$6 signature=$7
}

# ---- files

# Prints why a file in directory $1 could not be written; $2 is the message of the program.
fail_to_write() {
  case $2 in
    *'Read-only file system'*)
      fail "$1 is on a read-only file system. Make it writable, or choose another directory with --prefix." ;;
    *'No space left'* | *'Disk quota exceeded'* | *'write error'* | *'Failure writing'*)
      fail "The disk of $1 is full. The installation needs $(((size + unpacked_size) / 1000000)) MB. Free some space, or choose another directory with --prefix." ;;
    *'Permission denied'* | *'Operation not permitted'*)
      fail "$1 cannot be written by $(id -un 2>/dev/null || id -u). Run the installer as root, or choose another directory with --prefix." ;;
    *) fail "$1 cannot be written: $2. Choose another directory with --prefix." ;;
  esac
}

# Creates directory $1 and those above it, and lists the new ones in `created`, the outermost first.
create_directories() {
  [ ! -d "$1" ] || return 0
  create_directories "$(dirname "$1")"
  message=$(mkdir "$1" 2>&1) || fail_to_write "$(dirname "$1")" "$message"
  created="$created$1
"
}

# The nearest directory above $1 that exists.
existing_parent() {
  dir=$1
  while [ ! -d "$dir" ]; do dir=$(dirname "$dir"); done
  printf '%s\n' "$dir"
}

check_space() {
  parent=$(existing_parent "$prefix")
  free=$(df -Pk "$parent" 2>/dev/null | awk 'NR == 2 { print $4 }') || free=''
  case $free in
    '' | *[!0-9]*) return 0 ;;
  esac
  needed=$(((size + unpacked_size) / 1024))
  [ "$free" -ge "$needed" ] ||
    fail "The disk of $parent has $((free / 1000)) MB free; the installation needs $((needed / 1000)) MB. Free some space, or choose another directory with --prefix."
}

# An installer that was killed leaves files, which the next one replaces.
check_prefix() {
  [ -d "$prefix" ] && [ ! -e "$prefix/install.json" ] || return 0
  for file in "$prefix"/* "$prefix"/.[!.]*; do
    case ${file##*/} in
      staging.* | state | versions | current | previous | agent.env | coordinator.pub | ca.pem | lock) continue ;;
    esac
    [ ! -e "$file" ] || fail "The directory $prefix contains other files, such as $file. Choose another one with --prefix."
  done
}

# Root does not use files that another user can change: this user could replace them between two steps.
check_owners() {
  [ "$(id -u)" = 0 ] || [ -d "$prefix" ] || return 0
  [ ! -d "$prefix" ] || is_own "$prefix" ||
    fail "$prefix belongs to another user. The coordinator upgrades an agent there. To change its settings, remove it with --uninstall, and install it again with a new token."
  [ -n "$user" ] || return 0
  dir=$(existing_parent "$prefix")
  while is_own "$dir"; do
    [ "$dir" != / ] || return 0
    dir=$(dirname "$dir")
  done
  fail "$dir belongs to another user, so root cannot install below it for $user. Choose another directory with --prefix, or run the installer as $user."
}

cleanup() {
  status=$?
  trap - EXIT
  [ -z "$staging" ] || rm -rf "$staging" "$staging.tar.gz"
  # The innermost first; directories with files stay.
  if [ "$status" != 0 ] && [ -n "$created" ]; then
    printf '%s' "$created" | sed '1!G;h;$!d' | while read -r dir; do rmdir "$dir" 2>/dev/null; done
  fi
  exit "$status"
}

# ---- download

# Downloads URL $1 to file $2.
download() {
  if has curl; then
    download_with_curl "$1" "$2"
  else
    download_with_wget "$1" "$2"
  fi
}

download_with_curl() {
  # A transfer of less than 1 kB/s for a minute is ended.
  if output=$(curl -fsSL ${ca_file:+--cacert "$ca_file"} --connect-timeout 15 --retry 2 --speed-limit 1000 --speed-time 60 \
    -w '\n%{http_code}' -o "$2" "$1" 2>&1 </dev/null); then
    return 0
  else
    result=$?
  fi
  http_status=$(printf '%s\n' "$output" | tail -n 1)
  message=$(printf '%s\n' "$output" | sed -n '/^curl/{s/^curl: ([0-9]*) //;p;q;}')
  case $result in
    5) fail_proxy "$message" ;;
    6) fail_dns ;;
    7 | 28 | 52 | 56)
      case $message in
        *CONNECT*) fail_proxy "$message" ;;
      esac
      fail_connect "$message"
      ;;
    22) fail_status "$http_status" "$1" ;;
    23) fail_to_write "$prefix" "No space left: $message" ;;
    35 | 51 | 58 | 60 | 77 | 83) fail_tls "$message" ;;
    *) fail_connect "$message" ;;
  esac
}

download_with_wget() {
  if message=$(wget -q ${ca_file:+--ca-certificate="$ca_file"} -T 60 -O "$2" "$1" 2>&1 </dev/null); then return 0; fi
  message=$(printf '%s\n' "$message" | tail -n 1)
  # GNU wget -q prints nothing.
  [ -n "$message" ] || message=$(wget ${ca_file:+--ca-certificate="$ca_file"} -T 60 -O /dev/null "$1" 2>&1 </dev/null) || true
  case $message in
    *'unable to resolve'* | *'bad address'* | *'Name or service not known'* | *'failure in name resolution'*) fail_dns ;;
    *ertificate* | *TLS* | *SSL*) fail_tls "$(printf '%s\n' "$message" | tail -n 1)" ;;
    *'404'*) fail_status 404 "$1" ;;
    *'No space'* | *'write error'* | *'Cannot write'*) fail_to_write "$prefix" "No space left" ;;
    *) fail_connect "$(printf '%s\n' "$message" | tail -n 1)" ;;
  esac
}

fail_dns() {
  fail "The name ${host%:*} cannot be resolved. Check the DNS servers of this machine in /etc/resolv.conf."
}

fail_proxy() {
  fail "The proxy refuses the connection to $host: $1. Check https_proxy and no_proxy, and whether the proxy allows CONNECT to $host."
}

fail_connect() {
  fail "The coordinator at $host cannot be reached: $1. Check that it runs, and the network, firewall and proxy of this machine."
}

fail_tls() {
  fail "The certificate of $host is not accepted: $1. If a private authority has signed it, pass --ca FILE. This machine's clock: $(date)."
}

fail_status() {
  case $1 in
    404) fail "The coordinator does not have this agent bundle any more: it was upgraded, or this script is old. Download install.sh from the coordinator again." ;;
    407) fail_proxy "it requires a user name and a password" ;;
    *) fail "The coordinator responds to $2 with HTTP status $1. Check the URL $url, and the log of the coordinator." ;;
  esac
}

compute_sha256() {
  if has sha256sum; then
    sha256sum "$1" | cut -d ' ' -f 1
  else
    openssl dgst -sha256 "$1" | sed 's/.*= *//'
  fi
}

fetch_bundle() {
  archive=$staging.tar.gz
  print "Downloading the agent ($((size / 1000000)) MB) from $host ..."
  download "$url/agent/bundles/$platform-$build_id.tar.gz" "$archive"
  [ "$(compute_sha256 "$archive")" = "$sha256" ] ||
    fail "The downloaded agent bundle does not have the SHA-256 that this script states. It was changed on its way, or the download is damaged. Run the installer again."
  # -o: the files belong to this user.
  message=$(tar -xzof "$archive" -C "$staging" 2>&1 </dev/null) || fail_to_write "$prefix" "$message"
  message=$("$staging/node" --version 2>&1 </dev/null) || fail_to_run "$message"
}

fail_to_run() {
  case $1 in
    *libstdc++* | *libgcc_s* | *libatomic*)
      fail "A library is missing: $1. Install it, for example with: apt-get install libstdc++6 (Fedora: dnf install libstdc++; Arch: pacman -S gcc-libs)" ;;
    *GLIBC*)
      fail "The glibc of this distribution is too old; the agent needs $MIN_GLIBC or newer. Upgrade the distribution. The message is: $1" ;;
    *'Permission denied'*)
      fail "Programs in $prefix cannot be executed: the file system may be mounted with noexec. Choose another directory with --prefix." ;;
    *) fail "The agent's Node does not run on this machine: $1" ;;
  esac
}

# ---- actions

install_agent() {
  check_system
  check_programs
  check_clock
  check_ca
  find_bundle
  check_prefix
  check_owners
  check_space
  umask 022
  create_directories "$prefix"
  set -- --prefix "$prefix" --url "$url" --public-key "$public_key" --platform "$platform" --version "$version" \
    --build-id "$build_id" --size "$size" --sha256 "$sha256" --signature "$signature"
  [ -n "$service" ] || set -- "$@" --no-service
  [ -z "$service_kind" ] || set -- "$@" --service "$service_kind"
  [ -z "$user" ] || set -- "$@" --user "$user"
  [ -z "$ca_file" ] || set -- "$@" --ca "$ca_file"
  if is_own "$prefix" && [ "$(readlink "$prefix/current" 2>/dev/null)" = "versions/$build_id" ]; then
    setup=$prefix/current
  else
    staging=$prefix/staging.$$
    message=$(mkdir "$staging" 2>&1) || fail_to_write "$prefix" "$message"
    fetch_bundle
    set -- "$@" --staging "$staging" --archive "$archive"
    setup=$staging
  fi
  while read -r dir; do
    [ -z "$dir" ] || set -- "$@" --created "$dir"
  done <<EOF
$created
EOF
  # As curl, Node then accepts the authorities of the system, and those of --ca. Without the directory it prints a warning.
  [ ! -d /etc/ssl/certs ] || export NODE_USE_SYSTEM_CA=1
  [ -z "$ca_file" ] || export NODE_EXTRA_CA_CERTS="$ca_file"
  # In the environment, other users cannot read the token.
  BOXWOOD_TOKEN=$token "$setup/node" "$setup/setup.mjs" install "$@" </dev/null || exit 1
}

# Whether this user owns directory $1. Root does not run programs that another user can change.
is_own() {
  # shellcheck disable=SC2012 # one directory
  [ "$(ls -ldn "$1" 2>/dev/null | awk '{ print $3 }')" = "$(id -u)" ]
}

uninstall_agent() {
  [ -e "$prefix/install.json" ] ||
    fail "There is no agent in $prefix. If it is in another directory, pass that with --prefix."
  setup=$prefix/current
  if ! is_own "$prefix" || [ ! -e "$setup/setup.mjs" ]; then
    check_system
    check_programs
    check_ca
    find_bundle
    staging=$(mktemp -d) || fail "No temporary directory can be created. Set TMPDIR to a directory that you can write to."
    fetch_bundle
    setup=$staging
  fi
  "$setup/node" "$setup/setup.mjs" uninstall --prefix "$prefix" </dev/null || exit 1
}

main() {
  set -eu
  # Messages of programs are compared with English text.
  export LC_ALL=C
  # Options for another Node of this machine.
  unset NODE_OPTIONS NODE_PATH
  staging='' created=''
  settings
  parse_options "$@"
  choose_prefix
  trap cleanup EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  case $action in
    install) install_agent ;;
    uninstall) uninstall_agent ;;
  esac
}

# In braces: a cut line is a syntax error.
{ main "$@"; }
