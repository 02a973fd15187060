// The HTTP client of an engine: JSON calls with a time limit, and streams of bytes and JSON lines.
import { X509Certificate } from 'node:crypto'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { json as readJson, text as readText } from 'node:stream/consumers'
import type { PeerCertificate } from 'node:tls'
import { type Dispatcher, Pool } from 'undici'
import { describeAddress, type EngineAddress } from './address.ts'
import { EngineStatusError, EngineTimeoutError, EngineUnavailableError } from './errors.ts'

export type EngineRequest = {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** An absolute path, whose segments are encoded. */
  path: string
  /** Undefined values are omitted. */
  query?: Readonly<Record<string, string | number | boolean | undefined>>
  headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  json?: unknown
  /** Sent as it is. */
  content?: Readable | Uint8Array
  signal?: AbortSignal | undefined
  /** The limit of the complete call, or until the response begins for a stream. null: none. Default: 60 s. */
  timeoutMs?: number | null
}

export type EngineResponse = {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The reader must read it to the end, or destroy it. */
  body: Readable
}

const DEFAULT_TIMEOUT_MS = 60_000
const CONNECT_TIMEOUT_MS = 10_000
const MAX_ERROR_LENGTH = 2_000

export class EngineHttp {
  /** The name of the engine in messages, such as `Docker`. */
  readonly name: string
  readonly address: EngineAddress
  readonly #pool: Pool

  constructor(name: string, address: EngineAddress) {
    this.name = name
    this.address = address
    this.#pool = createPool(address)
  }

  /** Returns the JSON of the response; undefined: it has no content. Throws EngineUnavailableError, EngineTimeoutError and EngineStatusError. */
  async json<T = unknown>(request: EngineRequest): Promise<T> {
    return await this.#limit(request, async (signal) => {
      const { status, headers, body } = await this.#send(request, signal)
      if (status === 204 || headers['content-length'] === '0') {
        body.resume()
        return undefined as T
      }
      // Some successful responses are texts, such as the one of /_ping.
      const isJson = String(headers['content-type'] ?? '').includes('json')
      return isJson ? ((await readJson(body)) as T) : ((await readText(body)) as T)
    })
  }

  /** Resolves when the response begins. Throws like json(). The signal ends the response too. */
  async stream(request: EngineRequest): Promise<EngineResponse> {
    const { signal = new AbortController().signal, timeoutMs = DEFAULT_TIMEOUT_MS } = request
    const limit = new AbortController()
    const timer = timeoutMs === null ? undefined : setTimeout(() => limit.abort(), timeoutMs)
    try {
      return await this.#send(request, AbortSignal.any([signal, limit.signal]))
    } catch (error) {
      throw this.#describe(error, request, limit.signal.aborted)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Yields the JSON values of a response with one value a line. Throws like json(), also when the response breaks. */
  async *lines<T = unknown>(request: EngineRequest): AsyncGenerator<T> {
    const { body } = await this.stream(request)
    try {
      // The caller may stop at a line: then the interface would throw the error of the closed body.
      const reader = createInterface({ input: body, crlfDelay: Number.POSITIVE_INFINITY }).on(
        'error',
        () => {},
      )
      for await (const line of reader) if (line.trim() !== '') yield JSON.parse(line) as T
      // The interface ends without an error when its input fails.
      if (body.errored) throw body.errored
    } catch (error) {
      throw this.#describe(error, request, false)
    } finally {
      body.on('error', () => undefined).destroy()
    }
  }

  /** Ends open requests with an error. */
  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  async #limit<T>(request: EngineRequest, call: (signal: AbortSignal | undefined) => Promise<T>): Promise<T> {
    const { signal, timeoutMs = DEFAULT_TIMEOUT_MS } = request
    const limit = timeoutMs === null ? undefined : AbortSignal.timeout(timeoutMs)
    const signals = [signal, limit].filter((part) => part !== undefined)
    try {
      return await call(signals.length === 0 ? undefined : AbortSignal.any(signals))
    } catch (error) {
      throw this.#describe(error, request, limit?.aborted === true)
    }
  }

  async #send(request: EngineRequest, signal: AbortSignal | undefined): Promise<EngineResponse> {
    const { method, path, query, json, content } = request
    const headers: Record<string, string> = { ...request.headers }
    if (json !== undefined) headers['content-type'] ??= 'application/json'
    const body = json === undefined ? content : JSON.stringify(json)
    const response = await this.#pool.request({
      method,
      path,
      headers,
      ...(query !== undefined && { query: withoutUndefined(query) }),
      ...(body !== undefined && { body }),
      ...(signal !== undefined && { signal }),
      // The signal has the limits. The content of a stream can pause for long.
      headersTimeout: 0,
      bodyTimeout: 0,
    } satisfies Dispatcher.RequestOptions)
    const { statusCode: status } = response
    if (status >= 400)
      throw new EngineStatusError(
        this.name,
        // The reason is more important than parameters.
        `${method} ${path.replace(/\?.*/, '')}`,
        status,
        await readReason(response),
      )
    return { status, headers: response.headers, body: response.body }
  }

  /** An aborted call fails with the reason of its signal, and one whose content fails with the error of the content. */
  #describe(
    error: unknown,
    { signal, method, path, content, timeoutMs }: EngineRequest,
    isLate: boolean,
  ): unknown {
    if (error instanceof EngineStatusError || error instanceof EngineUnavailableError) return error
    if (signal?.aborted) return signal.reason
    // undici destroys the content with the error of the connection.
    if (content instanceof Readable && content.errored === error && !isConnectionError(error)) return error
    const where = `${this.name} at ${describeAddress(this.address)}`
    if (isLate) {
      const seconds = (timeoutMs ?? DEFAULT_TIMEOUT_MS) / 1000
      return new EngineTimeoutError(`${where} did not answer ${method} ${path} within ${seconds} s.`, {
        cause: error,
      })
    }
    return new EngineUnavailableError(`${where} is not available: ${explain(error)}.`, { cause: error })
  }
}

function createPool(address: EngineAddress): Pool {
  const common = { connections: null, pipelining: 1 }
  if (address.kind === 'unix')
    return new Pool('http://localhost', {
      ...common,
      connect: { socketPath: address.path, timeout: CONNECT_TIMEOUT_MS },
    })
  const { pinnedCertificate, ...tls } = address.tls ?? {}
  return new Pool(address.url, {
    ...common,
    // The HTTP/2 server of Incus closes streams of clients that are fast.
    allowH2: false,
    connect: {
      timeout: CONNECT_TIMEOUT_MS,
      ...tls,
      ...(pinnedCertificate !== undefined && pinCertificate(pinnedCertificate)),
    },
  })
}

/** A self-signed certificate of a server is its own authority, and need not have the name of the server. */
export function pinCertificate(pem: string) {
  const { fingerprint256 } = new X509Certificate(pem)
  return {
    ca: pem,
    checkServerIdentity: (_: string, certificate: PeerCertificate): Error | undefined =>
      certificate.fingerprint256 === fingerprint256
        ? undefined
        : new Error('the server has another certificate than the configured one'),
  }
}

const withoutUndefined = (query: NonNullable<EngineRequest['query']>) =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined))

/** Docker and Podman have the reason in `message`, Incus in `error`. */
async function readReason({ body }: Dispatcher.ResponseData): Promise<string> {
  const content = await readText(body)
  let reason: unknown
  try {
    const parsed = JSON.parse(content) as { message?: unknown; error?: unknown }
    reason = parsed.message ?? parsed.error
  } catch {
    // The text is the reason.
  }
  return (
    (typeof reason === 'string' ? reason : content).trim().slice(0, MAX_ERROR_LENGTH) || 'no reason given'
  )
}

const CONNECTION_ERRORS: readonly (string | undefined)[] = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT']

function isConnectionError(error: unknown): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === 'connect' || code?.startsWith('UND_ERR_') === true || CONNECTION_ERRORS.includes(code)
}

const EXPLANATIONS: Readonly<Record<string, string>> = {
  ENOENT: 'the socket does not exist; start the engine',
  ECONNREFUSED: 'nothing listens there; start the engine',
  EACCES: 'the user of the coordinator may not use the socket',
  UND_ERR_SOCKET: 'the connection was closed',
  ECONNRESET: 'the connection was closed',
}

function explain(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return (code !== undefined && EXPLANATIONS[code]) || message
}
