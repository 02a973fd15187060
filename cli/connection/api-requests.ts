// Requests to the coordinator, by the client of programs: adds the credential and the version, and translates errors.
import type { IncomingMessage } from 'node:http'
import type { WebSocket } from 'ws'
import { type CallInput, type CallOptions, createCalls, readText } from '../../client/http/calls.ts'
import { BoxwoodError, ConnectionError, parseErrorResponse } from '../../client/http/errors.ts'
import type { OpenResponse, Transport } from '../../client/http/transport.ts'
import { CLI_VERSION_HEADER } from '../../shared/protocol.ts'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { VERSION } from '../../shared/version.ts'
import { isUnreachable, toApiError, toUnreachableError } from './api-errors.ts'
import { type CoordinatorConfig, getRootUrl } from './find-coordinator.ts'
import { getHeaders, sendRequest } from './http-request.ts'
import { type TraceResult, traceRequest } from './trace.ts'

const MAX_ATTEMPTS = 5
/** A longer Retry-After is reported to the user instead. */
const MAX_RETRY_AFTER_MS = 60_000

export type RequestOptions = {
  signal: AbortSignal
  /** The URL of the edge, for the requests to boxes. */
  edgeUrl?: string
}

/** The functions throw CliError, or the signal's reason once it is aborted. Paths are those of the API, such as `/api/v1/me`. */
export function createApiRequests(config: CoordinatorConfig, { signal, edgeUrl }: RequestOptions) {
  const root = getRootUrl(config.baseUrl)
  const base = edgeUrl ?? root
  const defaultHeaders = { ...getCredentialHeaders(config), [CLI_VERSION_HEADER]: VERSION }

  /** Traces a request. */
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
      throw error
    }
  }

  const send: Transport['send'] = (request) => {
    const { method, url, headers } = request
    return observe(
      method,
      url,
      () => sendRequest({ ...request, headers: { ...defaultHeaders, ...headers } }),
      (response) => response,
    ).catch((error: unknown) => {
      throw toUnreachableError(error, config, url)
    })
  }

  const calls = createCalls({
    url: root,
    edgeUrl: base,
    apiKey: null,
    transport: { send },
    retryMs: Number.POSITIVE_INFINITY,
    traceparent: () => undefined,
    isRepeated: ({ status, retryAfterMs }, attempts) =>
      status === 429 && attempts < MAX_ATTEMPTS && (retryAfterMs ?? 0) <= MAX_RETRY_AFTER_MS,
  })

  function translate(error: unknown): unknown {
    if (signal.aborted) return signal.reason
    if (!(error instanceof BoxwoodError)) return error
    return error.status === 0 ? toUnreachableError(error.cause, config, base) : toApiError(error, config)
  }

  const rethrow = (error: unknown) => {
    throw translate(error)
  }

  /** Opens a WebSocket once, without retries. Rejects with BoxwoodError, which `translate` translates. */
  async function connect(path: string): Promise<WebSocket> {
    // Imported here: most commands open no WebSocket.
    const { openWebSocket } = await import('./open-websocket.ts')
    const url = base + path
    const { socket, response } = await observe(
      'GET',
      url,
      () => openWebSocket({ url, headers: defaultHeaders, signal }),
      ({ response }) => (response === null ? { status: 101 } : toTraceResult(response)),
    ).catch(rethrowUnreachable(url))
    if (socket !== null) return socket
    const text = await readText({ body: response }).catch(rethrowUnreachable(url))
    throw parseErrorResponse(response.statusCode ?? 0, text, getHeaders(response))
  }

  const rethrowUnreachable = (url: string) => (error: unknown) => {
    signal.throwIfAborted()
    const cause = toUnreachableError(error, config, url)
    throw isUnreachable(cause)
      ? new ConnectionError({ code: 'no_response', message: cause.message, status: 0, cause })
      : cause
  }

  return {
    json: <T>(method: string, path: string, input: CallInput = {}, options: CallOptions = {}): Promise<T> =>
      calls.json<T>(method, path, { ...input, isSlow: true }, { signal, ...options }).catch(rethrow),
    open: (
      method: string,
      path: string,
      input: CallInput = {},
      options: CallOptions = {},
    ): Promise<OpenResponse> =>
      calls.open(method, path, { ...input, isSlow: true }, { signal, ...options }).catch(rethrow),
    /** Opens a stream of events once, without retries. Rejects with BoxwoodError, which `translate` translates. */
    openStream: (
      path: string,
      input: CallInput,
      { headers, ...options }: CallOptions,
    ): Promise<OpenResponse> =>
      calls.open(
        'GET',
        path,
        { ...input, isResumed: true },
        { signal, ...options, headers: { accept: 'text/event-stream', ...headers } },
      ),
    /** Another error than BoxwoodError is returned as it is. */
    translate,
    connect,
  }
}

const toTraceResult = (response: IncomingMessage): TraceResult => ({
  status: response.statusCode ?? 0,
  headers: getHeaders(response),
})

function getCredentialHeaders({ key, profile }: CoordinatorConfig): Record<string, string> {
  if (key !== null) return { authorization: `Bearer ${key}` }
  return profile?.session === undefined ? {} : { cookie: `${SESSION_COOKIE}=${profile.session}` }
}
