// Constructors of the events that lines of a coding agent map to, and changes of the mapper state. All of it is bounded.
import type { PromptEventType } from '../../../shared/api/prompts.ts'
import { boundedText, MAX_OUTCOME_MESSAGE_CHARS } from './json-fields.ts'
import type { MappedEvent, MapperState } from './types.ts'

const MAX_TOOL_NAME_CHARS = 1024

export function createEvent(type: PromptEventType, text: string | null = null): MappedEvent {
  return { type, text, tool: null }
}

/** @param input null: the CLI does not repeat it in a result */
export function createToolEvent(
  type: 'tool' | 'tool_result',
  name: string | null,
  { text = null, input = null }: { text?: string | null; input?: unknown },
): MappedEvent {
  return { type, text, tool: { name: boundedText(name ?? 'unknown', MAX_TOOL_NAME_CHARS), input } }
}

/** Token counts and the cost in US dollars, as far as the CLI reports them. */
export type Usage = { input: number | null; output: number | null; cost: number | null }

/** A sentence for people. The exact fields of the CLI are in `raw` of the line. */
export function createUsageEvent({ input, output, cost }: Usage): MappedEvent {
  const parts = [
    input === null ? null : `${input} input tokens`,
    output === null ? null : `${output} output tokens`,
    cost === null || cost === 0 ? null : `${cost} USD`,
  ]
  return createEvent('usage', parts.filter((part) => part !== null).join(', ') || null)
}

export function withDone(state: MapperState): MapperState {
  return { ...state, outcome: { status: 'done' }, isContinued: false }
}

export function withFailure(state: MapperState, message: string): MapperState {
  return {
    ...state,
    outcome: { status: 'failed', message: boundedText(message, MAX_OUTCOME_MESSAGE_CHARS) },
    isContinued: false,
  }
}

/** The coding agent works on a turn, whose final event is still to come. */
export const withTurn = (state: MapperState): MapperState =>
  state.outcome === null || state.isContinued ? state : { ...state, isContinued: true }
