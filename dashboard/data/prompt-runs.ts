// The events of runs, from the stream and from pages, each once.
import type { PromptEvent } from '../../shared/api/prompts.ts'

export type ShownEvent = Omit<PromptEvent, 'raw'>
export type RunEvents = {
  /** In the order of their numbers. Grows in place. */
  readonly events: ShownEvent[]
  /** All events of a run that has ended are there. */
  isComplete: boolean
  /** The model that the coding agent reports. Null: none so far. */
  model: string | null
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
    const created: RunEvents = { events: [], isComplete: false, model: null }
    runs.set(runId, created)
    return created
  }
  return {
    get,
    add(runId, added) {
      const run = get(runId)
      for (const { seq, at, type, text, tool, raw } of added) {
        if (seq <= (run.events.at(-1)?.seq ?? 0)) continue
        run.events.push({ seq, at, type, text, tool })
        run.model ??= findModel(raw)
      }
      onChange()
    },
    complete(runId) {
      get(runId).isComplete = true
      onChange()
    },
  }
}

const MAX_MODEL = 256

/** The first line of Claude Code and the messages of pi have the model. */
function findModel(raw: unknown): string | null {
  if (typeof raw !== 'object' || raw === null) return null
  const model = 'model' in raw ? raw.model : 'message' in raw ? findModel(raw.message) : null
  return typeof model === 'string' && model !== '' ? model.slice(0, MAX_MODEL) : null
}
