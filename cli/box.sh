#!/bin/sh
# Runs the command line with the Node that this project pins, whatever `node` is on the PATH.
here=$(dirname "$(readlink -f "$0")")
exec "$here/../node_modules/.bin/node" "$here/main.ts" "$@"
