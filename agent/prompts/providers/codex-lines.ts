// The output lines of Codex (exec --json) as events.
import {
  arrayAt,
  boundedText,
  MAX_OUTCOME_MESSAGE_CHARS,
  nonBlankStringAt,
  numberAt,
  objectAt,
  sessionIdAt,
  stringAt,
  valueAt,
} from './json-fields.ts'
import {
  createEvent,
  createToolEvent,
  createUsageEvent,
  withDone,
  withFailure,
  withTurn,
} from './mapped-events.ts'
import { rememberToolCall, takeToolCall } from './tool-calls.ts'
import type { JsonObject, MappedEvent, MappedLine, MapperState, Outcome } from './types.ts'

/**
 * The key in state.data of an error after which Codex did not announce a retry. `turn.failed` follows, unless Codex is
 * killed.
 */
const LAST_ERROR = 'lastError'
/** Codex reports each of its retries as an error. */
const RETRY = /^Reconnecting/

export function mapCodexLine(line: JsonObject, state: MapperState): MappedLine {
  switch (stringAt(line, 'type')) {
    case 'thread.started': {
      const id = sessionIdAt(line, 'thread_id')
      if (id === null || id === state.sessionId) return { events: [], state }
      return { events: [createEvent('session', id)], state: { ...state, sessionId: id } }
    }
    case 'turn.started':
      return { events: [], state: withTurn(state) }
    case 'item.started':
      return mapStartedItem(line, withTurn(state))
    case 'item.completed':
      return mapCompletedItem(line, withTurn(state))
    case 'error':
      return mapError(line, state)
    case 'turn.completed':
      return { events: [usageEvent(line), createEvent('done')], state: withDone(withLastError(state, null)) }
    case 'turn.failed': {
      const reported = nonBlankStringAt(line, 'error', 'message') ?? stringAt(state.data, LAST_ERROR)
      const message = reported ?? 'Codex failed without a message.'
      return { events: [createEvent('error', message)], state: withFailure(state, message) }
    }
    default:
      return { events: [], state }
  }
}

/** An error is not final: a `turn.failed` with the same message follows, which is the `error` event. */
function mapError(line: JsonObject, state: MapperState): MappedLine {
  const message = nonBlankStringAt(line, 'message')
  if (message === null) return { events: [], state }
  const isFinal = !RETRY.test(message)
  return {
    events: [createEvent('notice', message)],
    state: withLastError(state, isFinal ? message : null),
  }
}

function mapStartedItem(line: JsonObject, state: MapperState): MappedLine {
  const item = objectAt(line, 'item')
  const tool = describeTool(item)
  if (tool === null) return { events: [], state }
  return {
    events: [createToolEvent('tool', tool.name, { input: tool.input })],
    state: { ...rememberToolCall(state, stringAt(item, 'id'), tool.name), hasContent: true },
  }
}

function mapCompletedItem(line: JsonObject, state: MapperState): MappedLine {
  const item = objectAt(line, 'item')
  const text = stringAt(item, 'text')
  switch (stringAt(item, 'type')) {
    case 'agent_message':
      return text
        ? { events: [createEvent('text', text)], state: { ...state, hasContent: true } }
        : { events: [], state }
    case 'reasoning':
      return { events: text ? [createEvent('reasoning', text)] : [], state }
    case 'error': {
      const message = nonBlankStringAt(item, 'message')
      return { events: message === null ? [] : [createEvent('notice', message)], state }
    }
  }
  const tool = describeTool(item)
  if (tool === null) return { events: [], state }
  const call = takeToolCall(state, stringAt(item, 'id'))
  // Some tools have no item.started.
  const started = call.name === null ? [createToolEvent('tool', tool.name, { input: tool.input })] : []
  const result = createToolEvent('tool_result', tool.name, { text: resultText(item) })
  return { events: [...started, result], state: { ...call.state, hasContent: true } }
}

/** Returns null when the item is not a tool. */
function describeTool(item: JsonObject): { name: string; input: unknown } | null {
  const type = stringAt(item, 'type')
  switch (type) {
    case 'command_execution':
      return { name: type, input: { command: valueAt(item, 'command') ?? null } }
    case 'file_change':
      return { name: type, input: { changes: valueAt(item, 'changes') ?? null } }
    case 'web_search':
      return { name: type, input: { query: valueAt(item, 'query') ?? null } }
    case 'todo_list':
      return { name: type, input: { items: valueAt(item, 'items') ?? null } }
    case 'mcp_tool_call': {
      const name = `${stringAt(item, 'server') ?? 'unknown'}.${stringAt(item, 'tool') ?? 'unknown'}`
      return { name, input: valueAt(item, 'arguments') ?? null }
    }
    case 'collab_tool_call':
      return { name: stringAt(item, 'tool') ?? type, input: { prompt: valueAt(item, 'prompt') ?? null } }
    default:
      return null
  }
}

function resultText(item: JsonObject): string | null {
  const error = nonBlankStringAt(item, 'error', 'message')
  if (error !== null) return error
  const contents = arrayAt(item, 'result', 'content')
  const texts = contents.map((content) => stringAt(content, 'text')).filter((text) => text !== null)
  if (texts.length > 0) return texts.join('\n')
  const output = stringAt(item, 'aggregated_output')
  const exitCode = numberAt(item, 'exit_code')
  if (output) return output
  if (exitCode !== null && exitCode !== 0) return `exit code ${exitCode}`
  return output ?? nonBlankStringAt(item, 'status')
}

function usageEvent(line: JsonObject): MappedEvent {
  return createUsageEvent({
    input: numberAt(line, 'usage', 'input_tokens'),
    output: numberAt(line, 'usage', 'output_tokens'),
    cost: null,
  })
}

export function resolveUnfinishedCodex({ data }: MapperState): Outcome | null {
  const message = stringAt(data, LAST_ERROR)
  return message === null ? null : { status: 'failed', message }
}

function withLastError(state: MapperState, message: string | null): MapperState {
  const bounded = message === null ? null : boundedText(message, MAX_OUTCOME_MESSAGE_CHARS)
  return { ...state, data: { ...state.data, [LAST_ERROR]: bounded } }
}
