// The HTTP/2 session of a tunnel is opened by the first stream, and closed when it has not been used for some minutes.
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { addJsonRoute } from '../../../../agent/requests/json-routes.ts'
import type { Session } from '../../../../coordinator/agents/tunnel/session.ts'
import { TUNNEL_LIMITS } from '../../../../shared/limits.ts'
import { openTunnelSocket } from '../../../support/hostile-agent.ts'
import { readAll, startTestAgent, startTunnelServer } from '../../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

const IDLE_MS = 5 * 60_000

async function connect(t: Test) {
  const coordinator = await startTunnelServer()
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const open = new PassThrough()
  const agent = await startTestAgent(box, coordinator.url, (app) => {
    app.get('/hello', async () => 'hello')
    app.get('/open', (_request, reply) => reply.send(open))
    addJsonRoute(app, 'GET', '/json', () => ({ ok: true }))
  })
  t.after(() => agent.close())
  let sessions = 0
  let openSessions = 0
  agent.app.server.on('session', (session) => {
    sessions += 1
    openSessions += 1
    session.once('close', () => {
      openSessions -= 1
    })
  })
  const session = (await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)) as Session
  const hello = async () => {
    const { body } = await session.request({ method: 'GET', path: '/hello' })
    return (await readAll(body)).toString()
  }
  const call = async () =>
    (await session.call({ method: 'GET', path: '/json', timeoutMs: DEADLINE_MS })).status
  return { coordinator, box, open, session, hello, call, count: () => ({ sessions, openSessions }) }
}

t.test('is opened again after it was closed', async (t) => {
  const { session, hello, call, count } = await connect(t)
  t.equal(await call(), 200)
  t.same(count(), { sessions: 0, openSessions: 0 }, 'calls and reports need no session')
  t.equal(await hello(), 'hello')
  session.runLivenessCheck(IDLE_MS / 2)
  t.equal(await hello(), 'hello')
  session.runLivenessCheck(IDLE_MS / 2)
  t.equal(await hello(), 'hello')
  t.same(count(), { sessions: 1, openSessions: 1 }, 'a session that is used stays open')

  for (let closed = 1; closed <= 3; closed++) {
    session.runLivenessCheck(IDLE_MS)
    // The agent has not closed its side yet.
    const next = hello()
    t.equal(await call(), 200)
    t.equal(await next, 'hello')
    await waitUntil('the agent has closed the previous session', () => count().openSessions === 1)
    t.equal(count().sessions, closed + 1)
  }
  session.runLivenessCheck(IDLE_MS)
  await waitUntil('the session is closed', () => count().openSessions === 0)
  t.equal(await call(), 200)
  t.same(count(), { sessions: 4, openSessions: 0 })
})

t.test('is not closed while a stream is open', async (t) => {
  const { session, open, count, hello } = await connect(t)
  open.write('in')
  const { body } = await session.request({ method: 'GET', path: '/open' })
  session.runLivenessCheck(IDLE_MS)
  session.runLivenessCheck(IDLE_MS)
  open.end('complete')
  t.equal((await readAll(body)).toString(), 'incomplete')
  t.equal(await hello(), 'hello')
  t.same(count(), { sessions: 1, openSessions: 1 })
})

t.test('an agent that does not close its side is disconnected', async (t) => {
  const { coordinator } = await connect(t)
  const box = coordinator.addBox()
  const ws = openTunnelSocket(coordinator.url, box)
  t.after(() => ws.terminate())
  const session = (await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)) as Session
  const closed = once(ws, 'close')
  const controller = new AbortController()
  const first = session.request({ method: 'GET', path: '/', signal: controller.signal })
  controller.abort(new Error('aborted'))
  await t.rejects(first, { message: 'aborted' })
  session.runLivenessCheck(IDLE_MS)
  const body = 'x'.repeat(TUNNEL_LIMITS.messageBytes + 1)
  await t.rejects(session.call({ method: 'POST', path: '/', body, timeoutMs: 20 }), { message: /in time/ })
  const waiting = session.request({ method: 'GET', path: '/' })
  session.runLivenessCheck(31_000)
  await t.rejects(waiting, { code: 'box_unreachable' })
  await closed
  t.equal(await session.closed, 'the agent did not close its HTTP/2 session')
})
