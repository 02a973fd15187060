// Limits the open connections, from the moment at which they are accepted: a TLS handshake is an incomplete request. Those without
// a credential are limited in total and per client address. At a limit the oldest one whose request is incomplete is closed: a
// client or an agent with a credential sends its request at once, and is not limited like this after that, unless a later
// request has no valid credential. Those with a credential are limited per credential, user and workspace.
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Subject } from '../base/slots.ts'
import { createProxyCheck, toSubject } from './client-address.ts'
import { type ConnectionShare, ConnectionShares, type ConnectionUse, isShareOf } from './connection-shares.ts'
import { isBodyPending } from './lingering-close.ts'

export type ConnectionCounts = {
  /** All open connections. Half of them are for those with a credential. */
  maxConnections: number
  /** Open connections of a client address without a credential. */
  addressConnections: number
  /** IP addresses and ranges of proxies, which have the connections of many clients. Default: none. */
  trustedProxies?: readonly string[]
}

/**
 * A connection was closed because of this limit: of all connections, of those without a credential, or of an address.
 * share: those of the workspace with the most were reduced for another one.
 */
export type ReachedLimit = {
  limit: 'all' | 'unauthenticated' | 'address' | 'share'
  /** The client address of the connection as toSubject(), or `proxy`. */
  subject: string
  /** The workspace of the connection; undefined: it has no credential. */
  workspaceId: string | undefined
}

type Connection = {
  socket: Duplex
  /** The client address as toSubject(); undefined: a trusted proxy, or another coordinator. */
  subject: string | undefined
  isAuthenticated: boolean
  /** See setPeer(). */
  isPeer: boolean
  /** Whether a request is being served. */
  isServed: boolean
  /** undefined: the connection has no credential. */
  share: ConnectionShare | undefined
}

/** Connections without a credential, in the order in which they are closed. */
class Candidates {
  /** Connections whose request is incomplete, the oldest first. */
  readonly #incomplete = new Set<Connection>()
  /** Connections whose complete request is being served. */
  readonly #served = new Set<Connection>()

  get size(): number {
    return this.#incomplete.size + this.#served.size
  }

  get first(): Connection | undefined {
    const [first] = this.#incomplete.size > 0 ? this.#incomplete : this.#served
    return first
  }

  put(connection: Connection, { isServed }: { isServed: boolean }): void {
    this.delete(connection)
    if (isServed) this.#served.add(connection)
    else this.#incomplete.add(connection)
  }

  delete(connection: Connection): void {
    this.#incomplete.delete(connection)
    this.#served.delete(connection)
  }
}

export class Connections extends EventEmitter<{ limit: [ReachedLimit] }> {
  readonly #limits: ConnectionCounts
  readonly #isProxy: (address: string) => boolean
  readonly #open = new Map<Duplex, Connection>()
  readonly #unauthenticated = new Candidates()
  readonly #bySubject = new Map<string, Candidates>()
  readonly #shares: ConnectionShares

  constructor(limits: ConnectionCounts) {
    super()
    this.#limits = limits
    this.#shares = new ConnectionShares(limits.maxConnections)
    this.#isProxy = createProxyCheck(limits.trustedProxies ?? [])
  }

  get size(): number {
    return this.#open.size
  }

  /**
   * Adds a connection until it is closed. Has no effect for one that was added before. The connections of all agents on the Unix
   * socket have one address.
   */
  add(socket: Socket): void {
    if (this.#open.has(socket)) return
    const { remoteAddress = null, localAddress } = socket
    // A TCP connection that the client has reset has no remote address. It must not count as one of an agent.
    if (remoteAddress === null && localAddress !== undefined) return void socket.destroy()
    const isProxy = remoteAddress !== null && this.#isProxy(remoteAddress)
    const subject = isProxy ? undefined : toSubject(remoteAddress)
    const { addressConnections, maxConnections } = this.#limits
    const ofSubject = subject === undefined ? undefined : this.#bySubject.get(subject)
    if (ofSubject !== undefined && ofSubject.size >= addressConnections)
      this.#close(ofSubject.first, 'address')
    if (this.#unauthenticated.size >= Math.ceil(maxConnections / 2))
      this.#close(this.#unauthenticated.first, 'unauthenticated')
    const connection: Connection = {
      socket,
      subject,
      isAuthenticated: false,
      isPeer: false,
      isServed: false,
      share: undefined,
    }
    if (this.#open.size >= maxConnections) {
      const { first } = this.#unauthenticated
      if (first !== undefined || !this.#shares.closeOne()) this.#close(first ?? connection, 'all')
    }
    if (socket.destroyed) return
    this.#open.set(socket, connection)
    this.#put(connection, { isServed: false })
    socket.once('close', () => this.#remove(connection))
  }

  /** The connection is one of another coordinator, which has authenticated its clients: it is not closed for those without a credential. */
  setPeer(socket: Duplex): void {
    const connection = this.#open.get(socket)
    if (connection === undefined || connection.isPeer) return
    this.#unlist(connection)
    connection.subject = undefined
    connection.isAuthenticated = true
    connection.isPeer = true
  }

  /** From now on the replacement stands for the connection: its socket after the TLS handshake. */
  replace(socket: Socket, replacement: Socket): void {
    const connection = this.#open.get(socket)
    if (connection === undefined) return void replacement.destroy()
    this.#open.delete(socket)
    connection.socket = replacement
    this.#open.set(replacement, connection)
  }

  /** Call it for each request. Without a response, the request is an upgrade. */
  observe(request: IncomingMessage, response?: ServerResponse): void {
    const connection = this.#open.get(request.socket)
    if (connection === undefined) return
    connection.isServed = true
    this.#put(connection, { isServed: !isBodyPending(request) })
    if (isBodyPending(request)) request.once('end', () => this.#put(connection, { isServed: true }))
    response?.once('close', () => {
      connection.isServed = false
      // The next request of the proxy may be that of another client.
      if (connection.subject === undefined) this.#releaseShare(connection)
      this.#put(connection, { isServed: false })
    })
  }

  /**
   * A request of the connection has a valid credential: the connection is not closed for those without one.
   * @throws ApiError rate_limited when the credential, its user or its workspace has its share of the connections. The connection
   *   then counts as one without a credential.
   */
  setAuthenticated(socket: Duplex, subject: Subject, use: ConnectionUse = 'credential'): void {
    const connection = this.#open.get(socket)
    if (connection === undefined) return
    if (!isShareOf(connection.share, subject, use)) {
      this.#releaseShare(connection)
      connection.share = this.#acquireShare(connection, subject, use)
    }
    connection.isAuthenticated = true
    this.#unlist(connection)
  }

  /** A request of the connection has no valid credential. The credential of earlier requests may have been revoked. */
  setUnauthenticated(socket: Duplex): void {
    const connection = this.#open.get(socket)
    if (connection === undefined || !connection.isAuthenticated || connection.isPeer) return
    connection.isAuthenticated = false
    this.#releaseShare(connection)
    this.#put(connection, { isServed: false })
  }

  destroyAll(): void {
    for (const socket of this.#open.keys()) socket.destroy()
  }

  #acquireShare(connection: Connection, subject: Subject, use: ConnectionUse): ConnectionShare {
    try {
      return this.#shares.acquire(subject, use, {
        close: () => this.#close(connection, 'share'),
        isIdle: () => !connection.isServed,
      })
    } catch (error) {
      this.setUnauthenticated(connection.socket)
      throw error
    }
  }

  #releaseShare(connection: Connection): void {
    connection.share?.release()
    connection.share = undefined
  }

  #put(connection: Connection, state: { isServed: boolean }): void {
    const { socket, subject, isAuthenticated } = connection
    if (isAuthenticated || !this.#open.has(socket)) return
    this.#unauthenticated.put(connection, state)
    if (subject === undefined) return
    const ofSubject = this.#bySubject.get(subject) ?? new Candidates()
    this.#bySubject.set(subject, ofSubject)
    ofSubject.put(connection, state)
  }

  #unlist(connection: Connection): void {
    this.#unauthenticated.delete(connection)
    const { subject = '' } = connection
    const ofSubject = this.#bySubject.get(subject)
    ofSubject?.delete(connection)
    if (ofSubject?.size === 0) this.#bySubject.delete(subject)
  }

  #remove(connection: Connection): void {
    this.#open.delete(connection.socket)
    this.#releaseShare(connection)
    this.#unlist(connection)
  }

  #close(connection: Connection | undefined, limit: ReachedLimit['limit']): void {
    if (connection === undefined) return
    const workspaceId = connection.share?.subject.workspaceId
    this.#remove(connection)
    connection.socket.destroy()
    this.emit('limit', { limit, subject: connection.subject ?? 'proxy', workspaceId })
  }
}
