// The output of a detached command, each byte once: over lost connections, and restarts of the coordinator and the agent.
import { createInvalidError, toLostError } from '../http/errors.ts'
import { createEventParser, toStreamError } from '../http/events.ts'
import { type ResumeOptions, resumeEvents } from '../http/resume.ts'
import type { OpenResponse } from '../http/transport.ts'

export type OutputStream = 'stdout' | 'stderr'
/** In bytes. */
export type Offsets = { stdout: number; stderr: number }

/** The coordinator replaces an offset beyond the end by the end. */
export const OUTPUT_END: Offsets = { stdout: 999_999_999_999_999, stderr: 999_999_999_999_999 }

export type OutputChunk = {
  stream: OutputStream
  bytes: Uint8Array<ArrayBuffer>
  /** Of the first byte in its stream. */
  offset: number
  /** The bytes before `offset` that the box does not keep any more. */
  missing: number
  /** When the bytes were written, RFC 3339; null: not known, or not requested. */
  at: string | null
}

/** Where a connection continues. `hasTimes`: the box knows when the output was written. */
export type AttachedEvent = { offsets: Offsets; hasTimes: boolean }

/** How a command has ended. */
export type Exit = {
  /** lost: how it ended is not known, because its box stopped or its runner was killed. */
  status: 'exited' | 'killed' | 'lost'
  /** null: a signal ended it, or the status is lost. */
  exitCode: number | null
  /** Such as TERM. */
  signal: string | null
  timedOut: boolean
  /** Where the output ends. */
  stdoutOffset: number
  stderrOffset: number
}

export type ReadOutputOptions = Pick<
  ResumeOptions<unknown>,
  'signal' | 'outageMs' | 'idleMs' | 'onConnection' | 'canRetry'
> & {
  from: Offsets
  /** Requests the stream after a position. */
  open(position: Offsets): Promise<OpenResponse>
  /** Called for each connection. */
  onAttached?(event: AttachedEvent): void
}

/** Of a time, which programs print. */
const TIME = /^[\dTZ:.+-]{1,40}$/
const STREAMS: readonly OutputStream[] = ['stdout', 'stderr']
const parseEvent = createEventParser(['attached', 'stdout', 'stderr', 'exit', 'error', 'reconnect'])

/** Yields the output in the order in which it arrives, and returns the exit. */
export async function* readOutput(options: ReadOutputOptions): AsyncGenerator<OutputChunk, Exit, undefined> {
  const { from, onAttached } = options
  const position = { ...from }
  for await (const { name, fields } of resumeOutput(options, position)) {
    if (name === 'attached') onAttached?.(toAttached(fields))
    else if (name === 'stdout' || name === 'stderr') {
      const chunk = advance(position, name, fields)
      if (chunk !== null) yield chunk
    } else if (name === 'exit') {
      const exit = toExit(fields)
      for (const stream of STREAMS) {
        const end = exit[`${stream}Offset`]
        const missing = end - position[stream]
        if (missing > 0) yield { stream, bytes: new Uint8Array(), offset: end, missing, at: null }
      }
      return exit
    }
  }
  throw toLostError()
}

/** Yields where the first connection continues, such as the end of the output for a position after it. */
export async function* readAttached(
  options: Omit<ReadOutputOptions, 'onAttached'>,
): AsyncGenerator<AttachedEvent, never, undefined> {
  for await (const { name, fields } of resumeOutput(options, options.from))
    if (name === 'attached') yield toAttached(fields)
  throw toLostError()
}

/** @param position that of the next connection */
const resumeOutput = ({ from: _from, open, ...options }: ReadOutputOptions, position: Offsets) =>
  resumeEvents({
    ...options,
    open: () => open(position),
    parse: parseEvent,
    classify({ name, fields }) {
      if (name === 'error') return toStreamError(fields)
      if (name === 'reconnect') return toLostError()
      return name === 'attached' ? 'alive' : 'data'
    },
  })

function toAttached({ stdoutOffset, stderrOffset, hasTimes }: Record<string, unknown>): AttachedEvent {
  if (!isOffset(stdoutOffset) || !isOffset(stderrOffset))
    throw createInvalidError('an event attached without a position')
  return { offsets: { stdout: stdoutOffset, stderr: stderrOffset }, hasTimes: hasTimes === true }
}

/** Checks what the result of a command is computed from, and passes the other fields on. */
function toExit(fields: Record<string, unknown>): Exit {
  const { status, stdoutOffset, stderrOffset, exitCode = null } = fields
  if (
    typeof status !== 'string' ||
    !isOffset(stdoutOffset) ||
    !isOffset(stderrOffset) ||
    !(exitCode === null || Number.isInteger(exitCode))
  )
    throw createInvalidError('an exit that is not valid')
  return { exitCode: null, signal: null, timedOut: false, ...fields } as Exit
}

/** Missing unless it was requested, and from an older coordinator. */
const isTime = (value: unknown): value is string | null | undefined =>
  value === undefined || value === null || (typeof value === 'string' && TIME.test(value))

const isOffset = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

/** Moves the position. null: all bytes of the event were read before. */
function advance(
  position: Offsets,
  stream: OutputStream,
  { data, offset, nextOffset, at }: Record<string, unknown>,
): OutputChunk | null {
  const bytes = decodeBase64(data)
  if (bytes === null || !isOffset(offset) || !isOffset(nextOffset) || nextOffset - offset !== bytes.length)
    throw createInvalidError(`${stream} data whose length does not match its offsets`)
  if (!isTime(at)) throw createInvalidError(`${stream} without a valid at`)
  const before = position[stream]
  if (nextOffset <= before) return null
  position[stream] = nextOffset
  const known = Math.max(0, before - offset)
  return {
    stream,
    bytes: bytes.subarray(known),
    offset: offset + known,
    missing: Math.max(0, offset - before),
    at: at ?? null,
  }
}

/** null: the data is not valid. */
function decodeBase64(data: unknown): Uint8Array<ArrayBuffer> | null {
  if (typeof data !== 'string') return null
  let binary: string
  try {
    binary = atob(data)
  } catch {
    return null
  }
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i)
  return bytes
}
