// Parses the messages that the server sends over an attached connection (shared/attach-format.ts) and checks their fields.
import type { OutputBytes, ServerMessage } from '../../shared/api/attach.ts'
import { ATTACH_LIMITS, CHANNELS, SESSION_NAME_PATTERN } from '../../shared/attach-format.ts'
import {
  checkFields,
  type FieldValidators,
  invalidDataError,
  isIntegerOrNull,
  isOffset,
  isString,
  isStringOrNull,
  parseObject,
} from '../connection/server-data.ts'

export type AttachedMessage = Extract<ServerMessage, { type: 'attached' }>
export type ExitMessage = Extract<ServerMessage, { type: 'exit' }>

const outputPosition = { stdoutOffset: isOffset, stderrOffset: isOffset }
const isSessionName = (value: unknown) =>
  value === undefined || (typeof value === 'string' && SESSION_NAME_PATTERN.test(value))

/** For each message, the fields that `box` uses. */
const FIELD_VALIDATORS: Record<ServerMessage['type'], FieldValidators> = {
  attached: { session: isSessionName, stdinOffset: isOffset, ...outputPosition },
  stdin: { offset: isOffset },
  stdinClosed: {},
  skipped: outputPosition,
  screen: { bytes: isOffset, ...outputPosition },
  resized: {},
  exit: {
    status: (value) => value === 'exited' || value === 'killed' || value === 'lost',
    exitCode: isIntegerOrNull,
    signal: isStringOrNull,
    timedOut: (value) => typeof value === 'boolean',
    ...outputPosition,
  },
  reconnect: {},
  error: { code: isString, message: isString },
}

/**
 * `bytes` of the result share memory with `data`. Returns null for an unknown text message: a newer server may send
 * additional messages.
 * @throws CliError
 */
export function parseServerMessage(data: Buffer, isBinary: boolean): ServerMessage | OutputBytes | null {
  if (isBinary) {
    const channel = data[0] === CHANNELS.stdout ? 'stdout' : data[0] === CHANNELS.stderr ? 'stderr' : null
    if (channel === null || data.length < 2) throw invalidDataError('a binary message of an unknown form')
    return { type: 'output', channel, bytes: data.subarray(1) }
  }
  if (data.length > ATTACH_LIMITS.textBytes) throw invalidDataError('a message that is too large')
  const message = parseObject(data.toString(), 'a message')
  const { type } = message
  if (typeof type !== 'string') throw invalidDataError('a message without a type')
  if (!Object.hasOwn(FIELD_VALIDATORS, type)) return null
  checkFields(`the message ${type}`, message, FIELD_VALIDATORS[type as ServerMessage['type']])
  return message as unknown as ServerMessage
}
