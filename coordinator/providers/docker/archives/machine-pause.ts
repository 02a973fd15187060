// The pause of the processes of a container while its files are read. A file remembers it, so that the next start ends the pause
// of a killed coordinator, and no freeze of the lifecycle.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isUuid } from '../../../../shared/uuid.ts'
import { hasStatus } from '../../engine-http/errors.ts'
import { PermanentProviderError } from '../../provider.ts'
import type { Engine } from '../engine.ts'
import { getContainerName } from '../names.ts'

/** Runs calls for a box one at a time. */
export type BoxQueueRunner = <T>(boxId: string, work: () => Promise<T>) => Promise<T>

type Inspected = { State?: { Running?: boolean; Paused?: boolean } }

export class MachinePauses {
  readonly #engine: Engine
  readonly #dir: string

  /** @param dir has a file per paused box */
  constructor(engine: Engine, dir: string) {
    this.#engine = engine
    this.#dir = dir
  }

  /** Continues what a killed coordinator has paused. The engine must be available. */
  async continueAll(): Promise<void> {
    const names = await readdir(this.#dir).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    for (const boxId of names.filter(isUuid)) await this.#continue(boxId)
  }

  /** The lifecycle freezes or continues the processes: nothing is left of an earlier pause that could not be ended. */
  async forget(boxId: string): Promise<void> {
    await rm(join(this.#dir, boxId), { force: true })
  }

  begin(boxId: string, runExclusive: BoxQueueRunner): MachinePause {
    return new MachinePause(
      boxId,
      runExclusive,
      () => this.#pause(boxId),
      () => this.#continue(boxId),
    )
  }

  /** Returns whether processes were running. Throws PermanentProviderError when there is no machine. */
  async #pause(boxId: string): Promise<boolean> {
    const { http, log } = this.#engine
    const path = `/containers/${getContainerName(boxId)}`
    const { State: state = {} } = await http
      .json<Inspected>({ method: 'GET', path: `${path}/json` })
      .catch((error: unknown) => {
        if (!hasStatus(error, 404)) throw error
        throw new PermanentProviderError(
          'The container of the box was removed. Wake the box: if its home exists, it is created again.',
        )
      })
    if (state.Running !== true || state.Paused === true) return false
    await mkdir(this.#dir, { recursive: true, mode: 0o700 })
    await writeFile(join(this.#dir, boxId), '', { mode: 0o600, flush: true })
    try {
      await http.json({ method: 'POST', path: `${path}/pause` })
      return true
    } catch (error) {
      // The call may have had its effect.
      await this.#continue(boxId)
      if (!hasStatus(error, 409, 500)) throw error
      // An engine of an ordinary user cannot pause with version 1 of control groups. The processes may have exited too.
      log.warn({ boxId, err: error }, 'the processes of a box are not paused while its files are read')
      return false
    }
  }

  /** No-op when the processes run, or there is no container. */
  async #continue(boxId: string): Promise<void> {
    const path = `/containers/${getContainerName(boxId)}/unpause`
    await this.#engine.http.json({ method: 'POST', path }).catch((error: unknown) => {
      if (!hasStatus(error, 404, 409, 500)) throw error
    })
    await this.forget(boxId)
  }
}

/** One pause. No other call for the box runs meanwhile. */
export class MachinePause {
  readonly #boxId: string
  readonly #runExclusive: BoxQueueRunner
  readonly #pause: () => Promise<boolean>
  readonly #continue: () => Promise<void>
  #starting: Promise<{ startedAt: number | null; leave: () => void }> | undefined
  #ended: Promise<number | null> | undefined

  constructor(
    boxId: string,
    runExclusive: BoxQueueRunner,
    pause: () => Promise<boolean>,
    continueProcesses: () => Promise<void>,
  ) {
    this.#boxId = boxId
    this.#runExclusive = runExclusive
    this.#pause = pause
    this.#continue = continueProcesses
  }

  async start(): Promise<void> {
    if (this.#ended !== undefined) throw new Error('The pause has ended.')
    this.#starting = this.#start()
    await this.#starting
  }

  /** Ends the pause, also while it starts. Returns its duration in ms; null: no process was running. */
  end(): Promise<number | null> {
    this.#ended ??= this.#end()
    return this.#ended
  }

  async #start() {
    const entered = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    void this.#runExclusive(this.#boxId, () => {
      entered.resolve()
      return left.promise
    })
    await entered.promise
    try {
      const isPaused = await this.#pause()
      return { startedAt: isPaused ? performance.now() : null, leave: left.resolve }
    } catch (error) {
      left.resolve()
      throw error
    }
  }

  async #end(): Promise<number | null> {
    // `start` reports the failure.
    const started = await this.#starting?.catch(() => undefined)
    if (started === undefined) return null
    const { startedAt, leave } = started
    try {
      if (startedAt === null) return null
      await this.#continue()
      return Math.round(performance.now() - startedAt)
    } finally {
      leave()
    }
  }
}
