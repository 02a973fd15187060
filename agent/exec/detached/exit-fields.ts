// The fields with which stream frames and attach messages report the exit of a process.
import type { ProcessExit } from './types.ts'

/** Streams have no status timed_out (spec §4.14): the time limit killed the command. */
export function toExitFields({ status, exitCode, signal }: ProcessExit) {
  const timedOut = status === 'timed_out'
  return { status: timedOut ? ('killed' as const) : status, exitCode, signal, timedOut }
}
