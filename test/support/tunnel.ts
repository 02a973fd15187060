// Starts the tunnel components of a coordinator and of an agent, which connect over loopback, without the rest of both.
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import type { Test } from 'tap'
import { createJsonRouter, type JsonRouter } from '../../agent/requests/json-routes.ts'
import { type AgentTunnelOptions, startTunnel } from '../../agent/tunnel/tunnel.ts'
import {
  type AgentConnections,
  type AgentConnectionsOptions,
  createAgentConnections,
} from '../../coordinator/agents/tunnel/agent-connections.ts'
import { readForwarded } from '../../coordinator/http/forwarded-requests.ts'
import { PEER_PATH } from '../../coordinator/replicas/peers.ts'
import { systemClock } from '../../shared/clock.ts'
import { TRANSFER_PATH_PREFIX } from '../../shared/protocol.ts'
import { DEADLINE_MS } from './wait-until.ts'

export const silentLog = pino({ level: process.env.TEST_LOG ?? 'silent' })

export type TunnelServer = {
  server: Server
  url: string
  port: number
  tunnels: AgentConnections
  /** Box id → token. */
  tokens: Map<string, string>
  /** Registers a new box with a token. */
  addBox(): { boxId: string; token: string }
  close(): Promise<void>
}

export async function startTunnelServer(
  {
    tokens = new Map(),
    ...options
  }: Partial<AgentConnectionsOptions> & { tokens?: Map<string, string> } = {},
  listenPort = 0,
): Promise<TunnelServer> {
  const tunnels = createAgentConnections({
    log: silentLog,
    clock: systemClock,
    async authenticate(boxId, hash) {
      const token = tokens.get(boxId)
      const isValid = token !== undefined && createHash('sha256').update(token).digest('hex') === hash
      return isValid ? 'ws_1' : null
    },
    ingest: { apply: async () => undefined, heartbeat: () => undefined, listeners: () => undefined },
    ...options,
  })
  const server = createServer((request, response) => {
    const { peers } = options.sharing ?? {}
    if (peers !== undefined) readForwarded(request, peers.verify)
    if (peers !== undefined && request.url === PEER_PATH) peers.serve(request, response)
    else if (request.url?.startsWith(TRANSFER_PATH_PREFIX)) tunnels.handleTransfer(request, response)
    else response.writeHead(404).end()
  })
  server.on('upgrade', (request: IncomingMessage, socket, head) => {
    if (options.sharing) readForwarded(request, options.sharing.peers.verify)
    tunnels.handleUpgrade(request, socket, head)
  })
  server.listen(listenPort, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    server,
    url: `http://127.0.0.1:${port}`,
    port,
    tunnels,
    tokens,
    addBox() {
      const boxId = randomUUID()
      const token = `bxt_${boxId}`
      tokens.set(boxId, token)
      return { boxId, token }
    },
    async close() {
      await tunnels.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type TestAgent = { instanceId: string; close(): Promise<void> }

/** Starts an agent with these routes, which reconnects within 50 ms. */
export async function startTestAgent(
  box: { boxId: string; token: string },
  url: string,
  routes: (router: JsonRouter) => void = () => undefined,
  options: Partial<AgentTunnelOptions> = {},
): Promise<TestAgent> {
  const router = createJsonRouter()
  routes(router)
  const instanceId = options.instanceId ?? randomUUID()
  const tunnel = startTunnel({
    readUrl: async () => url,
    boxId: box.boxId,
    readToken: async () => box.token,
    instanceId,
    router,
    log: silentLog,
    clock: systemClock,
    backoff: { baseMs: 10, maxMs: 50 },
    ...options,
  })
  return { instanceId, close: tunnel.close }
}

export async function readAll(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Starts a box whose agent must stay reachable. Returns a function that asserts this on `t`. */
export async function startOtherBox(t: Test, coordinator: TunnelServer): Promise<() => Promise<void>> {
  const otherBox = coordinator.addBox()
  const agent = await startTestAgent(otherBox, coordinator.url, (router) =>
    router.add('GET', '/hello', () => ({ hello: 'box' })),
  )
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(otherBox.boxId, DEADLINE_MS)
  return async () => {
    const { body } = await tunnel.call({ method: 'GET', path: '/hello', timeoutMs: DEADLINE_MS })
    t.same(JSON.parse(body.toString()), { hello: 'box' }, 'the other box is reachable')
  }
}
