// The connections to real hosts. A box has a pool of keep-alive connections for each host, as long as its programs have one.
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
  release(): void
}

/** An unused connection is closed after this time. Servers close theirs after a longer one. */
const IDLE_MS = 15_000
const MAX_UNUSED = 16
const CONNECT_TIMEOUT_MS = 30_000

export class UpstreamAgents {
  readonly #options: UpstreamAgentOptions
  readonly #pools = new Map<string, { agent: Agent; users: number }>()

  constructor(options: UpstreamAgentOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#pools.size
  }

  /** The last release closes the connections of the pool. */
  acquire(boxId: string, host: string): UpstreamPool {
    const key = `${boxId} ${host}`
    const pool = this.#pools.get(key) ?? { agent: this.#createAgent(host), users: 0 }
    this.#pools.set(key, pool)
    pool.users += 1
    let isReleased = false
    return {
      agent: pool.agent,
      target: { protocol: 'https:', host, port: this.#options.port },
      release: () => {
        if (isReleased) return
        isReleased = true
        pool.users -= 1
        if (pool.users > 0) return
        pool.agent.destroy()
        if (this.#pools.get(key) === pool) this.#pools.delete(key)
      },
    }
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
