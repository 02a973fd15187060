// Real pipes for the output of commands.
// Node's own `stdio: 'pipe'` is a socket pair, and on a socket `echo oops >/dev/stderr` fails: "No such device or
// address". Node cannot call pipe(2), but it can open both ends of a named pipe; these have no name any more, are made
// by the dozen and used again. Measured, a start with them costs no more than one with Node's.
import { execFile } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ApiError } from '../../shared/errors.ts'

export type Pipe = {
  /** Does not block. */
  read: number
  /** Blocks, as programs expect of their output. */
  write: number
  /** To be called once when both are closed and nobody else writes to it: the kernel forgets its content then. */
  release(): void
}

export type PipePool = {
  /** Two at once, so that commands which each hold one cannot wait for each other. @throws what the system said, or
   * ApiError exec_failed with the words of mkfifo */
  takePair(): Promise<[Pipe, Pipe]>
  close(): Promise<void>
}

/** Twice what the edge's eight commands at once need; each costs a descriptor, and kernel memory only while in use. */
const BATCH = 32
/** A descriptor that stands for the file alone. Node has no name for it. */
const O_PATH = 0o10000000

export function createPipePool(): PipePool {
  const idle: number[] = []
  let filling: Promise<void> | undefined
  let closed = false

  const release = (file: number) => {
    if (closed || idle.length >= BATCH) closeSync(file)
    else idle.push(file)
  }

  return {
    async takePair() {
      for (;;) {
        if (closed) throw new ApiError('exec_failed', 'The agent is stopping.')
        const [first, second] = idle.length < 2 ? [] : idle.splice(-2)
        if (first !== undefined && second !== undefined) return openPair(first, second, release)
        filling ??= makePipes(idle).finally(() => {
          filling = undefined
        })
        await filling
      }
    },
    async close() {
      closed = true
      // Whoever waits for it is told of a failure; here it only has to be over.
      await filling?.catch(() => {})
      for (const file of idle.splice(0)) closeSync(file)
    },
  }
}

/** Gives back what was never handed to a command. */
export function discardPipe(pipe: Pipe) {
  closeSync(pipe.read)
  closeSync(pipe.write)
  pipe.release()
}

function openPair(first: number, second: number, release: (file: number) => void): [Pipe, Pipe] {
  const opened: number[] = []
  const open = (file: number): Pipe => {
    const path = `/proc/self/fd/${file}`
    const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    opened.push(read)
    const write = openSync(path, constants.O_WRONLY)
    opened.push(write)
    return { read, write, release: () => release(file) }
  }
  try {
    return [open(first), open(second)]
  } catch (error) {
    for (const fd of opened) closeSync(fd)
    release(first)
    release(second)
    throw error
  }
}

async function makePipes(into: number[]) {
  const folder = await mkdtemp(join(tmpdir(), 'boxwood-pipes-'))
  try {
    const names = Array.from({ length: BATCH }, (_, index) => join(folder, String(index)))
    await promisify(execFile)('mkfifo', ['-m', '600', ...names]).catch((error: unknown) => {
      throw hasWords(error) ? new ApiError('exec_failed', error.stderr.trim(), { cause: error }) : error
    })
    for (const name of names) into.push(openSync(name, O_PATH))
  } catch (error) {
    // Some of them may have been opened: that is enough to go on with.
    if (into.length < 2) throw error
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const hasWords = (error: unknown): error is { stderr: string } =>
  typeof error === 'object' &&
  error !== null &&
  'stderr' in error &&
  typeof error.stderr === 'string' &&
  error.stderr !== ''
