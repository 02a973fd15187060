// Processes as a test sees them: found by something in their arguments that nobody else has.
import { argvOf, listPids, readStat } from '../../../../coordinator/lifecycle/providers/local/proc.ts'

/** Unique seconds for `sleep`, so that a test finds its own sleeper among all others. */
export const uniqueSeconds = (): string => `600.${Math.random().toFixed(12).slice(2)}1`

export const pidsWithArgument = (text: string): number[] =>
  listPids().filter((pid) => argvOf(pid).includes(text) && readStat(pid) !== null)
