// Calls of the routes: the credential, the time limit, and repetitions of requests that may be repeated.
import { BoxwoodError, ConnectionError, parseErrorResponse, parseJson, TimeoutError } from './errors.ts'
import type { Socket, SocketHandlers } from './socket.ts'
import {
  isIterable,
  type OpenResponse,
  type RequestBody,
  type Transport,
  type TransportResponse,
} from './transport.ts'

/** Options of each call. */
export type CallOptions = {
  /** Aborts the call: it rejects with the reason. */
  signal?: AbortSignal
  /**
   * How long the whole call may take, with its repetitions, in milliseconds; Infinity: as long as it takes. Default: 30 s for a response, and no limit
   * for output that flows and for what the coordinator waits for.
   */
  timeoutMs?: number
  /** Of a call that creates something: a repetition with the same key has no other effect. Default: a key of the call. */
  idempotencyKey?: string
  /** The trace context (W3C) of the caller. Default: that of the client. */
  traceparent?: string
  /** Further headers. */
  headers?: Record<string, string>
}

export type CallInput = {
  query?: object | undefined
  body?: unknown
  /** The body is a RequestBody that is sent as it is, or a function that creates one for each attempt. Default: it is sent as JSON. */
  isRaw?: boolean
  /** The route accepts an Idempotency-Key. */
  isIdempotent?: boolean
  /** The response may take longer than the usual time. */
  isSlow?: boolean
  /** Gets the bytes of the body that were sent, where the transport knows it. */
  onProgress?: (bytes: number) => void
  /** The caller repeats the request itself, from where the response was interrupted. */
  isResumed?: boolean
}

export type Calls = {
  /** Resolves with the JSON of the response, and with undefined where it has no body. */
  json<T>(method: string, path: string, input?: CallInput, options?: CallOptions): Promise<T>
  /** Resolves with a 2xx response, whose body is unread. */
  open(method: string, path: string, input?: CallInput, options?: CallOptions): Promise<OpenResponse>
  /** Opens a WebSocket, which the signal also closes. */
  connect(path: string, handlers: SocketHandlers, input?: CallInput, options?: CallOptions): Promise<Socket>
}

export type CallsOptions = {
  /** The URL of the coordinator, with a path if it has one. */
  url: string
  /** The URL of the edge. Default: the coordinator names it. */
  edgeUrl?: string
  /** null: the transport has another credential. */
  apiKey: string | null
  transport: Transport
  /** How long the pauses before repetitions of a call may be together, in milliseconds. */
  retryMs: number
  traceparent: () => string | undefined
  /** Whether a failure that may be repeated is repeated. `attempts`: how many there were. Default: each one. */
  isRepeated?(failure: BoxwoodError, attempts: number): boolean
}

export const RESPONSE_MS = 30_000
/** Pauses where the response names none. */
const BACKOFF_MS = { first: 200, max: 5_000 }
/** No name and no start of an id. */
const NO_BOX = '-'
/** That of setTimeout(), 24.8 days. */
const MAX_TIMER_MS = 0x7fffffff
/** The paths of boxes, which the edge serves. */
const EDGE_PATH = '/v1/box/'
/** Responses of a proxy or coordinator that has not executed a request, or of which it is not known. */
const UNAVAILABLE = new Set([502, 503, 504])

export function createCalls(options: CallsOptions): Calls {
  const { apiKey, transport, retryMs, traceparent, isRepeated = () => true } = options
  const root = options.url.replace(/\/+$/, '')
  let edge = options.edgeUrl === undefined ? undefined : Promise.resolve(options.edgeUrl.replace(/\/+$/, ''))

  /** The coordinator names the URL of its edge. */
  function findEdge(): Promise<string> {
    // Without the boxes, of which there may be many.
    const input = { query: { box: NO_BOX } }
    edge ??= json<{ edge?: { url: string } }>('GET', '/api/v1/me', input).then(
      ({ edge }) => (edge?.url ?? root).replace(/\/+$/, ''),
      (error: unknown) => {
        edge = undefined
        throw error
      },
    )
    return edge
  }

  async function toUrl(
    path: string,
    query: object | undefined,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const base = path.startsWith(EDGE_PATH) ? await beforeAbort(findEdge(), signal) : root
    return base + path + formatQuery(query)
  }

  function toHeaders(input: CallInput, call: CallOptions): Record<string, string> {
    const trace = call.traceparent ?? traceparent()
    return {
      ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }),
      ...(input.body !== undefined && {
        'content-type': input.isRaw ? 'application/octet-stream' : 'application/json',
      }),
      ...(input.isIdempotent && { 'idempotency-key': call.idempotencyKey ?? createRandomId() }),
      ...(trace !== undefined && { traceparent: trace }),
      ...call.headers,
    }
  }

  /** Runs the attempts of a call. `read` gets a 2xx response, and its result is that of the call. */
  async function run<T>(
    method: string,
    path: string,
    input: CallInput,
    call: CallOptions,
    {
      timeoutMs,
      read,
    }: { timeoutMs: number; read: (response: TransportResponse, limit: TimeLimit) => Promise<T> },
  ): Promise<T> {
    const limit = createTimeLimit(timeoutMs, call.signal)
    const { signal } = limit
    try {
      signal.throwIfAborted()
      const url = await toUrl(path, input.query, signal)
      const headers = toHeaders(input, call)
      const createBody = toBody(input)
      const canRepeat = method === 'GET' || input.isIdempotent === true
      let waitedMs = 0
      for (let attempt = 0; ; attempt += 1) {
        let failure: BoxwoodError
        signal.throwIfAborted()
        const body = await createBody?.()
        const canResend = body === undefined || typeof input.body === 'function' || !isIterable(body)
        try {
          const response = await transport.send({
            method,
            url,
            headers,
            ...(body !== undefined && { body }),
            ...(input.onProgress !== undefined && { onProgress: input.onProgress }),
            signal,
          })
          if (response.status >= 200 && response.status < 300) return await read(response, limit)
          failure = parseErrorResponse(response.status, await readText(response), response.headers)
        } catch (error) {
          signal.throwIfAborted()
          if (error instanceof BoxwoodError) throw error
          failure = toConnectionError(error)
        }
        const pauseMs = getPause(failure, attempt, canRepeat)
        if (pauseMs === null || !canResend || input.isResumed || waitedMs + pauseMs > retryMs) throw failure
        if (!isRepeated(failure, attempt + 1)) throw failure
        waitedMs += pauseMs
        await wait(pauseMs, signal)
      }
    } catch (error) {
      limit.clear()
      throw error
    }
  }

  function json<T>(method: string, path: string, input: CallInput = {}, call: CallOptions = {}): Promise<T> {
    const timeoutMs = checkTimeout(call.timeoutMs) ?? (input.isSlow ? Number.POSITIVE_INFINITY : RESPONSE_MS)
    return run(method, path, input, call, {
      timeoutMs,
      async read(response, { clear }) {
        const text = await readText(response)
        clear()
        if (response.status === 204) return undefined as T
        const value = parseJson(text)
        if (typeof value !== 'object' || value === null)
          throw parseErrorResponse(response.status, text, response.headers)
        return value as T
      },
    })
  }

  return {
    json,
    open(method, path, input = {}, call = {}) {
      const explicit = checkTimeout(call.timeoutMs)
      return run(method, path, input, call, {
        timeoutMs: explicit ?? (input.isSlow ? Number.POSITIVE_INFINITY : RESPONSE_MS),
        async read(response, { clear, cancel }) {
          // Without a time limit of the caller, only the response has one, and its body flows as long as it takes.
          if (explicit === undefined) clear()
          return { ...response, cancel }
        },
      })
    },
    async connect(path, handlers, input = {}, call = {}) {
      if (transport.connect === undefined) throw new TypeError('The transport opens no WebSockets.')
      const { signal, clear } = createTimeLimit(checkTimeout(call.timeoutMs) ?? RESPONSE_MS, call.signal)
      try {
        const url = await toUrl(path, input.query, signal)
        return await transport.connect({ url, headers: toHeaders({}, call), signal }, handlers)
      } catch (error) {
        signal.throwIfAborted()
        throw error instanceof BoxwoodError ? error : toConnectionError(error)
      } finally {
        clear()
      }
    },
  }
}

/** 128 bits in hexadecimal. Not crypto.randomUUID(), which pages over plain HTTP do not have. */
export const createRandomId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )

/** @throws RangeError */
function checkTimeout(timeoutMs: number | undefined): number | undefined {
  if (timeoutMs === undefined || timeoutMs > 0) return timeoutMs
  throw new RangeError('timeoutMs must be a positive number of milliseconds, or Infinity')
}

/** Flags are 1 or 0, a list repeats the parameter, and undefined omits it. */
export function formatQuery(query: object | undefined): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === null) continue
    for (const item of Array.isArray(value) ? value : [value])
      params.append(name, typeof item === 'boolean' ? String(Number(item)) : String(item))
  }
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}

/** undefined: there is no body. */
function toBody({ body, isRaw }: CallInput): (() => RequestBody | Promise<RequestBody>) | undefined {
  if (body === undefined) return undefined
  if (typeof body === 'function') return body as () => RequestBody | Promise<RequestBody>
  const content = isRaw ? (body as RequestBody) : JSON.stringify(body)
  return () => content
}

/** How long to wait before another attempt, in milliseconds; null: the call fails. */
function getPause(failure: BoxwoodError, attempt: number, canRepeat: boolean): number | null {
  const { status, retryAfterMs, code } = failure
  const random = 0.5 + Math.random() / 2
  const backoffMs = Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** attempt) * random
  // The coordinator has not executed the request, and says when the next one is accepted. Requests that were refused together are
  // not repeated together.
  const isRefused = status === 429 || status === 503 || code === 'idempotency_in_progress'
  if (isRefused && retryAfterMs !== null) return retryAfterMs + Math.min(500, backoffMs)
  if (!canRepeat) return null
  return status === 0 || UNAVAILABLE.has(status) ? backoffMs : null
}

/** Without the request: its headers have the API key. */
function toConnectionError(error: unknown): ConnectionError {
  const { message, cause } = error as Error & { cause?: Error & { code?: string } }
  const reason = cause?.code ?? cause?.message ?? message
  return new ConnectionError({
    code: 'no_response',
    message: `The coordinator does not respond: ${reason}.`,
    status: 0,
    cause: error,
  })
}

export async function readText({ body }: Pick<TransportResponse, 'body'>): Promise<string> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of body) text += decoder.decode(bytes, { stream: true })
  return text + decoder.decode()
}

type TimeLimit = ReturnType<typeof createTimeLimit>

/** `signal` is aborted by the time limit and by the caller. */
function createTimeLimit(timeoutMs: number, signal: AbortSignal | undefined) {
  const controller = new AbortController()
  const abort = () => {
    const message = `The coordinator does not respond: the call was not complete after ${timeoutMs / 1000} s.`
    controller.abort(new TimeoutError({ code: 'timeout', message, status: 0 }))
  }
  const timer = timeoutMs <= MAX_TIMER_MS ? setTimeout(abort, timeoutMs) : undefined
  // Node would wait for the timer of a response whose body was read.
  ;(timer as { unref?(): void } | undefined)?.unref?.()
  return {
    signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
    clear: () => clearTimeout(timer),
    cancel: () => controller.abort(),
  }
}

/** Runs several calls with the time limit of one. */
export async function withTimeLimit<T>(
  { timeoutMs, ...options }: CallOptions,
  run: (options: CallOptions) => Promise<T>,
): Promise<T> {
  const limitMs = checkTimeout(timeoutMs)
  if (limitMs === undefined) return run(options)
  const { signal, clear } = createTimeLimit(limitMs, options.signal)
  try {
    return await run({ ...options, signal })
  } finally {
    clear()
  }
}

/** Rejects with the reason of the signal once it is aborted: other calls wait for the same promise, which continues. */
function beforeAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal?.reason)
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal?.removeEventListener('abort', onAbort))
  })
}

/** Rejects with the reason of the signal. */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) onAbort()
  })
}
