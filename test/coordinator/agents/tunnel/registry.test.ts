// The registry of sessions, and how a new connection replaces an old one.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { WebSocket } from 'ws'
import { createRegistry } from '../../../../coordinator/agents/tunnel/registry.ts'
import type { Session } from '../../../../coordinator/agents/tunnel/session.ts'
import { PROTOCOL_VERSION, TUNNEL_PATH } from '../../../../shared/protocol.ts'
import { startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

/** A session that only records why it was destroyed. */
function createFakeSession(boxId: string, generation: number): Session & { destroyReason?: string } {
  const session = {
    boxId,
    generation,
    destroy(reason: string) {
      session.destroyReason = reason
    },
  } as unknown as Session & { destroyReason?: string }
  return session
}

t.test('the late close of a replaced session does not remove the newer one', async (t) => {
  const registry = createRegistry()
  const disconnected: string[] = []
  registry.events.on('disconnected', (boxId) => disconnected.push(boxId))
  const [first, second] = [createFakeSession('box', 1), createFakeSession('box', 2)]
  t.ok(registry.activate(first))
  t.ok(registry.activate(second))
  t.match(first.destroyReason, /newer/)
  registry.remove(first, 'closed late')
  t.equal(registry.get('box'), second)
  t.same(disconnected, [])
  registry.remove(second, 'closed')
  t.equal(registry.get('box'), undefined)
  t.same(disconnected, ['box'])
})

t.test('a session that is ready late does not replace a newer one', async (t) => {
  const registry = createRegistry()
  const [older, newer] = [createFakeSession('box', 1), createFakeSession('box', 2)]
  t.ok(registry.activate(newer))
  t.notOk(registry.activate(older))
  t.equal(registry.get('box'), newer)
  t.equal(newer.destroyReason, undefined)
})

t.test('waiting for a box settles on connect, on timeout and on abort', async (t) => {
  const registry = createRegistry()
  const session = createFakeSession('box', 1)
  const waiting = registry.wait('box', DEADLINE_MS)
  registry.activate(session)
  t.equal(await waiting, session)
  await t.rejects(registry.wait('other', 5), { code: 'box_unreachable' })
  const abort = new AbortController()
  const aborted = registry.wait('other', DEADLINE_MS, abort.signal)
  abort.abort(new Error('aborted'))
  await t.rejects(aborted, { message: 'aborted' })
})

t.test('rejects a second agent with the same token while the first one is connected', async (t) => {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const first = await startTestAgent(box, coordinator.url)
  t.after(() => first.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  let attempts = 0
  const second = await startTestAgent(box, coordinator.url, undefined, {
    readToken: async () => {
      attempts += 1
      return box.token
    },
  })
  t.after(() => second.close())
  await waitUntil('the second agent has tried three times', () => attempts > 3)
  t.equal(coordinator.tunnels.current(box.boxId), tunnel)

  await first.close()
  const next = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  await waitUntil(
    'the second agent is connected',
    () => coordinator.tunnels.current(box.boxId)?.instanceId === second.instanceId,
  )
  t.ok(next.generation > tunnel.generation)
})

t.test('rejects a token that is replaced while the current connection is probed', async (t) => {
  const coordinator = await startTunnelServer({ probeTimeoutMs: 50 })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const open = (instanceId: string) =>
    new WebSocket(coordinator.url + TUNNEL_PATH, {
      headers: {
        authorization: `Bearer ${box.token}`,
        'boxwood-box': box.boxId,
        'boxwood-protocol': String(PROTOCOL_VERSION),
        'boxwood-agent-version': '1',
        'boxwood-instance': instanceId,
      },
      autoPong: false,
    }).on('error', () => undefined)
  const unresponsive = open('first')
  t.after(() => unresponsive.terminate())
  // The coordinator accepts an agent that responds to its first ping.
  unresponsive.once('ping', () => unresponsive.pong())
  await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  unresponsive.once('ping', () => coordinator.tokens.set(box.boxId, 'replaced'))
  const second = open('second')
  t.after(() => second.terminate())
  const status = await new Promise((resolve) => {
    second.once('open', () => resolve(101))
    second.once('unexpected-response', (_request, response: IncomingMessage) => resolve(response.statusCode))
  })
  t.equal(status, 401)
})

t.test('a reconnect of the same agent replaces its older connection immediately', async (t) => {
  const coordinator = await startTunnelServer({ probeTimeoutMs: 60_000 })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const instanceId = randomUUID()
  const disconnected: string[] = []
  coordinator.tunnels.on('disconnected', (boxId) => disconnected.push(boxId))
  const older = await startTestAgent(box, coordinator.url, undefined, {
    instanceId,
    backoff: { baseMs: 1e9, maxMs: 1e9 },
  })
  const first = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const newer = await startTestAgent(box, coordinator.url, undefined, {
    instanceId,
    backoff: { baseMs: 1e9, maxMs: 1e9 },
  })
  t.after(() => Promise.all([older.close(), newer.close()]))
  await waitUntil('the newer connection is active', () => coordinator.tunnels.current(box.boxId) !== first)
  t.same(disconnected, [], 'the box stayed connected')
  await t.rejects(first.call({ method: 'GET', path: '/', timeoutMs: DEADLINE_MS }), {
    code: 'box_unreachable',
  })
})
