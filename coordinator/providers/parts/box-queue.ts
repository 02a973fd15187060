// Runs the calls for each box one at a time, in call order. Calls for different boxes run concurrently.

export class BoxQueue {
  readonly #lastCalls = new Map<string, Promise<unknown>>()

  run<T>(boxId: string, work: () => Promise<T>): Promise<T> {
    const call = (this.#lastCalls.get(boxId) ?? Promise.resolve()).then(work, work)
    this.#lastCalls.set(boxId, call)
    const removeIfLast = () => {
      if (this.#lastCalls.get(boxId) === call) this.#lastCalls.delete(boxId)
    }
    call.then(removeIfLast, removeIfLast)
    return call
  }

  async waitUntilIdle(): Promise<void> {
    await Promise.allSettled(this.#lastCalls.values())
  }
}
