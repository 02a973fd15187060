// Finds and stops the machines of local boxes, also those of an earlier coordinator. Needs no isolation level.
import { existsSync, rmSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isUuid } from '../../../../shared/ids.ts'
import type { Region } from '../../../../shared/tiers.ts'
import type { MachineState, Provider } from '../../provider.ts'
import { type Cgroups, listBoxCgroupDirs, probeCgroups, removeCgroups } from './cgroups.ts'
import { VIEW_PATHS } from './filesystem-view.ts'
import { findFreezer, isFreezing } from './freezer.ts'
import { findInit } from './launch.ts'
import type { Level } from './levels/choose-level.ts'
import { type BoxPaths, boxPaths, DamagedMachineError, type Machine, readMachine } from './machine-file.ts'
import {
  continueProcesses,
  freezeProcesses,
  isPaused,
  pauseProcesses,
  turnFreezeIntoPause,
  turnPauseIntoFreeze,
} from './pause.ts'
import { isAlive } from './proc.ts'
import { createReclaimer } from './reclaim.ts'
import { recoverMachine } from './recover-machine.ts'
import { getBoxesDir, getRegionDir } from './region-directories.ts'
import { RUNTIME_FILES, RUNTIME_LINKS } from './runtime.ts'
import { terminateProcesses } from './terminate-processes.ts'

export type MachinesOptions = {
  dataDir: string
  boxesDir: string
  cgroups: Cgroups
  log: Record<'debug' | 'warn', (fields: object, message: string) => void>
  /** Milliseconds between SIGTERM and SIGKILL when a box is stopped. Default: 5 s. */
  graceMs?: number
}

export type Machines = ReturnType<typeof createMachines>

export function createMachines({ dataDir, boxesDir, cgroups, log, graceMs = 5_000 }: MachinesOptions) {
  const reclaimer = createReclaimer({ log })
  /** The boxes that this coordinator has paused. */
  const pausedIds = new Set<string>()
  /** The captures that read files, by box. A capture is aborted when processes of its box begin to run meanwhile. */
  const captures = new Map<string, AbortController>()
  const currentRuntime = join(dataDir, 'runtime', RUNTIME_LINKS.current)

  /** The path of the init script as the box sees it. */
  const initScriptOf = (level: Level) =>
    level === 'process' ? join(currentRuntime, RUNTIME_FILES.init) : VIEW_PATHS.init

  /** Returns null when the machine does not exist. */
  async function readOrRecover(boxId: string): Promise<Machine | null> {
    try {
      return await readMachine(boxPaths(boxesDir, boxId))
    } catch (err) {
      if (!(err instanceof DamagedMachineError)) throw err
      log.warn({ boxId, err }, 'the file of a machine is damaged; the next start of the box replaces it')
      return await recoverMissing(boxId)
    }
  }

  const recoverMissing = (boxId: string): Promise<Machine> =>
    recoverMachine(boxPaths(boxesDir, boxId), boxId, listBoxCgroupDirs(cgroups, boxId))

  /**
   * Reads the machine and its current init, which an earlier coordinator may have launched without recording it. Continues
   * the processes that an earlier coordinator has paused.
   */
  async function load(boxId: string): Promise<Machine | null> {
    const machine = await readOrRecover(boxId)
    if (machine?.level == null) return machine
    const paths = boxPaths(boxesDir, boxId)
    const recordedInit = machine.init !== null && isAlive(machine.init) ? machine.init : null
    const init = recordedInit ?? findInit(paths, initScriptOf(machine.level))
    if (!pausedIds.has(boxId) && isPaused(paths)) continueProcesses(paths, machine)
    return { ...machine, init }
  }

  async function list(): Promise<Machine[]> {
    const ids = (await readdir(boxesDir)).filter(isUuid)
    const machines = await Promise.all(ids.map(readOrRecover))
    return machines.filter((machine) => machine !== null)
  }

  /** Continues the processes that an earlier coordinator has paused. */
  async function continuePaused(): Promise<void> {
    const ids = (await readdir(boxesDir)).filter(isUuid)
    for (const boxId of ids) if (isPaused(boxPaths(boxesDir, boxId))) await load(boxId)
  }

  /**
   * Writes nothing, because a box must also stop on a full disk. The machine file keeps the identity of the exited init
   * and the names of the removed cgroups.
   */
  async function stop(paths: BoxPaths, machine: Machine, gracePeriodMs = graceMs): Promise<void> {
    reclaimer.end(machine.boxId, machine.cgroups)
    pausedIds.delete(machine.boxId)
    interruptCapture(machine.boxId)
    await terminateProcesses(paths, machine, gracePeriodMs)
    await removeCgroups(machine.cgroups)
    rmSync(paths.launchRecord, { recursive: true, force: true })
  }

  /** Terminates processes that outlived their init, before a start. */
  async function stopRemaining(paths: BoxPaths, machine: Machine): Promise<void> {
    interruptCapture(machine.boxId)
    if (existsSync(paths.launchRecord)) await stop(paths, machine, 0)
  }

  /** Also terminates the processes of a box whose directory was removed. Returns whether the machine exists. */
  async function stopExisting(boxId: string): Promise<boolean> {
    const machine = await load(boxId)
    await stop(boxPaths(boxesDir, boxId), machine ?? (await recoverMissing(boxId)))
    return machine !== null
  }

  async function inspect(boxId: string): Promise<MachineState> {
    const machine = await load(boxId)
    if (machine === null) return 'absent'
    if (machine.init === null) return 'stopped'
    return isFrozen(machine) ? 'frozen' : 'running'
  }

  /** The kernel knows whether a machine is frozen. A machine that is paused for a capture is running. */
  function isFrozen({ boxId, cgroups }: Machine): boolean {
    const freezer = findFreezer(cgroups)
    return freezer !== null && isFreezing(freezer) && !isPaused(boxPaths(boxesDir, boxId))
  }

  /** Returns false, with no effect, where freezing is not possible. */
  async function freeze(boxId: string): Promise<boolean> {
    const machine = await load(boxId)
    if (machine?.init == null) return false
    if (isFrozen(machine)) return true
    const paths = boxPaths(boxesDir, boxId)
    // A capture continues: the processes do not run in either state.
    const isPossible = pausedIds.has(boxId)
      ? turnPauseIntoFreeze(paths)
      : await freezeProcesses(paths, machine)
    if (!isPossible) return false
    reclaimer.start(boxId, machine.cgroups)
    return true
  }

  /**
   * No-op for a machine that is not frozen. The processes of a machine that was frozen during a pause continue when the
   * capture ends the pause. The capture of a machine that was frozen before fails.
   */
  function thaw(machine: Machine): void {
    if (!isFrozen(machine)) return
    const paths = boxPaths(boxesDir, machine.boxId)
    reclaimer.end(machine.boxId, machine.cgroups)
    if (pausedIds.has(machine.boxId)) turnFreezeIntoPause(paths)
    else {
      interruptCapture(machine.boxId)
      continueProcesses(paths, machine)
    }
  }

  /** Begins a capture. The capture of a running machine reads no files before it pauses the machine. */
  async function beginCapture(boxId: string, interruption: AbortController): Promise<Machine | null> {
    const machine = await load(boxId)
    if (machine?.init === null) captures.set(boxId, interruption)
    return machine
  }

  /** The files would belong to different times. At level process, the box could also stop the programs that read them. */
  function interruptCapture(boxId: string): void {
    captures
      .get(boxId)
      ?.abort(new Error('The box was started or stopped while its files were read. Try again.'))
  }

  /** The files are no longer read. */
  function endCapture(boxId: string): void {
    captures.delete(boxId)
  }

  /**
   * Pauses the processes of a running machine. Returns a function that continues them, or null when no process runs: the
   * machine is frozen or stopped, and stays in this state. A stop of the machine ends the pause. A machine that is frozen
   * meanwhile stays frozen.
   * @param interruption see beginCapture
   */
  async function pause(boxId: string, interruption?: AbortController): Promise<(() => void) | null> {
    const machine = await load(boxId)
    if (interruption !== undefined) captures.set(boxId, interruption)
    if (machine?.init == null || isFrozen(machine)) return null
    const paths = boxPaths(boxesDir, boxId)
    pausedIds.add(boxId)
    try {
      await pauseProcesses(paths, machine)
    } catch (error) {
      pausedIds.delete(boxId)
      throw error
    }
    return () => {
      if (pausedIds.delete(boxId) && !isFrozen(machine)) continueProcesses(paths, machine)
    }
  }

  return {
    initScriptOf,
    load,
    list,
    continuePaused,
    stop,
    stopRemaining,
    stopExisting,
    inspect,
    freeze,
    thaw,
    beginCapture,
    endCapture,
    pause,
    close: reclaimer.close,
  }
}

export type MachineStoppers = { inRegion(region: Region): Pick<Provider, 'stop' | 'inspect'> }

/** Stops the machines of all regions without a coordinator. Calls for the same box must not overlap. */
export async function createMachineStoppers(
  options: Omit<MachinesOptions, 'boxesDir' | 'cgroups'>,
): Promise<MachineStoppers> {
  const cgroups = await probeCgroups()
  return {
    inRegion(region) {
      const boxesDir = getBoxesDir(getRegionDir(options.dataDir, region))
      const machines = createMachines({ ...options, boxesDir, cgroups })
      return {
        async stop(boxId) {
          await machines.stopExisting(boxId)
        },
        inspect: machines.inspect,
      }
    },
  }
}
