// Real pipes for the output of commands.
// Node's own `stdio: 'pipe'` is a socket pair, and on a socket `echo oops >/dev/stderr` fails: "No such device or
// address". Node cannot call pipe(2), so named pipes are made by the dozen, opened at both ends and unlinked ahead of
// time; measured, a start with these costs no more than one with Node's.
import { execFile } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Two descriptors: `read` does not block, `write` does, as programs expect of their output. */
export type Pipe = { read: number; write: number }

export type PipePool = {
  /** @throws what the system said, when no pipe can be made */
  take(): Promise<Pipe>
  close(): Promise<void>
}

const BATCH = 64
const REFILL_BELOW = 16

export function createPipePool(): PipePool {
  const ready: Pipe[] = []
  let filling: Promise<void> | undefined
  let closed = false

  const fill = () => {
    filling ??= makePipes(ready, BATCH).finally(() => {
      filling = undefined
    })
    return filling
  }

  return {
    async take() {
      for (;;) {
        if (closed) throw new Error('the pool of pipes is closed')
        const pipe = ready.pop()
        if (pipe === undefined) {
          await fill()
          continue
        }
        // A failure comes back to the command that finds the pool empty, which tries again.
        if (ready.length < REFILL_BELOW) fill().catch(() => {})
        return pipe
      }
    },
    async close() {
      closed = true
      await filling?.catch(() => {})
      for (const pipe of ready.splice(0)) closePipe(pipe)
    },
  }
}

export function closePipe(pipe: Pipe) {
  closeSync(pipe.read)
  closeSync(pipe.write)
}

async function makePipes(into: Pipe[], count: number) {
  const folder = await mkdtemp(join(tmpdir(), 'boxwood-pipes-'))
  try {
    const names = Array.from({ length: count }, (_, index) => join(folder, String(index)))
    await promisify(execFile)('mkfifo', ['-m', '600', ...names])
    for (const name of names) into.push(openBothEnds(name))
  } catch (error) {
    // Some of them may have been opened: that is enough to go on with.
    if (into.length === 0) throw error
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function openBothEnds(name: string): Pipe {
  const read = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    return { read, write: openSync(name, constants.O_WRONLY) }
  } catch (error) {
    closeSync(read)
    throw error
  }
}
