// Finds and stops the machines of local boxes, also those of an earlier coordinator. Needs no isolation level.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isUuid } from '../../../../shared/ids.ts'
import type { MachineState, Provider } from '../../provider.ts'
import { type Cgroups, listBoxCgroupDirs, probeCgroups, removeCgroups } from './cgroups.ts'
import { VIEW_PATHS } from './filesystem-view.ts'
import { findInit } from './launch.ts'
import type { Level } from './levels/choose-level.ts'
import { type BoxPaths, boxPaths, DamagedMachineError, type Machine, readMachine } from './machine-file.ts'
import { isAlive } from './proc.ts'
import { recoverMachine } from './recover-machine.ts'
import { RUNTIME_FILES, RUNTIME_LINKS } from './runtime.ts'
import { terminateProcesses } from './terminate-processes.ts'

export type MachinesOptions = {
  dataDir: string
  cgroups: Cgroups
  log: { warn(fields: object, message: string): void }
  /** Milliseconds between SIGTERM and SIGKILL when a box is stopped. Default: 5 s. */
  graceMs?: number
}

export type Machines = ReturnType<typeof createMachines>

export const getBoxesDir = (dataDir: string): string => join(dataDir, 'boxes')

export function createMachines({ dataDir, cgroups, log, graceMs = 5_000 }: MachinesOptions) {
  const boxesDir = getBoxesDir(dataDir)
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

  /** Reads the machine and its current init, which an earlier coordinator may have launched without recording it. */
  async function load(boxId: string): Promise<Machine | null> {
    const machine = await readOrRecover(boxId)
    if (machine?.level == null) return machine
    const paths = boxPaths(boxesDir, boxId)
    const recordedInit = machine.init !== null && isAlive(machine.init) ? machine.init : null
    const init = recordedInit ?? findInit(paths, initScriptOf(machine.level))
    return { ...machine, init }
  }

  async function list(): Promise<Machine[]> {
    const ids = (await readdir(boxesDir)).filter(isUuid)
    const machines = await Promise.all(ids.map(readOrRecover))
    return machines.filter((machine) => machine !== null)
  }

  /**
   * Writes nothing, because a box must also stop on a full disk. The machine file keeps the identity of the exited init
   * and the names of the removed cgroups.
   */
  async function stop(paths: BoxPaths, machine: Machine, gracePeriodMs = graceMs): Promise<void> {
    await terminateProcesses(paths, machine, gracePeriodMs)
    await removeCgroups(machine.cgroups)
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
    return machine.init === null ? 'stopped' : 'running'
  }

  return { initScriptOf, load, list, stop, stopExisting, inspect }
}

/** Stops machines without a coordinator. Calls for the same box must not overlap. */
export async function createMachineStopper(
  options: Omit<MachinesOptions, 'cgroups'>,
): Promise<Pick<Provider, 'stop' | 'inspect'>> {
  const machines = createMachines({ ...options, cgroups: await probeCgroups() })
  return {
    async stop(boxId) {
      await machines.stopExisting(boxId)
    },
    inspect: machines.inspect,
  }
}
