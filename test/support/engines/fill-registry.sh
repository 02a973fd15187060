#!/bin/sh
# fill-registry.sh DIR: stores DIR/{debian,busybox,musl}.tar as images in the storage of a registry, DIR/registry. The
# registry runs in a network namespace of its own, so that its port is free.
set -eu

dir=$1
if [ "${2:-}" != inside ]; then exec unshare --net --pid --fork --kill-child "$0" "$dir" inside; fi
ip link set lo up
here=$(dirname "$0")
mkdir -p "$dir/registry" "$dir/layouts"
REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY=$dir/registry docker-registry serve "$here/registry.yml" &
registry=$!

sha256() { sha256sum "$1" | cut -d ' ' -f 1; }
size() { stat -c %s "$1"; }
add_blob() { # FILE: moves a file into the blobs of the layout, and prints its digest and size.
  digest=$(sha256 "$1")
  bytes=$(size "$1")
  mv "$1" "$layout/blobs/sha256/$digest"
  echo "\"digest\": \"sha256:$digest\", \"size\": $bytes"
}

for name in debian busybox musl; do
  layout=$dir/layouts/$name
  mkdir -p "$layout/blobs/sha256"
  diff=$(sha256 "$dir/$name.tar")
  gzip -1 <"$dir/$name.tar" >"$layout/layer"
  layer=$(add_blob "$layout/layer")
  cat >"$layout/config" <<END
{"architecture": "amd64", "os": "linux", "created": "2026-01-01T00:00:00Z",
 "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], "Cmd": ["/bin/sh"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$diff"]}}
END
  config=$(add_blob "$layout/config")
  cat >"$layout/manifest" <<END
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
 "config": {"mediaType": "application/vnd.oci.image.config.v1+json", $config},
 "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", $layer}]}
END
  manifest=$(add_blob "$layout/manifest")
  cat >"$layout/index.json" <<END
{"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", $manifest}]}
END
  echo '{"imageLayoutVersion": "1.0.0"}' >"$layout/oci-layout"
done

until ss --listening --tcp --no-header --numeric | grep -q :5000; do
  kill -0 "$registry"
  sleep 0.1
done
for target in debian:latest debian:12 busybox:latest musl:latest; do
  skopeo copy --quiet --insecure-policy --dest-tls-verify=false --format v2s2 "oci:$dir/layouts/${target%%:*}" "docker://127.0.0.1:5000/library/$target"
done
kill "$registry"
wait "$registry" || true
rm -rf "$dir/layouts"
