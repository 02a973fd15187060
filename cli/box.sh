#!/bin/sh
# Runs the box command with the Node version that this project pins, not with the `node` on the PATH.
here=$(dirname "$(readlink -f "$0")")
exec "$here/../node_modules/.bin/node" "$here/main.ts" "$@"
