// Uploads a directory as a tar archive and unpacks the archive with the tar of the box.
import { lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { ExecRequest, ExecResult } from '../../shared/api/exec.ts'
import { LIMITS } from '../../shared/limits.ts'
import { shellQuote } from '../../shared/shell-quote.ts'
import type { EdgeClient } from '../client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { printMessage, sanitize } from '../output.ts'
import { createTempName, toLocalFileError, withReadErrors } from './local-files.ts'
import { toCommandArgument } from './paths.ts'
import { withProgressBar } from './progress-bar.ts'
import { tooLargeError, type UploadResult, uploadBody } from './upload-body.ts'

/**
 * Arguments: $1 destination, $2 name of the directory ('' to copy its contents), $3 archive, $4 mode of the directory.
 * Creates a new directory atomically, by a rename. Merges into an existing directory: a failure may leave that partially
 * updated. Removes the archive. Prints the real path.
 */
const UNPACK_SCRIPT = `set -eu
dst=$1 name=$2 tar=$3 mode=$4 new=
trap 'rm -rf -- "$tar" \${new:+"$new"}' EXIT
trap 'exit 1' HUP INT TERM
if [ -d "$dst" ] && [ -n "$name" ]; then dst=\${dst%/}/$name; fi
if [ ! -d "$dst" ]; then
  if [ -e "$dst" ] || [ -L "$dst" ]; then echo "\${dst#./} exists and is not a directory" >&2; exit 1; fi
  parent=$(dirname "$dst")
  if [ ! -d "$parent" ]; then echo "\${parent#./} is not a directory. If it does not exist, create it with mkdir -p" >&2; exit 1; fi
  new=$(mktemp -d "$parent/.box-cp-XXXXXX")
  tar -xpof "$tar" -C "$new"
  chmod "$mode" "$new"
  mv "$new" "\${dst%/}"
else
  tar -xpof "$tar" -C "$dst"
fi
(cd "$dst" && pwd -P)`

/**
 * @param destination a path on the box
 * @param name the directory's name inside an existing destination; '' copies the contents into the destination
 */
export async function uploadDirectory(
  edge: EdgeClient,
  source: string,
  destination: string,
  name: string,
): Promise<UploadResult> {
  const { entries, mode, archiveBytes } = await scanDirectory(source).catch((error) => {
    throw toLocalFileError(error)
  })
  if (archiveBytes > LIMITS.transferBytes) throw tooLargeError(source)
  const archiveName = createTempName()
  let isUnpacked = false
  try {
    // Wakes a suspended box, and fails before anything is sent if the box has no tar.
    await runOnBox(edge, [
      'sh',
      '-c',
      'command -v tar >/dev/null || { echo "tar is not installed on the box" >&2; exit 1; }',
    ])
    const { create } = await import('tar')
    await uploadBody(edge, archiveName, '0600', () => {
      if (entries.length === 0) return EMPTY_ARCHIVE
      const archive = create(
        { cwd: source, strict: true },
        // node-tar reads a name that starts with @ as an archive to include; the ./ prevents that.
        entries.map((entry) => `./${entry}`),
      )
      const label = sanitize(name || source)
      const bytes = withProgressBar(withReadErrors(archive, source), label, archiveBytes)
      return { stream: Readable.from(bytes, { objectMode: false }), length: null }
    })
    const args = [toCommandArgument(destination), name, archiveName, mode]
    const { stdout } = await runOnBox(edge, ['sh', '-c', UNPACK_SCRIPT, 'box-cp', ...args])
    isUnpacked = true
    return { path: stdout.replace(/\n$/, ''), size: archiveBytes }
  } finally {
    if (!isUnpacked) await removeArchive(edge, archiveName)
  }
}

/** For an unpack script that was not started or was killed: otherwise the script removes the archive. */
async function removeArchive(edge: EdgeClient, archiveName: string): Promise<void> {
  try {
    await runOnBox(edge.forCleanup(), ['rm', '-f', '--', archiveName])
  } catch (error) {
    // Print instead of throw: the caller throws the error of the copy.
    const reason = error instanceof Error ? error.message : error
    const command = `box exec ${edge.boxName} -- rm -f ${archiveName}`
    printMessage(
      `The temporary file ~/${archiveName} may remain on the box. Remove it with \`${command}\`. (${reason})`,
    )
  }
}

async function runOnBox(edge: EdgeClient, args: readonly string[]): Promise<ExecResult> {
  const timeoutSeconds = LIMITS.execTimeoutSeconds.max
  const request: ExecRequest = { command: args.map(shellQuote).join(' '), timeoutSeconds }
  const result = await edge.requestJson<ExecResult>('POST', '/exec', request)
  if (result.exitCode === 0) return result
  const lastErrorLines = result.stderr.trim().split('\n').slice(-3).join('; ')
  const reason = result.timedOut
    ? `timed out after ${timeoutSeconds} s`
    : lastErrorLines || 'the command failed without an error message'
  throw new CliError(EXIT.failed, `Cannot copy the directory to ${edge.boxName}: ${sanitize(reason)}.`)
}

/** A tar archive without entries: only the end-of-archive marker, two zero blocks of 512 bytes. */
const EMPTY_ARCHIVE = Buffer.alloc(1024)

/** `mode` is octal, such as 755. */
type DirectoryScan = { entries: string[]; mode: string; archiveBytes: number }

/** `archiveBytes` is an estimate: a 512-byte header per entry, and file contents in blocks of 512 bytes. */
async function scanDirectory(directory: string): Promise<DirectoryScan> {
  const entries = await readdir(directory)
  const pending = entries.map((name) => join(directory, name))
  let archiveBytes = 0
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const stats = await lstat(path)
    archiveBytes += 512 + (stats.isFile() ? Math.ceil(stats.size / 512) * 512 : 0)
    if (stats.isDirectory()) for (const child of await readdir(path)) pending.push(join(path, child))
  }
  return { entries, archiveBytes, mode: ((await stat(directory)).mode & 0o777).toString(8) }
}
