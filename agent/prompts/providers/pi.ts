// pi (@earendil-works/pi-coding-agent): command line, output lines and credentials.

import { awsProfile } from './aws-profile.ts'
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
import { isPiSignedIn, piCredentialFiles, piSignInHint } from './pi-credentials.ts'
import type {
  CommandOptions,
  JsonObject,
  MappedEvent,
  MappedLine,
  MapperState,
  Outcome,
  Provider,
} from './types.ts'

/** The key in state.data of the error of the last message of the assistant. pi may retry after it. */
const LAST_ERROR = 'lastError'
/** The key in state.data that agent_end was seen without an announced retry. Versions before agent_settled end with it. */
const HAS_ENDED = 'hasEnded'

export const pi: Provider = {
  name: 'pi',
  program: 'pi',
  installPackage: '@earendil-works/pi-coding-agent@0.87.1',
  // After SIGINT, pi leaves its tools running.
  interruptSignal: 'TERM',
  defaultAuto: true,
  buildCommand,
  encodePrompt,
  mapLine,
  resolveUnfinished,
  credentialFiles: piCredentialFiles,
  isSignedIn: isPiSignedIn,
  credentialVariables: async () => ({}),
  signInHint: piSignInHint,
}

function buildCommand({ model, effort, sessionId, env, version }: CommandOptions) {
  return {
    args: [
      '--mode',
      'json',
      '-p',
      ...(model ? ['--model', model.full] : []),
      ...(effort ? ['--thinking', effort] : []),
      '--approve',
      ...(sessionId ? [sessionOption(version), sessionId] : []),
    ],
    env: { PI_OFFLINE: '1', ...awsProfile({ model, env }) },
  }
}

/**
 * A session that was interrupted before its first answer is not stored. --session then fails; --session-id starts the
 * session again. npm installs version 0.74.2, which does not have --session-id, for Node 20.
 */
function sessionOption(version: string | undefined): string {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version ?? '') ?? []
  return major === '0' && Number(minor) < 76 ? '--session' : '--session-id'
}

/**
 * A prompt that starts with a slash would be expanded by a prompt template, a skill or an extension. pi trims whitespace
 * first, so that only a character such as the zero-width space prevents it.
 */
function encodePrompt(prompt: string): string {
  return prompt.trimStart().startsWith('/') ? `\u200b${prompt.trimStart()}` : prompt
}

function mapLine(line: JsonObject, state: MapperState): MappedLine {
  switch (stringAt(line, 'type')) {
    case 'session': {
      const id = sessionIdAt(line, 'id')
      if (id === null || id === state.sessionId) return { events: [], state }
      return { events: [createEvent('session', id)], state: { ...state, sessionId: id } }
    }
    case 'agent_start':
      return { events: [], state: withTurn(withData(state, { [HAS_ENDED]: false })) }
    case 'message_end':
      return mapMessage(line, state)
    case 'tool_execution_start': {
      const event = createToolEvent('tool', stringAt(line, 'toolName'), {
        input: valueAt(line, 'args') ?? null,
      })
      return { events: [event], state: { ...state, hasContent: true } }
    }
    case 'tool_execution_end': {
      const text = joinTexts(arrayAt(line, 'result', 'content'), 'text')
      return { events: [createToolEvent('tool_result', stringAt(line, 'toolName'), { text })], state }
    }
    case 'agent_end':
      return { events: [], state: withData(state, { [HAS_ENDED]: !isTrueAt(line, 'willRetry') }) }
    case 'agent_settled':
      return mapSettled(state)
    default: {
      const notice = noticeText(line)
      return { events: notice === null ? [] : [createEvent('notice', notice)], state }
    }
  }
}

const withData = (state: MapperState, data: JsonObject): MapperState => ({
  ...state,
  data: { ...state.data, ...data },
})

function mapMessage(line: JsonObject, state: MapperState): MappedLine {
  if (stringAt(line, 'message', 'role') !== 'assistant') return { events: [], state }
  const content = arrayAt(line, 'message', 'content')
  const events = content.flatMap(mapBlock)
  const hasContent = state.hasContent || events.some(({ type }) => type === 'text')
  const error = messageError(line)
  // A failed request reports zeros.
  if (error === null) events.push(mapUsage(line))
  return { events, state: withData({ ...state, hasContent }, { [LAST_ERROR]: error }) }
}

function mapUsage(line: JsonObject): MappedEvent {
  return createUsageEvent({
    input: numberAt(line, 'message', 'usage', 'input'),
    output: numberAt(line, 'message', 'usage', 'output'),
    cost: numberAt(line, 'message', 'usage', 'cost', 'total'),
  })
}

/** Tool calls are omitted: tool_execution_start reports them. */
function mapBlock(block: unknown): MappedEvent[] {
  const text = stringAt(block, 'text')
  if (text) return [createEvent('text', text)]
  const thinking = stringAt(block, 'thinking')
  return thinking ? [createEvent('reasoning', thinking)] : []
}

function messageError(line: JsonObject): string | null {
  const reason = stringAt(line, 'message', 'stopReason')
  if (reason !== 'error' && reason !== 'aborted') return null
  const message = nonBlankStringAt(line, 'message', 'errorMessage')
  return boundedText(message ?? `The model's response ended with ${reason}.`, MAX_OUTCOME_MESSAGE_CHARS)
}

function mapSettled(state: MapperState): MappedLine {
  const error = stringAt(state.data, LAST_ERROR)
  if (error === null) return { events: [createEvent('done')], state: withDone(state) }
  return { events: [createEvent('error', error)], state: withFailure(state, error) }
}

function noticeText(line: JsonObject): string | null {
  const reason = nonBlankStringAt(line, 'errorMessage')
  switch (stringAt(line, 'type')) {
    case 'auto_retry_start': {
      const attempt = `${numberAt(line, 'attempt') ?? '?'} of ${numberAt(line, 'maxAttempts') ?? '?'}`
      return `Retry ${attempt} in ${numberAt(line, 'delayMs') ?? '?'} ms: ${reason ?? 'no reason reported'}`
    }
    case 'compaction_start':
      return 'pi compacts the session.'
    case 'compaction_end':
      return reason === null ? null : `The compaction of the session failed: ${reason}`
    case 'extension_error':
      return `An extension failed: ${nonBlankStringAt(line, 'error') ?? 'no reason reported'}`
    default:
      return null
  }
}

function joinTexts(blocks: readonly unknown[], key: string): string | null {
  const texts = blocks.map((block) => stringAt(block, key)).filter((text) => text !== null)
  return texts.length > 0 ? texts.join('\n') : null
}

function resolveUnfinished({ data }: MapperState): Outcome | null {
  if (!isTrueAt(data, HAS_ENDED)) return null
  const error = stringAt(data, LAST_ERROR)
  return error === null ? { status: 'done' } : { status: 'failed', message: error }
}
