// Follows the output of a detached command: server-sent events that are resumed by offset after a disconnect.
import type { Offsets, StreamEvents } from '../../shared/api/processes.ts'
import { RequestError } from './errors.ts'
import { readEvents } from './read-events.ts'

export type OutputStream = 'stdout' | 'stderr'

export type FollowOptions = {
  /** Requests the stream. Rejects with RequestError. */
  open(path: string, init: RequestInit): Promise<Response>
  processId: string
  from: Offsets
  signal: AbortSignal
  onOutput(stream: OutputStream, text: string, nextOffset: number): void
  /** `skipped` bytes of the stream are not stored any more. */
  onSkipped(stream: OutputStream, skipped: number): void
  /** null: the stream is connected. */
  onConnection(error: RequestError | null): void
  /** Waits. Rejects when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  random(): number
}

/** For the head of the response. */
const CONNECT_MS = 45_000
const BACKOFF = { baseMs: 500, maxMs: 15_000 }
/** A new request cannot help. */
const FINAL_STATUSES = [400, 401, 403, 404, 409, 410]

/** Resolves when the command has exited, and with the reason of the signal when it is aborted. Rejects when no new request can help. */
export async function followOutput(options: FollowOptions): Promise<void> {
  const { from, signal, onConnection, wait, random } = options
  let position = from
  for (let failures = 0; ; failures += 1) {
    const error = await readStream(options, position, (next) => {
      position = next
      failures = 0
    })
    if (error === null || signal.aborted) return
    if (FINAL_STATUSES.includes(error.status)) throw error
    onConnection(error)
    const delay = Math.min(BACKOFF.baseMs * 2 ** failures, BACKOFF.maxMs)
    await wait(delay * (0.5 + random() / 2), signal)
  }
}

/** Resolves with null after the exit, else with why the connection ended. */
async function readStream(
  { open, processId, signal, onOutput, onSkipped, onConnection }: FollowOptions,
  from: Offsets,
  onPosition: (position: Offsets) => void,
): Promise<RequestError | null> {
  const connecting = new AbortController()
  const timer = setTimeout(() => connecting.abort(), CONNECT_MS)
  let position = from
  let end: RequestError | null = LOST
  try {
    const path = `exec/${processId}/stream?stdoutOffset=${from.stdout}&stderrOffset=${from.stderr}`
    const { body } = await open(path, {
      headers: { accept: 'text/event-stream' },
      signal: AbortSignal.any([signal, connecting.signal]),
    })
    clearTimeout(timer)
    if (body === null) return LOST
    await readEvents(body, ({ event, data }) => {
      const fields: unknown = JSON.parse(data)
      if (event === 'attached') onConnection(null)
      else if (event === 'stdout' || event === 'stderr') {
        const { data: text, offset, nextOffset } = fields as StreamEvents['stdout']
        const skipped = offset - position[event]
        if (skipped > 0) onSkipped(event, skipped)
        position = { ...position, [event]: nextOffset }
        onPosition(position)
        onOutput(event, text, nextOffset)
      } else if (event === 'exit') end = null
      else if (event === 'error') {
        const { code, message } = fields as StreamEvents['error']
        end = new RequestError(code, message, code === 'box_not_running' ? 409 : 503)
      }
      return end !== LOST
    })
    return end
  } catch (error) {
    return error instanceof RequestError ? error : LOST
  } finally {
    clearTimeout(timer)
  }
}

const LOST = new RequestError('no_response', 'The connection to the output is lost.', 0)
