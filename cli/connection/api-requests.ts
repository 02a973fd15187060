// Requests to the coordinator: adds the credential and the version, translates errors, retries after a 429.

import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { VERSION } from '../../shared/version.ts'
import type { CliError } from '../output/exit-codes.ts'
import { toResponseError, toUnreachableError } from './api-errors.ts'
import type { CoordinatorConfig } from './find-coordinator.ts'
import { type RequestBody, readBody, sendRequest } from './http-request.ts'
import { type TraceResult, traceRequest } from './trace.ts'

const MAX_ATTEMPTS = 5
/** Seconds. A longer Retry-After is reported to the user instead. */
const MAX_RETRY_AFTER = 60

export type ApiRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body?: RequestBody | undefined
}

/** The response of one attempt; `ok` means 2xx. `retryAfter` is in seconds. */
export type AttemptResult = { ok: true; response: IncomingMessage } | FailedAttempt
/** The result of one attempt to open a WebSocket, which is paused. */
export type ConnectResult = { ok: true; socket: WebSocket } | FailedAttempt
export type FailedAttempt = { ok: false; error: CliError; status: number; retryAfter: number | null }

/** The functions throw CliError, or the signal's reason once it is aborted. */
export function createApiRequests(config: CoordinatorConfig, signal: AbortSignal) {
  const defaultHeaders = { ...getCredentialHeaders(config), [CLI_VERSION_HEADER]: VERSION }

  /** Traces a request and translates its errors. */
  async function observe<T>(
    method: string,
    url: string,
    send: () => Promise<T>,
    toTraceResult: (result: T) => TraceResult,
  ): Promise<T> {
    const trace = traceRequest(method, url)
    try {
      config.assertRunning?.()
      const result = await send()
      trace(toTraceResult(result))
      return result
    } catch (error) {
      trace(error as Error)
      throw signal.aborted ? signal.reason : toUnreachableError(error, config, url)
    }
  }

  async function sendOnce({ method, url, headers, body }: ApiRequest): Promise<AttemptResult> {
    const request = { method, url, headers: { ...defaultHeaders, ...headers }, body, signal }
    const response = await observe(
      method,
      url,
      () => sendRequest(request),
      (response) => response,
    )
    const { statusCode: status = 0 } = response
    return status >= 200 && status < 300 ? { ok: true, response } : readFailure(response, url)
  }

  async function readFailure(response: IncomingMessage, url: string): Promise<FailedAttempt> {
    const { statusCode: status = 0 } = response
    const error = toResponseError(status, await read(response, url), config)
    return { ok: false, error, status, retryAfter: parseRetryAfter(response) }
  }

  /** Opens a WebSocket, without retries. The signal also closes it. */
  async function connect(url: string): Promise<ConnectResult> {
    // Imported here: most commands open no WebSocket.
    const { openWebSocket } = await import('./open-websocket.ts')
    const { socket, response } = await observe(
      'GET',
      url,
      () => openWebSocket({ url, headers: defaultHeaders, signal }),
      ({ response }) => response ?? { statusCode: 101 },
    )
    return socket === null ? readFailure(response, url) : { ok: true, socket }
  }

  /** Resolves with a 2xx response whose body is unread. `createBody` is called for each attempt. */
  async function send(
    method: string,
    url: string,
    headers: Record<string, string>,
    createBody?: (() => RequestBody | Promise<RequestBody>) | null,
  ): Promise<IncomingMessage> {
    for (let attempt = 1; ; attempt++) {
      const result = await sendOnce({ method, url, headers, body: await createBody?.() })
      if (result.ok) return result.response
      const delay = result.status === 429 ? (result.retryAfter ?? 1) : Number.NaN
      if (attempt >= MAX_ATTEMPTS || !(delay >= 0 && delay <= MAX_RETRY_AFTER)) throw result.error
      // Jitter: clients that got the same Retry-After should not retry at the same moment.
      await sleep(delay * 1000 + Math.random() * 500, undefined, { signal })
    }
  }

  async function read(response: IncomingMessage, url: string): Promise<Buffer> {
    try {
      return await readBody(response)
    } catch (error) {
      throw signal.aborted ? signal.reason : toUnreachableError(error, config, url)
    }
  }

  async function requestJson<T>(
    method: string,
    url: string,
    value?: unknown,
    moreHeaders: Record<string, string> = {},
  ): Promise<T> {
    const bytes = value === undefined ? undefined : Buffer.from(JSON.stringify(value))
    const headers = { ...(bytes && { 'content-type': 'application/json' }), ...moreHeaders }
    const response = await send(method, url, headers, bytes && (() => bytes))
    const body = await read(response, url)
    // Callers of routes that respond with 204 use T = undefined.
    if (response.statusCode === 204) return undefined as T
    try {
      return JSON.parse(body.toString()) as T
    } catch {
      throw toResponseError(response.statusCode ?? 0, body, config)
    }
  }

  return { sendOnce, connect, send, requestJson }
}

function getCredentialHeaders({ key, profile }: CoordinatorConfig): Record<string, string> {
  if (key !== null) return { authorization: `Bearer ${key}` }
  return profile?.session === undefined ? {} : { cookie: `${SESSION_COOKIE}=${profile.session}` }
}

/** Seconds; null for the date form, which the coordinator does not send. */
function parseRetryAfter({ headers }: IncomingMessage): number | null {
  const text = headers['retry-after'] ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : null
}
