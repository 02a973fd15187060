// Frames of a dial-back stream connection: the agent sends each as one binary WebSocket message.
//
// A frame is a JSON header, a newline (JSON text contains none), and for output the raw bytes. Agents are untrusted:
// decodeFrame checks every frame.
import * as z from 'zod'
import { exitCodeSchema, reportedIntegerSchema } from './api/common.ts'
import { MAX_STREAM_OFFSET, STREAM_CHUNK_BYTES, timedOutSchema } from './api/processes.ts'
import { BoundedJsonError, parseBoundedJson } from './bounded-json.ts'

/** The header of an `error` frame includes its message. */
const MAX_HEADER_BYTES = 8 * 1024
/** A header has at most seven fields. Leaves room for fields of a newer agent. */
const MAX_HEADER_TOKENS = 64
/** The largest WebSocket message that the coordinator accepts on a stream connection. */
export const MAX_FRAME_BYTES = MAX_HEADER_BYTES + STREAM_CHUNK_BYTES

const NEWLINE = 0x0a

const offsetSchema = z.int().min(0).max(MAX_STREAM_OFFSET)
/** The reader's position after the frame, in bytes. */
const positionFields = { stdoutOffset: offsetSchema, stderrOffset: offsetSchema }
/** When the output was written, in milliseconds since the epoch; null when unknown. Sent on request. */
const outputFields = { ...positionFields, at: reportedIntegerSchema.nullable().optional() }

/** Exported for tests. */
export const frameHeaderSchema = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('attached'),
    ...positionFields,
    processId: z.string(),
    hasTimes: z.boolean().optional(),
  }),
  z.object({ event: z.literal('stdout'), ...outputFields }),
  z.object({ event: z.literal('stderr'), ...outputFields }),
  z.object({ event: z.literal('heartbeat'), ...positionFields }),
  z.object({ event: z.literal('reconnect'), ...positionFields }),
  z.object({
    event: z.literal('exit'),
    ...positionFields,
    status: z.enum(['exited', 'killed', 'lost']),
    exitCode: exitCodeSchema.nullable(),
    signal: z.string().max(32).nullable(),
    timedOut: timedOutSchema,
  }),
  z.object({ event: z.literal('error'), ...positionFields, code: z.string(), message: z.string() }),
])
type Header = z.infer<typeof frameHeaderSchema>

export type OutputFrame = Extract<Header, { event: 'stdout' | 'stderr' }> & {
  /** The output before the position, at most STREAM_CHUNK_BYTES. */
  bytes: Buffer
}
export type ControlFrame = Exclude<Header, { event: 'stdout' | 'stderr' }>
export type StreamFrame = OutputFrame | ControlFrame

export const isOutput = (frame: StreamFrame): frame is OutputFrame =>
  frame.event === 'stdout' || frame.event === 'stderr'

export class InvalidFrameError extends Error {
  override name = 'InvalidFrameError'
}

export function encodeFrame(frame: StreamFrame): Buffer {
  if (!isOutput(frame)) return Buffer.from(`${JSON.stringify(frame)}\n`)
  const { bytes, ...fields } = frame
  return Buffer.concat([Buffer.from(`${JSON.stringify(fields)}\n`), bytes])
}

/** The frame's `bytes` share memory with the message. @throws InvalidFrameError */
export function decodeFrame(message: Buffer): StreamFrame {
  const headerEnd = message.subarray(0, MAX_HEADER_BYTES).indexOf(NEWLINE)
  if (headerEnd === -1) throw new InvalidFrameError('a frame without a header')
  const fields = parseHeader(message.toString('utf8', 0, headerEnd))
  const bytes = message.subarray(headerEnd + 1)
  if (fields.event !== 'stdout' && fields.event !== 'stderr') {
    if (bytes.length > 0) throw new InvalidFrameError(`a ${fields.event} frame with output`)
    return fields
  }
  const nextOffset = fields.event === 'stdout' ? fields.stdoutOffset : fields.stderrOffset
  if (bytes.length === 0 || bytes.length > Math.min(STREAM_CHUNK_BYTES, nextOffset))
    throw new InvalidFrameError(`a ${fields.event} frame with ${bytes.length} bytes of output`)
  return { ...fields, bytes }
}

function parseJson(text: string): unknown {
  try {
    return parseBoundedJson(text, MAX_HEADER_TOKENS)
  } catch (error) {
    if (!(error instanceof BoundedJsonError)) throw error
    throw new InvalidFrameError(`a frame header that ${error.message}`)
  }
}

function parseHeader(text: string): Header {
  const parsed = frameHeaderSchema.safeParse(parseJson(text))
  if (!parsed.success) throw new InvalidFrameError('a frame header of the wrong form')
  return parsed.data
}
