// Finds the processes that a test started, by a unique argument.
import { listPids, readArgv, readStat } from '../../../../coordinator/providers/parts/proc.ts'

/** A unique argument for `sleep`, by which a test finds its own process. */
export const uniqueSleepSeconds = (): string => `600.${Math.random().toFixed(12).slice(2)}1`

export const findPidsByArgument = (argument: string): number[] =>
  listPids().filter((pid) => readArgv(pid).includes(argument) && readStat(pid) !== null)

/**
 * The pids of the processes that run `sleep` with this argument. A process that has the argument before it executes sleep, such
 * as setsid, does not count: during the execve, the kernel shows no arguments, so such a process could be missing later.
 */
export const findSleepPids = (seconds: string): number[] =>
  listPids().filter((pid) => {
    const [program, argument] = readArgv(pid)
    return program === 'sleep' && argument === seconds && readStat(pid) !== null
  })
