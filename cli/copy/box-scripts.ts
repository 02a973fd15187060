// Shell scripts that a copy runs on a box. The history of the box shows their first line. Each names its temporary file before it
// creates it, so that it is removed whenever the script is terminated.

import { shellQuote } from '../../shared/shell-quote.ts'
import { sanitize } from '../output/print.ts'
import { NOT_A_DIRECTORY_EXIT_CODE } from './box-command.ts'
import type { DirectoryContent, FileContent } from './content.ts'
import { createTempName } from './local-files.ts'
import { toPathBytes } from './path-bytes.ts'
import { toCommandArgument } from './paths.ts'

const MAX_TITLE_CHARS = 200

/** A comment: the command that the user typed. A newline would end the comment, so it is replaced. */
export function formatTitle(args: readonly string[]): string {
  const text = sanitize(`box cp ${args.map(shellQuote).join(' ')}`)
  return `# ${text.length > MAX_TITLE_CHARS ? `${text.slice(0, MAX_TITLE_CHARS)}…` : text}`
}

const FUNCTIONS = `set -eu
fail() { echo "$1" >&2; exit "\${2:-1}"; }
require_directory() {
  [ -d "$1" ] || [ ! -e "$1" ] || fail "\${1#./} is not a directory" ${NOT_A_DIRECTORY_EXIT_CODE}
  [ -d "$1" ] || fail "the directory \${1#./} does not exist. --mkpath creates it" ${NOT_A_DIRECTORY_EXIT_CODE}
}
require_parent() { parent=$(dirname "$dst"); require_directory "$parent"; }
require_writable() { [ -w "$parent" ] || fail "\${parent#./}: permission denied"; }
trap 'exit 1' HUP INT TERM`

/** Assigns paths to variables. The text of a command is UTF-8: printf creates the other bytes. */
function assign(values: Record<string, string>): string {
  const isText = Object.values(values).every((value) => value.isWellFormed())
  const lines = Object.entries(values).map(([name, value]) =>
    value.isWellFormed()
      ? `${name}=${shellQuote(value)}`
      : // The dot protects newlines at the end.
        `${name}=$(printf %b '${escapeBytes(toPathBytes(value))}.')\n${name}=\${${name}%.}`,
  )
  return [...(isText ? [] : ['LC_ALL=C']), ...lines].join('\n')
}

const escapeBytes = (bytes: Buffer): string =>
  [...bytes]
    .map((byte) => String.fromCharCode(byte))
    .map((character) =>
      /[\w./-]/.test(character) ? character : `\\0${character.charCodeAt(0).toString(8).padStart(3, '0')}`,
    )
    .join('')

/**
 * Merges the directory $new into $dst. `check` fails if not every entry can be moved, and does nothing otherwise; its argument is the path
 * of a directory, relative to both. A directory that does not exist in $dst is moved with its content and keeps its time.
 */
const MERGE = `\
LC_ALL=C
to=$(cd "$dst" && pwd -P && echo .)
to=\${to%?.}
refuse() { fail "$1. Nothing was changed"; }
is_directory() { [ -d "$1" ] && [ ! -L "$1" ]; }
check() {
  for f in "$new$1"/* "$new$1"/.[!.]* "$new$1"/..?*; do
    [ -e "$f" ] || [ -L "$f" ] || continue
    t=$to\${f#"$new"}
    if is_directory "$f" && is_directory "$t"; then
      [ -r "$f" ] && [ -w "$f" ] && [ -x "$f" ] || chmod u+rwx "$f"
      check "\${f#"$new"}"
      continue
    fi
    if is_directory "$t"; then refuse "$t is a directory, but the source is not"; fi
    if is_directory "$f" && { [ -e "$t" ] || [ -L "$t" ]; }; then refuse "$t exists and is not a directory"; fi
    [ -w "\${t%/*}/" ] && [ -x "\${t%/*}/" ] || refuse "\${t%/*}: permission denied"
  done
}
list_common() {
  printf '%s\\0' "$to$1/"
  for f in "$new$1"/* "$new$1"/.[!.]* "$new$1"/..?*; do
    if is_directory "$f" && is_directory "$to\${f#"$new"}"; then list_common "\${f#"$new"}"; fi
  done
}
move_new() {
  for f in "$new$1"/* "$new$1"/.[!.]* "$new$1"/..?*; do
    is_directory "$f" || continue
    t=$to\${f#"$new"}
    if is_directory "$t"; then move_new "\${f#"$new"}"
    elif [ -w "$f" ]; then mv "$f" "$t"
    else
      m=$(stat -c %a "$f")
      chmod u+w "$f"
      mv "$f" "$t"
      chmod "$m" "$t"
    fi
  done
}
check ""
[ "$(list_common "" | xargs -0 stat -c %d | sort -u | wc -l)" -le 1 ] ||
  refuse "$to has a directory on another file system. Copy that directory separately"
move_new ""
cp -RPlf "$new/." "$to"`

/**
 * Unpacks an archive from stdin without its top-level directory. A new directory appears complete, by a rename. In an existing
 * directory each file is replaced atomically, when all have arrived and none conflicts. Prints the real path.
 * @param mustExist whether the destination must be an existing directory
 */
export function createUnpackScript(
  title: string,
  destination: string,
  { name, mode, mtime }: Pick<DirectoryContent, 'name' | 'mode' | 'mtime'>,
  mustExist: boolean,
): string {
  const values = { dst: toCommandArgument(destination), name, mode: (mode ?? 0o755).toString(8) }
  return `${title}
${assign(values)}
${FUNCTIONS}
command -v tar >/dev/null || fail "tar is not installed"
${mustExist ? 'require_directory "$dst"\n' : ''}\
if [ -d "$dst" ] && [ -n "$name" ]; then dst=\${dst%/}/$name; fi
parent=$dst
if [ ! -d "$dst" ]; then
  if [ -e "$dst" ] || [ -L "$dst" ]; then fail "\${dst#./} exists and is not a directory"; fi
  require_parent
fi
require_writable
umask 0
new=$parent/${createTempName()}
trap 'trap "" HUP INT TERM
  [ ! -d "$new" ] || { find "$new" -type d ! -perm -700 -exec chmod u+rwx {} ";"; rm -rf "$new"; }' EXIT
mkdir -m 700 "$new"
# Otherwise GNU tar seals a read-only directory before hard links to its files are created.
options=
if tar --version 2>&1 | grep -q "GNU tar"; then options="--delay-directory-restore --warning=no-timestamp"; fi
tar -xof - --no-same-permissions $options --strip-components=1 -C "$new"
if [ -d "$dst" ]; then
${MERGE}
else
  ${mtime === null ? '' : `touch -d @${Math.floor(mtime)} "$new"; `}chmod "$mode" "$new"; mv "$new" "\${dst%/}"
fi
# The directory may not be accessible.
(cd "$dst" && pwd -P) 2>/dev/null || echo "$(cd "$(dirname "$dst")" && pwd -P)/$(basename "$dst")"`
}

/** Prints the type and the permissions of the target of `path` in hexadecimal, and its modification time in seconds. */
export const createStatScript = (title: string, path: string): string => `${title}
${assign({ src: toCommandArgument(path) })}
stat -L -c '%f %Y' "$src"`

export const createReadScript = (title: string, path: string, isDirectory: boolean): string => `${title}
${assign({ src: toCommandArgument(path) })}
${isDirectory ? 'tar -C "$src" -cf - .' : 'cat "$src"'}`

export const createMkdirScript = (title: string, path: string): string => `${title}
${assign({ dir: toCommandArgument(path) })}
mkdir -p "$dir"`

/** Writes stdin to a file, which appears complete, by a rename. Follows a symbolic link. Prints the real path. */
export function createWriteScript(
  title: string,
  destination: string,
  { name, size, mode, mtime }: Pick<FileContent, 'name' | 'size' | 'mode' | 'mtime'>,
): string {
  const checks = size === null ? '' : `[ "$(wc -c <"$new")" -eq ${size} ] || fail "the data is incomplete"\n`
  const setMode =
    mode === null
      ? 'if [ -e "$dst" ]; then chmod "$(stat -c %a "$dst")" "$new"; else chmod =rw "$new"; fi'
      : `chmod ${mode.toString(8)} "$new"`
  const setTime = mtime === null ? '' : `touch -d @${mtime} "$new"\n`
  return `${title}
${assign({ dst: toCommandArgument(destination), name })}
${FUNCTIONS}
if [ -d "$dst" ]; then
  [ -n "$name" ] || fail "\${dst#./} is a directory"
  dst=\${dst%/}/$name
fi
if [ -L "$dst" ]; then dst=$(readlink -f "$dst"); fi
if [ -e "$dst" ] && [ ! -f "$dst" ]; then fail "\${dst#./} is not a regular file"; fi
require_parent
require_writable
new=$parent/${createTempName()}
trap 'trap "" HUP INT TERM; rm -f "$new"' EXIT
(umask 077; set -C; : >"$new")
cat >"$new"
${checks}${setMode}
${setTime}mv -f "$new" "$dst"
echo "$(cd "$parent" && pwd -P)/\${dst##*/}"`
}
