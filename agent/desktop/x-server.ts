// Starts Xvfb, an X server that draws into memory.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, lstat, mkdir } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { ApiError } from '../../shared/errors.ts'
import { replaceFile } from '../durable-file.ts'
import { readStateFile } from '../state-file.ts'
import type { Leader, SessionRecord } from './session-record.ts'
import { startProgram } from './start-program.ts'

export type XServerOptions = Pick<SessionRecord, 'width' | 'height' | 'dpi'> & {
  file: string
  cwd: string
  env: Record<string, string>
  /** The file with the cookie of the X server, which is replaced. */
  authority: string
  logPath: string
}

const START_TIMEOUT_MS = 20_000
const SOCKETS_DIRECTORY = '/tmp/.X11-unix'
const STICKY_FOR_ALL = 0o1777
const MAX_LOG_BYTES = 64 * 1024

/**
 * Xvfb chooses a free display. It listens on no TCP port. It listens on the abstract socket of its display, because clients
 * connect to that one first: in a network that boxes share, another box could take the name and receive the key presses.
 * Clients need the cookie, which only the user of the box can read.
 * @throws ApiError exec_failed
 */
export async function startXServer(options: XServerOptions): Promise<Leader & { display: string }> {
  const { file, cwd, env, authority, logPath, width, height, dpi } = options
  await replaceFile(authority, createAuthority(randomBytes(16)))
  const hasDirectory = await prepareSocketsDirectory()
  const args = [
    ...['-displayfd', '3', '-screen', '0', `${width}x${height}x24`, '-dpi', String(dpi)],
    ...['-auth', authority, '-nolisten', 'tcp', ...(hasDirectory ? [] : ['-nolisten', 'unix'])],
    // Without these, a reset ends the session with its last client, and each refused client adds to the log.
    ...['-noreset', '-audit', '0'],
  ]
  const { child, pid, startTime } = await startProgram(file, args, { cwd, env, logPath, hasPipe: true })
  const display = await readDisplay(child.stdio[3] as Readable)
  if (display !== null) return { pid, startTime, display: `:${display}` }
  child.kill('SIGKILL')
  const reason = readStateFile(logPath, MAX_LOG_BYTES)?.trim().split('\n').at(-1) ?? ''
  throw new ApiError('exec_failed', `Xvfb did not start: ${reason.slice(0, 500) || 'it gave no reason'}`)
}

/** @returns the number of the display; null when the X server exits or does not become ready */
async function readDisplay(pipe: Readable): Promise<string | null> {
  let text = ''
  const signal = AbortSignal.timeout(START_TIMEOUT_MS)
  const onAbort = () => pipe.destroy()
  signal.addEventListener('abort', onAbort)
  pipe.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
    if (text.includes('\n')) pipe.destroy()
  })
  pipe.on('error', () => undefined)
  if (!pipe.closed) await once(pipe, 'close')
  signal.removeEventListener('abort', onAbort)
  return /^(\d{1,5})\n/.exec(text)?.[1] ?? null
}

/**
 * The X server creates the directory only as root.
 * @returns whether it is safe: another user cannot replace the sockets in it
 */
async function prepareSocketsDirectory(): Promise<boolean> {
  try {
    await mkdir(SOCKETS_DIRECTORY)
    await chmod(SOCKETS_DIRECTORY, STICKY_FOR_ALL)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
  }
  const stats = await lstat(SOCKETS_DIRECTORY).catch(() => null)
  const isOwn = stats !== null && [0, process.getuid?.()].includes(stats.uid)
  return isOwn && stats.isDirectory() && (stats.mode & STICKY_FOR_ALL) === STICKY_FOR_ALL
}

const COOKIE_NAME = 'MIT-MAGIC-COOKIE-1'
const ANY_ADDRESS = Buffer.from([0xff, 0xff])

/** One entry in the format of xauth: for every address and display. */
function createAuthority(cookie: Buffer): Buffer {
  const field = (content: Buffer) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(content.length)
    return Buffer.concat([length, content])
  }
  const empty = Buffer.alloc(0)
  return Buffer.concat([ANY_ADDRESS, ...[empty, empty, Buffer.from(COOKIE_NAME), cookie].map(field)])
}
