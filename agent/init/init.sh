#!/bin/sh
# The init process of a box: runs the agent (its arguments), restarts it when it exits, and reaps orphans as pid 1.
# A plain shell, because the kernel's OOM killer prefers large processes: init is the last one it would choose.

cd "$HOME" || exit 1

# The agent and its commands find the programs that pip, npm, pipx, cargo and go install.
agent_path=$HOME/.local/bin:$HOME/.cargo/bin:$HOME/go/bin:$PATH
# Login shells: /etc/profile of many distributions replaces PATH.
if [ ! -e .profile ] && [ ! -L .profile ]; then
  cat >.profile <<'EOF' || rm -f .profile
# For login shells. Boxwood creates this file when it is missing.
PATH=$HOME/.local/bin:$HOME/.cargo/bin:$HOME/go/bin:$PATH
if [ -n "$BASH_VERSION" ] && [ -f ~/.bashrc ]; then
  . ~/.bashrc
fi
EOF
fi

agent_pid=
stopping=

stop() {
  # Forward only the first TERM, so that a second one does not interrupt the agent's shutdown.
  [ -z "$stopping" ] || return 0
  stopping=1
  if [ $$ -eq 1 ]; then
    # As pid 1 of a PID namespace, -1 means every other process of the box, and no process outside it.
    kill -TERM -1 2>/dev/null
  elif [ -n "$agent_pid" ]; then
    kill -TERM "$agent_pid" 2>/dev/null
  fi
}
trap stop TERM
trap '' HUP INT

read_uptime() {
  read -r uptime _ </proc/uptime
  uptime=${uptime%.*}
}

# Exponential backoff: restart immediately after the first exit, slow down a crash loop.
delay=0
increase_delay() {
  case $delay in
    0) delay=0.2 ;;
    0.2) delay=0.5 ;;
    0.5) delay=1 ;;
    1) delay=2 ;;
    *) delay=5 ;;
  esac
}

while [ -z "$stopping" ]; do
  read_uptime
  started=$uptime
  PATH=$agent_path "$@" &
  agent_pid=$!
  # A TERM between the loop condition and the assignment above was not forwarded.
  [ -z "$stopping" ] || kill -TERM "$agent_pid" 2>/dev/null
  # A trapped signal interrupts `wait` while the agent is still running.
  status=129
  while [ "$status" -gt 128 ] && kill -0 "$agent_pid" 2>/dev/null; do
    wait "$agent_pid"
    status=$?
  done
  agent_pid=
  [ -z "$stopping" ] || break
  read_uptime
  runtime=$((uptime - started))
  [ "$runtime" -lt 10 ] || delay=0
  echo "init: agent exited with status $status after $runtime s; restarting in $delay s" >&2
  sleep "$delay" &
  wait $!
  increase_delay
done

# When pid 1 exits, the kernel sends SIGKILL to all processes in the namespace: let them exit by themselves first.
if [ $$ -eq 1 ]; then
  attempts=0
  while kill -0 -1 2>/dev/null && [ $attempts -lt 100 ]; do
    sleep 0.05
    attempts=$((attempts + 1))
  done
fi
