// Closes the connections to another coordinator that has stopped responding without closing them, as when packets are lost: TCP alone
// needs a quarter of an hour to find out, in which their requests would wait.
import type { ClientRequest } from 'node:http'

/** Together at most 12 s: a coordinator without its lease closes its tunnels after 10 s, too. */
const INTERVAL_MS = 2_000
const PING_MS = 3_000
const MAX_FAILURES = 3

export type ConnectionWatchOptions = {
  /** Resolves when the other coordinator has responded to anything, on a new connection. Rejects when it has not, also at the signal. */
  ping(signal: AbortSignal): Promise<unknown>
  intervalMs?: number | undefined
  pingMs?: number | undefined
}

type Connection = { destroy(error: Error): unknown; once(event: 'close', listener: () => void): unknown }

/** Sends pings while there are requests in progress, and until the other coordinator responds again. */
export class ConnectionWatch {
  readonly #options: ConnectionWatchOptions
  readonly #open = new Set<Connection>()
  readonly #closed = new AbortController()
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: ConnectionWatchOptions) {
    this.#options = options
  }

  /** False: the last pings have failed, and a request would wait in vain. */
  get isReachable(): boolean {
    return this.#failures < MAX_FAILURES
  }

  /** Watches the connection of a request until the end of its response, or of what it was upgraded to. */
  add(request: ClientRequest): void {
    this.#track(request)
    request.once('upgrade', (_response, stream) => this.#track(stream))
  }

  close(): void {
    this.#closed.abort()
    clearTimeout(this.#timer)
  }

  #track(connection: Connection): void {
    this.#open.add(connection)
    connection.once('close', () => this.#open.delete(connection))
    this.#schedule()
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#closed.signal.aborted) return
    const { intervalMs = INTERVAL_MS } = this.#options
    this.#timer = setTimeout(
      () => void this.#check(),
      this.#failures > 0 ? intervalMs / 4 : intervalMs,
    ).unref()
  }

  async #check(): Promise<void> {
    if (this.#open.size > 0 || !this.isReachable) {
      const signal = AbortSignal.any([
        AbortSignal.timeout(this.#options.pingMs ?? PING_MS),
        this.#closed.signal,
      ])
      try {
        await this.#options.ping(signal)
        this.#failures = 0
      } catch {
        this.#failures += 1
        if (!this.isReachable) this.#destroyAll()
      }
    } else this.#failures = 0
    this.#timer = undefined
    if (this.#open.size > 0 || !this.isReachable) this.#schedule()
  }

  #destroyAll(): void {
    for (const connection of this.#open)
      connection.destroy(new Error('the other coordinator does not respond'))
  }
}
