// Terminates the tree of one detached process, and stores the requests, so that the next agent completes them.
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { SURVIVED_MESSAGE, type Termination, terminateTree } from '../terminate-tree.ts'
import type { TerminationTimes } from './exit-status.ts'
import {
  type ProcessMetadata,
  readTerminationMarker,
  type StartRecord,
  type TerminationCause,
  writeTerminationMarker,
} from './record.ts'

export type KillResult = { wasRunning: boolean; signal: Termination['signal'] }

export type TerminatorOptions = {
  /** The process directory. */
  dir: string
  meta: ProcessMetadata
  startRecord: StartRecord
  clock: Clock
  log: Logger
  /** Resolves when the exit of the process is recorded. */
  waitForExit(): Promise<void>
}

export class Terminator {
  readonly #options: TerminatorOptions
  readonly #requestTimes: TerminationTimes = {}
  #termination: Promise<KillResult> | undefined

  constructor(options: TerminatorOptions) {
    this.#options = options
    for (const cause of ['kill', 'timeout'] as const) {
      const requestedAt = readTerminationMarker(options.dir, cause)
      if (requestedAt !== undefined) this.#requestTimes[cause] = requestedAt
    }
  }

  /** When each termination was requested, also from an earlier agent. */
  get requestTimes(): Readonly<TerminationTimes> {
    return this.#requestTimes
  }

  /** Terminates the process tree. A second call during a termination waits for the first one. */
  terminate(cause: TerminationCause): Promise<KillResult> {
    this.#termination ??= this.#terminate(cause).finally(() => {
      this.#termination = undefined
    })
    return this.#termination
  }

  /** Like terminate(), but logs errors. */
  terminateInBackground(cause: TerminationCause): void {
    const { log, meta } = this.#options
    this.terminate(cause).catch((err: unknown) =>
      log.error({ err, processId: meta.processId, cause }, 'failed to terminate a detached process'),
    )
  }

  /** Terminates the background processes that are left after the exit of the command. */
  async terminateRemaining(): Promise<void> {
    // The kernel may have reused the pid: find background processes by environment marker and subreaper only.
    await terminateTree({ ...this.#tree(), startTime: 0 })
  }

  /** Resolves when a termination in progress has completed. */
  async waitUntilIdle(): Promise<void> {
    await this.#termination?.catch(() => undefined)
  }

  async #terminate(cause: TerminationCause): Promise<KillResult> {
    const { dir, startRecord, clock, log, waitForExit } = this.#options
    const { processId } = this.#options.meta
    const requestedAt = this.#requestTimes[cause] ?? clock.now()
    this.#requestTimes[cause] = requestedAt
    await writeTerminationMarker(dir, cause, requestedAt).catch((err: unknown) =>
      // Continue, so that a command can be terminated on a full disk. If the agent is killed now, the cause is lost.
      log.error({ err, processId, cause }, 'failed to write the termination marker'),
    )
    const { signal, survivors } = await terminateTree(this.#tree())
    if (survivors.length > 0) log.warn({ processId, survivors }, 'processes survived SIGKILL')
    if (survivors.includes(startRecord.command.pid)) throw new ApiError('exec_failed', SURVIVED_MESSAGE)
    await waitForExit()
    return { wasRunning: signal !== null, signal }
  }

  #tree(): Parameters<typeof terminateTree>[0] {
    const { meta, startRecord } = this.#options
    return {
      ...startRecord.command,
      processId: meta.processId,
      // The shell runner is not a subreaper. Its other children write the exit record and must not be signalled.
      ...(meta.runner === 'native' && { subreaper: startRecord.runner }),
    }
  }
}
