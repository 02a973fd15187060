// One stream of events out of many connections: reopened where it broke off, until the reader has had enough.
import type { Edge } from '../client.ts'
import { EXIT, Failure } from '../exit-codes.ts'
import { printable } from '../output.ts'
import type { Outcome } from '../requests.ts'
import { readEvents, type StreamEvent } from './events.ts'
import { createPatience, type Patience, type PatienceOptions } from './patience.ts'

export type Resume = PatienceOptions & {
  edge: Pick<Edge, 'attempt'>
  processId: string
  /** Last-Event-ID for the next connection. */
  id(): string
  /** Answers with whether it has had enough. The next event waits until it settles. */
  take(event: StreamEvent): Promise<boolean>
  /** A connection on which nothing comes for so long is dead; absent: three heartbeats. */
  silenceMs?: number
}

/** Why a connection ended that is to be opened again. `retryAfter` is in seconds. */
type Break = { why: string; retryAfter: number | null }

const SILENCE_MS = 45_000

/**
 * Settles once `take` has had enough. Throws what `take` throws, the signal's reason, and Failure where coming back is
 * of no use: the key is not accepted, or the box or the process is not there. The first connection is judged harder:
 * a box that is not running, or an address that is none, is told at once.
 */
export async function resume(options: Resume): Promise<void> {
  const patience = createPatience(options)
  let first = true
  const onEvent = ({ name }: StreamEvent) => {
    first = false
    if (name === 'attached') patience.attached()
    else if (name !== 'error' && name !== 'reconnect') patience.progressed()
  }
  try {
    for (;;) {
      const broken = await connect(options, first, onEvent)
      if (broken === null) return
      patience.broke(broken.why)
      await pause(patience, broken, options.signal)
    }
  } finally {
    patience.close()
  }
}

/** One connection. null: the reader has had enough. */
async function connect(
  { edge, processId, id, take, signal, silenceMs = SILENCE_MS }: Resume,
  first: boolean,
  onEvent: (event: StreamEvent) => void,
): Promise<Break | null> {
  const connection = new AbortController()
  // Not AbortSignal.any: thousands of connections may come and go under the one signal.
  const leave = () => connection.abort()
  signal.addEventListener('abort', leave)
  let working = false
  const silence = setTimeout(() => {
    // Then it is the reader that is slow.
    if (working) silence.refresh()
    else connection.abort()
  }, silenceMs)
  try {
    const outcome = await edge.attempt(
      `/exec/${encodeURIComponent(processId)}/stream`,
      { encoding: 'base64' },
      { headers: { 'last-event-id': id() }, signal: connection.signal },
    )
    const refused = judge(outcome, first)
    if (!outcome.ok || refused !== null) return refused
    for await (const event of readEvents(outcome.response)) {
      working = true
      onEvent(event)
      if (event.name === 'error') return brokenBy(event.data)
      if (event.name === 'reconnect')
        return { why: 'The coordinator asked to come back later.', retryAfter: null }
      if (await take(event)) return null
      working = false
      silence.refresh()
    }
    return BROKE_OFF
  } catch (error) {
    if (signal.aborted) throw signal.reason
    // What `take` throws, and what is sent that is no stream, would come again.
    if (working || !isBreak(error)) throw error
    return error instanceof Failure ? { why: error.message, retryAfter: null } : BROKE_OFF
  } finally {
    signal.removeEventListener('abort', leave)
    clearTimeout(silence)
    connection.abort()
  }
}

const BROKE_OFF: Break = { why: 'The connection broke off.', retryAfter: null }

/** null: it is a stream. Throws where coming back is of no use. */
function judge(outcome: Outcome, first: boolean): Break | null {
  if (outcome.ok) {
    if (/^text\/event-stream\b/.test(outcome.response.headers['content-type'] ?? '')) return null
    const why = 'Something answered, but not as a coordinator does.'
    if (first) throw new Failure(EXIT.refused, why)
    return { why, retryAfter: null }
  }
  const { failure, status, retryAfter } = outcome
  if (status >= 500 || status === 429 || status === 408) return { why: failure.message, retryAfter }
  // A refusal without a code is not the coordinator's: what stands in front of one that restarts says such things.
  const passes = failure.code === null || failure.code === 'box_not_running'
  if (!first && passes) return { why: failure.message, retryAfter }
  throw failure
}

function brokenBy({ code, message }: { code: string; message: string }): Break {
  if (code === 'not_found') throw new Failure(EXIT.notFound, printable(message), { code })
  return { why: printable(message), retryAfter: null }
}

/** A broken connection has an error of the system; a defect of this command has none. */
const isBreak = (error: unknown): error is Error =>
  error instanceof Failure ? error.exitCode === EXIT.unreachable : error instanceof Error && 'code' in error

async function pause(patience: Patience, { retryAfter }: Break, signal: AbortSignal): Promise<void> {
  await patience.wait(retryAfter).catch((error) => {
    throw signal.aborted ? signal.reason : error
  })
}
