#!/bin/sh
# Starts the coordinator with the Node version that this project pins. exec: signals to this process reach the coordinator.
here=$(dirname "$(readlink -f "$0")")
node=$here/../node_modules/.bin/node
if [ ! -x "$node" ]; then
  case $here in
    */node_modules/*)
      # A bare package name could install a package of another author.
      echo "The packages of Boxwood are not complete. Install its .tgz file again: \`npm install -g --include=optional FILE\`." >&2 ;;
    *) echo "The packages of Boxwood are not installed. Run \`npm ci\` in $(dirname "$here")." >&2 ;;
  esac
  exit 1
fi
# The modules take seconds to load on a slow machine. `box up`, which has opened an IPC channel, prints its own line.
[ -n "$NODE_CHANNEL_FD" ] || echo 'Starting Boxwood.'
# Node caches the compiled sources here, as for the box command. Without write permission Node does not cache.
export NODE_COMPILE_CACHE="${NODE_COMPILE_CACHE-$here/../node_modules/.cache/box}"
# main.ts, or main.js in the npm package.
exec "$node" --max-semi-space-size=1 "$here"/server/main.?s
