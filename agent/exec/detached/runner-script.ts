// The runner where no compiler was: a shell script that does what native/run.c does, as far as a shell can.
//
// What it cannot: tell the exit code 143 from an end by TERM (then the code is told); keep the logs from a command that
// opens /dev/stderr anew, as they are its own output here; leave out what its background writes after its end; and bound
// the logs while no agent runs.

/** Arguments: FOLDER CWD COMMAND_SCRIPT ARGUMENT... of sh. Needs setsid, of util-linux or busybox. */
export const RUNNER_SCRIPT = `
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
cd "$1" || exit 1
command -pv setsid >/dev/null || { echo 'setsid is not installed' >failed.new; command -p mv failed.new failed; exit 1; }
# A handler, because what is ignored stays ignored in the command; it runs when the command has ended, and does nothing.
trap : HUP INT TERM QUIT PIPE ALRM USR1 USR2
boxwood_folder=$1 boxwood_cwd=$2 boxwood_script=$3
shift 3
# Not in the background, where INT and QUIT would be ignored.
command -p setsid /bin/sh -c "$boxwood_script" sh "$boxwood_folder" "$boxwood_cwd" "$@" </dev/null >>stdout 2>>stderr
boxwood_status=$?
[ -e started ] || exit 0
echo "status $boxwood_status" >exit.new && command -p mv exit.new exit
: >"../.ended/\${boxwood_folder##*/}"
`

/** Becomes the command. The tools are those of the system, whatever PATH the command gets. */
export const COMMAND_SCRIPT = `
fail() {
  command -p printf '%s\\n' "$1" >"$boxwood_folder/failed.new"
  command -p mv "$boxwood_folder/failed.new" "$boxwood_folder/failed"
  exit 127
}
start_of() {
  read -r boxwood_stat <"/proc/$1/stat"
  set -- \${boxwood_stat##*) }
  boxwood_start=\${20}
}
boxwood_folder=$1
cd "$2" || fail 'no such folder'
shift 2
start_of $$
boxwood_own=$boxwood_start
start_of $PPID
printf '%s\\n' "$$ $boxwood_own $PPID $boxwood_start" >"$boxwood_folder/started.$$" || fail 'the disk is full'
command -p ln "$boxwood_folder/started.$$" "$boxwood_folder/started" || exit 127
command -p rm -f "$boxwood_folder/started.$$"
BOXWOOD_PROCESS_ID=$BOXWOOD_RUNNER_FOR
export BOXWOOD_PROCESS_ID
unset BOXWOOD_RUNNER_FOR
# The last argument is its name, $0.
exec /bin/sh "$@" sh
`
