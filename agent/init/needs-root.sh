#!/bin/sh
# Explains why sudo or a package manager does not work in a box that has no root access. The PATH of the box has this script,
# under the names of the programs, before the directories of the machine. Subcommands that work without root access run the
# program.
name=${0##*/}

# The coordinator writes the second line, beside the directories of the agent's builds: which boxes have root access depends on
# its configuration.
explain() {
  advice=
  [ ! -r "${0%/*}/../../root-advice" ] || read -r advice <"${0%/*}/../../root-advice" || :
  cat >&2 <<EOF
$1 does not work in this box: it shares the programs of its machine, and has no root access.
${advice:-Boxes with an image have root access: \`box docs images\` on your own machine}
Without root access, install into the home directory: npm install -g, pip, pipx or cargo install (\`box docs software\` on your own machine).
EOF
  exit 1
}

run_program() {
  for dir in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    [ ! -x "$dir/$name" ] || exec "$dir/$name" "$@"
  done
  explain "$name"
}

[ "$name" != sudo ] || explain sudo
# Root of a user namespace, which the box has created for other root directories.
[ "$(id -u)" != 0 ] || run_program "$@"
option=
for argument; do
  case $option$argument in
    # Packages of another root directory, and simulations.
    -oDir* | -oRootDir* | --option=Dir* | --option=RootDir* | --installroot* | --root* | -p | -s | --simulate | --dry-run)
      run_program "$@"
      ;;
    -o | --option) option=-o ;;
    -t | --target-release | --default-release) option=-t ;;
    -*) option= ;;
    add | autoclean | autopurge | autoremove | build-dep | clean | del | dist-upgrade | distro-sync | downgrade | dselect-upgrade | \
      edit-sources | erase | fix | full-upgrade | groupinstall | install | localinstall | purge | reinstall | remove | satisfy | \
      swap | update | upgrade)
      explain "$name $argument"
      ;;
    *) break ;;
  esac
done
run_program "$@"
