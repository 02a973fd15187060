#!/bin/sh
# Runs the agent of a machine that joined by install.sh, restarts it when it exits, and returns to the previous build when a
# new one does not connect. Its argument is the prefix: the directory with `versions`, `current`, `previous` and agent.env.
# On TERM it stops the agent. Commands continue.
prefix=$1
[ -r "$prefix/agent.env" ] || {
  echo "boxwood: $prefix/agent.env does not exist. Install the agent again." >&2
  exit 1
}
set -a
. "$prefix/agent.env"
set +a
state=${BOXWOOD_STATE:-$prefix/state}
HOME=${BOXWOOD_HOME:-${HOME:-/}}
PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
export HOME PATH
cd "$HOME" || cd / || exit 1
export BOXWOOD_PREFIX="$prefix"
. "${0%/*}/agent-loop.sh"

stop() {
  [ -z "$stopping" ] || return 0
  stopping=1
  [ -z "$agent_pid" ] || terminate_agent TERM
}
trap stop TERM

# Sets build_id to the id of the build to which the link points.
read_build() {
  build_id=
  [ ! -r "$prefix/$1/build-id" ] || read -r build_id <"$prefix/$1/build-id" || :
}

select_build() {
  read_build previous
  previous_build=$build_id
  read_build current
  build=$build_id
  [ "$previous_build" != "$build" ] || previous_build=
}

# Not through the link `current`: the paths of a running agent must not change with it.
start_agent() {
  dir=$prefix/versions/$build
  flags=
  [ ! -r "$dir/node-flags" ] || read -r flags <"$dir/node-flags" || :
  # shellcheck disable=SC2086 # Several words.
  "$dir/node" $flags "$dir/agent.mjs" &
  agent_pid=$!
  echo "$agent_pid" >"$state/agent.pid"
}

# The agent of a killed supervisor continues to run, and no other agent can use its state.
stop_remaining_agent() {
  [ -r "$state/agent.pid" ] && read -r agent_pid <"$state/agent.pid" || return 0
  case $(tr '\0' ' ' 2>/dev/null <"/proc/$agent_pid/cmdline") in
    *"$prefix/versions/"*/agent.mjs*)
      terminate_agent HUP
      while kill -0 "$agent_pid" 2>/dev/null; do sleep 0.1; done
      kill "$killer_pid" 2>/dev/null
      ;;
  esac
  agent_pid=
}

# Node replaces the link atomically, which no command of POSIX does.
fall_back() {
  "$prefix/versions/$previous_build/node" -e '
    const { renameSync, rmSync, symlinkSync } = process.getBuiltinModule("node:fs")
    const [prefix, build] = process.argv.slice(1)
    process.chdir(prefix)
    rmSync("current.new", { force: true })
    symlinkSync(`versions/${build}`, "current.new")
    renameSync("current.new", "current")
    rmSync("previous", { force: true })
  ' "$prefix" "$previous_build" || echo "boxwood: failed to return to build $previous_build" >&2
}

stop_remaining_agent
run_agent_loop
