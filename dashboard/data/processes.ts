// The processes of a box: their order, and how one of them is terminated.
import type { LiveProcess } from '../../shared/api/live-processes.ts'

export const PROCESS_SORTS = { command: 'Command', cpu: 'CPU', memory: 'Memory', pid: 'PID' } as const
export type ProcessSort = keyof typeof PROCESS_SORTS

const COMPARE: Record<ProcessSort, (a: LiveProcess, b: LiveProcess) => number> = {
  cpu: (a, b) => b.cpuPct - a.cpuPct,
  memory: (a, b) => b.memBytes - a.memBytes,
  pid: () => 0,
  command: (a, b) => (getText(a) < getText(b) ? -1 : getText(a) > getText(b) ? 1 : 0),
}

/** The command line; of a process without one, such as a zombie, its name. */
export const getText = ({ command, name }: Pick<LiveProcess, 'command' | 'name'>): string => command || name

export const sortProcesses = (processes: readonly LiveProcess[], sort: ProcessSort): LiveProcess[] =>
  [...processes].sort((a, b) => COMPARE[sort](a, b) || a.pid - b.pid)

export type ProcessRow = { process: LiveProcess; depth: number }

/** Each process below its parent. A box may report parents in a circle: those come at the end. */
export function arrangeTree(processes: readonly LiveProcess[]): ProcessRow[] {
  const sorted = sortProcesses(processes, 'pid')
  const pids = new Set(sorted.map(({ pid }) => pid))
  const children = Map.groupBy(sorted, ({ ppid }) => ppid)
  const rows = new Map<LiveProcess, ProcessRow>()
  const roots = sorted.filter(({ pid, ppid }) => ppid === pid || !pids.has(ppid))
  const waiting = roots.toReversed().map((process) => ({ process, depth: 0 }))
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    if (rows.has(row.process)) continue
    rows.set(row.process, row)
    const depth = row.depth + 1
    const below = (children.get(row.process.pid) ?? []).toReversed()
    waiting.push(...below.map((process) => ({ process, depth })))
  }
  const circular = sorted.filter((process) => !rows.has(process))
  return [...rows.values(), ...circular.map((process) => ({ process, depth: 0 }))]
}

/** The state letters of ps, in words. */
const STATES: Record<string, string> = {
  R: 'running',
  S: 'sleeping',
  D: 'waiting for the disk',
  Z: 'exited',
  T: 'stopped',
  t: 'traced',
  I: 'idle',
}

export const formatProcessState = (letter: string): string => STATES[letter] ?? letter

export const KILL_SIGNALS = { TERM: 'TERM: asks the process to exit', KILL: 'KILL: ends it at once' } as const
export type KillSignal = keyof typeof KILL_SIGNALS

export const formatKill = (pid: number, signal: KillSignal): string => `kill -${signal} ${pid}`

/** Whether this is still the process that the page shows: another one may have got its pid. */
export const isSameProcess = (shown: LiveProcess, current: LiveProcess | undefined): boolean =>
  current !== undefined && current.pid === shown.pid && current.startedAt === shown.startedAt
