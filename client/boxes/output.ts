// The output of a detached command, each byte once: over lost connections, and restarts of the coordinator and the agent.
import { BoxwoodError, createError } from '../http/errors.ts'
import { readEvents, toLostError, toStreamError } from '../http/events.ts'
import { createReconnect } from '../http/reconnect.ts'
import type { OpenResponse } from '../http/transport.ts'

export type OutputStream = 'stdout' | 'stderr'
/** In bytes. */
export type Offsets = { stdout: number; stderr: number }

export type OutputChunk = {
  stream: OutputStream
  bytes: Uint8Array<ArrayBuffer>
  /** Of the first byte in its stream. */
  offset: number
  /** The bytes before `offset` that the box does not keep any more. */
  missing: number
}

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

export type ReadOutputOptions = {
  from: Offsets
  signal: AbortSignal | undefined
  /** How long the stream may be interrupted, in milliseconds. */
  outageMs: number
  /** Requests the stream after a position. */
  open(position: Offsets): Promise<OpenResponse>
  /** null: the stream is connected; else why it is interrupted. */
  onConnection?(error: BoxwoodError | null): void
}

/** Yields the output in the order in which it arrives, and returns the exit. */
export async function* readOutput(options: ReadOutputOptions): AsyncGenerator<OutputChunk, Exit, undefined> {
  const { from, signal, outageMs, open, onConnection } = options
  const position = { ...from }
  const reconnect = createReconnect(outageMs, signal)
  for (;;) {
    let lost: BoxwoodError
    try {
      for await (const { event, data } of readEvents(await open(position), signal)) {
        reconnect.recordData()
        const fields = JSON.parse(data)
        if (event === 'attached') onConnection?.(null)
        else if (event === 'stdout' || event === 'stderr') {
          const chunk = advance(position, event, fields)
          if (chunk !== null) yield chunk
        } else if (event === 'exit') {
          for (const stream of ['stdout', 'stderr'] as const) {
            const end: number = fields[`${stream}Offset`]
            const missing = end - position[stream]
            if (missing > 0) yield { stream, bytes: new Uint8Array(), offset: end, missing }
          }
          return fields
        } else if (event === 'error') throw toStreamError(fields)
        else if (event === 'reconnect') break
      }
      lost = toLostError()
    } catch (error) {
      if (!(error instanceof BoxwoodError)) throw error
      lost = error
    }
    onConnection?.(lost)
    await reconnect.waitAfter(lost)
  }
}

/** Moves the position. null: all bytes of the event were read before. */
function advance(
  position: Offsets,
  stream: OutputStream,
  { data, offset, nextOffset }: { data: string; offset: number; nextOffset: number },
): OutputChunk | null {
  const bytes = decodeBase64(data)
  if (nextOffset - offset !== bytes.length)
    throw createError({
      code: 'invalid_response',
      message: `The coordinator sent ${stream} whose length is not that of its offsets.`,
      status: 422,
    })
  const before = position[stream]
  if (nextOffset <= before) return null
  position[stream] = nextOffset
  const known = Math.max(0, before - offset)
  return {
    stream,
    bytes: bytes.subarray(known),
    offset: offset + known,
    missing: Math.max(0, offset - before),
  }
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i)
  return bytes
}
