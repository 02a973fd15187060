// Reads processes from /proc. Pids are reused, so a process is identified by its pid, start time and boot id.
import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { hasExited, type ProcStat, parseProcStat } from '../../../shared/proc-stat.ts'

/** A process can have megabytes of arguments and environment. */
export const MAX_PROC_FILE_BYTES = 128 * 1024
/** All reads share the buffer, because they are synchronous: a scan reads three files of each process of the machine. */
const buffer = Buffer.allocUnsafe(MAX_PROC_FILE_BYTES)

export type ProcessIdentity = {
  pid: number
  /** Clock ticks since boot: field 22 of /proc/<pid>/stat. */
  startTicks: number
  bootId: string
}

function readProcFile(path: string): string | null {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    let length = 0
    for (let count = -1; count !== 0 && length < buffer.length; length += count)
      count = readSync(file, buffer, length, buffer.length - length, null)
    return buffer.toString('latin1', 0, length)
  } catch {
    // The process exited after it was listed, or this user may not read the file.
    return null
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Returns null for a missing process and for a zombie. */
export function readStat(pid: number): ProcStat | null {
  const line = readProcFile(`/proc/${pid}/stat`)
  const stat = line === null ? null : parseProcStat(line)
  return stat === null || hasExited(stat) ? null : stat
}

const BOOT_ID = (readProcFile('/proc/sys/kernel/random/boot_id') ?? '').trim()

export function readIdentity(pid: number): ProcessIdentity | null {
  const stat = readStat(pid)
  return stat && { pid, startTicks: stat.startTicks, bootId: BOOT_ID }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identity.bootId === BOOT_ID && readStat(identity.pid)?.startTicks === identity.startTicks
}

/** Stops a box whose init is pid 1: init.sh handles no TERM, which a process of the box may send. */
export const INIT_STOP_SIGNAL = 'SIGPWR'

/** No-op when the process has exited or its pid now belongs to another process. */
export function sendSignal(
  identity: ProcessIdentity,
  name: 'SIGTERM' | typeof INIT_STOP_SIGNAL | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT',
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

/**
 * The children of the main thread of a process. Much faster than listChildren, but a child can be missing while another
 * one exits. Returns null when the kernel has no such list.
 */
export function listChildrenOfMainThread(pid: number): number[] | null {
  const list = readProcFile(`/proc/${pid}/task/${pid}/children`)
  return list === null ? null : list.split(' ').map(Number).filter(Boolean)
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
