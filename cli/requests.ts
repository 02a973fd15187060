// Requests as every route takes them: key, version, the refusals in words, and the wait that a 429 asks for.
import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { CLI_VERSION_HEADER } from '../shared/protocol.ts'
import type { Failure } from './exit-codes.ts'
import { type Body, exchange, readAll } from './http.ts'
import type { Place } from './locate.ts'
import { refusal, unreachable } from './refusals.ts'
import { CLI_VERSION } from './version.ts'

/** How often a 429 is waited out. */
const ATTEMPTS = 5
/** Seconds; a Retry-After beyond this is for the person to wait. */
const LONGEST_WAIT = 60

export type Sent = { method: string; url: string; headers: Record<string, string>; body?: Body | undefined }

/** What one attempt came to, when there was an answer at all; `retryAfter` is in seconds. */
export type Outcome =
  | { ok: true; response: IncomingMessage }
  | { ok: false; failure: Failure; status: number; retryAfter: number | null }

/** What they throw is a Failure, or the signal's reason once it is raised. */
export function createRequests(place: Place, signal: AbortSignal) {
  const ours = { authorization: `Bearer ${place.key}`, [CLI_VERSION_HEADER]: CLI_VERSION }

  async function once({ method, url, headers, body }: Sent): Promise<Outcome> {
    const response = await exchange({ method, url, headers: { ...ours, ...headers }, body, signal }).catch(
      (error) => {
        throw signal.aborted ? signal.reason : unreachable(error, place)
      },
    )
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return { ok: true, response }
    const failure = refusal(status, await read(response), place)
    return { ok: false, failure, status, retryAfter: retryAfterOf(response) }
  }

  /** Settles with an answer of 2xx. */
  async function send(method: string, url: string, type: string | null, body?: () => Body) {
    for (let attempt = 1; ; attempt++) {
      const headers: Record<string, string> = type === null ? {} : { 'content-type': type }
      const outcome = await once({ method, url, headers, body: body?.() })
      if (outcome.ok) return outcome.response
      const wait = outcome.status === 429 ? (outcome.retryAfter ?? 1) : Number.NaN
      if (attempt >= ATTEMPTS || !(wait >= 0 && wait <= LONGEST_WAIT)) throw outcome.failure
      // Others were told the same: not all of them should come back at the same moment.
      await sleep(wait * 1000 + Math.random() * 500, undefined, { signal })
    }
  }

  async function read(response: IncomingMessage): Promise<Buffer> {
    try {
      return await readAll(response)
    } catch (error) {
      throw signal.aborted ? signal.reason : unreachable(error, place)
    }
  }

  async function json<T>(method: string, url: string, value?: unknown): Promise<T> {
    const bytes = value === undefined ? undefined : Buffer.from(JSON.stringify(value))
    const response = await send(method, url, bytes ? 'application/json' : null, bytes && (() => bytes))
    const answer = await read(response)
    // As the routes that answer with it are typed.
    if (response.statusCode === 204) return undefined as T
    try {
      return JSON.parse(answer.toString()) as T
    } catch {
      throw refusal(response.statusCode ?? 0, answer, place)
    }
  }

  return { once, send, json }
}

/** In seconds; the form that is a date is not ours. */
function retryAfterOf({ headers }: IncomingMessage): number | null {
  const text = headers['retry-after'] ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : null
}
