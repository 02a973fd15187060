// Forwards an agent's stream frames to a client as server-sent events, and always ends with a final event.
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Offsets } from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { decodeFrame, InvalidFrameError, isOutput, type StreamFrame } from '../../shared/stream-frames.ts'
import { createAgentProtocolError } from '../agents/tunnel/agent-errors.ts'
import { isAgentErrorCode } from './agent-response.ts'
import { positionOf, type RenderOptions, renderEvent, renderFrame } from './server-sent-events.ts'

export type ForwardOptions = RenderOptions & {
  processId: string
  /** The client's position. */
  from: Offsets
  /** Aborts when the coordinator is about to stop. */
  closing: AbortSignal
  /** Aborts with an ApiError when the client's credential may no longer read the stream. */
  signal?: AbortSignal
  /** After this time the client has to reconnect. Default: 10 minutes (spec §4.14). */
  lifetimeMs?: number
  /** How long a client that does not read may stay connected after the final event. Default: 30 s. */
  lingerMs?: number
  /** Interval of the agent's heartbeats. Default: 15 s (spec §4.14). */
  heartbeatMs?: number
}

/** The linger time while the coordinator stops. */
const CLOSING_LINGER_MS = 1_000
/** How long the agent may take to close its connection after the final frame. */
const CLOSE_TIMEOUT_MS = 1_000
/** An agent that misses this many heartbeats is unreachable. */
const MISSED_HEARTBEATS = 3

/** An agent sends one attached frame, and heartbeats for 10 minutes. */
const MAX_CONTROL_FRAMES = 100

const FINAL_EVENTS: ReadonlySet<StreamFrame['event']> = new Set(['reconnect', 'exit', 'error'])

/** Why a stream ends without a final frame from the agent. */
class Reconnect extends Error {}
class ClientDisconnected extends Error {}

/**
 * Forwards frames until the final one. When the agent violates the protocol, disconnects or stays silent, the client gets
 * an `error` event, and also when its credential may no longer read the stream; at the end of the lifetime, or when the coordinator stops, a `reconnect` event. Both carry the position
 * to resume from. A client that disconnects closes the agent's connection.
 * @param messages Buffers, one frame each; closed in every case
 * @param client ended, or destroyed after the linger time
 */
export async function forwardStream(
  messages: Readable,
  client: Writable,
  options: ForwardOptions,
): Promise<void> {
  const { closing, signal, lifetimeMs = LIMITS.streamReconnectMs, lingerMs = 30_000 } = options
  const { heartbeatMs = LIMITS.streamHeartbeatMs } = options
  const reader = createFrameReader(options.processId, options.from)
  let silentHeartbeats = 0
  let isClientSlow = false

  // Destroying the source makes the loop below throw the reason.
  const stop = (reason: Error) => messages.destroy(reason)
  const onClosing = () => stop(new Reconnect())
  const onClientClose = () => stop(new ClientDisconnected())
  const onAbort = () => stop(signal?.reason instanceof ApiError ? signal.reason : new ClientDisconnected())
  closing.addEventListener('abort', onClosing)
  signal?.addEventListener('abort', onAbort)
  client.on('close', onClientClose)
  client.on('error', () => undefined)
  messages.on('error', () => undefined)
  const lifetime = setTimeout(onClosing, lifetimeMs)
  // Counts intervals instead of comparing times: frames that arrived while the event loop was blocked are read first.
  const silenceCheck = setInterval(() => {
    silentHeartbeats = isClientSlow ? 0 : silentHeartbeats + 1
    if (silentHeartbeats >= MISSED_HEARTBEATS) stop(unreachable())
  }, heartbeatMs)

  let finalEvent: string | undefined
  try {
    if (client.destroyed) throw new ClientDisconnected()
    if (signal?.reason instanceof ApiError) throw signal.reason
    if (closing.aborted) throw new Reconnect()
    for await (const message of messages.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      silentHeartbeats = 0
      const frame = reader.read(message)
      if (FINAL_EVENTS.has(frame.event)) {
        finalEvent = renderFrame(frame, options)
        break
      }
      if (!client.write(renderFrame(frame, options))) {
        isClientSlow = true
        await waitForDrain(client, messages)
        isClientSlow = false
      }
    }
    finalEvent ??= renderFailure(unreachable(), reader.position())
  } catch (error) {
    if (!(error instanceof ClientDisconnected)) finalEvent = renderFailure(error, reader.position())
  } finally {
    clearTimeout(lifetime)
    clearInterval(silenceCheck)
    closing.removeEventListener('abort', onClosing)
    signal?.removeEventListener('abort', onAbort)
    client.off('close', onClientClose)
    closeSource(messages)
  }
  if (finalEvent === undefined || client.destroyed) return
  client.end(finalEvent)
  const linger = setTimeout(() => client.destroy(), closing.aborted ? CLOSING_LINGER_MS : lingerMs)
  client.once('close', () => clearTimeout(linger))
}

const unreachable = () =>
  new ApiError('box_unreachable', 'The connection to the box was lost. Reconnect with Last-Event-ID.')

function renderFailure(error: unknown, position: Offsets): string {
  if (error instanceof Reconnect) {
    const { stdout, stderr } = position
    return renderEvent('reconnect', position, { stdoutOffset: stdout, stderrOffset: stderr })
  }
  const { code, message } = error instanceof ApiError ? error : unreachable()
  return renderEvent('error', position, { code, message })
}

/** Rejects when the source is destroyed meanwhile: the client disconnected, or the stream has to end. */
async function waitForDrain(client: Writable, messages: Readable): Promise<void> {
  if (messages.destroyed) throw messages.errored ?? unreachable()
  const stopped = new AbortController()
  const onClose = () => stopped.abort(messages.errored ?? unreachable())
  messages.once('close', onClose)
  try {
    await once(client, 'drain', { signal: stopped.signal })
  } catch {
    throw stopped.signal.aborted ? stopped.signal.reason : new ClientDisconnected()
  } finally {
    messages.off('close', onClose)
  }
}

/** Waits briefly for the agent to close the connection; it must not send more. */
function closeSource(messages: Readable): void {
  const timeout = setTimeout(() => messages.destroy(), CLOSE_TIMEOUT_MS)
  messages.once('close', () => clearTimeout(timeout))
  messages.once('data', () => messages.destroy())
  if (messages.destroyed) clearTimeout(timeout)
}

/** Decodes the frames of one stream and checks their order. */
function createFrameReader(processId: string, from: Offsets) {
  let position = from
  let isAttached = false
  let controlFrames = 0

  function check(frame: StreamFrame): void {
    if (!isOutput(frame) && ++controlFrames > MAX_CONTROL_FRAMES)
      throw new InvalidFrameError(`more than ${MAX_CONTROL_FRAMES} frames without output`)
    const next = positionOf(frame)
    if (frame.event === 'attached') {
      if (isAttached) throw new InvalidFrameError('a second attached frame')
      if (frame.processId !== processId) throw new InvalidFrameError('the stream of another process')
    } else if (!isAttached && frame.event !== 'error') {
      throw new InvalidFrameError(`a ${frame.event} frame before attached`)
    } else if (isAttached && (next.stdout < position.stdout || next.stderr < position.stderr)) {
      throw new InvalidFrameError('a frame with a decreasing offset')
    }
    if (isOutput(frame) && next[frame.event] - frame.bytes.length < position[frame.event])
      throw new InvalidFrameError('output that was sent before')
  }

  return {
    position: () => position,
    /** @throws ApiError exec_failed */
    read(message: Buffer): StreamFrame {
      try {
        const frame = decodeFrame(message)
        check(frame)
        isAttached = true
        position = positionOf(frame)
        if (frame.event !== 'error' || isAgentErrorCode(frame.code)) return frame
        return { ...frame, code: 'exec_failed' }
      } catch (error) {
        if (!(error instanceof InvalidFrameError)) throw error
        throw createAgentProtocolError(`The agent violated the stream protocol: ${error.message}.`)
      }
    },
  }
}
