// The open connections of programs of boxes to brokered hosts.
import type { Duplex } from 'node:stream'
import { coversHost } from '../../../shared/secret-hosts.ts'
import type { BrokerCut } from '../../secrets/types.ts'

/** One connection, from the check of the mounts on. */
export class BrokerConnection {
  readonly boxId: string
  readonly host: string
  /** Requests without a complete response. */
  requests = 0
  isUpgraded = false
  #streams: Duplex[] = []
  #isClosed = false

  constructor(boxId: string, host: string) {
    this.boxId = boxId
    this.host = host
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** The stream is destroyed with the connection. */
  add(stream: Duplex): void {
    this.#streams.push(stream)
    if (this.#isClosed) stream.destroy()
  }

  close(): void {
    this.#isClosed = true
    for (const stream of this.#streams) stream.destroy()
  }
}

export class BrokerConnections {
  readonly #byBox = new Map<string, Set<BrokerConnection>>()

  get all(): BrokerConnection[] {
    return [...this.#byBox.values()].flatMap((connections) => [...connections])
  }

  open(boxId: string, host: string): BrokerConnection {
    const connection = new BrokerConnection(boxId, host)
    const connections = this.#byBox.get(boxId) ?? new Set()
    this.#byBox.set(boxId, connections.add(connection))
    return connection
  }

  delete(connection: BrokerConnection): void {
    const connections = this.#byBox.get(connection.boxId)
    connections?.delete(connection)
    if (connections?.size === 0) this.#byBox.delete(connection.boxId)
  }

  /** The requests of the box without a complete response. @param host undefined: those to all hosts */
  countRequests(boxId: string, host?: string): number {
    let count = 0
    for (const connection of this.#byBox.get(boxId) ?? [])
      if (host === undefined || connection.host === host) count += connection.requests
    return count
  }

  /** Closes the connections of the box to the hosts, also those that are being opened. */
  readonly cut = ({ boxId, patterns }: BrokerCut): void => {
    for (const connection of [...(this.#byBox.get(boxId) ?? [])])
      if (patterns.some((pattern) => coversHost(pattern, connection.host))) connection.close()
  }
}
