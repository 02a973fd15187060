// The steps that an installation has made, which a failure takes back in the reverse order.

export type UndoStack = {
  /** `step` completes the sentence "failed to …". */
  add(step: string, undo: () => Promise<unknown>): void
  /** Undoes all steps, also when some fail. Returns what failed. */
  run(): Promise<string[]>
}

export function createUndoStack(): UndoStack {
  const steps: { step: string; undo: () => Promise<unknown> }[] = []
  return {
    add: (step, undo) => void steps.push({ step, undo }),
    async run() {
      const failures: string[] = []
      for (let next = steps.pop(); next !== undefined; next = steps.pop()) {
        const { step, undo } = next
        await undo().catch((error: Error) => failures.push(`failed to ${step}: ${error.message}`))
      }
      return failures
    },
  }
}
