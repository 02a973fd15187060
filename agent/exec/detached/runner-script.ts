// The runner as a shell script, for machines without a C compiler. Behaves like native/run.c, with these limits:
//
// - A termination by signal n that Boxwood did not request is reported as exit code 128 + n. A stop of the box counts as a
//   request: its SIGTERM also reaches the runner.
// - The command writes to the log file directly, so a command that opens /dev/stderr truncates the log.
// - Output of background processes after the command's exit is included.
// - Logs are bounded only while an agent runs. The logs of an attached command are not bounded, because the command does not
//   wait for the client.
// - Times of output are exact to a second. A client that follows the output may receive it before its time is recorded:
//   with the time of the output before it, or without a time. Output that is written while no agent runs has the time of the
//   output before it.
// - The stdin of an attached command ends when the agent is killed.

/** Arguments: DIR CWD STDIN_PATH COMMAND_SCRIPT ARGUMENT... of sh. Needs setsid, of util-linux or busybox. */
export const RUNNER_SCRIPT = `
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
cd "$1" || exit 1
command -pv setsid >/dev/null || { echo 'setsid is not installed' >failed.new; command -p mv failed.new failed; exit 1; }
# Trap instead of ignore: ignored signals stay ignored in the command, trapped ones are reset to their default.
trap : HUP INT QUIT PIPE ALRM USR1 USR2
boxwood_term=
trap boxwood_term=1 TERM
boxwood_dir=$1 boxwood_cwd=$2 boxwood_stdin=$3 boxwood_script=$4
shift 4
# In the foreground: a background job of sh ignores INT and QUIT. Without redirections: dash opens those of a foreground
# command itself, so the FIFO would keep a reader, and the log would contain the message "Terminated" of dash.
command -p setsid /bin/sh -c "$boxwood_script" sh "$boxwood_dir" "$boxwood_cwd" "$boxwood_stdin" "$@"
boxwood_status=$?
[ -e started ] || exit 0
[ "$boxwood_status" = 143 ] || boxwood_term=
echo "status $boxwood_status\${boxwood_term:+ terminated}" >exit.new && command -p mv exit.new exit
: >"../.exited/\${boxwood_dir##*/}"
`

/** Executes the command. Calls the system's tools, independent of the command's PATH. */
export const COMMAND_SCRIPT = `
fail() {
  command -p printf '%s\\n' "$1" >"$boxwood_dir/failed.new"
  command -p mv "$boxwood_dir/failed.new" "$boxwood_dir/failed"
  exit 127
}
start_time_of() {
  read -r boxwood_stat <"/proc/$1/stat"
  set -- \${boxwood_stat##*) }
  boxwood_start=\${20}
}
boxwood_dir=$1
exec <"$3" >>"$1/stdout" 2>>"$1/stderr"
cd "$2" || fail 'no such directory'
shift 3
start_time_of $$
boxwood_own=$boxwood_start
start_time_of $PPID
printf '%s\\n' "$$ $boxwood_own $PPID $boxwood_start" >"$boxwood_dir/started.$$" || fail 'the disk is full'
command -p ln "$boxwood_dir/started.$$" "$boxwood_dir/started" || exit 127
command -p rm -f "$boxwood_dir/started.$$"
BOXWOOD_PROCESS_ID=$BOXWOOD_RUNNER_FOR
export BOXWOOD_PROCESS_ID
unset BOXWOOD_RUNNER_FOR
# The trailing sh becomes $0.
exec /bin/sh "$@" sh
`
