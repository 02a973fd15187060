// Makes the event streams of processes and of prompts fail or differ.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ApiError, type ErrorCode, edgeErrorBody } from '../../shared/errors.ts'
import type { Forward, ResponseFault } from '../support/fault-proxy.ts'
import type { CliCoordinator } from './coordinator.ts'
import { createRandom, type Random } from './random.ts'

/** How one connection of a stream fails. */
export type StreamFault =
  | { kind: 'error_response'; code: ErrorCode; headers?: Record<string, string> }
  | { kind: 'bad_gateway' }
  | { kind: 'reset' }
  | ForwardedStream

/**
 * A stream of the coordinator. `disconnect` and `end` stop it within an event, `reconnect` and `error` with the event of this
 * name: before the event that exceeds `afterBytes`, or after `afterEvents` events, whichever is given.
 */
type ForwardedStream = {
  kind: 'complete' | 'disconnect' | 'end' | 'reconnect' | 'error'
  afterBytes?: number
  afterEvents?: number
  /** Returns the Last-Event-ID for the coordinator. */
  seek?(lastEventId: string): string
  /** Changes an event, or removes it. */
  change?(event: string): string | null
}

const changeOffsets = (id: string, change: (offset: number) => number): string =>
  id
    .split(':')
    .map((offset) => change(Number(offset)))
    .join(':')

/** The stream repeats this many bytes, or events, before the requested position. */
export const rewind =
  (count: number) =>
  (id: string): string =>
    changeOffsets(id, (offset) => Math.max(0, offset - count))

/** The stream has no stdout before this offset. */
export const discardStdout =
  (firstStoredByte: number) =>
  (id: string): string => {
    const [stdout, stderr] = id.split(':')
    return `${Math.max(firstStoredByte, Number(stdout))}:${stderr}`
  }

/** Replaces the faults of the connections to `linePrefix` from now on. null: the connection does not fail. */
export function setStreamFaults(
  { requests, clearFaults, failNext }: CliCoordinator,
  linePrefix: string,
  faults: readonly (StreamFault | null)[],
) {
  const first = requests.length
  let bytesSent = 0
  clearFaults()
  for (const [index, fault] of faults.entries())
    failNext(
      linePrefix,
      toResponseFault(fault ?? { kind: 'complete' }, createRandom(index + 1), (bytes) => {
        bytesSent += bytes
      }),
    )
  const getConnections = () => requests.slice(first).filter(({ line }) => line.startsWith(linePrefix))
  return {
    getConnections,
    countConnections: () => getConnections().length,
    /** Bytes of the streams that are in `faults`. */
    getBytesSent: () => bytesSent,
  }
}

function toResponseFault(fault: StreamFault, random: Random, onSent: (bytes: number) => void): ResponseFault {
  switch (fault.kind) {
    case 'reset':
      return (response) => response.destroy()
    case 'bad_gateway':
      return (response) => response.writeHead(502).end('<html>Bad Gateway</html>')
    case 'error_response':
      return (response) => {
        const error = new ApiError(fault.code, 'Try again later (non-ASCII: ñ).')
        const headers = { 'content-type': 'application/json', ...fault.headers }
        response.writeHead(error.status, headers).end(JSON.stringify(edgeErrorBody(error)))
      }
    default:
      return (response, request, forward) =>
        forwardStream(fault, { response, request, forward, random, onSent })
  }
}

type Exchange = {
  response: ServerResponse
  request: IncomingMessage
  forward: Forward
  random: Random
  onSent(bytes: number): void
}

const HEARTBEAT = 'event: heartbeat\ndata: {}\n\n'
/** Non-ASCII characters, because the pieces may split them. */
const LAST_EVENTS = {
  reconnect: 'event: reconnect\ndata: {}\n\n',
  error:
    'event: error\ndata: {"code":"box_unreachable","message":"The connection to the box was lost (non-ASCII: ü 🌳)."}\n\n',
}

async function forwardStream(fault: ForwardedStream, exchange: Exchange): Promise<void> {
  const { response, request, forward, random, onSent } = exchange
  const { kind, afterBytes = Infinity, afterEvents = Infinity, seek, change } = fault
  const id = request.headers['last-event-id']
  const upstream = await forward(
    seek === undefined || id === undefined
      ? request.headers
      : { ...request.headers, 'last-event-id': seek(String(id)) },
  )
  response.writeHead(upstream.statusCode ?? 0, upstream.headers)

  /** Writes in pieces of random length, which may split events and characters. */
  async function send(bytes: Buffer): Promise<void> {
    for (let offset = 0; offset < bytes.length && !response.destroyed; ) {
      const piece = bytes.subarray(offset, offset + 1 + random.below(20_000))
      offset += piece.length
      onSent(piece.length)
      if (!response.write(piece)) await waitForDrain(response)
    }
  }

  let bytesSent = 0
  let eventsSent = 0
  for await (const original of readEvents(upstream)) {
    const changed = change === undefined ? original : change(original)
    if (changed === null) continue
    const event = Buffer.from(changed)
    if (kind !== 'complete' && (bytesSent + event.length > afterBytes || eventsSent === afterEvents)) {
      const part = event.subarray(0, Math.min(event.length - 1, Math.max(0, afterBytes - bytesSent)))
      await send(kind === 'reconnect' || kind === 'error' ? Buffer.from(LAST_EVENTS[kind]) : part)
      if (kind === 'disconnect') response.write('', () => response.destroy())
      else response.end()
      return
    }
    await send(event)
    bytesSent += event.length
    if (changed.startsWith('event:')) eventsSent += 1
    if (random.below(8) === 0) await send(Buffer.from(HEARTBEAT))
  }
  response.end()
}

/** Also resolves when the response is closed. */
const waitForDrain = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const onDone = () => {
      response.off('drain', onDone).off('close', onDone)
      resolve()
    }
    response.on('drain', onDone).on('close', onDone)
  })

/** The events and comments of the stream, each with the empty line at its end. */
async function* readEvents(upstream: IncomingMessage): AsyncGenerator<string, void, undefined> {
  let text = ''
  for await (const chunk of upstream.setEncoding('utf8') as AsyncIterable<string>) {
    const events = `${text}${chunk}`.split(/(?<=\n\n)/)
    text = events.at(-1)?.endsWith('\n\n') ? '' : (events.pop() ?? '')
    yield* events
  }
  if (text !== '') yield text
}
