// A box's events on their way to a client: as fast as the client reads, and ended with an event whatever happens.
import type { Readable } from 'node:stream'
import { eventText, namedOffsets, type Offsets, type StreamEvents } from '../../shared/api/processes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createEventFilter } from './event-filter.ts'
import type { EventWriter } from './event-writer.ts'

export type Forwarding = {
  processId: string
  /** Where the client stands. */
  from: Offsets
  /** Aborts when the coordinator is about to stop. */
  closing: AbortSignal
  /** After this long the client has to come back, in milliseconds. */
  lifeMs: number
  /** How long a client that does not read may keep its connection after the end. */
  lingerMs?: number
  /** How often a box that has nothing to tell sends a heartbeat. */
  heartbeatMs?: number
}

/** A slow line may need this long for what was on its way. */
const LINGER_MS = 30_000
/** A coordinator that stops does not wait for clients that do not read. */
const CLOSING_LINGER_MS = 1_000
/** A box is gone that was to be heard this often, and was not. */
const SILENT_HEARTBEATS = 3
/** After its last event a box ends its stream by itself, or is made to. */
const BOX_END_MS = 1_000

const event = <N extends keyof StreamEvents>(name: N, after: Offsets, data: StreamEvents[N]): string =>
  eventText(name, after, JSON.stringify(data))

/**
 * Passes the events on until the last one, or until the box breaks a rule, is gone or silent, or the time is up: then
 * the client is told by an `error` or a `reconnect`, from where it can go on. A client that leaves ends the box's stream.
 * @param client is ended, or destroyed
 */
export function forwardEvents(box: Readable, client: EventWriter, options: Forwarding): void {
  const { processId, from, closing, lifeMs, lingerMs = LINGER_MS } = options
  const { heartbeatMs = LIMITS.streamHeartbeatMs } = options
  const filter = createEventFilter(processId, from)
  let done = false
  let silent = 0

  function end(last: string | null, linger: number): void {
    if (done) return
    stop()
    if (last !== null) client.write(last)
    client.end()
    const late = setTimeout(() => client.destroy(), linger)
    client.once('close', () => clearTimeout(late))
  }
  const fail = (code: string, message: string) =>
    end(event('error', filter.reached(), { code, message }), lingerMs)
  const comeBack = (linger: number) => {
    const reached = filter.reached()
    box.destroy()
    end(event('reconnect', reached, namedOffsets(reached)), linger)
  }

  const onData = (chunk: Buffer) => {
    silent = 0
    let full = false
    for (const events of filter.push(chunk)) full = !client.write(events) || full
    const breach = filter.breach()
    if (breach !== null) {
      box.destroy()
      fail('exec_failed', breach)
    } else if (filter.ended()) {
      end(null, lingerMs)
      letEnd(box)
    } else if (full) box.pause()
  }
  const onDrain = () => box.resume()
  // Ended without its last event, or cut: either way the client can go on where it is.
  const onGone = () => fail('box_unreachable', 'The connection to the box was lost. Reopen from the last id.')
  const onClosing = () => comeBack(CLOSING_LINGER_MS)
  const onClientGone = () => {
    stop()
    box.destroy()
  }
  // Counted, not timed: what came while nobody could listen is heard before the next look.
  const pulse = setInterval(() => {
    silent = box.isPaused() ? 0 : silent + 1
    if (silent < SILENT_HEARTBEATS) return
    box.destroy()
    onGone()
  }, heartbeatMs)
  const life = setTimeout(() => comeBack(lingerMs), lifeMs)

  function stop(): void {
    done = true
    clearTimeout(life)
    clearInterval(pulse)
    closing.removeEventListener('abort', onClosing)
    client.off('drain', onDrain)
    client.off('close', onClientGone)
    box.off('data', onData)
    box.off('end', onGone)
    box.off('close', onGone)
  }

  // A broken connection is followed by 'close', on either side; whoever cut it has logged it.
  client.on('error', () => undefined)
  box.on('error', () => undefined)
  client.on('drain', onDrain)
  client.on('close', onClientGone)
  box.on('end', onGone)
  box.on('close', onGone)
  closing.addEventListener('abort', onClosing)
  if (client.destroyed) onClientGone()
  else if (box.destroyed) onGone()
  else if (closing.aborted) onClosing()
  else box.on('data', onData)
}

function letEnd(box: Readable): void {
  const late = setTimeout(() => box.destroy(), BOX_END_MS)
  box.once('close', () => clearTimeout(late))
  box.once('data', () => box.destroy())
  box.resume()
}
