// The record of a run in progress, in memory and on disk.
import type { Logger } from 'pino'
import { type RunRecord, writeRecord } from './run-record.ts'

export class StoredRecord {
  readonly #runDir: string
  readonly #log: Logger
  #current: RunRecord
  #lastWrite: Promise<void> = Promise.resolve()

  constructor(runDir: string, record: RunRecord, log: Logger) {
    this.#runDir = runDir
    this.#current = record
    this.#log = log
  }

  get current(): RunRecord {
    return this.#current
  }

  /** Resolves when the record is durable. Logs errors: a restarted agent computes the result again. */
  update(change: Partial<Pick<RunRecord, 'interrupt' | 'conclusion' | 'result'>>): Promise<void> {
    this.#current = { ...this.#current, ...change }
    // One write at a time: each write replaces the file.
    this.#lastWrite = this.#lastWrite
      .then(() => writeRecord(this.#runDir, this.#current))
      .catch((err: unknown) =>
        this.#log.error({ err, runId: this.#current.id }, 'failed to write the record of a run'),
      )
    return this.#lastWrite
  }

  /** Resolves when no write is in progress. */
  async settle(): Promise<void> {
    await this.#lastWrite
  }
}
