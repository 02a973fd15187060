// The connections to the ports of boxes, and their limits. A port has one pool of keep-alive connections.
import type { Agent } from 'node:http'
import type { Duplex } from 'node:stream'
import type { BoxRow } from '../../../db/schema.ts'
import { PortAgent } from './port-agent.ts'

export type BoxConnectionLimits = {
  /** Connections to a port that are used for HTTP at the same time. Upgraded ones do not count. */
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
  requests: number
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
   * Adds a request to a port until `release` is called.
   * @throws TooManyConnectionsError
   */
  acquire(box: BoxRow, portNumber: number): { agent: Agent; release(): void } {
    const key = `${box.id} ${portNumber}`
    const port = this.#ports.get(key) ?? this.#addPort(key, box, portNumber)
    if (port.requests >= this.#options.limits.portRequests)
      throw new TooManyConnectionsError(`Port ${portNumber} has ${port.requests} requests`)
    port.box = box
    port.requests += 1
    let isReleased = false
    return {
      agent: port.agent,
      release: () => {
        if (isReleased) return
        isReleased = true
        port.requests -= 1
        this.#deleteUnused(key, port)
      },
    }
  }

  /** Closes all connections that are not upgraded. */
  close(): void {
    for (const { agent } of this.#ports.values()) agent.destroy()
  }

  #addPort(key: string, box: BoxRow, portNumber: number): Port {
    const { portConnections, idleMs } = this.#options.limits
    const agent = new PortAgent({
      maxConnections: portConnections,
      idleMs,
      connect: () => this.#connect(key, port, portNumber),
    })
    const port: Port = { agent, box, requests: 0, connections: 0 }
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
    if (port.requests === 0 && port.connections === 0) this.#ports.delete(key)
  }
}
