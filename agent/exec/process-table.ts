// Reads the kernel's process table: who exists, whose child it is, when it started, what it carries.
import { readdirSync, readFileSync } from 'node:fs'

export type ProcessEntry = {
  pid: number
  state: string
  ppid: number
  pgrp: number
  session: number
  /** Ticks (1/100 s) of CPU: its own, and those of the children it has waited for. */
  cpuTicks: number
  childrenCpuTicks: number
  /** Ticks since the boot: with the pid it names a process for good, as pids are used again. */
  startTime: number
}

const GONE = new Set(['ENOENT', 'ESRCH'])
const UNREADABLE = new Set([...GONE, 'EACCES', 'EPERM'])

function unlessOneOf(codes: Set<string>, error: unknown): undefined {
  if (error instanceof Error && 'code' in error && codes.has(String(error.code))) return undefined
  throw error
}

export function listPids(procRoot = '/proc'): number[] {
  return readdirSync(procRoot)
    .filter((name) => /^[1-9]\d*$/.test(name))
    .map(Number)
}

/** One line of /proc/PID/stat, or undefined where there is no such process (any more). */
export function readProcess(pid: number, procRoot = '/proc'): ProcessEntry | undefined {
  let line: string
  try {
    line = readFileSync(`${procRoot}/${pid}/stat`, 'latin1')
  } catch (error) {
    return unlessOneOf(UNREADABLE, error)
  }
  // The name stands in parentheses and may itself hold spaces and parentheses.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const number = (index: number) => Number(fields[index])
  return {
    pid,
    state: fields[0] ?? 'X',
    ppid: number(1),
    pgrp: number(2),
    session: number(3),
    cpuTicks: number(11) + number(12),
    childrenCpuTicks: number(13) + number(14),
    startTime: number(19),
  }
}

/** Ended, though its parent may not have waited for it yet. */
export const isDead = (entry: ProcessEntry): boolean => entry.state === 'Z' || entry.state === 'X'

/** What the process was started with, each as `NAME=value` and a zero byte; undefined where it may not be read. */
export const readEnvironment = (pid: number, procRoot = '/proc'): string | undefined =>
  readOwn(pid, 'environ', procRoot)?.toString('latin1')

/** Whether this `NAME=value` is in what readEnvironment answered. */
export const assigns = (environment: string | undefined, assignment: string): boolean =>
  `\0${environment ?? ''}`.includes(`\0${Buffer.from(assignment).toString('latin1')}\0`)

/** True when the environment the process was started with has this `NAME=value`; false where it may not be read. */
export const hasEnvironment = (pid: number, assignment: string, procRoot = '/proc'): boolean =>
  assigns(readEnvironment(pid, procRoot), assignment)

/**
 * A process on its way from one program to the next has neither these nor an environment, for as long as the kernel takes
 * to load it. Nor has one that is ending, or that was given none. The kernel's own, which never have any, are not meant.
 */
export const hasNoArguments = ({ pid, ppid }: ProcessEntry, procRoot = '/proc'): boolean =>
  pid !== KERNEL_PARENT && ppid !== KERNEL_PARENT && readOwn(pid, 'cmdline', procRoot)?.length === 0

/** kthreadd, where the box sees it: its children are threads of the kernel. */
const KERNEL_PARENT = 2

/** undefined where the process is gone or keeps it to its owner. */
function readOwn(pid: number, name: 'environ' | 'cmdline', procRoot: string): Buffer | undefined {
  try {
    return readFileSync(`${procRoot}/${pid}/${name}`)
  } catch (error) {
    return unlessOneOf(UNREADABLE, error)
  }
}
