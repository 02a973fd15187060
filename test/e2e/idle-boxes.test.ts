// Idle times with a real box: what counts as activity, and that work is not cut. The idle times are at least 30 minutes, so
// the test sets the coordinator's clock ahead, and reads the idle time of the agent.

import t from 'tap'
import type { Clock } from '../../shared/clock.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { DEADLINE_MS, waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const MINUTE_MS = 60_000
/** Runs like the system's clock, and can be set ahead. */
function createAdjustableClock(): Clock & { advance(ms: number): void } {
  let offset = 0
  return {
    now: () => Date.now() + offset,
    advance(ms) {
      offset += ms
    },
  }
}

t.test('a box with work is not suspended for idleness, and an idle one is', async (t) => {
  const clock = createAdjustableClock()
  // The processes of the test are no load: a floor of a whole CPU.
  const env = limitsEnv({ ...HIGH_EDGE_LIMITS, idleCpuPercent: 100 })
  const coordinator = await startCoordinatorWithBox(t, { clock, env })
  const { api, box, boxRequest, exec, instance, url, key } = coordinator
  const { tunnels } = instance.context.edge
  await api('PATCH', `/boxes/${box.id}`, { autoPauseMin: 30 })

  const readIdleSeconds = async (): Promise<number> => {
    const tunnel = await tunnels.wait(box.id, DEADLINE_MS)
    const { body } = await tunnel.call({ method: 'GET', path: '/activity', timeoutMs: DEADLINE_MS })
    return JSON.parse(body.toString()).idleForSec
  }
  const findDueTime = async () => {
    const { db } = instance.context
    const row = await db
      .selectFrom('schedules')
      .select('due_at')
      .where('target_id', '=', box.id)
      .where('kind', '=', 'auto_pause')
      .executeTakeFirst()
    return row?.due_at ?? 0
  }
  /** Sets the clock to the due time, and waits until the schedule has been evaluated. Returns its new due time. */
  const evaluate = async () => {
    const dueBefore = await findDueTime()
    clock.advance(Math.max(0, dueBefore - clock.now()))
    instance.context.scheduler.runDue()
    return waitUntil('the idle time is evaluated', async () => {
      const dueTime = await findDueTime()
      return dueTime > dueBefore && dueTime
    })
  }
  const getDesiredState = async () => (await api('GET', `/boxes/${box.id}`)).json.box.desiredState

  await t.test('requests that only read are no activity', async (t) => {
    await waitUntil('the box is idle for 2 s', async () => (await readIdleSeconds()) >= 2)
    await boxRequest('GET', '/exec')
    await boxRequest('GET', '/processes')
    t.ok((await readIdleSeconds()) >= 2)
  })

  const { json: detached } = await boxRequest('POST', '/exec', { command: 'sleep 1000', detached: true })
  await t.test('a command that started in the last seconds is not cut', async (t) => {
    t.equal(await readIdleSeconds(), 0)
    // At first, the last heartbeat postpones the pause for seconds: it is older than the jump of the clock.
    await waitUntil('the agent is asked', async () => (await evaluate()) > clock.now() + 20 * MINUTE_MS)
    t.equal(await getDesiredState(), 'running')
    t.match((await boxRequest('GET', `/exec/${detached.processId}`)).json, { running: true })
  })

  await t.test('a followed stream is no activity when its command has exited', async (t) => {
    const { json } = await boxRequest('POST', '/exec', { command: 'sleep 3; sleep 1000', detached: true })
    const stream = await fetch(`${url}/v1/box/${box.hostname}/exec/${json.processId}/stream`, {
      headers: { authorization: `Bearer ${key}` },
    })
    t.equal(stream.status, 200)
    for (const { processId } of [detached, json]) await boxRequest('DELETE', `/exec/${processId}`)
    await waitUntil('the box is idle for 2 s', async () => (await readIdleSeconds()) >= 2)
    await stream.body?.cancel()
  })

  await t.test('a synchronous command in flight postpones the pause', async (t) => {
    const command = exec('sleep 5; echo complete')
    await waitUntil('the command runs', async () => (await readIdleSeconds()) === 0)
    await evaluate()
    t.equal(await getDesiredState(), 'running')
    t.match(await command, { exitCode: 0, stdout: 'complete\n' })
  })

  await t.test(
    'a terminal whose shell runs a command is activity, and a shell without client is not',
    async (t) => {
      const { json } = await boxRequest('POST', '/terminal/sessions', { command: 'sleep 1000' })
      t.equal(await readIdleSeconds(), 0)
      await boxRequest('DELETE', `/terminal/sessions/${json.session}`)
      await boxRequest('POST', '/terminal/sessions', {})
      await waitUntil('the box is idle for 2 s', async () => (await readIdleSeconds()) >= 2)
    },
  )

  await t.test('the idle box is suspended, and a command wakes it', async (t) => {
    // Half an hour passes only on the clock of the coordinator: the response of the agent is changed to match.
    const tunnel = await tunnels.wait(box.id, DEADLINE_MS)
    const { call } = tunnel
    tunnel.call = async (options) => {
      const response = await call(options)
      if (options.path !== '/activity') return response
      const { idleForSec } = JSON.parse(response.body.toString())
      const body = JSON.stringify({ idleForSec: idleForSec < 2 ? idleForSec : idleForSec + 1800 })
      return { ...response, body: Buffer.from(body) }
    }
    await waitUntil('the box is suspended', async () => {
      clock.advance(Math.max(0, (await findDueTime()) - clock.now()))
      instance.context.scheduler.runDue()
      return (await api('GET', `/boxes/${box.id}`)).json.box.observedState === 'suspended'
    })
    const { events } = (await api('GET', `/boxes/${box.id}`)).json
    t.ok(events.some(({ reason }: { reason: string }) => reason.startsWith('idle for 30 minutes')))
    t.match(await exec('echo awake'), { stdout: 'awake\n' })
  })
})
