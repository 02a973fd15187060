// Schemas of the messages of an attached WebSocket (see ../attach-format.ts): a text message is a JSON object with `type`.
import * as z from 'zod'
import {
  ATTACH_LIMITS,
  CHANNELS,
  MAX_ATTACH_MESSAGE_BYTES,
  type OutputChannel,
  SESSION_NAME_PATTERN,
} from '../attach-format.ts'
import { BoundedJsonError, parseBoundedJson } from '../bounded-json.ts'
import { isErrorCode } from '../errors.ts'
import { exitCodeSchema, queryOffset, reportedIntegerSchema } from './common.ts'

const MAX_TEXT_TOKENS = 64

const offsetSchema = reportedIntegerSchema
const outputPosition = { stdoutOffset: offsetSchema, stderrOffset: offsetSchema }
/** Columns and rows of a terminal. */
export const terminalSizeFields = { cols: z.int().min(1).max(1000), rows: z.int().min(1).max(1000) }

export const serverMessageSchema = z
  .discriminatedUnion('type', [
    z
      .object({
        type: z.literal('attached'),
        processId: z.string().max(64).optional().meta({ description: 'of an attached command' }),
        session: z.string().regex(SESSION_NAME_PATTERN).optional().meta({ description: 'of a terminal' }),
        isNew: z
          .boolean()
          .optional()
          .meta({ description: 'whether this request created the terminal session' }),
        stdinOffset: offsetSchema.meta({
          description: 'accepted bytes of stdin: the client continues from here',
        }),
        ...outputPosition,
      })
      .meta({ description: 'the first message: the position of the following output' }),
    z
      .object({ type: z.literal('stdin'), offset: offsetSchema })
      .meta({ description: 'accepted bytes of stdin' }),
    z
      .object({ type: z.literal('stdinClosed') })
      .meta({ description: 'the command has closed its stdin; further stdin is discarded' }),
    z
      .object({ type: z.literal('skipped'), ...outputPosition })
      .meta({ description: 'output was discarded; the next output starts at these offsets' }),
    z
      .object({
        type: z.literal('screen'),
        bytes: z
          .int()
          .min(0)
          .max(64 * 1024 * 1024),
        ...outputPosition,
        ...terminalSizeFields,
      })
      .meta({
        description:
          'the next `bytes` bytes on channel 1 are not output: written to an empty terminal of this size, they draw the ' +
          'screen as it is at these offsets, where the output continues',
      }),
    z
      .object({ type: z.literal('resized'), ...terminalSizeFields })
      .meta({ description: 'the terminal has this size now' }),
    z
      .object({
        type: z.literal('exit'),
        status: z.enum(['exited', 'killed', 'lost']),
        exitCode: exitCodeSchema.nullable(),
        signal: z.string().max(32).nullable(),
        timedOut: z.boolean(),
        ...outputPosition,
      })
      .meta({ description: 'sent after all output; the client responds with exitReceived' }),
    z
      .object({ type: z.literal('reconnect') })
      .meta({ description: 'the coordinator is stopping: the client reconnects; the connection is closed' }),
    z
      .object({
        type: z.literal('error'),
        code: z.string().refine(isErrorCode),
        message: z.string().max(4096),
      })
      .meta({ description: 'the connection is closed' }),
  ])
  .meta({ id: 'AttachServerMessage' })
export type ServerMessage = z.infer<typeof serverMessageSchema>

export const clientMessageSchema = z
  .discriminatedUnion('type', [
    z
      .object({ type: z.literal('ack'), ...outputPosition })
      .meta({ description: 'the client has processed the output up to these offsets' }),
    z
      .object({ type: z.literal('stdinEnd') })
      .meta({ description: 'end of stdin, after the bytes sent so far' }),
    z
      .object({ type: z.literal('detach') })
      .meta({ description: 'an attached command continues as a detached one; a terminal session stays' }),
    z
      .object({ type: z.literal('resize'), ...terminalSizeFields })
      .meta({ description: 'the size of the client’s terminal' }),
    z.object({ type: z.literal('exitReceived') }).meta({ description: 'the server may delete the output' }),
  ])
  .meta({ id: 'AttachClientMessage' })
export type ClientMessage = z.infer<typeof clientMessageSchema>

/** The text messages of both sides, for the OpenAPI document. */
export const attachMessageSchema = z.union([serverMessageSchema, clientMessageSchema])

/** The query of GET /exec/{processId}/attach. */
export const attachQuerySchema = z.object({
  stdoutOffset: queryOffset()
    .optional()
    .meta({ description: 'bytes of stdout that the client has received; default 0' }),
  stderrOffset: queryOffset().optional(),
})

export type OutputBytes = { type: 'output'; channel: OutputChannel; bytes: Buffer }
export type StdinBytes = { type: 'stdinBytes'; bytes: Buffer }

/** A violation of the message format. The message completes "The peer sent …". */
export class InvalidAttachMessageError extends Error {
  override name = 'InvalidAttachMessageError'
}

/** Checks a message of the server. `bytes` shares memory with `data`. @throws InvalidAttachMessageError */
export function parseServerMessage(data: Buffer, isBinary: boolean): ServerMessage | OutputBytes {
  if (!isBinary) return parseText(serverMessageSchema, data)
  const channel = data[0] === CHANNELS.stdout ? 'stdout' : data[0] === CHANNELS.stderr ? 'stderr' : null
  if (channel === null) throw new InvalidAttachMessageError('an unknown channel')
  return { type: 'output', channel, bytes: chunkOf(data) }
}

/** Checks a message of the client. `bytes` shares memory with `data`. @throws InvalidAttachMessageError */
export function parseClientMessage(data: Buffer, isBinary: boolean): ClientMessage | StdinBytes {
  if (!isBinary) return parseText(clientMessageSchema, data)
  if (data[0] !== CHANNELS.stdin) throw new InvalidAttachMessageError('an unknown channel')
  return { type: 'stdinBytes', bytes: chunkOf(data) }
}

function chunkOf(data: Buffer): Buffer {
  if (data.length < 2 || data.length > MAX_ATTACH_MESSAGE_BYTES)
    throw new InvalidAttachMessageError(`a binary message of ${data.length} bytes`)
  return data.subarray(1)
}

function parseText<S extends z.ZodType>(schema: S, data: Buffer): z.output<S> {
  if (data.length > ATTACH_LIMITS.textBytes)
    throw new InvalidAttachMessageError(`a text message of ${data.length} bytes`)
  let value: unknown
  try {
    value = parseBoundedJson(data.toString('utf8'), MAX_TEXT_TOKENS)
  } catch (error) {
    if (!(error instanceof BoundedJsonError)) throw error
    throw new InvalidAttachMessageError(`a text message that ${error.message}`)
  }
  const parsed = schema.safeParse(value)
  if (!parsed.success) throw new InvalidAttachMessageError('a text message of an unknown form')
  return parsed.data
}
