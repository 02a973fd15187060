// Converts one line of a coding agent's output to events. Pure.
import { parseJson } from '../../../shared/parse-json.ts'
import { boundedText, isJsonObject } from '../providers/json-fields.ts'
import type { MappedEvent, MapperState, Provider } from '../providers/types.ts'

/** An event without its number and time. */
export type DraftEvent = MappedEvent & { raw: unknown }

/** The most characters of a line that is not a JSON object. */
const NOTICE_CHARS = 8 * 1024
/** Deeper JSON counts as text: JSON.stringify() and other recursive functions could exceed the stack. */
const MAX_DEPTH = 200

export const createNotice = (text: string, raw: unknown = null): DraftEvent => ({
  type: 'notice',
  text,
  tool: null,
  raw,
})

export function mapLine(
  bytes: Buffer,
  provider: Pick<Provider, 'mapLine'>,
  state: MapperState,
): { events: DraftEvent[]; state: MapperState } {
  // Invalid bytes become U+FFFD.
  const text = bytes.toString('utf8')
  if (text.trim() === '') return { events: [], state }
  const value = parseJson(text)
  if (!isJsonObject(value) || (text.length > 2 * MAX_DEPTH && isDeeperThan(value, MAX_DEPTH))) {
    const shown = boundedText(text.trimEnd(), NOTICE_CHARS)
    return { events: [createNotice(shown, shown)], state }
  }
  try {
    const previous = state.isLastLineOmitted ? { ...state, isLastLineOmitted: false } : state
    const mapped = provider.mapLine(value, previous)
    const events = mapped.events.map((event, index) => ({ ...event, raw: index === 0 ? value : null }))
    return { events, state: mapped.state }
  } catch (error) {
    return { events: [createNotice(`The agent cannot read this line: ${String(error)}`, value)], state }
  }
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((child) => isDeeperThan(child, levels - 1))
}
