// The client of a coordinator.
import { Audit } from './audit.ts'
import { Boxes } from './boxes/boxes.ts'
import { createRoutes, type Routes } from './generated/routes.ts'
import { type CallInput, type CallOptions, type Calls, createCalls } from './http/calls.ts'
import { fetchTransport } from './http/fetch-transport.ts'
import type { OpenResponse, Transport } from './http/transport.ts'

export type BoxwoodOptions = {
  /** The URL of the coordinator, such as `https://boxes.example.com`. Default: BOXWOOD_URL, or `http://127.0.0.1:7070`. */
  url?: string
  /** Starts with dcp_. null: the transport has another credential. Default: BOXWOOD_API_KEY. */
  apiKey?: string | null
  transport?: Transport
  /** How long a call may wait for repetitions after 429 and 503, in milliseconds. Default: 30 s. */
  retryMs?: number
  /** How long a stream of output may be interrupted before it fails, in milliseconds. Default: 5 min. */
  outageMs?: number
  /** How long a stream of output may be silent before the client opens another connection, in milliseconds. Default: three heartbeats, 45 s. */
  idleMs?: number
  /** The trace context (W3C) of each call, such as that of the span in progress. */
  traceparent?: () => string | undefined
}

const DEFAULT_URL = 'http://127.0.0.1:7070'

/** The variables of the process; none in a browser. */
const getEnv = (name: string): string | undefined =>
  (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined

export class Boxwood {
  /** The URL of the coordinator, without a slash at its end. */
  readonly url: string
  readonly boxes: Boxes
  readonly audit: Audit
  /** One method for each route of the API. Its responses are those of the API. */
  readonly routes: Routes
  readonly #calls: Calls

  /** @throws TypeError when there is no API key, or the URL is not valid */
  constructor(options: BoxwoodOptions = {}) {
    const { transport = fetchTransport, retryMs = 30_000, outageMs = 300_000 } = options
    const apiKey = options.apiKey === undefined ? getEnv('BOXWOOD_API_KEY') : options.apiKey
    if (apiKey === undefined)
      throw new TypeError('There is no API key. Set BOXWOOD_API_KEY, or pass apiKey to new Boxwood().')
    this.url = checkUrl(options.url ?? getEnv('BOXWOOD_URL') ?? DEFAULT_URL)
    this.#calls = createCalls({
      url: this.url,
      apiKey,
      transport,
      retryMs,
      traceparent: options.traceparent ?? (() => undefined),
    })
    this.routes = createRoutes(this.#calls)
    this.audit = new Audit(this.routes)
    this.boxes = new Boxes({ routes: this.routes, calls: this.#calls, outageMs, idleMs: options.idleMs })
  }

  /**
   * Calls a route that this version has no method for.
   * @param path such as `/api/v1/boxes`, without a query
   * @returns the JSON of the response; undefined: it has none
   */
  request<T = unknown>(method: string, path: string, input?: CallInput, options?: CallOptions): Promise<T> {
    return this.#calls.json<T>(method, path, input, options)
  }

  /** The same for a response that is not JSON. Its body is unread. */
  open(method: string, path: string, input?: CallInput, options?: CallOptions): Promise<OpenResponse> {
    return this.#calls.open(method, path, input, options)
  }
}

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new TypeError('url must be the http or https URL of the coordinator, without a user and a query')
  return url.href.replace(/#.*$/, '').replace(/\/+$/, '')
}
