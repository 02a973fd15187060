// Sends requests to one box, with a ticket. The ticket is in memory only, and is renewed before it expires.
import type { CreateTicketResponse } from '../../shared/api/tickets.ts'
import { createSend, type Fetch, fetchSuccessful, type Send } from './send.ts'

export type BoxClientOptions = {
  /** The URL of the coordinator, with a slash at its end. */
  base: string
  boxId: string
  fetch: Fetch
  createTicket(): Promise<CreateTicketResponse>
  /** The time of the coordinator, in milliseconds since the epoch. */
  getTime(): number
}

export type BoxClient = {
  /** The URL below which the routes of the box are, with a slash at its end. */
  readonly root: string
  /** Returns a ticket that is valid for at least a minute. */
  getTicket(): Promise<string>
  /** The ticket was refused: the next request gets another one. */
  discardTicket(secret: string): void
  /** Rejects with RequestError. */
  send: Send
  /** The response of a stream or of a file. Rejects with RequestError, also for an error response. */
  open(path: string, init?: RequestInit): Promise<Response>
}

const RENEWAL_MS = 60_000

export function createBoxClient({ base, boxId, fetch, createTicket, getTime }: BoxClientOptions): BoxClient {
  const root = new URL(`v1/box/${encodeURIComponent(boxId)}/`, base).href
  let current: Promise<CreateTicketResponse> | null = null
  let currentSecret = ''
  let expiresAt = Number.POSITIVE_INFINITY

  async function getTicket(): Promise<string> {
    if (current === null || expiresAt - getTime() < RENEWAL_MS) {
      const created = createTicket()
      current = created
      currentSecret = ''
      expiresAt = Number.POSITIVE_INFINITY
      created.then(
        ({ ticket, secret }) => {
          if (current !== created) return
          currentSecret = secret
          expiresAt = Date.parse(ticket.expiresAt)
        },
        () => {
          if (current === created) current = null
        },
      )
    }
    return (await current).secret
  }

  function discardTicket(secret: string): void {
    // Another request may have renewed it.
    if (secret === currentSecret) current = null
  }

  /** Repeats a refused request once: the ticket may have been revoked, with nothing done. */
  async function fetchWithTicket(url: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    const secret = await getTicket()
    const run = (ticket: string) => {
      const headers = new Headers(init.headers)
      headers.set('authorization', `Bearer ${ticket}`)
      // The cookie of the session is not for the box.
      return fetch(url, { ...init, headers, credentials: 'omit' })
    }
    const response = await run(secret)
    if (response.status !== 401) return response
    discardTicket(secret)
    return run(await getTicket())
  }

  return {
    root,
    getTicket,
    discardTicket,
    send: createSend(fetchWithTicket, root),
    open: (path, init = {}) => fetchSuccessful(fetchWithTicket, new URL(path, root), init),
  }
}
