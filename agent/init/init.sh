#!/bin/sh
# The init process of a box: runs the agent (its arguments), restarts it when it exits, and reaps orphans as pid 1.
# BOXWOOD_SETTINGS is a file with variables of the agent, which is read at each start of the agent. The shell may be dash, bash or
# that of busybox. A plain shell, because the kernel's OOM killer prefers large processes: init is the last one it would choose.

cd "$HOME" || exit 1

# The agent and its commands find the programs that pip, npm, pipx, cargo and go install. BOXWOOD_PROGRAMS is a directory with
# scripts in place of programs that need root access.
agent_path=$HOME/.local/bin:$HOME/.cargo/bin:$HOME/go/bin:${BOXWOOD_PROGRAMS:+$BOXWOOD_PROGRAMS:}$PATH
# Login shells: /etc/profile of many distributions replaces PATH.
if [ ! -e .profile ] && [ ! -L .profile ]; then
  cat >.profile <<'EOF' || rm -f .profile
# For login shells. Boxwood creates this file when it is missing.
PATH=$HOME/.local/bin:$HOME/.cargo/bin:$HOME/go/bin:${BOXWOOD_PROGRAMS:+$BOXWOOD_PROGRAMS:}$PATH
if [ -n "$BASH_VERSION" ] && [ -f ~/.bashrc ]; then
  . ~/.bashrc
fi
EOF
fi

state=$BOXWOOD_STATE
. "${0%/*}/agent-loop.sh"

stop() {
  # Forward only the first signal, so that a second one does not interrupt the agent's shutdown.
  [ -z "$stopping" ] || return 0
  stopping=1
  if [ $$ -eq 1 ]; then
    # As pid 1 of a PID namespace, -1 means every other process of the box, and no process outside it.
    kill -TERM -1 2>/dev/null
  elif [ -n "$agent_pid" ]; then
    kill -TERM "$agent_pid" 2>/dev/null
  fi
}
# The kernel drops a signal that pid 1 does not handle: a TERM of a process of the box does not stop the box.
if [ $$ -eq 1 ]; then trap stop PWR; else trap stop TERM; fi

# The last argument is the path of the agent in the directory of the current build, beside which `previous` is.
for agent in "$@"; do :; done
current_dir=${agent%/*}
previous_dir=${current_dir%/*}/previous
rotations=$#
while [ "$rotations" -gt 1 ]; do
  set -- "$@" "$1"
  shift
  rotations=$((rotations - 1))
done
shift

read_build() {
  build_id=
  [ ! -r "$1/build-id" ] || read -r build_id <"$1/build-id" || :
}

# The coordinator replaces `current` for all boxes. A box that has returned to the previous build starts that one until the
# coordinator restarts its agent, which then removes failed-build.
select_build() {
  agent_file=$agent
  read_build "$previous_dir"
  previous_build=$build_id
  read_build "$current_dir"
  build=$build_id
  [ "$previous_build" != "$build" ] || previous_build=
  failed_build=
  [ ! -r "$state/failed-build" ] || read -r failed_build <"$state/failed-build" || :
  if [ -n "$previous_build" ] && [ "${failed_build%%@*}" = "$build" ]; then
    agent_file=$previous_dir/${agent##*/}
    build=$previous_build
    previous_build=
  fi
}

# A container has a Node with libraries of its own, in a directory beside it. The commands of the box must not use them.
read_settings() {
  set -a
  [ ! -r "$BOXWOOD_SETTINGS" ] || . "$BOXWOOD_SETTINGS"
  if [ -n "$BOXWOOD_NODE" ]; then
    # Those of the image are for its own programs. The agent passes them on: own-libraries.ts.
    BOXWOOD_IMAGE_LD_LIBRARY_PATH=$LD_LIBRARY_PATH BOXWOOD_IMAGE_LD_PRELOAD=$LD_PRELOAD
    BOXWOOD_IMAGE_NODE_OPTIONS=$NODE_OPTIONS
    # The link is replaced by the coordinator, and the libraries must be those of the program.
    BOXWOOD_LIBRARIES=$(cd -P "$BOXWOOD_NODE" && pwd)/lib
    LD_LIBRARY_PATH=$BOXWOOD_LIBRARIES
    unset LD_PRELOAD NODE_OPTIONS
  fi
  set +a
}

start_agent() {
  # own-network.sh passes descriptor 9, which only the init keeps open.
  {
    [ -z "$BOXWOOD_SETTINGS" ] || read_settings
    PATH=$agent_path exec "$@" "$agent_file"
  } 9>&- &
  agent_pid=$!
}

fall_back() { :; }

run_agent_loop "$@"

# When pid 1 exits, the kernel sends SIGKILL to all processes in the namespace: let them exit by themselves first.
if [ $$ -eq 1 ]; then
  attempts=0
  while kill -0 -1 2>/dev/null && [ $attempts -lt 100 ]; do
    sleep 0.05
    attempts=$((attempts + 1))
  done
fi
