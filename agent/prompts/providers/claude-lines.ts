// The output lines of Claude Code (--output-format stream-json) as events.

import { withBackgroundTasks } from './claude-tasks.ts'
import {
  arrayAt,
  boundedText,
  isTrueAt,
  MAX_OUTCOME_MESSAGE_CHARS,
  nonBlankStringAt,
  numberAt,
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

/** The key in state.data of the error that the last message of the assistant reported. The result repeats it. */
const REPORTED_ERROR = 'reportedError'
const INTERRUPTED = '[Request interrupted'
const NO_RESPONSE =
  'the server of the model did not respond. Check the network of the box, and ANTHROPIC_BASE_URL if it is set'

export function mapClaudeLine(line: JsonObject, state: MapperState): MappedLine {
  switch (stringAt(line, 'type')) {
    case 'system':
      return mapSystem(line, state)
    case 'assistant':
      return nonBlankStringAt(line, 'error') === null ? mapAssistant(line, state) : mapError(line, state)
    case 'user':
      return mapUser(line, state)
    case 'result':
      return mapResult(line, state)
    default:
      return { events: [], state }
  }
}

function mapSystem(line: JsonObject, state: MapperState): MappedLine {
  if (stringAt(line, 'subtype') === 'init') {
    const id = sessionIdAt(line, 'session_id')
    if (id === null || id === state.sessionId) return { events: [], state }
    return { events: [createEvent('session', id)], state: { ...state, sessionId: id } }
  }
  const text = noticeText(line)
  return {
    events: text === null ? [] : [createEvent('notice', text)],
    state: withBackgroundTasks(state, line),
  }
}

function noticeText(line: JsonObject): string | null {
  switch (stringAt(line, 'subtype')) {
    case 'api_retry': {
      const attempt = `${numberAt(line, 'attempt') ?? '?'} of ${numberAt(line, 'max_retries') ?? '?'}`
      const status = numberAt(line, 'error_status')
      const error = nonBlankStringAt(line, 'error')
      // Claude Code reports `unknown` when it has received no response.
      const hasResponse = status !== null || (error !== null && error !== 'unknown')
      const reason = hasResponse ? (error ?? 'no reason reported') : NO_RESPONSE
      const delay = Math.round(numberAt(line, 'retry_delay_ms') ?? 0)
      return `Retry ${attempt} in ${delay} ms: ${status === null ? reason : `HTTP ${status}, ${reason}`}`
    }
    case 'permission_denied':
      return (
        nonBlankStringAt(line, 'message') ?? `Permission denied: ${stringAt(line, 'tool_name') ?? 'a tool'}`
      )
    case 'compact_boundary':
      return 'Claude Code compacted the session.'
    default:
      return null
  }
}

function mapAssistant(line: JsonObject, initial: MapperState): MappedLine {
  const events: MappedEvent[] = []
  let state = initial
  for (const block of arrayAt(line, 'message', 'content')) {
    const text = stringAt(block, 'text')
    const thinking = stringAt(block, 'thinking')
    switch (stringAt(block, 'type')) {
      case 'text':
        if (text) events.push(createEvent('text', text))
        break
      case 'thinking':
        if (thinking) events.push(createEvent('reasoning', thinking))
        break
      case 'tool_use':
      case 'server_tool_use': {
        const name = stringAt(block, 'name')
        events.push(createToolEvent('tool', name, { input: valueAt(block, 'input') ?? null }))
        state = rememberToolCall(state, stringAt(block, 'id'), name)
        break
      }
    }
  }
  const hasContent = state.hasContent || events.some(({ type }) => type !== 'reasoning')
  const isSubAgent = nonBlankStringAt(line, 'parent_tool_use_id') !== null
  // Claude Code has continued after an earlier error.
  const next = withData({ ...state, hasContent }, { [REPORTED_ERROR]: null })
  return { events, state: isSubAgent ? next : withTurn(next) }
}

/** An error that Claude Code reports as a message of the assistant. A result follows, unless Claude Code is killed. */
function mapError(line: JsonObject, state: MapperState): MappedLine {
  const text = joinTexts(arrayAt(line, 'message', 'content')) ?? stringAt(line, 'error') ?? ''
  // The error of a sub-agent is not the end of the run.
  if (nonBlankStringAt(line, 'parent_tool_use_id') !== null)
    return { events: [createEvent('notice', text)], state }
  return {
    events: [createEvent('error', text)],
    state: withData(state, { [REPORTED_ERROR]: boundedText(text, MAX_OUTCOME_MESSAGE_CHARS) }),
  }
}

function mapUser(line: JsonObject, initial: MapperState): MappedLine {
  const events: MappedEvent[] = []
  let state = initial
  for (const block of arrayAt(line, 'message', 'content')) {
    const text = stringAt(block, 'text')
    if (stringAt(block, 'type') === 'tool_result') {
      const call = takeToolCall(state, stringAt(block, 'tool_use_id'))
      state = call.state
      events.push(createToolEvent('tool_result', call.name, { text: resultText(valueAt(block, 'content')) }))
    } else if (text?.startsWith(INTERRUPTED)) events.push(createEvent('notice', text))
  }
  return { events, state }
}

const resultText = (content: unknown): string | null =>
  typeof content === 'string' ? content : joinTexts(Array.isArray(content) ? content : [])

/** One run can have several results, when sub-agents in the background finish. The last one counts. */
function mapResult(line: JsonObject, state: MapperState): MappedLine {
  const usage = usageEvents(line)
  const result = nonBlankStringAt(line, 'result')
  // A resumed session reports the tasks of the previous process like this, before it reads the prompt.
  const isAboutTask = stringAt(line, 'origin', 'kind') === 'task-notification'
  if (isAboutTask && result === null && !state.hasContent) return { events: [], state }
  const failure = failureMessage(line, result)
  if (failure !== null) {
    const isReported =
      stringAt(state.data, REPORTED_ERROR) === boundedText(failure, MAX_OUTCOME_MESSAGE_CHARS)
    return {
      events: [...usage, ...(isReported ? [] : [createEvent('error', failure)])],
      state: withData(withFailure(state, failure), { [REPORTED_ERROR]: null }),
    }
  }
  // A command such as /cost has a result without a message of the assistant.
  const text = result !== null && !state.hasContent ? [createEvent('text', result)] : []
  return {
    events: [...text, ...usage, createEvent('done')],
    state: withData({ ...withDone(state), hasContent: true }, { [REPORTED_ERROR]: null }),
  }
}

/** Returns null for a success. `subtype` can be "success" in spite of an error. */
function failureMessage(line: JsonObject, result: string | null): string | null {
  const reason = stringAt(line, 'terminal_reason') ?? ''
  if (reason.startsWith('aborted')) return `Claude Code was interrupted (${reason}).`
  const subtype = stringAt(line, 'subtype') ?? 'unknown'
  if (!isTrueAt(line, 'is_error') && !subtype.startsWith('error')) return null
  const errors = arrayAt(line, 'errors').filter((error) => typeof error === 'string')
  return result ?? (errors.join('\n').trim() || `Claude Code failed: ${subtype}.`)
}

function usageEvents(line: JsonObject): MappedEvent[] {
  const input = numberAt(line, 'usage', 'input_tokens')
  const output = numberAt(line, 'usage', 'output_tokens')
  // A failed request reports zeros.
  if (!input && !output) return []
  const cost = numberAt(line, 'total_cost_usd')
  return [createUsageEvent({ input, output, cost: cost === null ? null : Number(cost.toFixed(6)) })]
}

export function resolveUnfinishedClaude({ data }: MapperState): Outcome | null {
  const message = stringAt(data, REPORTED_ERROR)
  return message === null ? null : { status: 'failed', message }
}

const withData = (state: MapperState, data: JsonObject): MapperState => ({
  ...state,
  data: { ...state.data, ...data },
})

/** Returns null when no block has a text. */
function joinTexts(blocks: readonly unknown[]): string | null {
  const texts = blocks.map((block) => stringAt(block, 'text')).filter((text) => text !== null)
  return texts.length > 0 ? texts.join('\n') : null
}
