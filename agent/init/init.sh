#!/bin/sh
# The init of a box: keeps the agent (its arguments) running, and as pid 1 reaps what the box leaves behind.
# It is a shell and nothing more, so that it is the last process the kernel would think of when memory runs out.

cd "$HOME" || exit 1
agent=
stopping=

stop() {
  # A second TERM must not reach the agent as "now": it is told once.
  [ -z "$stopping" ] || return 0
  stopping=1
  if [ $$ -eq 1 ]; then
    # Pid 1 of a namespace: -1 is every other process of the box and nothing else.
    kill -TERM -1 2>/dev/null
  elif [ -n "$agent" ]; then
    kill -TERM "$agent" 2>/dev/null
  fi
}
trap stop TERM
trap '' HUP INT

uptime_seconds() {
  read -r up _ </proc/uptime
  up=${up%.*}
}

# A first death is mended at once; a crash loop is slowed down.
pause=0
lengthen_pause() {
  case $pause in
    0) pause=0.2 ;;
    0.2) pause=0.5 ;;
    0.5) pause=1 ;;
    1) pause=2 ;;
    *) pause=5 ;;
  esac
}

while [ -z "$stopping" ]; do
  uptime_seconds
  started=$up
  PATH="$HOME/.local/bin:$PATH" "$@" &
  agent=$!
  # TERM between the test above and the line before this one found no agent to tell.
  [ -z "$stopping" ] || kill -TERM "$agent" 2>/dev/null
  # A trapped signal ends `wait` early, with the agent still there.
  status=129
  while [ "$status" -gt 128 ] && kill -0 "$agent" 2>/dev/null; do
    wait "$agent"
    status=$?
  done
  agent=
  [ -z "$stopping" ] || break
  uptime_seconds
  lived=$((up - started))
  [ "$lived" -lt 10 ] || pause=0
  echo "init: the agent ended with status $status after $lived s; starting it again in $pause s" >&2
  sleep "$pause" &
  wait $!
  lengthen_pause
done

# The end of pid 1 is SIGKILL for everything else in the namespace: give it the time to end by itself.
if [ $$ -eq 1 ]; then
  tries=0
  while kill -0 -1 2>/dev/null && [ $tries -lt 100 ]; do
    sleep 0.05
    tries=$((tries + 1))
  done
fi
