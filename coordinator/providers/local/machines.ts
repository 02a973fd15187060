// Finds and stops the machines of local boxes, also those of an earlier coordinator. Needs no isolation level.
import { existsSync, rmSync } from 'node:fs'
import type { Region } from '../../../shared/tiers.ts'
import type { MachineState, Provider } from '../provider.ts'
import { listProcesses } from './box-processes.ts'
import { type Cgroups, probeCgroups, removeCgroups } from './cgroups.ts'
import type { Level } from './levels/choose-level.ts'
import type { BoxPaths, Machine } from './machine-file.ts'
import { MachinePauses } from './machine-pauses.ts'
import { MachineReader } from './machine-reader.ts'
import { isPaused } from './pause.ts'
import { getBoxesDir, getRegionDir, listUsedRegions } from './region-directories.ts'
import { terminateProcesses } from './terminate-processes.ts'

export type MachinesOptions = {
  dataDir: string
  boxesDir: string
  cgroups: Cgroups
  log: Record<'debug' | 'warn', (fields: object, message: string) => void>
  /** Milliseconds between SIGTERM and SIGKILL when a box is stopped. Default: 5 s. */
  graceMs?: number
}

export class Machines {
  readonly #reader: MachineReader
  readonly #pauses: MachinePauses
  readonly #graceMs: number
  /** The captures that read files, by box. A capture is aborted when processes of its box begin to run meanwhile. */
  readonly #captures = new Map<string, AbortController>()

  constructor(options: MachinesOptions) {
    this.#reader = new MachineReader(options)
    this.#pauses = new MachinePauses(options)
    this.#graceMs = options.graceMs ?? 5_000
  }

  /** The path of the init script as the box sees it. */
  initScriptOf(level: Level): string {
    return this.#reader.initScriptOf(level)
  }

  list(): Promise<Machine[]> {
    return this.#reader.list()
  }

  /**
   * Reads the machine and its current init. Continues the processes that an earlier coordinator has paused. Returns null when
   * the machine does not exist.
   */
  async load(boxId: string): Promise<Machine | null> {
    const machine = await this.#reader.read(boxId)
    if (machine?.level != null) this.#pauses.endEarlierPause(machine)
    return machine
  }

  /** Continues the processes that an earlier coordinator has paused. */
  async continuePaused(): Promise<void> {
    for (const boxId of await this.#reader.listIds())
      if (isPaused(this.#reader.paths(boxId))) await this.load(boxId)
  }

  /**
   * Writes nothing, because a box must also stop on a full disk. The machine file keeps the identity of the exited init
   * and the names of the removed cgroups.
   */
  async stop(paths: BoxPaths, machine: Machine, gracePeriodMs = this.#graceMs): Promise<void> {
    this.#pauses.end(machine)
    this.#interruptCapture(machine.boxId)
    await terminateProcesses(paths, machine, gracePeriodMs)
    await removeCgroups(machine.cgroups)
    rmSync(paths.launchRecord, { recursive: true, force: true })
  }

  /** Terminates processes that outlived their init, before a start. */
  async stopRemaining(paths: BoxPaths, machine: Machine): Promise<void> {
    this.#interruptCapture(machine.boxId)
    if (existsSync(paths.launchRecord)) await this.stop(paths, machine, 0)
  }

  /** Stops the machine, or the processes of a box whose directory was removed. Returns whether the machine exists. */
  async stopExisting(boxId: string): Promise<boolean> {
    const machine = await this.load(boxId)
    await this.stop(this.#reader.paths(boxId), machine ?? (await this.#reader.recover(boxId)))
    return machine !== null
  }

  /** Whether one of the processes belongs to the machine. */
  async hasProcess(boxId: string, pids: readonly number[]): Promise<boolean> {
    const machine = await this.load(boxId)
    if (machine === null) return false
    return listProcesses(this.#reader.paths(boxId), machine).some(({ pid }) => pids.includes(pid))
  }

  async inspect(boxId: string): Promise<MachineState> {
    const machine = await this.load(boxId)
    if (machine === null) return 'absent'
    if (machine.init === null) return 'stopped'
    return this.#pauses.isFrozen(machine) ? 'frozen' : 'running'
  }

  /** Returns false, with no effect, where freezing is not possible. */
  async freeze(boxId: string): Promise<boolean> {
    const machine = await this.load(boxId)
    if (machine?.init == null) return false
    return this.#pauses.isFrozen(machine) || (await this.#pauses.freeze(machine))
  }

  /**
   * No-op for a machine that is not frozen. The processes of a machine that was frozen during a pause continue when the
   * capture ends the pause. The capture of a machine that was frozen before fails.
   */
  thaw(machine: Machine): void {
    if (!this.#pauses.isFrozen(machine)) return
    if (!this.#pauses.hasPaused(machine.boxId)) this.#interruptCapture(machine.boxId)
    this.#pauses.thaw(machine)
  }

  /**
   * Pauses the processes of a running machine. Returns a function that continues them, or null when no process runs: the
   * machine is frozen or stopped, and stays in this state. A stop of the machine ends the pause. A machine that is frozen
   * meanwhile stays frozen.
   * @param interruption see beginCapture
   */
  async pause(boxId: string, interruption?: AbortController): Promise<(() => void) | null> {
    const machine = await this.load(boxId)
    if (interruption !== undefined) this.#captures.set(boxId, interruption)
    if (machine?.init == null || this.#pauses.isFrozen(machine)) return null
    return await this.#pauses.pause(machine)
  }

  /** Begins a capture. The capture of a running machine reads no files before it pauses the machine. */
  async beginCapture(boxId: string, interruption: AbortController): Promise<Machine | null> {
    const machine = await this.load(boxId)
    if (machine?.init === null) this.#captures.set(boxId, interruption)
    return machine
  }

  /** The capture no longer reads the files. */
  endCapture(boxId: string): void {
    this.#captures.delete(boxId)
  }

  close(): Promise<void> {
    return this.#pauses.close()
  }

  /** The files would belong to different times. At level process, the box could also stop the programs that read them. */
  #interruptCapture(boxId: string): void {
    this.#captures
      .get(boxId)
      ?.abort(new Error('The box was started or stopped while its files were read. Try again.'))
  }
}

export const createMachines = (options: MachinesOptions): Machines => new Machines(options)

export type MachineStoppers = {
  inRegion(region: Region): Pick<Provider, 'stop' | 'inspect'>
  /** Stops each machine to which one of the processes belongs. Returns the ids of the boxes. */
  stopMachinesOf(pids: readonly number[]): Promise<string[]>
}

/** Stops the machines of all regions without a coordinator. Calls for the same box must not overlap. */
export async function createMachineStoppers(
  options: Omit<MachinesOptions, 'boxesDir' | 'cgroups'>,
): Promise<MachineStoppers> {
  const cgroups = await probeCgroups()
  const openRegion = (region: Region) => {
    const boxesDir = getBoxesDir(getRegionDir(options.dataDir, region))
    return createMachines({ ...options, boxesDir, cgroups })
  }
  return {
    inRegion(region) {
      const machines = openRegion(region)
      return {
        async stop(boxId) {
          await machines.stopExisting(boxId)
        },
        inspect: (boxId) => machines.inspect(boxId),
      }
    },
    async stopMachinesOf(pids) {
      const stopped: string[] = []
      for (const region of listUsedRegions(options.dataDir)) {
        const machines = openRegion(region)
        for (const { boxId } of await machines.list()) {
          if (!(await machines.hasProcess(boxId, pids))) continue
          await machines.stopExisting(boxId)
          stopped.push(boxId)
        }
      }
      return stopped
    },
  }
}
