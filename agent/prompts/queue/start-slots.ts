// One slot of the box per run that is starting: it and its conversation are occupied before the run exists.
import type { ProviderName } from '../../../shared/api/prompts.ts'
import type { RunInProgress } from '../rules.ts'

type Starting = {
  conversationId: string
  provider: ProviderName
  /** Aborts with the cause of the interrupt. */
  interruption: AbortController
  settled: Promise<unknown>
}

export class StartSlots {
  readonly #starting = new Map<string, Starting>()
  readonly #onSettle: () => void

  /** @param onSettle called after each start, whether it has failed or not */
  constructor(onSettle: () => void) {
    this.#onSettle = onSettle
  }

  has(id: string): boolean {
    return this.#starting.has(id)
  }

  /** Newest first. */
  list(): RunInProgress[] {
    return Array.from(this.#starting, ([id, { conversationId, provider }]) => ({
      id,
      conversationId,
      provider,
    })).reverse()
  }

  /** The run is in the list until `start` has ended. */
  async occupy<T>(
    { id, conversationId, provider }: RunInProgress,
    start: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const settled = Promise.withResolvers<void>()
    const interruption = new AbortController()
    this.#starting.set(id, { conversationId, provider, interruption, settled: settled.promise })
    try {
      return await start(interruption.signal)
    } finally {
      this.#starting.delete(id)
      settled.resolve()
      this.#onSettle()
    }
  }

  /** Aborts the signal of the start. Resolves when the start has ended, also when it has failed. */
  async interrupt(id: string, cause: string): Promise<void> {
    const start = this.#starting.get(id)
    start?.interruption.abort(cause)
    await start?.settled
  }

  /** Resolves when the current starts have ended. */
  async settle(): Promise<void> {
    await Promise.all(Array.from(this.#starting.values(), ({ settled }) => settled))
  }
}
