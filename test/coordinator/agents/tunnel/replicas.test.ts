// Tunnels of several coordinators on one database: an agent is connected to one of them, and all of them reach it.
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { createStreamDialer } from '../../../../agent/tunnel/stream-dialer.ts'
import {
  AGENT_VERSION_HEADER,
  BOX_HEADER,
  INSTANCE_HEADER,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
} from '../../../../shared/protocol.ts'
import { decodeFrame } from '../../../../shared/stream-frames.ts'
import { startSharedPostgres } from '../../../support/shared-databases.ts'
import { readAll, startTestAgent } from '../../../support/tunnel.ts'
import { createTunnelReplicas, type TunnelReplica } from '../../../support/tunnel-replicas.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

const { skip, newDatabase } = await startSharedPostgres(t)

const CALL = { method: 'GET', path: '/name', timeoutMs: DEADLINE_MS } as const

const getName = async ({ tunnels }: TunnelReplica, boxId: string) => {
  const tunnel = await tunnels.wait(boxId, DEADLINE_MS)
  const { body } = await tunnel.call(CALL)
  return JSON.parse(body.toString()).name
}

async function startReplicas(test: Test) {
  const startReplica = createTunnelReplicas(test, await newDatabase())
  const [first, second] = [await startReplica(), await startReplica()]
  const box = first.addBox()
  const startAgent = async ({ url }: { url: string }, name: string, options = {}) => {
    const agent = await startTestAgent(
      box,
      url,
      (router) => {
        router.add('GET', '/name', () => ({ name }))
        router.add('GET', '/large', () => ({ text: 'x'.repeat(300_000) }))
      },
      options,
    )
    test.teardown(() => agent.close())
    return agent
  }
  return { first, second, startReplica, box, boxId: box.boxId, startAgent }
}

/** The status of a connection attempt of another agent with the token of the box. */
const tryConnect = ({ url }: TunnelReplica, { boxId, token }: { boxId: string; token: string }) =>
  new Promise<number>((resolve, reject) => {
    const ws = new WebSocket(`${url.replace('http', 'ws')}/agent/tunnel`, {
      headers: {
        authorization: `Bearer ${token}`,
        [BOX_HEADER]: boxId,
        [PROTOCOL_HEADER]: String(PROTOCOL_VERSION),
        [INSTANCE_HEADER]: 'another-process',
        [AGENT_VERSION_HEADER]: '1.0.0',
      },
    })
    ws.once('open', () => {
      ws.terminate()
      resolve(101)
    })
    ws.once('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0))
    ws.once('error', reject)
  })

t.test('an agent is reached through the other coordinator', { skip }, async (t) => {
  const { first, second, boxId, startAgent } = await startReplicas(t)
  const waiting = getName(second, boxId)
  await startAgent(first, 'a')
  t.equal(await waiting, 'a', 'also by a request that waited for it')
  t.not(first.tunnels.local(boxId), undefined)
  t.equal(second.tunnels.local(boxId), undefined)
  const tunnel = second.tunnels.current(boxId)
  t.equal(tunnel, second.tunnels.current(boxId), 'one object')
  const { status, body } = (await tunnel?.call({ ...CALL, path: '/large', maxBytes: () => 1e6 })) ?? {}
  t.equal(status, 200)
  t.equal(JSON.parse(String(body)).text.length, 300_000)
  await t.rejects(Promise.resolve(tunnel?.call({ ...CALL, path: '/large', maxBytes: () => 1000 })), {
    code: 'exec_failed',
  })
})

t.test('a coordinator that starts knows the agents of the others', { skip }, async (t) => {
  const { first, startReplica, boxId, startAgent } = await startReplicas(t)
  await startAgent(first, 'a')
  await first.tunnels.wait(boxId, DEADLINE_MS)
  // Its boxes would be recovered otherwise.
  const third = await startReplica()
  t.not(third.tunnels.current(boxId), undefined)
  t.equal(await getName(third, boxId), 'a')
})

t.test('an agent that connects to another coordinator leaves the first one', { skip }, async (t) => {
  const { first, second, boxId, startAgent } = await startReplicas(t)
  // The first coordinator does not notice that the connection of the agent is lost.
  const agent = await startAgent(first, 'a')
  t.equal(await getName(second, boxId), 'a')
  const disconnected: string[] = []
  first.tunnels.on('disconnected', (id) => disconnected.push(id))
  const again = await startAgent(second, 'b', { instanceId: agent.instanceId })
  await waitUntil('the tunnel at the second one', () => second.tunnels.local(boxId) !== undefined)
  await agent.close()
  await waitUntil('the first one has none', () => first.tunnels.local(boxId) === undefined)
  t.equal(await getName(first, boxId), 'b')
  // The first agent may have connected again before it was closed.
  t.same([...new Set(disconnected)], [boxId])
  await again.close()
  await waitUntil('no coordinator has one', () => first.tunnels.current(boxId) === undefined)
  t.equal(second.tunnels.current(boxId), undefined)
})

t.test('a second agent with the token is refused while the first one is alive', { skip }, async (t) => {
  const { first, second, box, boxId, startAgent } = await startReplicas(t)
  await startAgent(first, 'a')
  t.equal(await getName(second, boxId), 'a')
  t.equal(await tryConnect(second, box), 409)
  first.cutOff()
  t.equal(await tryConnect(second, box), 503, 'the other coordinator does not answer: it may be connected')
  await first.loseLease()
  t.equal(await tryConnect(second, box), 101, 'the other coordinator is not alive')
})

t.test('a coordinator without a lease has no agents', { skip }, async (t) => {
  const { first, second, box, boxId, startAgent } = await startReplicas(t)
  let target = first.url
  const agent = await startAgent(first, 'a', { readUrl: async () => target })
  t.equal(await getName(second, boxId), 'a')
  const events: string[] = []
  second.tunnels.on('disconnectedElsewhere', (id) => events.push(`disconnected ${id}`))
  target = second.url
  await first.loseLease()
  await waitUntil('the agent connects to the other one', () => second.tunnels.local(boxId) !== undefined)
  t.same(events, [`disconnected ${boxId}`])
  t.equal(first.tunnels.local(boxId), undefined)
  t.equal(await tryConnect(first, box), 503)
  await agent.close()
})

t.test('a connection that the agent dials back may arrive at any coordinator', { skip }, async (t) => {
  const { first, second, box, boxId, startAgent } = await startReplicas(t)
  await startAgent(first, 'a')
  const dialer = createStreamDialer({
    ...box,
    readUrl: async () => first.url,
    readToken: async () => box.token,
  })
  t.teardown(() => dialer.close())
  const stream = second.tunnels.streams.expect(boxId)
  const frame = { event: 'stdout', stdoutOffset: 5, stderrOffset: 0, bytes: Buffer.from('hello') } as const
  const sent = dialer.send(stream.id, async function* () {
    yield { ...frame, bytes: Buffer.from('hello') }
  })
  const frames = []
  for await (const message of await stream.connection) frames.push(decodeFrame(message))
  await sent
  t.match(frames, [{ event: 'stdout' }])

  const headers = { authorization: `Bearer ${box.token}`, [BOX_HEADER]: boxId }
  const upload = second.tunnels.transfers.expect(boxId)
  const body = Buffer.alloc(3_000_000, 'a')
  const put = fetch(`${first.url}/agent/transfers/${upload.id}`, { method: 'PUT', headers, body })
  const { request, response } = await upload.connection
  t.same(await readAll(request), body)
  response.end('stored')
  t.equal(await (await put).text(), 'stored')

  for (const id of [`${second.id}-unknown`, `rep_unknown-${'0'.repeat(32)}`, 'unknown'])
    t.equal((await fetch(`${first.url}/agent/transfers/${id}`, { headers })).status, 404, id)
  const other = first.addBox()
  const stolen = second.tunnels.transfers.expect(boxId)
  const otherHeaders = { authorization: `Bearer ${other.token}`, [BOX_HEADER]: other.boxId }
  const refused = await fetch(`${first.url}/agent/transfers/${stolen.id}`, { headers: otherHeaders })
  t.equal(refused.status, 404, 'the token of another box')
  stolen.discard()
})

t.test('a tunnel is closed through the other coordinator', { skip }, async (t) => {
  const { first, second, box, boxId, startAgent } = await startReplicas(t)
  const agent = await startAgent(first, 'a')
  t.equal(await getName(second, boxId), 'a')
  // The agent cannot connect again.
  first.tokens.set(boxId, 'another token')
  second.tunnels.disconnect(boxId, 'the box is deleted')
  t.equal(second.tunnels.current(boxId), undefined, 'at once')
  await waitUntil('the tunnel is closed', () => first.tunnels.current(boxId) === undefined)
  await agent.close()
  first.tokens.set(boxId, box.token)
})
