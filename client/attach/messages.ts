// Parses the messages that the server sends over an attached connection, and checks their fields.
import type { AttachServerMessage } from '../generated/types.ts'
import { createInvalidError, isRecord, parseJson } from '../http/errors.ts'
import { ATTACH_LIMITS, CHANNELS, type OutputChannel, SESSION_NAME_PATTERN } from './format.ts'

export type ServerMessage = AttachServerMessage
export type Message<Type extends ServerMessage['type']> = Extract<ServerMessage, { type: Type }>
export type AttachedMessage = Message<'attached'>
export type ExitMessage = Message<'exit'>
export type OutputBytes = { type: 'output'; channel: OutputChannel; bytes: Uint8Array<ArrayBuffer> }

type Validator = (value: unknown) => boolean

const isString: Validator = (value) => typeof value === 'string'
const isOffset: Validator = (value) => Number.isSafeInteger(value) && Number(value) >= 0
const isSessionName: Validator = (value) =>
  value === undefined || (typeof value === 'string' && SESSION_NAME_PATTERN.test(value))

const outputPosition = { stdoutOffset: isOffset, stderrOffset: isOffset }
const size = { cols: isOffset, rows: isOffset }

/** For each message, the fields that the client uses. */
const FIELD_VALIDATORS: Record<ServerMessage['type'], Record<string, Validator>> = {
  attached: { session: isSessionName, stdinOffset: isOffset, ...outputPosition },
  stdin: { offset: isOffset },
  stdinClosed: {},
  skipped: outputPosition,
  screen: { bytes: isOffset, ...outputPosition, ...size },
  resized: size,
  exit: {
    status: (value) => value === 'exited' || value === 'killed' || value === 'lost',
    exitCode: (value) => value === null || Number.isInteger(value),
    signal: (value) => value === null || isString(value),
    timedOut: (value) => typeof value === 'boolean',
    ...outputPosition,
  },
  reconnect: {},
  error: { code: isString, message: isString },
}

/**
 * `bytes` of the result share memory with `data`. Returns null for an unknown text message: a newer server may send
 * additional messages.
 * @throws BoxwoodError
 */
export function parseServerMessage(
  data: string | Uint8Array<ArrayBuffer>,
): ServerMessage | OutputBytes | null {
  if (typeof data !== 'string') {
    const channel = data[0] === CHANNELS.stdout ? 'stdout' : data[0] === CHANNELS.stderr ? 'stderr' : null
    if (channel === null || data.length < 2 || data.length > ATTACH_LIMITS.chunkBytes + 1)
      throw createInvalidError('a binary message of an unknown form')
    return { type: 'output', channel, bytes: data.subarray(1) }
  }
  if (data.length > ATTACH_LIMITS.textBytes) throw createInvalidError('a message that is too large')
  const message = parseJson(data)
  if (!isRecord(message)) throw createInvalidError('a message that is not a JSON object')
  const { type } = message
  if (typeof type !== 'string') throw createInvalidError('a message without a type')
  if (!Object.hasOwn(FIELD_VALIDATORS, type)) return null
  for (const [field, isValid] of Object.entries(FIELD_VALIDATORS[type as ServerMessage['type']]))
    if (!isValid(message[field])) throw createInvalidError(`the message ${type} without a valid ${field}`)
  return message as unknown as ServerMessage
}
