// How a detached process ended, from what its runner wrote and what was asked of it.
import { signalName } from '../native-spawn.ts'
import type { Exit, Mark } from './record.ts'
import type { ProcessEnd } from './types.ts'

export const LOST: ProcessEnd = { status: 'lost', exitCode: null, signal: null, finishedAt: null }

/** When each was begun, in milliseconds since the epoch. */
export type Marks = Partial<Record<Mark, number>>

/** Signals of ours: of these alone a shell's 128 + n tells enough. */
const OURS = [9, 15]

export function endOf(exit: Exit, marks: Marks): ProcessEnd {
  const asked = whatEnded(exit.finishedAt, marks)
  const code = exit.exitCode ?? 0
  const told = exit.sizes === null && asked !== undefined && OURS.includes(code - 128)
  const signal = told ? code - 128 : exit.signal
  return {
    status: asked ?? (signal === null ? 'exited' : 'killed'),
    exitCode: signal === null ? exit.exitCode : null,
    signal: signal === null ? null : signalName(signal),
    finishedAt: exit.finishedAt,
  }
}

/** undefined: neither DELETE nor the time limit, though one of them may have come just too late. */
function whatEnded(finishedAt: number, { kill, timeout }: Marks): 'killed' | 'timed_out' | undefined {
  const killed = kill !== undefined && kill <= finishedAt
  const timedOut = timeout !== undefined && timeout <= finishedAt
  if (killed && timedOut) return timeout <= kill ? 'timed_out' : 'killed'
  if (killed) return 'killed'
  return timedOut ? 'timed_out' : undefined
}
