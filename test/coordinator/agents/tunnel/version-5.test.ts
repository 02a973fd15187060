// An agent of version 5 has text messages without chunks: it connects, reports, serves small requests, and gets the build of
// this coordinator.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { installBuild } from '../../../../coordinator/agents/upgrades/install-build.ts'
import { TUNNEL_LIMITS } from '../../../../shared/limits.ts'
import { PROTOCOL_HEADER } from '../../../../shared/protocol.ts'
import { openTunnelSocket } from '../../../support/hostile-agent.ts'
import { startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

type Message = { type: string; id: number; method?: string; path?: string }

const HEARTBEAT = {
  type: 'heartbeat',
  at: 1,
  vitals: { cpu_pct: 1, mem_pct: 2, disk_pct: 3, idle_for_sec: 4, listeners_count: 5, agent_version: '5' },
}
const REPORT = { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'b', agentVersion: '5' }
const BUILD = {
  ...{ platform: 'linux-x64', version: '0.1.0+next', buildId: 'next', size: 1 },
  ...{ sha256: '0'.repeat(64), signature: 'signature' },
} as const

/** Responds as such an agent, written down as bytes: no code of this project encodes or decodes its messages. */
async function connectAgent(t: Test) {
  const applied: object[] = []
  let heartbeats = 0
  const coordinator = await startTunnelServer({
    ingest: {
      apply: async (_boxId, _epoch, reports) => void applied.push(...reports.map(({ report }) => report)),
      heartbeat: () => void heartbeats++,
      listeners: () => undefined,
    },
  })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const ws = openTunnelSocket(coordinator.url, box, { [PROTOCOL_HEADER]: '5' })
  t.after(() => ws.terminate())
  const received: Message[] = []
  const bodies: Record<string, string> = {}
  const acks: object[] = []
  const respond = (id: number, status: number, body = '') =>
    ws.send(`{"type":"response","id":${id},"status":${status}}\n${body}`)
  ws.on('message', (data: Buffer, isBinary) => {
    t.notOk(isBinary, 'the coordinator sends text only')
    const text = data.toString()
    const head: Message = JSON.parse(text.slice(0, text.indexOf('\n')))
    const body = text.slice(text.indexOf('\n') + 1)
    received.push(head)
    if (head.path !== undefined) bodies[head.path] = body
    if (head.path === '/reports/next') {
      const { isFirst, acks: newAcks } = JSON.parse(body)
      acks.push(...newAcks)
      if (!isFirst) return
      const report = { type: 'report', epoch: 'e', seq: 1, report: REPORT }
      respond(head.id, 200, `${JSON.stringify(HEARTBEAT)}\n${JSON.stringify(report)}\n`)
    } else if (head.path === '/upgrade') respond(head.id, 204)
    else if (head.path === '/restart') {
      respond(head.id, 204)
      ws.close()
    } else if (head.path === '/large')
      ws.send(`{"type":"response","id":${head.id},"status":200,"isStored":true}\n`)
    else if (head.type === 'request') respond(head.id, 200, '{"ok":true}')
  })
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  t.equal(tunnel.protocolVersion, 5)
  return { coordinator, box, ws, tunnel, received, bodies, applied, acks, countHeartbeats: () => heartbeats }
}

t.test('reports, and its reports are acknowledged', async (t) => {
  const { applied, acks, countHeartbeats, ws } = await connectAgent(t)
  await waitUntil('the report is acknowledged', () => acks.length === 1)
  t.match(acks, [{ epoch: 'e', seq: 1, now: Number }])
  t.match(applied, [REPORT])
  t.equal(countHeartbeats(), 1)
  t.equal(ws.readyState, ws.OPEN)
})

t.test('installs the build and restarts', async (t) => {
  const { coordinator, box, ws, tunnel, bodies } = await connectAgent(t)
  const closed = once(ws, 'close')
  await installBuild(tunnel, BUILD)
  t.same(JSON.parse(bodies['/upgrade'] ?? ''), BUILD)
  t.equal(await coordinator.tunnels.restartAgent(box.boxId, BUILD.buildId), true)
  t.match(JSON.parse(bodies['/restart'] ?? ''), { buildId: 'next', terminalHostVersions: [Number] })
  await closed
})

t.test('serves small requests, and fails others with a reason', async (t) => {
  const { ws, tunnel, received } = await connectAgent(t)
  const call = { method: 'POST', path: '/exec', timeoutMs: DEADLINE_MS } as const
  t.match(await tunnel.call({ ...call, body: '{"command":"true"}' }), { status: 200 })
  const reason = { code: 'box_unreachable', message: /earlier version/ }
  const count = received.length
  await t.rejects(tunnel.call({ ...call, body: 'x'.repeat(TUNNEL_LIMITS.messageBytes + 1) }), reason)
  t.equal(received.length, count, 'a large body is not sent')
  await t.rejects(tunnel.call({ ...call, path: '/large', maxBytes: () => 1_000_000 }), reason)
  const stored = received.find(({ path }) => path === '/large')
  await waitUntil('the agent discards the stored body', () =>
    received.some(({ type, id }) => type === 'cancel' && id === stored?.id),
  )
  t.equal(ws.readyState, ws.OPEN)
})
