// Follows the events of an Incus server over a WebSocket. A lost connection is opened again.
import { type ClientOptions, WebSocket } from 'ws'
import { backoffDelay, equalJitter } from '../../../shared/backoff.ts'
import { describeAddress, type EngineAddress } from '../engine-http/address.ts'
import { pinCertificate } from '../engine-http/client.ts'
import { EngineUnavailableError } from '../engine-http/errors.ts'
import type { Operation } from './api.ts'
import { explainConnectionProblem } from './connection-problem.ts'

export type IncusEvent =
  | { type: 'operation'; metadata: Operation }
  | { type: 'lifecycle'; metadata: { action: string; source: string } }

export type EventsOptions = {
  address: EngineAddress
  project: string
  onEvent(event: IncusEvent): void
  /** Called for each connection: events of the time before it may be lost. connect() waits for the result. */
  onConnect(): Promise<void>
  /** Called when the server cannot be reached. A connection that is lost is opened again first. */
  onFailure(error: EngineUnavailableError): void
}

const RECONNECT = { baseMs: 100, maxMs: 5_000 }
const HANDSHAKE_TIMEOUT_MS = 10_000
/** A connection on which nothing arrives for two of these intervals is broken. */
const PING_MS = 20_000

export class IncusEvents {
  readonly #options: EventsOptions
  #socket: WebSocket | null = null
  /** The attempt in progress, or the open connection. null: the next attempt waits. */
  #connection: Promise<void> | null = null
  #failures = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: EventsOptions) {
    this.#options = options
  }

  /** Resolves when events arrive. Throws EngineUnavailableError when the server cannot be reached now. */
  connect(): Promise<void> {
    if (this.#isClosed)
      return Promise.reject(new EngineUnavailableError('The connection to Incus is closed.'))
    clearTimeout(this.#timer)
    this.#connection ??= this.#open()
    return this.#connection
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#socket?.terminate()
  }

  #open(): Promise<void> {
    const { address, project } = this.#options
    const socket = new WebSocket(...createTarget(address, project))
    this.#socket = socket
    let isAlive = true
    const pings = setInterval(() => {
      if (!isAlive) return socket.terminate()
      isAlive = false
      if (socket.readyState === WebSocket.OPEN) socket.ping()
    }, PING_MS)
    pings.unref()
    socket.on('pong', () => {
      isAlive = true
    })
    socket.on('message', (data) => {
      isAlive = true
      this.#options.onEvent(JSON.parse(String(data)) as IncusEvent)
    })
    const connection = new Promise<void>((resolve, reject) => {
      let isOpen = false
      let problem = 'the connection was closed'
      socket.on('open', () => {
        isOpen = true
        this.#failures = 0
        this.#options.onConnect().then(resolve, (error: Error) => {
          problem = error.message
          socket.terminate()
        })
      })
      socket.on('error', ({ message }) => {
        problem = explainConnectionProblem(message)
      })
      socket.on('close', () => {
        clearInterval(pings)
        const error = new EngineUnavailableError(
          `Incus at ${describeAddress(address)} is not available: ${problem}.`,
        )
        this.#connection = null
        if (!isOpen) this.#options.onFailure(error)
        this.#scheduleReconnect()
        reject(error)
      })
    })
    // Callers of connect() get the error.
    connection.catch(() => undefined)
    return connection
  }

  #scheduleReconnect(): void {
    if (this.#isClosed) return
    const delay = backoffDelay(this.#failures, RECONNECT, equalJitter)
    this.#failures += 1
    this.#timer = setTimeout(() => void this.connect().catch(() => undefined), delay)
    this.#timer.unref()
  }
}

function createTarget(address: EngineAddress, project: string): [string, ClientOptions] {
  const path = `/1.0/events?type=operation,lifecycle&project=${encodeURIComponent(project)}`
  const options: ClientOptions = { handshakeTimeout: HANDSHAKE_TIMEOUT_MS, perMessageDeflate: false }
  if (address.kind === 'unix') return [`ws+unix:${address.path}:${path}`, options]
  const { pinnedCertificate, ...tls } = address.tls ?? {}
  const pin = pinnedCertificate === undefined ? {} : pinCertificate(pinnedCertificate)
  return [address.url.replace(/^http/, 'ws') + path, { ...options, ...tls, ...pin } as ClientOptions]
}
