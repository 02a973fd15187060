// Records that the box stops: the next agent then knows why the runs in progress ended.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { readStateFile } from '../../state-file.ts'

const MAX_BYTES = 64

export class StopRecord {
  readonly #path: string
  readonly #clock: Clock
  readonly #log: Logger
  #requestedAt: number | null = null

  /** @param dir state directory of prompts */
  constructor(dir: string, clock: Clock, log: Logger) {
    this.#path = join(dir, 'stopping')
    this.#clock = clock
    this.#log = log
  }

  /** When the box began to stop, in milliseconds since the epoch; null: the box does not stop. */
  get requestedAt(): number | null {
    return this.#requestedAt
  }

  /** The time that an earlier agent recorded; null when the box did not stop, or only after all runs had ended. */
  readPrevious(): number | null {
    const match = /^(\d+)\n$/.exec(readStateFile(this.#path, MAX_BYTES) ?? '')
    return match === null ? null : Number(match[1])
  }

  expect(): void {
    this.#requestedAt ??= this.#clock.now()
    try {
      this.#remove()
      writeFileSync(this.#path, `${this.#requestedAt}\n`, { mode: 0o600, flush: true, flag: 'wx' })
    } catch (err) {
      // Only a run that ends after the agent is affected: its status is failed.
      this.#log.error({ err }, 'failed to record that the box stops')
    }
  }

  /** Deletes the record of an earlier agent, unless the box stops again. */
  forgetPrevious(): void {
    if (this.#requestedAt === null) this.#remove()
  }

  #remove(): void {
    rmSync(this.#path, { recursive: true, force: true })
  }
}
