// Derives how a detached process exited from the runner's exit record and the termination requests. Pure.
import { signalName } from '../signal-name.ts'
import type { ExitRecord, TerminationCause } from './record.ts'
import type { ProcessExit } from './types.ts'

export const LOST_EXIT: ProcessExit = { status: 'lost', exitCode: null, signal: null, finishedAt: null }

/** When each termination was requested, in milliseconds since the epoch. */
export type TerminationTimes = Partial<Record<TerminationCause, number>>

/**
 * KILL and TERM, which the agent sends. The shell runner reports death by signal n as exit code 128 + n. A command can
 * also exit with that code by itself, so the code counts as a signal only after a termination request.
 */
const OWN_SIGNALS = [9, 15]

export function resolveExit(record: ExitRecord, requested: TerminationTimes): ProcessExit {
  const terminationStatus = getTerminationStatus(record.finishedAt, requested)
  const shellSignal = (record.exitCode ?? 0) - 128
  const isShellSignal =
    record.sizes === null && terminationStatus !== undefined && OWN_SIGNALS.includes(shellSignal)
  const signal = isShellSignal ? shellSignal : record.signal
  return {
    status: terminationStatus ?? (signal === null ? 'exited' : 'killed'),
    exitCode: signal === null ? record.exitCode : null,
    signal: signal === null ? null : signalName(signal),
    finishedAt: record.finishedAt,
  }
}

/** The status by the earliest termination request. undefined when there was no request before the exit. */
function getTerminationStatus(
  finishedAt: number,
  { kill, timeout }: TerminationTimes,
): 'killed' | 'timed_out' | undefined {
  const isKilled = kill !== undefined && kill <= finishedAt
  const isTimedOut = timeout !== undefined && timeout <= finishedAt
  if (isKilled && isTimedOut) return timeout <= kill ? 'timed_out' : 'killed'
  if (isKilled) return 'killed'
  return isTimedOut ? 'timed_out' : undefined
}
