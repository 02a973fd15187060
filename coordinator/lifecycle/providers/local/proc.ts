// Processes of this machine as /proc shows them. A process is its pid, its start time and the boot: a pid alone is reused.
import { readdirSync, readFileSync } from 'node:fs'

export type ProcessIdentity = {
  pid: number
  /** Clock ticks since boot: field 22 of /proc/<pid>/stat. */
  startTicks: number
  bootId: string
}

type Stat = { state: string; ppid: number; startTicks: number }

function readProc(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // Gone between the listing and the read, or not ours to see.
    return null
  }
}

/** The fields that matter of a line of /proc/<pid>/stat; the name in it may hold spaces and parentheses. */
export function parseStat(line: string): Stat | null {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const [state, ppid] = fields
  const startTicks = Number(fields[19])
  if (state === undefined || !Number.isInteger(startTicks)) return null
  return { state, ppid: Number(ppid), startTicks }
}

/** null: no such process, or only its zombie. */
export function readStat(pid: number): Stat | null {
  const line = readProc(`/proc/${pid}/stat`)
  const stat = line === null ? null : parseStat(line)
  return stat === null || stat.state === 'Z' || stat.state === 'X' ? null : stat
}

export const currentBootId = (): string => (readProc('/proc/sys/kernel/random/boot_id') ?? '').trim()

export function identify(pid: number): ProcessIdentity | null {
  const stat = readStat(pid)
  return stat && { pid, startTicks: stat.startTicks, bootId: currentBootId() }
}

export function isAlive(identity: ProcessIdentity): boolean {
  return readStat(identity.pid)?.startTicks === identity.startTicks && identity.bootId === currentBootId()
}

/** Sends the signal if the pid is still that process. Gone already: nothing happens. */
export function signal(identity: ProcessIdentity, name: 'SIGTERM' | 'SIGKILL'): void {
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

export function childrenOf(pid: number): number[] {
  return listPids().filter((candidate) => readStat(candidate)?.ppid === pid)
}

export const argvOf = (pid: number): string[] => (readProc(`/proc/${pid}/cmdline`) ?? '').split('\0')

/** The real uid, or null when the process is gone. */
export function uidOf(pid: number): number | null {
  const uid = /^Uid:\s+(\d+)/m.exec(readProc(`/proc/${pid}/status`) ?? '')?.[1]
  return uid === undefined ? null : Number(uid)
}

/** Whether the process was started with this `NAME=value` in its environment. */
export function hasEnvironment(pid: number, entry: string): boolean {
  return (readProc(`/proc/${pid}/environ`) ?? '').split('\0').includes(entry)
}
