// A pool of real pipes for the output of commands.
// Node's `stdio: 'pipe'` is a socket pair, and opening a socket through /dev/stderr fails with ENXIO, so that
// `echo oops >/dev/stderr` does not work. Node has no pipe(2), but it can open both ends of a FIFO. The pool creates FIFOs
// in batches, unlinks them and reuses them; a start costs no more than with Node's own pipes.
import { execFile } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ApiError } from '../../shared/errors.ts'

export type Pipe = {
  /** Non-blocking. */
  readFd: number
  /** Blocking, as programs expect of their output. */
  writeFd: number
  /** Call once, after closing both ends. The kernel then discards the content. */
  release(): void
}

export type PipePool = {
  /**
   * Acquires the pipes for stdout and stderr of one command. Creates pipes when too few are idle.
   * @throws the system error, or ApiError exec_failed with the message of mkfifo
   */
  acquirePair(): Promise<[Pipe, Pipe]>
  close(): Promise<void>
}

/**
 * FIFOs that one mkfifo creates, and the most that stay idle. Twice what eight concurrent commands need, the edge's
 * default limit. An idle FIFO costs one descriptor and no buffer.
 */
const BATCH_SIZE = 32
/** A descriptor that refers to the file without opening it. Node does not export the constant. */
const O_PATH = 0o10000000

export function createPipePool(): PipePool {
  const idle: number[] = []
  let refill: Promise<void> | undefined
  let closed = false

  const release = (fifo: number) => {
    if (closed || idle.length >= BATCH_SIZE) closeSync(fifo)
    else idle.push(fifo)
  }

  return {
    async acquirePair() {
      for (;;) {
        if (closed) throw new ApiError('exec_failed', 'The agent is stopping. Try again.')
        const [first, second] = idle.length < 2 ? [] : idle.splice(-2)
        if (first !== undefined && second !== undefined) return openPair(first, second, release)
        refill ??= createFifos(idle).finally(() => {
          refill = undefined
        })
        await refill
      }
    },
    async close() {
      closed = true
      // acquirePair() reports a failure to its caller.
      await refill?.catch(() => {})
      for (const fifo of idle.splice(0)) closeSync(fifo)
    },
  }
}

/** Closes both ends and releases the pipe. For a command that did not start. */
export function discardPipe(pipe: Pipe) {
  closeSync(pipe.readFd)
  closeSync(pipe.writeFd)
  pipe.release()
}

function openPair(first: number, second: number, release: (fifo: number) => void): [Pipe, Pipe] {
  const opened: number[] = []
  const open = (fifo: number): Pipe => {
    const path = `/proc/self/fd/${fifo}`
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    opened.push(readFd)
    const writeFd = openSync(path, constants.O_WRONLY)
    opened.push(writeFd)
    return { readFd, writeFd, release: () => release(fifo) }
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

/** Appends descriptors of new, unlinked FIFOs to `pool`. */
async function createFifos(pool: number[]) {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-pipes-'))
  try {
    const paths = Array.from({ length: BATCH_SIZE }, (_, index) => join(dir, String(index)))
    await promisify(execFile)('mkfifo', ['-m', '600', ...paths]).catch((error: unknown) => {
      throw hasStderr(error) ? new ApiError('exec_failed', error.stderr.trim(), { cause: error }) : error
    })
    for (const path of paths) pool.push(openSync(path, O_PATH))
  } catch (error) {
    // A partly filled pool is usable.
    if (pool.length < 2) throw error
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

const hasStderr = (error: unknown): error is { stderr: string } =>
  typeof error === 'object' &&
  error !== null &&
  'stderr' in error &&
  typeof error.stderr === 'string' &&
  error.stderr !== ''
