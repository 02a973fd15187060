// Keeps automatic pauses and edge requests apart: a request that has been accepted is not cut by a pause for idleness.

export type PauseGate = {
  /** Increases when a pause starts to be decided, and when it has been decided. */
  readonly version: number
  /** Resolves when the pause of the box has been decided. undefined: no pause is being decided. */
  wait(boxId: string): Promise<void> | undefined
  /** Runs `decide` while new requests to the box wait. 'busy': a request to the box is in flight, so `decide` has not run. */
  run<T>(boxId: string, decide: () => Promise<T>): Promise<T | 'busy'>
}

/** @param hasRequests whether an accepted request to the box is in flight */
export function createPauseGate(hasRequests: (boxId: string) => boolean): PauseGate {
  const deciding = new Map<string, Promise<void>>()
  let version = 0
  return {
    get version() {
      return version
    },
    wait: (boxId) => deciding.get(boxId),
    async run(boxId, decide) {
      if (deciding.has(boxId) || hasRequests(boxId)) return 'busy'
      version += 1
      const { promise, resolve } = Promise.withResolvers<void>()
      deciding.set(boxId, promise)
      try {
        return await decide()
      } finally {
        deciding.delete(boxId)
        version += 1
        resolve()
      }
    },
  }
}
