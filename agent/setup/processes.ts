// Finds and terminates the processes of an installation: its supervisor, its agent and the commands of the box.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  hasEnvironmentVariable,
  isDead,
  listPids,
  readProcess,
  readProcessArguments,
} from '../process-table.ts'
import { SetupError } from './setup-error.ts'

const POLL_MS = 25
const KILL_TIMEOUT_MS = 10_000
const MAX_ARGUMENT_BYTES = 8 * 1024

/** Identifies a process: the kernel reuses pids. */
type Identity = { pid: number; startTime: number }

function identify(pid: number): Identity | undefined {
  const entry = readProcess(pid)
  return entry === undefined || isDead(entry) ? undefined : { pid, startTime: entry.startTime }
}

const isRunning = ({ pid, startTime }: Identity): boolean => identify(pid)?.startTime === startTime

/** The pids of the processes that supervise.sh of this prefix runs in. */
export function findSupervisors(prefix: string): Identity[] {
  return findProcesses((pid) => {
    const args = readProcessArguments(pid, MAX_ARGUMENT_BYTES)?.toString().split('\0') ?? []
    return args[1] === `${prefix}/current/supervise.sh` && args[2] === prefix
  })
}

/** All processes with the box in their environment: supervisors, the agent and its commands. */
export const findBoxProcesses = (boxId: string): Identity[] =>
  findProcesses((pid) => hasEnvironmentVariable(pid, `BOXWOOD_BOX=${boxId}`))

function findProcesses(matches: (pid: number) => boolean): Identity[] {
  return listPids()
    .filter((pid) => pid !== process.pid && matches(pid))
    .flatMap((pid) => identify(pid) ?? [])
}

function sendSignal(target: Identity, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (!isRunning(target)) return
  try {
    process.kill(target.pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/**
 * SIGTERM, a grace period, then SIGKILL until two scans find nothing: a scan can miss a process that exits after it has
 * forked its successor, and one in the middle of execve, which has no environment for a moment.
 */
export async function terminate(find: () => Identity[], graceMs: number): Promise<void> {
  for (const target of find()) sendSignal(target, 'SIGTERM')
  const graceDeadline = performance.now() + graceMs
  while (find().length > 0 && performance.now() < graceDeadline) await sleep(POLL_MS)
  const deadline = performance.now() + KILL_TIMEOUT_MS
  for (let emptyScans = 0; ; ) {
    const remaining = find()
    emptyScans = remaining.length === 0 ? emptyScans + 1 : 0
    if (emptyScans === 2) return
    if (performance.now() > deadline)
      throw new SetupError(
        `Processes survived SIGKILL: ${remaining.map(({ pid }) => pid).join(', ')}. Check the disks and network file systems that they use.`,
      )
    for (const target of remaining) sendSignal(target, 'SIGKILL')
    await sleep(POLL_MS)
  }
}
