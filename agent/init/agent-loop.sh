# The part that init.sh and supervise.sh have in common: restarts the agent when it exits, and returns to the previous
# build when a new one does not connect to the coordinator.
#
# The script that reads this file sets `state`, the state directory of the agent, and defines three functions:
#   select_build  sets `build` to the id of the build that starts next, and `previous_build` to the id of the build to fall
#                 back to. Both may be empty.
#   start_agent   starts the agent of that build in the background and sets `agent_pid`. Has the arguments of run_agent_loop.
#   fall_back     selects the previous build for the next start. Called when failed-build has been written.
#
# Files in `state`:
#   connected-build  the last build whose agent has connected, and the pid of that agent. The agent writes it.
#   failed-build     the build that did not connect, `@`, and a text that differs for each failure.

agent_pid=
stopping=
timer_pid=
is_late=
# trial: the build has not connected yet. verify: the previous build runs after a failed trial.
phase=

# A trial ends after this time, or when the agent has exited this often.
trial_seconds=${BOXWOOD_TRIAL_SECONDS:-60}
trial_exits=2

trap 'is_late=1' ALRM
trap '' HUP INT

read_uptime() {
  read -r uptime _ </proc/uptime
  uptime=${uptime%.*}
}

# Exponential backoff: restart immediately after the first exit, slow down a crash loop.
increase_delay() {
  case $delay in
    0) delay=0.2 ;;
    0.2) delay=0.5 ;;
    0.5) delay=1 ;;
    1) delay=2 ;;
    *) delay=5 ;;
  esac
}

# Sends ALRM to this process after trial_seconds, and again every second: a signal that arrives just before `wait` does not
# interrupt it.
start_timer() {
  stop_timer
  (
    trap 'kill "$sleep_pid"; exit' TERM
    seconds=$trial_seconds
    while sleep "$seconds" & sleep_pid=$!; wait "$sleep_pid"; do
      kill -ALRM $$ || exit
      seconds=1
    done
  ) &
  timer_pid=$!
}

stop_timer() {
  [ -z "$timer_pid" ] || kill "$timer_pid" 2>/dev/null
  timer_pid=
  is_late=
}

read_connected() {
  connected_build=
  connected_pid=
  [ ! -r "$state/connected-build" ] || read -r connected_build connected_pid <"$state/connected-build" || :
}

has_connected() {
  read_connected
  [ "$connected_build" = "$build" ] && [ "$connected_pid" = "$agent_pid" ]
}

# Called before a build starts that differs from the last one.
begin_phase() {
  stop_timer
  exits=0
  delay=0
  if [ "$phase" = failed ]; then
    phase=verify
  else
    phase=
    read_connected
    [ -z "$previous_build" ] || [ -z "$connected_build" ] || [ "$connected_build" = "$build" ] || phase=trial
  fi
  [ -z "$phase" ] || start_timer
}

end_phase() {
  phase=
  stop_timer
}

# Called when the agent has exited or the timer has expired.
check_phase() {
  case $phase in trial | verify) ;; *) return ;; esac
  if has_connected; then
    end_phase
  elif [ "$phase" = trial ]; then
    if [ -n "$is_late" ] || [ "$exits" -ge "$trial_exits" ]; then fail_trial; fi
  elif [ -n "$is_late" ]; then
    # The previous build cannot connect either, so the cause is not the new build.
    rm -f "$state/failed-build"
    end_phase
  fi
}

fail_trial() {
  echo "boxwood: build $build did not connect; returning to build $previous_build" >&2
  # The pid makes the text unique.
  echo "$build@$(date +%s).$agent_pid" >"$state/failed-build.new" &&
    mv "$state/failed-build.new" "$state/failed-build"
  phase=failed
  stop_timer
  fall_back
}

# Sends the signal, then KILL after 10 seconds, in case the agent does not exit by itself. TERM: the box or the machine stops. HUP:
# another agent follows, which continues the terminal sessions.
terminate_agent() {
  kill -"$1" "$agent_pid" 2>/dev/null || return 0
  (
    trap 'kill "$sleep_pid"; exit' TERM
    sleep 10 &
    sleep_pid=$!
    wait "$sleep_pid"
    kill -KILL "$agent_pid" 2>/dev/null
  ) &
  killer_pid=$!
}

run_agent_loop() {
  last_build=
  exits=0
  delay=0
  killer_pid=
  while [ -z "$stopping" ]; do
    select_build
    if [ "$build" != "$last_build" ] || [ "$phase" = failed ]; then begin_phase; fi
    last_build=$build
    read_uptime
    started=$uptime
    start_agent "$@"
    # A TERM between the loop condition and the assignment of agent_pid was not forwarded.
    [ -z "$stopping" ] || kill -TERM "$agent_pid" 2>/dev/null
    # A trapped signal interrupts `wait` while the agent is still running.
    status=129
    while [ "$status" -gt 128 ] && kill -0 "$agent_pid" 2>/dev/null; do
      wait "$agent_pid"
      status=$?
      if [ -n "$is_late" ]; then
        check_phase
        is_late=
        [ "$phase" != failed ] || [ -n "$killer_pid" ] || terminate_agent HUP
      fi
    done
    [ -z "$killer_pid" ] || kill "$killer_pid" 2>/dev/null
    killer_pid=
    [ -z "$stopping" ] || break
    exits=$((exits + 1))
    check_phase
    agent_pid=
    read_uptime
    runtime=$((uptime - started))
    [ "$runtime" -lt 10 ] || delay=0
    [ "$phase" != failed ] || delay=0
    echo "boxwood: agent exited with status $status after $runtime s; restarting in $delay s" >&2
    sleep "$delay" &
    wait $!
    increase_delay
  done
  end_phase
}
