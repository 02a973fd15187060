// Reads the machine files of a boxes directory. Writes nothing.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isUuid } from '../../../shared/uuid.ts'
import { isAlive } from '../parts/proc.ts'
import { RUNTIME_FILES, RUNTIME_LINKS } from '../parts/runtime.ts'
import { type Cgroups, listBoxCgroupDirs } from './cgroups.ts'
import { VIEW_PATHS } from './filesystem-view.ts'
import { findInit } from './launch.ts'
import type { Level } from './levels/choose-level.ts'
import { type BoxPaths, boxPaths, DamagedMachineError, type Machine, readMachine } from './machine-file.ts'
import { recoverMachine } from './recover-machine.ts'

export type MachineReaderOptions = {
  dataDir: string
  boxesDir: string
  cgroups: Cgroups
  log: { warn(fields: object, message: string): void }
}

export class MachineReader {
  readonly #boxesDir: string
  readonly #cgroups: Cgroups
  readonly #log: MachineReaderOptions['log']
  readonly #hostInitScript: string

  constructor({ dataDir, boxesDir, cgroups, log }: MachineReaderOptions) {
    this.#boxesDir = boxesDir
    this.#cgroups = cgroups
    this.#log = log
    this.#hostInitScript = join(dataDir, 'runtime', RUNTIME_LINKS.current, RUNTIME_FILES.init)
  }

  paths(boxId: string): BoxPaths {
    return boxPaths(this.#boxesDir, boxId)
  }

  /** The path of the init script as the box sees it. */
  initScriptOf(level: Level): string {
    return level === 'process' ? this.#hostInitScript : VIEW_PATHS.init
  }

  async listIds(): Promise<string[]> {
    return (await readdir(this.#boxesDir)).filter(isUuid)
  }

  async list(): Promise<Machine[]> {
    const machines = await Promise.all((await this.listIds()).map((boxId) => this.#readFile(boxId)))
    return machines.filter((machine) => machine !== null)
  }

  /**
   * Reads the machine and its current init, which an earlier coordinator may have launched without recording it. Returns
   * null when the machine does not exist.
   */
  async read(boxId: string): Promise<Machine | null> {
    const machine = await this.#readFile(boxId)
    if (machine?.level == null) return machine
    const recordedInit = machine.init !== null && isAlive(machine.init) ? machine.init : null
    const init = recordedInit ?? findInit(this.paths(boxId), this.initScriptOf(machine.level))
    return { ...machine, init }
  }

  /** Returns what is known of a machine without its file. */
  recover(boxId: string): Promise<Machine> {
    return recoverMachine(this.paths(boxId), boxId, listBoxCgroupDirs(this.#cgroups, boxId))
  }

  async #readFile(boxId: string): Promise<Machine | null> {
    try {
      return await readMachine(this.paths(boxId))
    } catch (err) {
      if (!(err instanceof DamagedMachineError)) throw err
      this.#log.warn(
        { boxId, err },
        'the file of a machine is damaged; the next start of the box replaces it',
      )
      return await this.recover(boxId)
    }
  }
}
