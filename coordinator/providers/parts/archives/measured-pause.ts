// A pause of the processes of a machine, with its duration.

/** Pauses the processes. The returned function continues them. null: no process was running. */
export type Pause = () => Promise<(() => void) | null>

export function createMeasuredPause(pause: Pause | undefined) {
  let pausing: Promise<(() => void) | null> | undefined
  let startedAt = 0

  return {
    async start(): Promise<void> {
      startedAt = performance.now()
      pausing = pause?.()
      await pausing
    },

    /** Ends the pause, also while it starts. Returns its duration in ms; null: there was none, or it has ended before. */
    async end(): Promise<number | null> {
      const started = pausing
      pausing = undefined
      // `start` reports the failure.
      const continueProcesses = await started?.catch(() => null)
      if (continueProcesses == null) return null
      continueProcesses()
      return Math.round(performance.now() - startedAt)
    },
  }
}
