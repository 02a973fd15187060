// Maps recorded lines of a coding agent as a run does, and checks what holds for any lines.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import {
  INITIAL_MAPPER_STATE,
  type JsonObject,
  type MappedEvent,
  type MapperState,
  type Provider,
} from '../../../../agent/prompts/providers/types.ts'
import { PROMPT_EVENT_TYPES } from '../../../../shared/api/prompts.ts'
import { PROJECT_DIR } from '../../../support/project.ts'

const MAX_STATE_BYTES = 16 * 1024

export type MappedLines = { events: MappedEvent[]; state: MapperState }

export function mapLines(provider: Provider, lines: readonly JsonObject[]): MappedLines {
  const events: MappedEvent[] = []
  let state = INITIAL_MAPPER_STATE
  for (const line of lines) {
    const mapped = provider.mapLine(line, state)
    events.push(...mapped.events)
    state = mapped.state
  }
  return { events, state }
}

/** Output of the real program, in test/fixtures/coding-agents. Paths are replaced and repetitions are removed. */
export function readRecordedLines(name: string): JsonObject[] {
  const path = join(PROJECT_DIR, 'test/fixtures/coding-agents', `${name}.jsonl`)
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/** One string per event, such as `tool bash {"command":"ls"}`. */
export function summarize(events: readonly MappedEvent[]): string[] {
  return events.map(({ type, text, tool }) =>
    [type, tool?.name, tool?.input == null ? null : JSON.stringify(tool.input), text]
      .filter((part) => part != null)
      .join(' '),
  )
}

/**
 * Any lines: no exception, a bounded state that survives JSON, and events of known types.
 * @param recorded lines whose values are replaced at random
 */
export function checkAnyLines(provider: Provider, recorded: readonly JsonObject[]): void {
  const leaf = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom('x'.repeat(100_000), '', -1, 1e300, null, true, [[]]),
  )
  const mutated = fc
    .tuple(fc.constantFrom(...recorded), fc.nat(), leaf)
    .map(([line, index, value]) => replaceValue(line, index, value))
  const foreign = fc.dictionary(fc.constantFrom('type', 'message', 'part', 'error', '__proto__'), leaf)
  const anyLine = fc.oneof({ weight: 4, arbitrary: mutated }, { weight: 1, arbitrary: foreign })
  fc.assert(
    fc.property(fc.array(anyLine, { maxLength: 20 }), (lines) => {
      let state = INITIAL_MAPPER_STATE
      for (const line of lines) {
        const { events, state: next } = provider.mapLine(line as JsonObject, state)
        const stored = JSON.stringify(next)
        if (stored.length > MAX_STATE_BYTES) return false
        if (!events.every(isValidEvent)) return false
        state = JSON.parse(stored)
        if (JSON.stringify(state) !== stored) return false
      }
      const outcome = state.outcome ?? provider.resolveUnfinished(state)
      return outcome === null || outcome.status === 'done' || typeof outcome.message === 'string'
    }),
    { numRuns: 500 },
  )
}

function isValidEvent({ type, text, tool }: MappedEvent): boolean {
  const hasTool = type === 'tool' || type === 'tool_result'
  return (
    PROMPT_EVENT_TYPES.includes(type) &&
    (text === null || typeof text === 'string') &&
    (tool !== null) === hasTool &&
    (tool === null || (typeof tool.name === 'string' && tool.name.length <= 1024 && tool.input !== undefined))
  )
}

/** Replaces one value of the line, at any depth. */
function replaceValue(line: JsonObject, index: number, value: unknown): unknown {
  let count = 0
  JSON.stringify(line, (_, current) => {
    count++
    return current
  })
  // The first value is the line itself.
  const target = 1 + (index % Math.max(1, count - 1))
  let position = 0
  return JSON.parse(JSON.stringify(line, (_, current) => (position++ === target ? value : current)))
}
