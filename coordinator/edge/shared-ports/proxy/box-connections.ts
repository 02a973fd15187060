// The connections to the ports of boxes, and their limits. A port has one pool of keep-alive connections.
import type { Agent } from 'node:http'
import type { Duplex } from 'node:stream'
import type { BoxRow } from '../../../db/schema.ts'
import { PortAgent } from './port-agent.ts'

export type BoxConnectionLimits = {
  /** Requests to a port that have a connection at the same time. Upgraded ones do not count. Further requests wait. */
  portConnections: number
  /** Connections to all ports of a box, including the upgraded ones. */
  boxConnections: number
  /** Requests to a port at the same time, including those that wait for a connection. */
  portRequests: number
  /** An unused connection is closed after this time. */
  idleMs: number
}

/** One of the limits is reached. */
export class TooManyConnectionsError extends Error {}

export type BoxConnectionsOptions = {
  limits: BoxConnectionLimits
  connect(box: BoxRow, port: number): Promise<Duplex>
}

type Port = {
  agent: PortAgent
  /** As of the newest request. */
  box: BoxRow
  /** Requests that have a connection. */
  active: number
  /** Let the next request continue, in the order of arrival. */
  waiting: Set<() => void>
  connections: number
}

export class BoxConnections {
  readonly #options: BoxConnectionsOptions
  readonly #ports = new Map<string, Port>()
  readonly #countByBox = new Map<string, number>()

  constructor(options: BoxConnectionsOptions) {
    this.#options = options
  }

  /** Number of ports that have a pool, and of their connections, including those that are being opened. */
  get size(): { ports: number; connections: number } {
    const counts = [...this.#countByBox.values()]
    return { ports: this.#ports.size, connections: counts.reduce((sum, count) => sum + count, 0) }
  }

  /**
   * Waits until a request may use a connection to the port. It counts until `release` is called.
   * @param signal rejects with its reason
   * @throws TooManyConnectionsError
   */
  async acquire(
    box: BoxRow,
    portNumber: number,
    signal: AbortSignal,
  ): Promise<{ agent: Agent; release(): void }> {
    signal.throwIfAborted()
    const key = `${box.id} ${portNumber}`
    const port = this.#ports.get(key) ?? this.#addPort(key, box, portNumber)
    const { portConnections, portRequests } = this.#options.limits
    port.box = box
    if (port.active < portConnections) port.active += 1
    else if (port.active + port.waiting.size < portRequests) await waitForTurn(port, signal)
    else throw new TooManyConnectionsError(`Port ${portNumber} has ${portRequests} requests`)
    let isReleased = false
    return {
      agent: port.agent,
      release: () => {
        if (isReleased) return
        isReleased = true
        const [next] = port.waiting
        if (next !== undefined) next()
        else port.active -= 1
        this.#deleteUnused(key, port)
      },
    }
  }

  /** Closes all connections that are not upgraded. */
  close(): void {
    for (const { agent } of this.#ports.values()) agent.destroy()
  }

  #addPort(key: string, box: BoxRow, portNumber: number): Port {
    const agent = new PortAgent({
      idleMs: this.#options.limits.idleMs,
      connect: () => this.#connect(key, port, portNumber),
    })
    const port: Port = { agent, box, active: 0, waiting: new Set(), connections: 0 }
    this.#ports.set(key, port)
    return port
  }

  async #connect(key: string, port: Port, portNumber: number): Promise<Duplex> {
    const { box } = port
    const count = this.#countByBox.get(box.id) ?? 0
    if (count >= this.#options.limits.boxConnections)
      throw new TooManyConnectionsError(`Box ${box.hostname} has ${count} connections`)
    this.#countByBox.set(box.id, count + 1)
    port.connections += 1
    const release = () => {
      port.connections -= 1
      const left = (this.#countByBox.get(box.id) ?? 0) - 1
      if (left > 0) this.#countByBox.set(box.id, left)
      else this.#countByBox.delete(box.id)
      this.#deleteUnused(key, port)
    }
    try {
      const stream = await this.#options.connect(box, portNumber)
      if (stream.closed) release()
      else stream.once('close', release)
      return stream
    } catch (error) {
      release()
      throw error
    }
  }

  #deleteUnused(key: string, port: Port): void {
    if (port.active === 0 && port.connections === 0) this.#ports.delete(key)
  }
}

/** Node's agent would keep waiting requests whose client has disconnected. */
async function waitForTurn({ waiting }: Port, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onTurn = () => {
    waiting.delete(onTurn)
    signal.removeEventListener('abort', onAbort)
    resolve()
  }
  const onAbort = () => {
    waiting.delete(onTurn)
    reject(signal.reason)
  }
  waiting.add(onTurn)
  signal.addEventListener('abort', onAbort, { once: true })
  await promise
}
