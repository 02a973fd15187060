// The events of runs, from the stream and from pages, each once.
import type { PromptEvent } from '../../shared/api/prompts.ts'

export type ShownEvent = Omit<PromptEvent, 'raw'>
export type RunEvents = {
  /** In the order of their numbers. Grows in place. */
  readonly events: ShownEvent[]
  /** All events of a run that has ended are there. */
  isComplete: boolean
}

export type PromptRuns = {
  get(runId: string): RunEvents
  add(runId: string, events: readonly PromptEvent[]): void
  complete(runId: string): void
}

/** @param onChange called after each change */
export function createPromptRuns(onChange: () => void): PromptRuns {
  const runs = new Map<string, RunEvents>()
  function get(runId: string): RunEvents {
    const existing = runs.get(runId)
    if (existing !== undefined) return existing
    const created: RunEvents = { events: [], isComplete: false }
    runs.set(runId, created)
    return created
  }
  return {
    get,
    add(runId, added) {
      const { events } = get(runId)
      for (const { seq, at, type, text, tool } of added)
        if (seq > (events.at(-1)?.seq ?? 0)) events.push({ seq, at, type, text, tool })
      onChange()
    },
    complete(runId) {
      get(runId).isComplete = true
      onChange()
    },
  }
}
