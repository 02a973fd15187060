// OpenCode (opencode-ai): command line, output lines and credentials.

import { awsProfile } from './aws-profile.ts'
import { boundedText, nonBlankStringAt, numberAt, sessionIdAt, stringAt, valueAt } from './json-fields.ts'
import {
  createEvent,
  createToolEvent,
  createUsageEvent,
  withDone,
  withFailure,
  withTurn,
} from './mapped-events.ts'
import { isOpencodeSignedIn, opencodeCredentialFiles, opencodeSignInHint } from './opencode-credentials.ts'
import type {
  CommandOptions,
  JsonObject,
  MappedEvent,
  MappedLine,
  MapperState,
  Outcome,
  Provider,
} from './types.ts'

/** By default OpenCode allows everything, even without --auto. */
const ASK = JSON.stringify({ bash: 'ask', external_directory: 'ask', webfetch: 'ask' })
/**
 * The key in state.data of the tool whose permission was refused in the current step. OpenCode then exits without a final
 * event.
 */
const REFUSED_TOOL = 'refusedTool'
const REFUSED_ERROR = /rejected permission/

export const opencode: Provider = {
  name: 'opencode',
  program: 'opencode',
  installPackage: 'opencode-ai@1.18.33',
  // SIGTERM and SIGINT both end OpenCode without a final event.
  interruptSignal: 'TERM',
  defaultAuto: false,
  buildCommand,
  encodePrompt: (prompt) => prompt,
  mapLine,
  resolveUnfinished,
  credentialFiles: opencodeCredentialFiles,
  isSignedIn: isOpencodeSignedIn,
  credentialVariables: async () => ({}),
  signInHint: opencodeSignInHint,
}

function buildCommand({ model, effort, auto, sessionId, env, tmpDir }: CommandOptions) {
  return {
    args: [
      'run',
      '--format',
      'json',
      '--thinking',
      // Without a title, each new session makes a further request to the model.
      '--title',
      'run',
      ...(model ? ['-m', model.full] : []),
      ...(effort ? ['--variant', effort] : []),
      ...(auto ? ['--auto'] : []),
      ...(sessionId ? ['-s', sessionId] : []),
    ],
    env: {
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      // Each run leaves a shared library of 5.5 MB in TMPDIR.
      TMPDIR: tmpDir,
      ...(auto ? {} : { OPENCODE_PERMISSION: ASK }),
      ...awsProfile({ model, env }),
    },
  }
}

function mapLine(line: JsonObject, previous: MapperState): MappedLine {
  const sessionId = previous.sessionId ?? sessionIdAt(line, 'sessionID')
  const { events, state } = mapEvent(line, { ...previous, sessionId })
  const isNew = previous.sessionId === null && sessionId !== null
  return { events: isNew ? [createEvent('session', sessionId), ...events] : events, state }
}

function mapEvent(line: JsonObject, state: MapperState): MappedLine {
  switch (stringAt(line, 'type')) {
    case 'text':
      return mapText('text', line, state)
    case 'reasoning':
      return mapText('reasoning', line, state)
    case 'tool_use':
      return mapToolUse(line, { ...state, hasContent: true })
    case 'step_start':
      return { events: [], state: withTurn({ ...state, data: {} }) }
    case 'step_finish':
      return mapStepFinish(line, state)
    case 'error': {
      const message = errorMessage(line)
      return { events: [createEvent('error', message)], state: withFailure(state, message) }
    }
    default:
      return { events: [], state }
  }
}

function mapText(type: 'text' | 'reasoning', line: JsonObject, state: MapperState): MappedLine {
  const text = stringAt(line, 'part', 'text')
  if (!text) return { events: [], state }
  return {
    events: [createEvent(type, text)],
    state: { ...state, hasContent: state.hasContent || type === 'text' },
  }
}

/** OpenCode reports a tool call once, when it has finished. */
function mapToolUse(line: JsonObject, state: MapperState): MappedLine {
  const name = stringAt(line, 'part', 'tool')
  const error = stringAt(line, 'part', 'state', 'error')
  const output = stringAt(line, 'part', 'state', 'output')
  const events: MappedEvent[] = [
    createToolEvent('tool', name, { input: valueAt(line, 'part', 'state', 'input') ?? null }),
    createToolEvent('tool_result', name, { text: error ?? output }),
  ]
  const isRefused = error !== null && REFUSED_ERROR.test(error)
  const data = isRefused ? { [REFUSED_TOOL]: boundedText(name ?? 'unknown', 100) } : state.data
  return { events, state: { ...state, data } }
}

function mapStepFinish(line: JsonObject, state: MapperState): MappedLine {
  const usage = createUsageEvent({
    input: numberAt(line, 'part', 'tokens', 'input'),
    output: numberAt(line, 'part', 'tokens', 'output'),
    cost: numberAt(line, 'part', 'cost'),
  })
  const reason = stringAt(line, 'part', 'reason')
  // After both, OpenCode sends the next request, unless a permission was refused.
  if (reason === null || reason === 'tool-calls' || reason === 'unknown') return { events: [usage], state }
  return { events: [usage, createEvent('done')], state: withDone(state) }
}

function errorMessage(line: JsonObject): string {
  const message =
    nonBlankStringAt(line, 'error', 'data', 'message') ?? nonBlankStringAt(line, 'error', 'name')
  if (message === null) return 'OpenCode reported an error without a message.'
  return message.startsWith('Unexpected server error')
    ? `${message} OpenCode may not know the model, or may have no credential for its provider.`
    : message
}

function resolveUnfinished({ data }: MapperState): Outcome | null {
  const tool = stringAt(data, REFUSED_TOOL)
  if (tool === null) return null
  return {
    status: 'failed',
    message: `OpenCode ended the run, because the tool ${tool} needs a permission. Send auto: true to run all tools without asking.`,
  }
}
