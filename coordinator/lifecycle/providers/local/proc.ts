// Reads processes from /proc. Pids are reused, so a process is identified by its pid, start time and boot id.
import { readdirSync } from 'node:fs'
import { hasExited, type ProcStat, parseProcStat } from '../../../../shared/proc-stat.ts'
import { readStart } from './read-bounded.ts'

/** A process can have megabytes of arguments and environment. */
export const MAX_PROC_FILE_BYTES = 128 * 1024

export type ProcessIdentity = {
  pid: number
  /** Clock ticks since boot: field 22 of /proc/<pid>/stat. */
  startTicks: number
  bootId: string
}

function readProcFile(path: string): string | null {
  try {
    return readStart(path, MAX_PROC_FILE_BYTES).toString('latin1')
  } catch {
    // The process exited after it was listed, or this user may not read the file.
    return null
  }
}

/** Returns null for a missing process and for a zombie. */
export function readStat(pid: number): ProcStat | null {
  const line = readProcFile(`/proc/${pid}/stat`)
  const stat = line === null ? null : parseProcStat(line)
  return stat === null || hasExited(stat) ? null : stat
}

const readBootId = (): string => (readProcFile('/proc/sys/kernel/random/boot_id') ?? '').trim()

export function readIdentity(pid: number): ProcessIdentity | null {
  const stat = readStat(pid)
  return stat && { pid, startTicks: stat.startTicks, bootId: readBootId() }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return readStat(identity.pid)?.startTicks === identity.startTicks && identity.bootId === readBootId()
}

/** No-op when the process has exited or its pid now belongs to another process. */
export function sendSignal(
  identity: ProcessIdentity,
  name: 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT',
): void {
  if (!isAlive(identity)) return
  try {
    process.kill(identity.pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

export function listPids(): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)
}

export function listChildren(pid: number): number[] {
  return listPids().filter((candidate) => readStat(candidate)?.ppid === pid)
}

export const readArgv = (pid: number): string[] => (readProcFile(`/proc/${pid}/cmdline`) ?? '').split('\0')

/** The real uid; null for a missing process. */
export function readUid(pid: number): number | null {
  const uid = /^Uid:\s+(\d+)/m.exec(readProcFile(`/proc/${pid}/status`) ?? '')?.[1]
  return uid === undefined ? null : Number(uid)
}

/** Whether the process was started with this `NAME=value` in its environment. */
export function hasEnvironmentEntry(pid: number, entry: string): boolean {
  return (readProcFile(`/proc/${pid}/environ`) ?? '').split('\0').includes(entry)
}
