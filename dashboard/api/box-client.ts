// Sends requests to one box, with a ticket. The ticket is in memory only, and is renewed before it expires.
import { type CallInput, type CallOptions, createCalls } from '../../client/http/calls.ts'
import type {
  OpenResponse,
  Transport,
  TransportRequest,
  TransportResponse,
} from '../../client/http/transport.ts'
import type { CreateTicketResponse } from '../../shared/api/tickets.ts'
import { withUploads } from './upload-transport.ts'

export type BoxClientOptions = {
  /** The URL of the coordinator, with a slash at its end. */
  base: string
  boxId: string
  /** Sends no cookie: that of the session is not for the box. */
  transport: Transport
  createTicket(): Promise<CreateTicketResponse>
  /** The time of the coordinator, in milliseconds since the epoch. */
  getTime(): number
}

export type BoxClient = {
  /** The URL below which the routes of the box are, with a slash at its end. */
  readonly root: string
  /** Returns a ticket that is valid for at least a minute. */
  getTicket(): Promise<string>
  /** Rejects with a BoxwoodError. */
  send<Result>(
    method: string,
    path: string,
    input?: Pick<CallInput, 'body' | 'isRaw' | 'onProgress'>,
    options?: CallOptions,
  ): Promise<Result>
  /** The response of a stream or of a file. Rejects with a BoxwoodError, also for an error response. */
  open(path: string, options?: CallOptions): Promise<OpenResponse>
}

const RENEWAL_MS = 60_000
/** A user does not wait longer for a request that is repeated. */
export const RETRY_MS = 5_000

export function createBoxClient(options: BoxClientOptions): BoxClient {
  const { base, boxId, transport, createTicket, getTime } = options
  const path = `/v1/box/${encodeURIComponent(boxId)}/`
  const { send: sendOnce } = withUploads(transport)
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
  async function sendWithTicket(request: TransportRequest): Promise<TransportResponse> {
    const secret = await getTicket()
    const run = (ticket: string) => {
      const headers = { ...request.headers, authorization: `Bearer ${ticket}` }
      return sendOnce({ ...request, headers })
    }
    const response = await run(secret)
    if (response.status !== 401) return response
    discardTicket(secret)
    return run(await getTicket())
  }

  const calls = createCalls({
    url: base,
    edgeUrl: base,
    apiKey: null,
    transport: { ...transport, send: sendWithTicket },
    retryMs: RETRY_MS,
    traceparent: () => undefined,
  })
  return {
    root: base.replace(/\/$/, '') + path,
    getTicket,
    // What changes something may take longer than a response usually does.
    send: (method, route, input = {}, callOptions = {}) =>
      calls.json(method, path + route, { ...input, isSlow: method !== 'GET' }, callOptions),
    open: (route, callOptions) => calls.open('GET', path + route, { isResumed: true }, callOptions),
  }
}
