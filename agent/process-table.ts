// Reads the kernel's process table from /proc.
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'

/** Set for every command and inherited by its descendants, which identifies its process tree. */
export const PROCESS_ID_VARIABLE = 'BOXWOOD_PROCESS_ID'

/** USER_HZ: the unit of times in /proc, 100 per second on every Linux that Node supports. */
export const TICK_MS = 10

export type ProcessEntry = {
  pid: number
  /** The kernel's name: the program's file name or what the process chose, up to 15 bytes. Any characters. */
  name: string
  state: string
  ppid: number
  pgrp: number
  session: number
  /** The process group in the foreground of its terminal; -1 without a terminal. */
  foregroundGroup: number
  isKernelThread: boolean
  /** CPU time in ticks: its own, and that of the children it has waited for. */
  cpuTicks: number
  childrenCpuTicks: number
  threads: number
  /** Ticks since boot. Identifies a process together with the pid, which the kernel reuses. */
  startTime: number
}

const UNREADABLE = new Set(['ENOENT', 'ESRCH', 'EACCES', 'EPERM'])

/** undefined where the process has exited or belongs to another user. */
export function ignoreUnreadable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && UNREADABLE.has(String(error.code))) return undefined
    throw error
  }
}

export function listPids(procRoot = '/proc'): number[] {
  return readdirSync(procRoot)
    .filter((name) => /^[1-9]\d*$/.test(name))
    .map(Number)
}

/** Parses /proc/PID/stat; undefined when there is no such process. */
export function readProcess(pid: number, procRoot = '/proc'): ProcessEntry | undefined {
  const line = readProcFile(pid, 'stat', procRoot)
  if (line === undefined) return undefined
  // Field 2 is the name in parentheses, which may itself contain spaces and parentheses.
  const nameEnd = line.lastIndexOf(')')
  const fields = line.slice(nameEnd + 2).split(' ')
  const number = (index: number) => Number(fields[index])
  return {
    pid,
    name: line.slice(line.indexOf('(') + 1, nameEnd),
    state: fields[0] ?? 'X',
    ppid: number(1),
    pgrp: number(2),
    session: number(3),
    foregroundGroup: number(5),
    isKernelThread: (number(6) & PF_KTHREAD) !== 0,
    cpuTicks: number(11) + number(12),
    childrenCpuTicks: number(13) + number(14),
    threads: number(17),
    startTime: number(19),
  }
}

/** A flag of the kernel (include/linux/sched.h). */
const PF_KTHREAD = 0x200000

/** Whether the process runs, and its pid has not been reused. @param identity startTime in ticks since boot */
export function isAlive({ pid, startTime }: Pick<ProcessEntry, 'pid' | 'startTime'>): boolean {
  const entry = readProcess(pid)
  return entry !== undefined && entry.startTime === startTime && !isDead(entry)
}

/** Zombie or dead. */
export const isDead = (entry: ProcessEntry): boolean => entry.state === 'Z' || entry.state === 'X'

/** The initial environment as NUL-terminated `NAME=value` strings; undefined where it is not readable. */
export const readProcessEnvironment = (pid: number, procRoot = '/proc'): string | undefined =>
  ignoreUnreadable(() => readFileSync(`${procRoot}/${pid}/environ`, 'latin1'))

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
export const hasNoArguments = ({ pid, isKernelThread }: ProcessEntry, procRoot = '/proc'): boolean =>
  !isKernelThread && readProcessArguments(pid, 1, procRoot)?.length === 0

/** The text of /proc/PID/status; undefined where the process has exited. */
export const readProcessStatus = (pid: number, procRoot = '/proc'): string | undefined =>
  readProcFile(pid, 'status', procRoot)

/** The text of /proc/PID/io; undefined where the process has exited or its figures are not readable. */
export const readProcessIo = (pid: number, procRoot = '/proc'): string | undefined =>
  readProcFile(pid, 'io', procRoot)

/** The arguments, each followed by a NUL, up to `maxBytes`; undefined where the process has exited. */
export const readProcessArguments = (pid: number, maxBytes: number, procRoot = '/proc'): Buffer | undefined =>
  ignoreUnreadable(() => {
    const file = openSync(`${procRoot}/${pid}/cmdline`, 'r')
    try {
      const buffer = Buffer.allocUnsafe(maxBytes)
      return buffer.subarray(0, readSync(file, buffer, 0, maxBytes, 0))
    } finally {
      closeSync(file)
    }
  })

const readProcFile = (pid: number, name: 'stat' | 'status' | 'io', procRoot: string): string | undefined =>
  // The name of a process is the only text in them. Invalid UTF-8 is replaced.
  ignoreUnreadable(() => readFileSync(`${procRoot}/${pid}/${name}`, 'utf8'))
