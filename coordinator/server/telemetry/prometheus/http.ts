// Metrics of the HTTP server: requests by route, connections and bytes.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { TRANSFER_PATH_PREFIX } from '../../../../shared/protocol.ts'
import { getFinalStatus, type RequestObserver } from '../../../http/observe-requests.ts'
import { isAgentWebSocketPath } from '../../../http/server.ts'
import { getMethodLabel } from '../labels.ts'

/** Seconds. A command may run for 10 minutes. */
const DURATION_BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600]

export function createRequestMetrics(registers: Registry[]): RequestObserver {
  const requests = new Counter({
    name: 'boxwood_http_requests_total',
    help: 'Responses by host, method, route and status. Status 499: the client disconnected before the response.',
    labelNames: ['host', 'method', 'route', 'status'],
    registers,
  })
  const duration = new Histogram({
    name: 'boxwood_http_request_duration_seconds',
    help: 'Time from the request headers to the end of the response. Streams and WebSockets count until they close.',
    labelNames: ['host', 'method', 'route'],
    buckets: DURATION_BUCKETS,
    registers,
  })
  const inFlight = new Gauge({
    name: 'boxwood_http_requests_in_flight',
    help: 'Requests whose response has not ended.',
    labelNames: ['host'],
    registers,
  })
  return (observed, serve) => {
    const startedAt = performance.now()
    const { request, response, host } = observed
    inFlight.inc({ host })
    response.once('close', () => {
      inFlight.dec({ host })
      const labels = { host, method: getMethodLabel(request.method), route: observed.route ?? 'unknown' }
      requests.inc({ ...labels, status: getFinalStatus(response) })
      duration.observe(labels, (performance.now() - startedAt) / 1000)
    })
    serve()
  }
}

type Peer = 'agent' | 'client'

/** Counts the connections of the server and their bytes. Reads the counters of the sockets when the metrics are read. */
export function createConnectionMetrics(registers: Registry[], server: Server): void {
  const peers = new Map<Socket, Peer>()
  const closed = { agent: { received: 0, sent: 0 }, client: { received: 0, sent: 0 } }
  server.on('connection', (socket: Socket) => {
    peers.set(socket, 'client')
    socket.once('close', () => {
      const bytes = closed[peers.get(socket) ?? 'client']
      bytes.received += socket.bytesRead
      bytes.sent += socket.bytesWritten
      peers.delete(socket)
    })
  })
  const setAgent = (socket: Socket) => {
    if (peers.has(socket)) peers.set(socket, 'agent')
  }
  server.on('upgrade', ({ url = '' }, socket) => {
    if (isAgentWebSocketPath(url.split('?', 1)[0] ?? '')) setAgent(socket as Socket)
  })
  server.on('request', ({ url, socket }) => {
    if (url?.startsWith(TRANSFER_PATH_PREFIX)) setAgent(socket)
  })

  const sum = (peer: Peer, direction: 'received' | 'sent') => {
    let bytes = closed[peer][direction]
    for (const [socket, socketPeer] of peers)
      if (socketPeer === peer) bytes += direction === 'received' ? socket.bytesRead : socket.bytesWritten
    return bytes
  }
  const options = { labelNames: ['peer'] as const, registers }
  for (const direction of ['received', 'sent'] as const) {
    new Counter({
      ...options,
      name: `boxwood_http_${direction}_bytes_total`,
      help: `Bytes ${direction} on the connections of clients and agents, with headers.`,
      collect() {
        this.reset()
        for (const peer of ['agent', 'client'] as const) this.inc({ peer }, sum(peer, direction))
      },
    })
  }
  new Gauge({
    ...options,
    name: 'boxwood_http_connections',
    help: 'Open connections of clients and agents.',
    collect() {
      const agents = [...peers.values()].filter((peer) => peer === 'agent').length
      this.set({ peer: 'agent' }, agents)
      this.set({ peer: 'client' }, peers.size - agents)
    },
  })
}
