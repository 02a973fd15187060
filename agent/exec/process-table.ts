// Reads the kernel's process table from /proc.
import { readdirSync, readFileSync } from 'node:fs'

export type ProcessEntry = {
  pid: number
  state: string
  ppid: number
  pgrp: number
  session: number
  /** CPU time in ticks (1/100 s): its own, and that of the children it has waited for. */
  cpuTicks: number
  childrenCpuTicks: number
  /** Ticks since boot. Identifies a process together with the pid, which the kernel reuses. */
  startTime: number
}

const MISSING = new Set(['ENOENT', 'ESRCH'])
const UNREADABLE = new Set([...MISSING, 'EACCES', 'EPERM'])

function ignoreErrors(codes: Set<string>, error: unknown): undefined {
  if (error instanceof Error && 'code' in error && codes.has(String(error.code))) return undefined
  throw error
}

export function listPids(procRoot = '/proc'): number[] {
  return readdirSync(procRoot)
    .filter((name) => /^[1-9]\d*$/.test(name))
    .map(Number)
}

/** Parses /proc/PID/stat; undefined when there is no such process. */
export function readProcess(pid: number, procRoot = '/proc'): ProcessEntry | undefined {
  let line: string
  try {
    line = readFileSync(`${procRoot}/${pid}/stat`, 'latin1')
  } catch (error) {
    return ignoreErrors(UNREADABLE, error)
  }
  // Field 2 is the name in parentheses, which may itself contain spaces and parentheses.
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

/** Zombie or dead. */
export const isDead = (entry: ProcessEntry): boolean => entry.state === 'Z' || entry.state === 'X'

/** The initial environment as NUL-terminated `NAME=value` strings; undefined where it is not readable. */
export const readProcessEnvironment = (pid: number, procRoot = '/proc'): string | undefined =>
  readProcFile(pid, 'environ', procRoot)?.toString('latin1')

/** @param environment from readProcessEnvironment @param assignment `NAME=value` */
export const hasAssignment = (environment: string | undefined, assignment: string): boolean =>
  `\0${environment ?? ''}`.includes(`\0${Buffer.from(assignment).toString('latin1')}\0`)

/** False where the environment is not readable. @param assignment `NAME=value` */
export const hasEnvironmentVariable = (pid: number, assignment: string, procRoot = '/proc'): boolean =>
  hasAssignment(readProcessEnvironment(pid, procRoot), assignment)

/**
 * True for a process in the middle of execve, which has neither arguments nor environment while the kernel loads the new
 * program. Also true for an exiting process and one started without arguments. Excludes kernel threads, which never have any.
 */
export const hasNoArguments = ({ pid, ppid }: ProcessEntry, procRoot = '/proc'): boolean =>
  pid !== KTHREADD_PID && ppid !== KTHREADD_PID && readProcFile(pid, 'cmdline', procRoot)?.length === 0

/** The parent of kernel threads, where the box sees it. */
const KTHREADD_PID = 2

/** undefined where the process has exited or belongs to another user. */
function readProcFile(pid: number, name: 'environ' | 'cmdline', procRoot: string): Buffer | undefined {
  try {
    return readFileSync(`${procRoot}/${pid}/${name}`)
  } catch (error) {
    return ignoreErrors(UNREADABLE, error)
  }
}
