// Ends every process of a box: TERM, a grace, KILL until none is left.
import { setTimeout as sleep } from 'node:timers/promises'
import { processesIn } from './cgroups.ts'
import { findLauncher } from './launch.ts'
import type { BoxPaths, Machine } from './machine-file.ts'
import {
  argvOf,
  hasEnvironment,
  identify,
  isAlive,
  listPids,
  type ProcessIdentity,
  readStat,
  signal,
  uidOf,
} from './proc.ts'

const POLL_MS = 25
/** After KILL only the kernel is waited for. */
const KILL_TIMEOUT_MS = 10_000

/** Every process of the machine starts with this in its environment. */
export const marker = (boxId: string): string => `BOXWOOD_BOX=${boxId}`

/** Throws when processes are left that not even KILL ends (asleep in the kernel). */
export async function endProcesses(paths: BoxPaths, machine: Machine, graceMs: number): Promise<void> {
  const left = () => processesOf(paths, machine)
  if (left().length === 0) return
  terminate(machine, left())
  const graceEnd = performance.now() + graceMs
  while (performance.now() < graceEnd) {
    if (left().length === 0) return
    await sleep(POLL_MS)
  }
  const deadline = performance.now() + KILL_TIMEOUT_MS
  for (let rest = left(); rest.length > 0; rest = left()) {
    if (performance.now() > deadline) {
      throw new Error(`processes cannot be ended: ${rest.map(({ pid }) => pid).join(', ')}`)
    }
    // The end of a namespace's init is the end of everything in it, also of what no scan of ours would know.
    for (const process of rest) signal(process, 'SIGKILL')
    await sleep(POLL_MS)
  }
}

function terminate(machine: Machine, processes: ProcessIdentity[]): void {
  const { init } = machine
  const initAlive = init !== null && isAlive(init)
  if (initAlive) signal(init, 'SIGTERM')
  // As pid 1 the init passes it on to everything in the namespace.
  if (initAlive && machine.level !== 'process') return
  for (const process of processes) {
    const isAgent = initAlive && readStat(process.pid)?.ppid === init.pid && isProgram(process.pid)
    // A plain init passes it on to the agent: to hear it twice may mean "at once".
    if (process.pid !== init?.pid && !isAgent) signal(process, 'SIGTERM')
  }
}

/** Not one of the init's own pauses. */
const isProgram = (pid: number): boolean => argvOf(pid)[0] !== 'sleep'

/**
 * Known by: being the init or what launched it; the box's cgroups; the box's uid, or for an ordinary user's
 * coordinator the marker in the environment; and, where no namespace holds them, being a child of one of those.
 */
function processesOf(paths: BoxPaths, machine: Machine): ProcessIdentity[] {
  const pids = new Set(processesIn(machine.cgroups))
  for (const known of [machine.init, findLauncher(paths)]) {
    if (known !== null && isAlive(known)) pids.add(known.pid)
  }
  const parents = new Map<number, number>()
  for (const pid of listPids()) {
    const stat = readStat(pid)
    if (stat === null) continue
    parents.set(pid, stat.ppid)
    const { uid, boxId } = machine
    if (uid === null ? hasEnvironment(pid, marker(boxId)) : uidOf(pid) === uid) pids.add(pid)
  }
  if (machine.level === 'process') addDescendants(pids, parents)
  pids.delete(process.pid)
  return [...pids].map(identify).filter((identity) => identity !== null)
}

function addDescendants(pids: Set<number>, parents: Map<number, number>): void {
  for (let before = -1; before !== pids.size; ) {
    before = pids.size
    for (const [pid, parent] of parents) if (pids.has(parent)) pids.add(pid)
  }
}
