#!/bin/sh
# Runs the box command with the Node version that this project pins, not with the `node` on the PATH.
here=$(dirname "$(readlink -f "$0")")
# Node caches the compiled sources here, which halves the start time. Without write permission Node does not cache.
export NODE_COMPILE_CACHE="${NODE_COMPILE_CACHE-$here/../node_modules/.cache/box}"
exec "$here/../node_modules/.bin/node" "$here/main.ts" "$@"
