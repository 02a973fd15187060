// The operations of an Incus server: waits for their ends, also of those that an earlier coordinator has started.
import { EngineUnavailableError } from '../engine-http/errors.ts'
import { isFinished, type Operation } from './api.ts'

export type OperationListener = (operation: Operation) => void

export type OperationsOptions = {
  /** Reads an operation from the server. null: it does not exist any more. */
  load(id: string): Promise<Operation | null>
  /** Reads the operations in progress. */
  loadRunning(): Promise<Operation[]>
}

/** An end can be reported before the response to the request that has started the operation. */
const MAX_RECENT = 1_000
/** An event can get lost between the members of a cluster. */
const RECHECK_MS = 15_000

const createLostError = (): Error =>
  new EngineUnavailableError('Incus was restarted while it worked. The call is repeated.')

export class IncusOperations {
  readonly #options: OperationsOptions
  readonly #listeners = new Map<string, Set<OperationListener>>()
  /** Operations that have ended, the oldest first. */
  readonly #recent = new Map<string, Operation>()
  /** Operations in progress for which no call waits, by the name of their instance. */
  readonly #orphans = new Map<string, Set<string>>()
  readonly #timer: NodeJS.Timeout

  constructor(options: OperationsOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#recheck().catch(() => undefined), RECHECK_MS)
    this.#timer.unref()
  }

  /** An event of the server. */
  update(operation: Operation): void {
    if (isFinished(operation)) {
      this.#recent.set(operation.id, operation)
      if (this.#recent.size > MAX_RECENT) this.#recent.delete(this.#recent.keys().next().value ?? '')
      for (const ids of this.#orphans.values()) ids.delete(operation.id)
    }
    for (const listener of this.#listeners.get(operation.id) ?? []) listener(operation)
  }

  /** The events before this call may be lost: reads the state of the operations. */
  async resume(): Promise<void> {
    this.#orphans.clear()
    for (const operation of await this.#options.loadRunning()) this.#addOrphan(operation)
    await this.#recheck()
  }

  /**
   * Resolves when the operation has ended. An aborted call leaves it in progress.
   * @param onProgress called for each change
   */
  async wait(operation: Operation, signal?: AbortSignal, onProgress?: OperationListener): Promise<Operation> {
    this.#removeOrphan(operation)
    const ended = this.#recent.get(operation.id)
    if (ended !== undefined) return ended
    return await new Promise((resolve, reject) => {
      const stop = () => {
        signal?.removeEventListener('abort', abort)
        const listeners = this.#listeners.get(operation.id)
        listeners?.delete(listen)
        if (listeners?.size === 0) this.#listeners.delete(operation.id)
      }
      const listen: OperationListener = (state) => {
        if (state.status_code === LOST) {
          stop()
          reject(createLostError())
        } else if (isFinished(state)) {
          stop()
          resolve(state)
        } else onProgress?.(state)
      }
      const abort = () => {
        stop()
        this.#addOrphan(operation)
        reject(signal?.reason)
      }
      const listeners = this.#listeners.get(operation.id) ?? new Set()
      this.#listeners.set(operation.id, listeners.add(listen))
      signal?.addEventListener('abort', abort)
      if (signal?.aborted) abort()
    })
  }

  /** Waits for operations on the instance that no call waits for, such as those of an earlier coordinator. */
  async settle(instance: string): Promise<void> {
    for (const id of [...(this.#orphans.get(instance) ?? [])]) {
      const operation = await this.#options.load(id)
      if (operation !== null && !isFinished(operation)) await this.wait(operation)
      this.#orphans.get(instance)?.delete(id)
    }
  }

  /** Whether an operation on the instance is in progress for which no call waits. */
  hasOrphan(instance: string): boolean {
    return (this.#orphans.get(instance)?.size ?? 0) > 0
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #recheck(): Promise<void> {
    for (const id of [...this.#listeners.keys()]) {
      const operation = await this.#options.load(id)
      if (operation !== null) this.update(operation)
      // The server forgets an operation seconds after its end, and at a restart.
      else for (const listener of this.#listeners.get(id) ?? []) listener({ ...UNKNOWN, id })
    }
  }

  #addOrphan(operation: Operation): void {
    for (const instance of listInstances(operation)) {
      const ids = this.#orphans.get(instance) ?? new Set()
      this.#orphans.set(instance, ids.add(operation.id))
    }
  }

  #removeOrphan({ id }: Operation): void {
    for (const ids of this.#orphans.values()) ids.delete(id)
  }
}

const LOST = 599
const UNKNOWN: Omit<Operation, 'id'> = {
  created_at: '',
  status_code: LOST,
  resources: null,
  metadata: null,
  err: '',
}

/** The names of the instances on which the operation works. */
const listInstances = ({ resources }: Operation): string[] =>
  Object.values(resources ?? {})
    .flat()
    .flatMap((url) => getInstance(url) ?? [])

/** The name of the instance in a URL of the API. */
export const getInstance = (url: string): string | undefined => /^\/1\.0\/instances\/([^/?]+)/.exec(url)?.[1]
