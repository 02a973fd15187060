// Freezes and thaws machines, and pauses them while their files are captured.
import { findFreezer, isFreezing } from './freezer.ts'
import { type BoxPaths, boxPaths, type Machine } from './machine-file.ts'
import {
  continueProcesses,
  freezeProcesses,
  isPaused,
  pauseProcesses,
  turnFreezeIntoPause,
  turnPauseIntoFreeze,
} from './pause.ts'
import { createReclaimer, type Reclaimer, type ReclaimerOptions } from './reclaim.ts'

export class MachinePauses {
  readonly #boxesDir: string
  readonly #reclaimer: Reclaimer
  /** The boxes that this coordinator has paused. */
  readonly #pausedIds = new Set<string>()

  constructor({ boxesDir, log }: { boxesDir: string; log: ReclaimerOptions['log'] }) {
    this.#boxesDir = boxesDir
    this.#reclaimer = createReclaimer({ log })
  }

  /** The kernel knows whether a machine is frozen. A machine that is paused for a capture is running. */
  isFrozen({ boxId, cgroups }: Machine): boolean {
    const freezer = findFreezer(cgroups)
    return freezer !== null && isFreezing(freezer) && !isPaused(this.#paths(boxId))
  }

  /** Whether this coordinator has paused the machine. A machine can be paused and frozen. */
  hasPaused(boxId: string): boolean {
    return this.#pausedIds.has(boxId)
  }

  /** Continues the processes if an earlier coordinator has paused them. */
  endEarlierPause(machine: Machine): void {
    const paths = this.#paths(machine.boxId)
    if (!this.hasPaused(machine.boxId) && isPaused(paths)) continueProcesses(paths, machine)
  }

  /** Freezes a running machine. Returns false, with no effect, where freezing is not possible. */
  async freeze(machine: Machine): Promise<boolean> {
    const { boxId, cgroups } = machine
    const paths = this.#paths(boxId)
    // A capture continues: the processes do not run in either state.
    const isPossible = this.hasPaused(boxId)
      ? turnPauseIntoFreeze(paths)
      : await freezeProcesses(paths, machine)
    if (!isPossible) return false
    this.#reclaimer.start(boxId, cgroups)
    return true
  }

  /** Thaws a frozen machine. The processes of a machine that is also paused continue when the pause ends. */
  thaw(machine: Machine): void {
    const { boxId, cgroups } = machine
    const paths = this.#paths(boxId)
    this.#reclaimer.end(boxId, cgroups)
    if (this.hasPaused(boxId)) turnFreezeIntoPause(paths)
    else continueProcesses(paths, machine)
  }

  /** Pauses a running machine. Returns a function that continues its processes, unless it has been stopped or frozen. */
  async pause(machine: Machine): Promise<() => void> {
    const { boxId } = machine
    const paths = this.#paths(boxId)
    this.#pausedIds.add(boxId)
    try {
      await pauseProcesses(paths, machine)
    } catch (error) {
      this.#pausedIds.delete(boxId)
      throw error
    }
    return () => {
      if (this.#pausedIds.delete(boxId) && !this.isFrozen(machine)) continueProcesses(paths, machine)
    }
  }

  /** Call it before the processes of the machine are terminated. */
  end({ boxId, cgroups }: Machine): void {
    this.#reclaimer.end(boxId, cgroups)
    this.#pausedIds.delete(boxId)
  }

  close(): Promise<void> {
    return this.#reclaimer.close()
  }

  #paths(boxId: string): BoxPaths {
    return boxPaths(this.#boxesDir, boxId)
  }
}
