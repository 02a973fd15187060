// Agents are untrusted: whatever an agent sends through its tunnel, the coordinator and its other boxes keep working.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import type { WebSocket } from 'ws'
import { PROTOCOL_VERSION } from '../../shared/protocol.ts'
import { connectHostileAgent, openTunnelSocket, readRejection } from '../support/hostile-agent.ts'
import { startReportingAgent } from '../support/reporting-agent.ts'
import { startOtherBox, startTunnelServer } from '../support/tunnel.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Starts a coordinator with two boxes: `box` without an agent, and one whose agent must stay reachable. */
async function setUp(t: Test, handshakeTimeoutMs = 200) {
  const coordinator = await startTunnelServer({ handshakeTimeoutMs })
  t.after(() => coordinator.close())
  const checkOtherBox = await startOtherBox(t, coordinator)
  return { coordinator, box: coordinator.addBox(), checkOtherBox }
}

t.test('rejects an agent with a reason before the WebSocket upgrade', async (t) => {
  const { coordinator, box } = await setUp(t)
  const other = coordinator.addBox()
  const version = (value: string) => ({ 'boxwood-protocol': value })
  const cases: [string, Record<string, string>, number, string][] = [
    ['no token', { authorization: '' }, 401, 'unauthorized'],
    ['a wrong token', { authorization: 'Bearer bxt_wrong' }, 401, 'unauthorized'],
    ["another box's token", { authorization: `Bearer ${other.token}` }, 401, 'unauthorized'],
    ['a malformed box id', { 'boxwood-box': '../../etc' }, 401, 'unauthorized'],
    ['protocol version 1', version('1'), 426, 'agent_protocol_unsupported'],
    ['two versions back', version(String(PROTOCOL_VERSION - 2)), 426, 'agent_protocol_unsupported'],
    ['the next version', version(String(PROTOCOL_VERSION + 1)), 426, 'agent_protocol_unsupported'],
    ['a version with a leading zero', version(`0${PROTOCOL_VERSION}`), 426, 'agent_protocol_unsupported'],
    ['a version that is not a number', version('x'), 426, 'agent_protocol_unsupported'],
    ['no version', version(''), 426, 'agent_protocol_unsupported'],
    ['an oversized instance id', { 'boxwood-instance': 'x'.repeat(5000) }, 400, 'bad_request'],
    ['no instance id', { 'boxwood-instance': '' }, 400, 'bad_request'],
    ['an agent version with a space', { 'boxwood-agent-version': '0 0' }, 400, 'bad_request'],
    ['an oversized failed build', { 'boxwood-failed-build': 'x'.repeat(65) }, 400, 'bad_request'],
  ]
  for (const [name, headers, status, code] of cases) {
    t.match(await readRejection(openTunnelSocket(coordinator.url, box, headers)), { status, code }, name)
  }
})

t.test('an agent that sends random bytes, text or nothing is disconnected, and no other', async (t) => {
  const { coordinator, box, checkOtherBox } = await setUp(t)
  const cases: [string, (ws: WebSocket) => void][] = [
    ['random bytes', (ws) => ws.send(Buffer.alloc(100_000, 0xa5))],
    ['text', (ws) => ws.send('GET / HTTP/1.1\r\n\r\n')],
    ['a message above the limit', (ws) => ws.send(Buffer.alloc(5 * 1024 * 1024))],
    [
      'empty messages, then random bytes',
      (ws) => {
        for (let i = 0; i < 1000; i++) ws.send(Buffer.alloc(0))
        ws.send(Buffer.alloc(64, 1))
      },
    ],
    ['no response', () => undefined],
  ]
  for (const [name, misbehave] of cases) {
    const ws = openTunnelSocket(coordinator.url, box, {}, { autoPong: name !== 'no response' })
    const closed = once(ws, 'close')
    await once(ws, 'open')
    misbehave(ws)
    await closed
    t.equal(coordinator.tunnels.current(box.boxId), undefined, name)
    await checkOtherBox()
  }
})

t.test('invalid report lines close the connection', async (t) => {
  const { coordinator, box, checkOtherBox } = await setUp(t)
  const started = { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'b', agentVersion: 'v' }
  const line = (seq: number, report: unknown) =>
    `${JSON.stringify({ type: 'report', epoch: 'e', seq, report })}\n`
  const cases: [string, string, RegExp][] = [
    ['not JSON', 'hello\n', /not JSON/],
    ['an oversized line', 'x'.repeat(300_000), /longer than/],
    ['a sequence number of 0', line(0, started), /seq must be/],
    ['thousands of values', line(1, { ...started, extra: Array(20_000).fill(0) }), /JSON tokens/],
    ['a report that is a number', line(1, 7), /must be a JSON object/],
  ]
  for (const [name, text, reason] of cases) {
    const disconnected = new Promise<string>((resolve) =>
      coordinator.tunnels.on('disconnected', (_boxId, reason) => resolve(reason)),
    )
    const ws = await connectHostileAgent(coordinator.url, box, (request) => request.respond(200, text))
    t.match(await disconnected, reason, name)
    if (ws.readyState !== ws.CLOSED) await once(ws, 'close')
    t.equal(coordinator.tunnels.current(box.boxId), undefined, name)
    await checkOtherBox()
  }
})

t.test('skips and acknowledges a report of an unknown type, which a newer agent may send', async (t) => {
  const { coordinator, box, checkOtherBox } = await setUp(t)
  const report = { type: 'report', epoch: 'e', seq: 7, report: { type: 'weather', sun: true } }
  const agent = await startReportingAgent(t, box, coordinator.url)
  agent.send([report])
  t.match(await waitUntil('the report is acknowledged', agent.lastAck), { epoch: 'e', seq: 7, now: Number })
  t.ok(coordinator.tunnels.current(box.boxId), 'the box stays connected')
  await checkOtherBox()
})
