// Shell scripts that a copy runs on a box. The history of the box shows their first line. Each names its temporary file before it
// creates it, so that it is removed whenever the script is terminated.

import { shellQuote } from '../../shared/shell-quote.ts'
import { sanitize } from '../output/print.ts'
import { NOT_A_DIRECTORY_EXIT_CODE } from './box-command.ts'
import type { DirectoryContent, FileContent } from './content.ts'
import { createTempName } from './local-files.ts'
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
  [ -d "$1" ] || fail "there is no directory \${1#./}; --mkpath creates it" ${NOT_A_DIRECTORY_EXIT_CODE}
}
require_parent() { parent=$(dirname "$dst"); require_directory "$parent"; }
require_writable() { [ -w "$parent" ] || fail "\${parent#./}: permission denied"; }
trap 'exit 1' HUP INT TERM`

const assign = (values: Record<string, string>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${shellQuote(value)}`)
    .join(' ')

/**
 * Unpacks an archive from stdin without its top-level directory. A new directory appears complete, by a rename. In an existing
 * directory each file is replaced atomically, when all have arrived. Prints the real path.
 * @param mustExist whether the destination must be an existing directory
 */
export function createUnpackScript(
  title: string,
  destination: string,
  { name, mode }: Pick<DirectoryContent, 'name' | 'mode'>,
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
tar -xof - --no-same-permissions --strip-components=1 -C "$new"
if [ -d "$dst" ]; then cp -RPlf "$new/." "$dst"
else chmod "$mode" "$new"; mv "$new" "\${dst%/}"; fi
(cd "$dst" && pwd -P)`
}

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
