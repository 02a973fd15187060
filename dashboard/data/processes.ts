// The processes of a box: their order, and how one of them is terminated.
import type { LiveProcess } from '../../shared/api/live-processes.ts'

export const PROCESS_SORTS = { cpu: 'CPU', memory: 'Memory', pid: 'PID', command: 'Command' } as const
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

export const KILL_SIGNALS = { TERM: 'TERM: asks the process to exit', KILL: 'KILL: ends it at once' } as const
export type KillSignal = keyof typeof KILL_SIGNALS

export const formatKill = (pid: number, signal: KillSignal): string => `kill -${signal} ${pid}`

/** Whether this is still the process that the page shows: another one may have got its pid. */
export const isSameProcess = (shown: LiveProcess, current: LiveProcess | undefined): boolean =>
  current !== undefined && current.pid === shown.pid && current.startedAt === shown.startedAt
