// The connections to real hosts. A box has a pool of keep-alive connections for each host.
import type { ClientRequest } from 'node:http'
import { Agent } from 'node:https'
import type { LookupFunction } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { BrokerError } from './broker-error.ts'

export type UpstreamAgentOptions = {
  lookup: LookupFunction
  port: number
  /** PEM. Default: the authorities of Node. */
  ca?: string | undefined
}

export type UpstreamPool = {
  agent: Agent
  /** The options of a request to the host. */
  target: { protocol: 'https:'; host: string; port: number }
  /** The connections of a pool without users can be used again for UNUSED_POOL_MS. @param isCut closes them now */
  release(options: { isCut: boolean }): void
}

/** An unused connection is closed after this time. Servers close theirs after a longer one. */
const IDLE_MS = 15_000
/**
 * How long a pool has no users before it is closed: the next program of a script uses the connection of the one before it. Shorter
 * than the time after which common servers close connections, 5 s: a program that sends one request expects a new connection.
 */
const UNUSED_POOL_MS = 4_000
/** Of all boxes. */
export const MAX_UNUSED_POOLS = 256
const MAX_UNUSED = 16
const CONNECT_TIMEOUT_MS = 30_000

type Pool = { key: string; agent: Agent; users: number }

export class UpstreamAgents {
  readonly #options: UpstreamAgentOptions
  readonly #pools = new Map<string, Pool>()
  /** The pools without users, the least recently used first, with the timers that close them. */
  readonly #unused = new Map<Pool, NodeJS.Timeout>()

  constructor(options: UpstreamAgentOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#pools.size
  }

  acquire(boxId: string, host: string): UpstreamPool {
    const key = `${boxId} ${host}`
    const pool = this.#pools.get(key) ?? { key, agent: this.#createAgent(host), users: 0 }
    this.#pools.set(key, pool)
    pool.users += 1
    clearTimeout(this.#unused.get(pool))
    this.#unused.delete(pool)
    let isReleased = false
    return {
      agent: pool.agent,
      target: { protocol: 'https:', host, port: this.#options.port },
      release: ({ isCut }) => {
        if (isReleased) return
        isReleased = true
        pool.users -= 1
        if (pool.users > 0) return
        if (isCut) return this.#delete(pool)
        this.#unused.set(pool, setTimeout(() => this.#delete(pool), UNUSED_POOL_MS).unref())
        const [oldest] = this.#unused.keys()
        if (this.#unused.size > MAX_UNUSED_POOLS && oldest !== undefined) this.#delete(oldest)
      },
    }
  }

  /** Closes the unused pools. */
  close(): void {
    for (const pool of [...this.#unused.keys()]) this.#delete(pool)
  }

  #delete(pool: Pool): void {
    clearTimeout(this.#unused.get(pool))
    this.#unused.delete(pool)
    this.#pools.delete(pool.key)
    pool.agent.destroy()
  }

  #createAgent(host: string): Agent {
    const { lookup, ca } = this.#options
    return new Agent({
      keepAlive: true,
      maxFreeSockets: MAX_UNUSED,
      timeout: IDLE_MS,
      servername: host,
      // Also where NODE_TLS_REJECT_UNAUTHORIZED is set.
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
      lookup,
      ca,
    })
  }
}

/** Calls back when the connection of the request has been verified and the request is sent. Limits the time until then. */
export function onConnected(outgoing: ClientRequest, host: string, callback: () => void): void {
  outgoing.once('socket', (socket) => {
    if (outgoing.reusedSocket) return callback()
    const timer = setTimeout(
      () => outgoing.destroy(new BrokerError('upstream_timeout', `The connection to ${host} took too long.`)),
      CONNECT_TIMEOUT_MS,
    )
    const tlsSocket = socket as TLSSocket
    tlsSocket.once('secureConnect', callback)
    const stop = () => clearTimeout(timer)
    tlsSocket.once('secureConnect', stop).once('close', stop)
  })
}
