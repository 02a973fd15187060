// Pauses the processes of a box while its files are captured: with the freezer, else with SIGSTOP.
import { rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { type ProcessIdentity, readStat, sendSignal } from '../parts/proc.ts'
import { listProcesses } from './box-processes.ts'
import { listCgroupPids } from './cgroups.ts'
import { findFreezer, freeze, thaw } from './freezer.ts'
import { type BoxPaths, type Machine, processIdentity } from './machine-file.ts'
import { NotRegularFileError, readStart } from './read-bounded.ts'

/** A process in uninterruptible sleep does not stop. */
const STOP_TIMEOUT_MS = 5_000
const POLL_MS = 1
/** Fits the record of about 40,000 stopped processes. */
const MAX_RECORD_BYTES = 4 * 1024 * 1024

/** `stopped`: the processes that were stopped before the pause, such as jobs of a shell. null: paused by the freezer. */
const pauseRecord = z.object({ stopped: z.array(processIdentity).nullable() })
type PauseRecord = z.infer<typeof pauseRecord>

/**
 * Freezes the cgroup of the machine. Returns false, with no effect, where that is not possible: without a freezer, with a
 * process in uninterruptible sleep, or with a process that has left the cgroup.
 */
export async function freezeProcesses(paths: BoxPaths, machine: Machine): Promise<boolean> {
  const freezer = findFreezer(machine.cgroups)
  if (freezer === null || !(await freeze(freezer))) return false
  const frozenPids = new Set(listCgroupPids([freezer.dir]))
  if (listProcesses(paths, machine).every(({ pid }) => frozenPids.has(pid))) return true
  thaw(freezer)
  return false
}

/**
 * Resolves when no process of the box runs. Records the pause before it begins, so that the next coordinator continues the
 * processes after a crash of this one. Throws, with the processes running, when one of them cannot be paused.
 */
export async function pauseProcesses(paths: BoxPaths, machine: Machine): Promise<void> {
  try {
    writePauseRecord(paths, { stopped: null })
    if (await freezeProcesses(paths, machine)) return
    const list = () => listProcesses(paths, machine)
    writePauseRecord(paths, { stopped: list().filter(isStopped) })
    await stopProcesses(list)
  } catch (error) {
    continueProcesses(paths, machine)
    throw error
  }
}

/** Continues frozen and paused processes. No-op when they run. */
export function continueProcesses(paths: BoxPaths, machine: Machine): void {
  const freezer = findFreezer(machine.cgroups)
  if (freezer !== null) thaw(freezer)
  const record = readPauseRecord(paths)
  if (record === null) return
  if (record.stopped !== null) {
    const wasStopped = new Set(record.stopped.map(identityKey))
    const paused = listProcesses(paths, machine).filter(
      (identity) => isStopped(identity) && !wasStopped.has(identityKey(identity)),
    )
    // Children before parents: a shell that continues must not find a stopped job.
    for (const generation of groupByGeneration(paused).reverse())
      for (const identity of generation) sendSignal(identity, 'SIGCONT')
  }
  rmSync(paths.pauseRecord, { recursive: true, force: true })
}

/** Makes a paused box a frozen one. Returns false, with no effect, for a pause with signals. */
export function turnPauseIntoFreeze(paths: BoxPaths): boolean {
  if (readPauseRecord(paths)?.stopped !== null) return false
  rmSync(paths.pauseRecord, { force: true })
  return true
}

/** Makes a frozen box a paused one. */
export const turnFreezeIntoPause = (paths: BoxPaths): void => writePauseRecord(paths, { stopped: null })

export const isPaused = (paths: BoxPaths): boolean => readPauseRecord(paths) !== null

/** Repeats until two scans find no running process: a scan can miss a process that was just forked. */
async function stopProcesses(list: () => ProcessIdentity[]): Promise<void> {
  const deadline = performance.now() + STOP_TIMEOUT_MS
  for (let quietScans = 0; quietScans < 2; ) {
    const running = list().filter(isRunning)
    quietScans = running.length === 0 ? quietScans + 1 : 0
    // Parents before children: a parent that waits for its child must not notice that the child stops.
    for (const generation of groupByGeneration(running)) {
      for (const identity of generation) sendSignal(identity, 'SIGSTOP')
      while (generation.some(isRunning)) {
        if (performance.now() > deadline) {
          const pids = generation.filter(isRunning).map(({ pid }) => pid)
          throw new Error(
            `Processes of the box cannot be paused: ${pids.join(', ')}. Check the disks and network file systems that they use.`,
          )
        }
        await sleep(POLL_MS)
      }
    }
  }
}

/** Sorted by the number of ancestors among the processes. */
function groupByGeneration(processes: readonly ProcessIdentity[]): ProcessIdentity[][] {
  const parents = new Map(processes.map(({ pid }) => [pid, readStat(pid)?.ppid ?? 0]))
  const generations: ProcessIdentity[][] = []
  for (const identity of processes) {
    let depth = 0
    for (let pid = parents.get(identity.pid); pid !== undefined && depth < parents.size; depth++)
      pid = parents.get(pid)
    generations[depth] = [...(generations[depth] ?? []), identity]
  }
  return generations.filter((generation) => generation !== undefined)
}

const readState = ({ pid, startTicks }: ProcessIdentity): string | undefined => {
  const stat = readStat(pid)
  return stat?.startTicks === startTicks ? stat.state : undefined
}

/** t: stopped by a debugger. */
const isStopped = (identity: ProcessIdentity): boolean => readState(identity) === 'T'
const isRunning = (identity: ProcessIdentity): boolean => !['T', 't', undefined].includes(readState(identity))

const identityKey = ({ pid, startTicks, bootId }: ProcessIdentity): string => `${pid} ${startTicks} ${bootId}`

/** At level process, a box that shares the uid of the coordinator can replace the file. */
function writePauseRecord({ pauseRecord: path }: BoxPaths, record: PauseRecord): void {
  rmSync(path, { recursive: true, force: true })
  writeFileSync(path, JSON.stringify(record), { mode: 0o600, flag: 'wx' })
}

/** Returns null when the box is not paused. */
function readPauseRecord(paths: BoxPaths): PauseRecord | null {
  let text: string
  try {
    text = readStart(paths.pauseRecord, MAX_RECORD_BYTES).toString('utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    if (error instanceof NotRegularFileError) return { stopped: [] }
    throw error
  }
  try {
    return pauseRecord.parse(JSON.parse(text))
  } catch {
    // The coordinator was killed while it wrote the record.
    return { stopped: [] }
  }
}
