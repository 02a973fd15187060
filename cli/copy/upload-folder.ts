// A folder to a box: packed here, unpacked by the box's own tar, nothing of it left there when it fails.
import { lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { ExecRequest, ExecResult } from '../../shared/api/exec.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Edge } from '../client.ts'
import { EXIT, Failure } from '../exit-codes.ts'
import { printable, quote, say } from '../output.ts'
import { shellPath } from './ends.ts'
import { localFailure, temporaryName } from './local.ts'
import { metered } from './progress.ts'
import { type Copied, put, tooLarge } from './upload.ts'

/**
 * $1 destination, $2 the folder's name ('' for its contents), $3 the tar, $4 the folder's mode. A folder that is new
 * appears whole, by a rename; one that is there is merged into. Prints its real path.
 */
const UNPACK = `set -eu
dst=$1 name=$2 tar=$3 mode=$4 new=
trap 'rm -rf -- "$tar" \${new:+"$new"}' EXIT
trap 'exit 1' HUP INT TERM
if [ -d "$dst" ] && [ -n "$name" ]; then dst=\${dst%/}/$name; fi
if [ ! -d "$dst" ]; then
  if [ -e "$dst" ] || [ -L "$dst" ]; then echo "$dst is not a folder" >&2; exit 1; fi
  new=$(mktemp -d "$(dirname "$dst")/.box-cp-XXXXXX")
  tar -xpof "$tar" -C "$new"
  chmod "$mode" "$new"
  mv "$new" "\${dst%/}"
else
  tar -xpof "$tar" -C "$dst"
fi
(cd "$dst" && pwd -P)`

/** `name` is what the folder is called inside an existing one; '' puts its contents there. */
export async function uploadFolder(edge: Edge, source: string, path: string, name: string): Promise<Copied> {
  const facts = await measure(source).catch((error) => {
    throw localFailure(error)
  })
  if (facts.bytes > LIMITS.transferBytes) throw tooLarge(source)
  const tar = temporaryName()
  let unpacked = false
  try {
    // Wakes a suspended box, and tells before anything is sent that it cannot unpack.
    await script(edge, ['sh', '-c', 'command -v tar >/dev/null || { echo "there is no tar" >&2; exit 1; }'])
    const { create } = await import('tar')
    await put(edge, tar, '0600', () => {
      if (facts.names.length === 0) return EMPTY_TAR
      // The prefix: a name that begins with @ would be read as an archive.
      const pack = create(
        { cwd: source, strict: true },
        facts.names.map((child) => `./${child}`),
      )
      const bytes = metered(pack, printable(name || source), facts.bytes)
      return { stream: Readable.from(bytes, { objectMode: false }), length: null }
    })
    const { stdout } = await script(edge, [
      'sh',
      '-c',
      UNPACK,
      'box-cp',
      shellPath(path),
      name,
      tar,
      facts.mode,
    ])
    unpacked = true
    return { path: stdout.replace(/\n$/, ''), size: facts.bytes }
  } finally {
    if (!unpacked) await discard(edge, tar)
  }
}

/** The script removes the tar itself; this is for when it never ran, or was ended. */
async function discard(edge: Edge, tar: string): Promise<void> {
  try {
    await script(edge.afterwards(), ['rm', '-f', '--', tar])
  } catch (error) {
    // What made the copy fail is told; this comes on top.
    say(`box: ~/${tar} may be left on the box: ${error instanceof Error ? error.message : error}`)
  }
}

async function script(edge: Edge, words: readonly string[]): Promise<ExecResult> {
  const request: ExecRequest = {
    command: words.map(quote).join(' '),
    timeoutSeconds: LIMITS.execTimeoutSeconds.max,
  }
  const result = await edge.json<ExecResult>('POST', '/exec', request)
  if (result.exitCode === 0) return result
  const last = result.stderr.trim().split('\n').slice(-3).join('; ')
  const why = result.timedOut ? 'it took longer than 600 s' : last || 'its tar failed'
  throw new Failure(EXIT.refused, `The box could not take the folder: ${printable(why)}.`)
}

/** What two empty blocks mean: no entries. */
const EMPTY_TAR = Buffer.alloc(1024)

type Facts = { names: string[]; mode: string; bytes: number }

/** `bytes` is about what its tar will have: a header for each entry, contents in blocks of 512. */
async function measure(folder: string): Promise<Facts> {
  const names = await readdir(folder)
  const waiting = names.map((name) => join(folder, name))
  let bytes = 0
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const entry = await lstat(path)
    bytes += 512 + (entry.isFile() ? Math.ceil(entry.size / 512) * 512 : 0)
    if (entry.isDirectory()) for (const child of await readdir(path)) waiting.push(join(path, child))
  }
  return { names, bytes, mode: ((await stat(folder)).mode & 0o777).toString(8) }
}
