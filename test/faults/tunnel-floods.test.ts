// Floods from one box: counted, ended and delayed, without an effect on other boxes.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import type { Vitals } from '../../shared/api/boxes.ts'
import { RECONNECT_AFTER_HEADER } from '../../shared/protocol.ts'
import { coordinatorMessageSchema, formatMessage, parseMessage } from '../../shared/tunnel-messages.ts'
import {
  type BoxIdentity,
  connectHostileAgent,
  FLOODS,
  flood,
  openTunnelSocket,
  readRejection,
} from '../support/hostile-agent.ts'
import { startOtherBox, startTestAgent, startTunnelServer, type TunnelServer } from '../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'

/** The time stands still, so that limits count and do not refill. */
const FROZEN_CLOCK = { now: () => 1_700_000_000_000 }

async function setUp(t: Test, options: Parameters<typeof startTunnelServer>[0] = {}) {
  const coordinator = await startTunnelServer({ clock: FROZEN_CLOCK, ...options })
  t.after(() => coordinator.close())
  return { coordinator, checkOtherBox: await startOtherBox(t, coordinator) }
}

const waitForDisconnect = ({ tunnels }: TunnelServer, { boxId }: BoxIdentity) =>
  new Promise<string>((resolve) =>
    tunnels.on('disconnected', (id, reason) => {
      if (id === boxId) resolve(reason)
    }),
  )

t.test('a flood disconnects its box, delays its next attempt and affects no other box', async (t) => {
  const { coordinator, checkOtherBox } = await setUp(t)
  for (const [name, send] of Object.entries(FLOODS)) {
    const box = coordinator.addBox()
    const ws = await connectHostileAgent(coordinator.url, box, () => undefined)
    t.after(() => ws.terminate())
    await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
    const reason = waitForDisconnect(coordinator, box)
    await flood(ws, send)
    t.match(await reason, /^the agent sent too many (messages|pings|pongs)$/, name)
    const { status, code, headers } = await readRejection(openTunnelSocket(coordinator.url, box))
    t.same({ status, code }, { status: 429, code: 'rate_limited' }, `${name}: the next attempt is refused`)
    t.ok(Number(headers[RECONNECT_AFTER_HEADER]) >= 30_000, 'with the time until the next one')
    await checkOtherBox()
  }
})

t.test('requests of clients raise the limit of messages, and requests for reports do not', async (t) => {
  const { coordinator } = await setUp(t)
  const box = coordinator.addBox()
  const agent = await startTestAgent(box, coordinator.url, (router) => {
    router.add('GET', '/hello', async () => 'hello')
  })
  t.after(() => agent.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  for (let i = 0; i < 200; i++) {
    const call = { method: 'GET', path: '/hello', timeoutMs: DEADLINE_MS } as const
    await Promise.all(Array.from({ length: 50 }, () => tunnel.call(call)))
  }
  t.equal(coordinator.tunnels.current(box.boxId), tunnel, '10,000 responses are no flood')
})

/** Some 600 KiB. */
const LINES_PER_RESPONSE = 4000

const VITALS: Vitals = {
  cpu_pct: 1,
  mem_pct: 1,
  disk_pct: 1,
  idle_for_sec: 1,
  listeners_count: 1,
  agent_version: '0',
}

t.test('tiny report lines are read in small batches, and each counts as 4 KiB', async (t) => {
  const heartbeats = new Set<number>()
  const { coordinator, checkOtherBox } = await setUp(t, {
    ingest: {
      apply: async () => undefined,
      listeners: () => undefined,
      heartbeat: (boxId, _vitals, at) => {
        if (boxId === box.boxId) heartbeats.add(at)
      },
    },
  })
  const box = coordinator.addBox()
  // More than the 12,288 lines that 48 MiB allow, in one burst.
  const lines = Array.from({ length: 40_000 }, (_, at) =>
    JSON.stringify({ type: 'heartbeat', at: at + 1, vitals: VITALS }),
  )
  let next = 0
  const ws = await connectHostileAgent(coordinator.url, box, (request) => {
    const text = lines.slice(next, next + LINES_PER_RESPONSE).join('\n')
    next += LINES_PER_RESPONSE
    request.respond(200, `${text}\n`)
  })
  t.after(() => ws.terminate())
  await waitUntil('the limit is reached', () => Math.max(0, ...heartbeats) >= 12_000)
  for (let i = 0; i < 20; i++) await checkOtherBox()
  const last = Math.max(...heartbeats)
  t.ok(last < 25_000, `${last} lines were read`)
  t.ok(heartbeats.size >= last / 128 - 1, `in ${heartbeats.size} batches`)
  const closed = once(ws, 'close')
  coordinator.tunnels.disconnect(box.boxId, 'the test is complete')
  await closed
})

t.test('an agent that responds to each request for reports at once is delayed', async (t) => {
  const { coordinator, checkOtherBox } = await setUp(t)
  for (const body of ['', `${JSON.stringify({ type: 'heartbeat', at: 1, vitals: VITALS })}\n`]) {
    const box = coordinator.addBox()
    const ws = openTunnelSocket(coordinator.url, box)
    t.after(() => ws.terminate())
    let requests = 0
    ws.on('message', (data: Buffer<ArrayBuffer>) => {
      const { head } = parseMessage(coordinatorMessageSchema, data)
      if (head.type !== 'request') return
      requests += 1
      ws.send(formatMessage({ type: 'response', id: head.id, status: 200 }, body))
    })
    // 48 MiB of responses that count as 32 KiB each.
    await waitUntil('the limit is reached', () => requests >= 1536)
    for (let i = 0; i < 20; i++) await checkOtherBox()
    t.ok(requests < 2000, `${requests} requests`)
    ws.terminate()
  }
})
