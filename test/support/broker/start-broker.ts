// The broker of a coordinator with the WebSocket route of agents, a real host on loopback, and programs on boxes. Everything is in
// this process.
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { createAddressFilter } from '../../../coordinator/base/public-address.ts'
import {
  BrokerServer,
  type BrokerServerOptions,
} from '../../../coordinator/edge/secret-broker/broker-server.ts'
import { createVettedLookup } from '../../../coordinator/edge/secret-broker/vetted-lookup.ts'
import { systemClock } from '../../../shared/clock.ts'
import { BOX_HEADER, SECRET_PATH_PREFIX } from '../../../shared/protocol.ts'
import { TcpOverWebSocket } from '../../../shared/tcp-over-websocket.ts'
import { silentLog, startTunnelServer } from '../tunnel.ts'
import { createTestAuthority, toWorkspaceAuthorities } from './authority.ts'
import { FakeSecrets } from './fake-secrets.ts'
import { startUpstream } from './upstream.ts'

export const HOST = 'api.example.test'
export const PLACEHOLDER = 'dcpsec_0123456789abcdefghjkmnpqrstvwxyz'
export const VALUE = 'sk-real-value/0123456789+abc'

export type StartBrokerOptions = {
  listener?: RequestListener
  /** Default: 127.0.0.1. */
  resolve?: (host: string) => Promise<string[]>
  /** Default: 127.0.0.1/32. */
  admitted?: string[]
  /** Default: that of the upstream. */
  ca?: string
} & Partial<Pick<BrokerServerOptions, 'log' | 'headersTimeoutMs' | 'idleTimeoutMs'>>

export type TestBroker = Awaited<ReturnType<typeof startBroker>>

/** One box has a secret for HOST. */
export async function startBroker(t: Test, options: StartBrokerOptions = {}) {
  const upstream = await startUpstream(t, options.listener)
  const secrets = new FakeSecrets()
  const authority = createTestAuthority('Boxwood workspace')
  const { resolve = async () => ['127.0.0.1'], admitted = ['127.0.0.1/32'] } = options
  const broker = new BrokerServer({
    broker: secrets,
    authorities: toWorkspaceAuthorities(authority),
    upstream: {
      lookup: createVettedLookup(resolve, createAddressFilter(admitted)),
      port: upstream.port,
      ca: options.ca ?? upstream.authority.certificate,
    },
    log: options.log ?? silentLog,
    clock: systemClock,
    headersTimeoutMs: options.headersTimeoutMs ?? 20_000,
    idleTimeoutMs: options.idleTimeoutMs ?? 75_000,
  })
  const server = await startTunnelServer()
  server.tunnels.secretConnections.setServer(broker)
  t.teardown(async () => {
    broker.close()
    await server.close()
  })
  const box = server.addBox()
  const mount = secrets.mount(box.boxId, {
    secretId: 'sec_1',
    placeholder: PLACEHOLDER,
    value: VALUE,
    hosts: [HOST],
  })

  /** As the agent of the box. Rejects with the status when the coordinator refuses. */
  async function openWebSocket(host = HOST, { boxId, token } = box): Promise<WebSocket> {
    const ws = new WebSocket(`ws://127.0.0.1:${server.port}${SECRET_PATH_PREFIX}${host}`, {
      headers: { [BOX_HEADER]: boxId, authorization: `Bearer ${token}` },
      perMessageDeflate: false,
    })
    ws.once('open', () => ws.pause())
    await new Promise<void>((resolve, reject) => {
      ws.once('open', resolve)
      ws.once('unexpected-response', (_, response) => {
        reject(new Error(`refused with ${response.statusCode}`))
        ws.terminate()
      })
      ws.on('error', reject)
    })
    return ws
  }

  async function openStream(host = HOST, credentials = box): Promise<TcpOverWebSocket> {
    const ws = await openWebSocket(host, credentials)
    const stream = new TcpOverWebSocket(ws)
    stream.on('error', () => undefined)
    t.teardown(() => stream.destroy())
    return stream
  }

  /** A program of the box that trusts the authority of the workspace. */
  async function connect(tls: ConnectionOptions = {}, host = HOST, credentials = box): Promise<TLSSocket> {
    const stream = await openStream(host, credentials)
    const socket = connectTls({
      socket: stream,
      servername: host,
      ca: authority.certificate,
      ALPNProtocols: ['http/1.1'],
      ...tls,
    })
    t.teardown(() => socket.destroy())
    // Node leaves the stream open.
    socket.once('close', () => stream.destroySoon())
    await once(socket, 'secureConnect')
    socket.on('error', () => undefined)
    return socket
  }

  return { upstream, secrets, authority, broker, server, box, mount, openWebSocket, openStream, connect }
}
