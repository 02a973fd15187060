// The operations of an Incus server: waits for their ends, also of those that an earlier coordinator has started.
import { EngineStatusError, EngineUnavailableError } from '../engine-http/errors.ts'
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

type Waiter = { update: OperationListener; fail(error: unknown): void }

export class IncusOperations {
  readonly #options: OperationsOptions
  readonly #waiters = new Map<string, Set<Waiter>>()
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
    for (const waiter of this.#waiters.get(operation.id) ?? []) waiter.update(operation)
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
      const waiters = this.#waiters.get(operation.id) ?? new Set()
      const stop = () => {
        signal?.removeEventListener('abort', abort)
        waiters.delete(waiter)
        if (waiters.size === 0) this.#waiters.delete(operation.id)
      }
      const waiter: Waiter = {
        update(state) {
          if (!isFinished(state)) return onProgress?.(state)
          stop()
          resolve(state)
        },
        fail(error) {
          stop()
          reject(error)
        },
      }
      const abort = () => {
        this.#addOrphan(operation)
        waiter.fail(signal?.reason)
      }
      this.#waiters.set(operation.id, waiters.add(waiter))
      signal?.addEventListener('abort', abort)
      if (signal?.aborted) abort()
    })
  }

  /** Ends the waiting calls: the server cannot be reached. The next connection finds the operations that continue. */
  fail(error: unknown): void {
    for (const waiters of [...this.#waiters.values()]) for (const waiter of [...waiters]) waiter.fail(error)
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
    for (const id of [...this.#waiters.keys()]) {
      const operation = await this.#load(id)
      if (operation !== null) this.update(operation)
      // The server forgets an operation seconds after its end, and at a restart.
      else for (const waiter of [...(this.#waiters.get(id) ?? [])]) waiter.fail(createLostError())
    }
  }

  /** A member of a cluster that was switched off does not answer, and its operations do not end. */
  async #load(id: string): Promise<Operation | null> {
    try {
      return await this.#options.load(id)
    } catch (error) {
      if (error instanceof EngineStatusError) return null
      throw error
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

/** The names of the instances on which the operation works. */
const listInstances = ({ resources }: Operation): string[] =>
  Object.values(resources ?? {})
    .flat()
    .flatMap((url) => getInstance(url) ?? [])

/** The name of the instance in a URL of the API. */
export const getInstance = (url: string): string | undefined => /^\/1\.0\/instances\/([^/?]+)/.exec(url)?.[1]
