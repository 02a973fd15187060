#!/bin/sh
# build-images.sh DIR: builds the images of the tests with engines in DIR. Does nothing when DIR exists.
#   DIR/debian.tar   Debian with apt, and a package archive in /opt/packages with the package `boxwood-sample`
#   DIR/busybox.tar  a static busybox, without a C library
#   DIR/musl.tar     the same with musl as its C library
#   DIR/registry     the storage of a registry with these images, as library/NAME:latest and library/debian:12
# Requires root, and one process at a time for each DIR. Exits with 75 when the mirror cannot be reached.
set -eu

dir=$1
[ ! -e "$dir" ] || exit 0
here=$(cd "$(dirname "$0")" && pwd)
staging=$dir.staging
log=$dir.log
registry=
rm -rf "$staging"
mkdir -p "$staging/trees"
finish() {
  status=$?
  [ -z "$registry" ] || kill "$registry" 2>/dev/null || true
  [ "$status" = 0 ] || [ ! -e "$log" ] || tail -n 20 "$log" >&3
  rm -rf "$staging" "$log"
  exit "$status"
}
exec 3>&2
trap finish EXIT

# The mirror of this machine.
# shellcheck disable=SC2016 # apt-get expands the variable
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
if [ -z "$mirror" ]; then
  echo 'apt has no mirror of Debian' >&2
  exit 75
fi

exec >"$log" 2>&1 </dev/null
cd "$staging"

download() { # PACKAGE TREE: unpacks a package of Debian without installing it.
  (cd "$staging" && apt-get download -q "$1" && dpkg-deb -x "$1"_*.deb "$2")
}

build_busybox() {
  tree=$staging/trees/busybox
  mkdir -p unpacked
  download busybox-static "$staging/unpacked"
  mkdir -p "$tree/bin" "$tree/etc" "$tree/proc" "$tree/root" "$tree/sys" "$tree/tmp" "$tree/dev" "$tree/run" \
    "$tree/usr/bin" "$tree/usr/sbin" "$tree/sbin" "$tree/var"
  chmod 1777 "$tree/tmp"
  cp unpacked/bin/busybox "$tree/bin/busybox"
  for program in $("$tree/bin/busybox" --list-full); do
    [ -e "$tree/$program" ] || ln -s /bin/busybox "$tree/$program"
  done
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$tree/etc/passwd"
  printf 'root:x:0:\n' >"$tree/etc/group"
}

build_musl() {
  cp -a "$staging/trees/busybox" "$staging/trees/musl"
  download musl "$staging/trees/musl"
}

build_debian() {
  tree=$staging/trees/debian
  # shellcheck disable=SC2016 # mmdebstrap runs the hook
  mmdebstrap --quiet --mode=root --variant=minbase --aptopt='Acquire::Retries "3"' --dpkgopt=force-unsafe-io \
    --essential-hook='printf "path-exclude=/usr/share/%s/*\n" doc man locale info >"$1/etc/dpkg/dpkg.cfg.d/exclude"' \
    bookworm "$tree" "$mirror"
  for name in doc man locale info; do rm -rf "${tree:?}/usr/share/$name"/*; done
  rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/* "$tree"/var/log/*.log
  : >"$tree/etc/resolv.conf"
  add_packages
}

# apt-get works without a network: the only package archive is in the image.
add_packages() {
  packages=$tree/opt/packages
  mkdir -p "$packages" sample/DEBIAN sample/usr/bin
  printf '#!/bin/sh\necho installed\n' >sample/usr/bin/boxwood-sample
  chmod 755 sample/usr/bin/boxwood-sample
  cat >sample/DEBIAN/control <<END
Package: boxwood-sample
Version: 1.0
Architecture: all
Maintainer: Boxwood <boxwood@localhost>
Description: a package that prints one word
END
  dpkg-deb --root-owner-group --build sample "$packages/boxwood-sample_1.0_all.deb"
  {
    cat sample/DEBIAN/control
    echo 'Filename: ./boxwood-sample_1.0_all.deb'
    echo "Size: $(stat -c %s "$packages/boxwood-sample_1.0_all.deb")"
    echo "SHA256: $(sha256sum "$packages/boxwood-sample_1.0_all.deb" | cut -d ' ' -f 1)"
  } >"$packages/Packages"
  rm -f "$tree"/etc/apt/sources.list.d/*
  echo 'deb [trusted=yes] file:/opt/packages ./' >"$tree/etc/apt/sources.list"
}

build_busybox
build_musl
build_debian
for name in busybox musl debian; do
  tar --create --file "$staging/$name.tar" --numeric-owner --xattrs --directory "$staging/trees/$name" .
done
"$here/fill-registry.sh" "$staging"
rm -rf "$staging/trees" "$staging/unpacked" "$staging/sample" "$staging"/*.deb
mv "$staging" "$dir"
