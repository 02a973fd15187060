#!/bin/sh
# build-trees.sh SUITE DIR: builds root file systems from one Debian suite in DIR. Does nothing when DIR exists.
#   trixie     DIR/trixie   Debian with systemd and curl
#              DIR/busybox  busybox, and the libraries that Node needs: glibc and libstdc++
#   bookworm   DIR/bookworm Debian with systemd and curl
# Each has an ordinary user `tester` (1000). Requires root, and one process at a time for each DIR. Exits with 75 when the
# mirror cannot be reached.
set -eu

suite=$1
dir=$2
[ ! -e "$dir" ] || exit 0
staging=$dir.staging
log=$dir.log
rm -rf "$staging"
mkdir -p "$staging"
finish() {
  status=$?
  [ "$status" = 0 ] || [ ! -e "$log" ] || tail -n 20 "$log" >&3
  rm -rf "$staging" "$log"
  exit "$status"
}
exec 3>&2
trap finish EXIT

# The mirror of this machine.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
if [ -z "$mirror" ]; then
  echo 'apt has no mirror of Debian' >&2
  exit 75
fi
if ! problem=$(curl --silent --show-error --fail --location --max-time 20 --output /dev/null \
  "${mirror%/}/dists/$suite/InRelease" 2>&1); then
  echo "the Debian mirror $mirror cannot be reached: $problem" >&2
  exit 75
fi

# Documentation and translations are excluded by a file in the tree: with --dpkgopt, mmdebstrap would also filter the
# essential packages, with a Python process for each.
build_debian() {
  tree=$staging/$suite
  mmdebstrap --quiet --mode=root --variant=apt \
    --include="systemd-sysv,dbus,libpam-systemd,procps,passwd,curl,ca-certificates$1" \
    --aptopt='Acquire::Retries "3"' --dpkgopt=force-unsafe-io \
    --essential-hook='printf "path-exclude=/usr/share/%s/*\n" doc man locale info >"$1/etc/dpkg/dpkg.cfg.d/exclude"' \
    "$suite" "$tree" "$mirror"
  for name in doc man locale info; do rm -rf "$tree/usr/share/$name"/*; done
  chroot "$tree" useradd --create-home --uid 1000 --shell /bin/sh tester
}

build_busybox() {
  tree=$staging/busybox
  mkdir "$tree"
  cd "$tree"
  mkdir -p etc/init.d home/tester mnt opt proc root run sys tmp usr/bin usr/sbin usr/lib usr/lib64 dev var/log var/tmp
  chmod 1777 tmp var/tmp
  for link in bin sbin lib lib64; do ln -s usr/$link $link; done
  # The other trees have no busybox.
  mv "$staging/trixie/usr/bin/busybox" usr/bin/busybox
  chroot "$staging/trixie" dpkg -L libc6 libstdc++6 libgcc-s1 | grep '^/usr/lib.*\.so' | grep -v /gconv/ | while read -r file; do
    target=$tree/usr/${file#/usr/}
    mkdir -p "$(dirname "$target")"
    [ -d "$staging/trixie$file" ] || cp -a "$staging/trixie$file" "$target"
  done
  ldconfig -r "$tree"
  chroot "$tree" /usr/bin/busybox --install -s
  printf 'root:x:0:0:root:/root:/bin/sh\ntester:x:1000:1000::/home/tester:/bin/sh\n' >etc/passwd
  printf 'root:x:0:\ntester:x:1000:\n' >etc/group
  printf '::sysinit:/etc/init.d/rcS\n::ctrlaltdel:/sbin/reboot\n' >etc/inittab
  printf '#!/bin/sh\n' >etc/init.d/rcS
  chmod 755 etc/init.d/rcS
  chown 1000:1000 home/tester
}

exec >"$log" 2>&1 </dev/null
if [ "$suite" = trixie ]; then
  build_debian ,busybox-static
  build_busybox
else
  build_debian ''
fi
for tree in "$staging"/*; do
  rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/*
  printf 'box-under-test\n' >"$tree/etc/hostname"
  printf '127.0.0.1 localhost\n' >"$tree/etc/hosts"
  : >"$tree/etc/resolv.conf"
done
mv "$staging" "$dir"
