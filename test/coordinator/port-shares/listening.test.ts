// The listening ports of a box: shown while the report is recent and the box runs.
import t from 'tap'
import { createHeartbeats, type Heartbeats } from '../../../coordinator/boxes/lifecycle/heartbeats.ts'
import { findListening } from '../../../coordinator/port-shares/listening.ts'
import type { Vitals } from '../../../shared/api/boxes.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createLimitedKey } from '../../support/limited-key.ts'
import { createRestartableLifecycle } from '../../support/restartable-lifecycle.ts'
import { createTestClock } from '../../support/workspace.ts'

const vitals: Vitals = {
  cpu_pct: null,
  mem_pct: null,
  disk_pct: null,
  idle_for_sec: 0,
  listeners_count: 0,
  agent_version: '1.2.3',
}
const web = { port: 80, process: 'node', pid: 7 }
const ssh = { port: 22, process: null, pid: null }

onEachDatabase(t, async (t, newDb) => {
  t.test('a list stays until the box has been silent for three minutes, or stops', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { db, owner, boxes, startLifecycle, waitForState } = lifecycle
    await startLifecycle()
    const { id } = await boxes.create(owner, {})
    const silent = await boxes.create(owner, {})
    for (const boxId of [id, silent.id]) await waitForState(boxId, 'running')

    const clock = createTestClock()
    const start = () =>
      createHeartbeats({ db, clock, log: { error: () => t.fail('an error was logged') }, flushMs: 1e6 })
    let heartbeats: Heartbeats = start()
    const find = async (boxId = id) => {
      const recent = { heartbeat: heartbeats.latest(boxId), ports: heartbeats.latestPorts(boxId) }
      return findListening(await boxes.find(owner, boxId), recent, clock.now())
    }
    const at = () => new Date(clock.now()).toISOString()

    t.equal(await find(), null, 'nothing has been reported')
    heartbeats.record(silent.id, vitals)
    heartbeats.recordPorts(id, [web])
    heartbeats.recordPorts(id, [web, ssh])
    t.strictSame(await find(), { at: at(), ports: [ssh, web] }, 'before the list is written')
    heartbeats.record(id, vitals)
    await heartbeats.close()
    t.equal(heartbeats.latestPorts(id), undefined, 'the memory is released')
    heartbeats = start()
    t.strictSame(await find(), { at: at(), ports: [ssh, web] }, 'after a restart of the coordinator')
    t.equal(await find(silent.id), null, 'an agent that reports no ports')

    clock.advance(3 * 60_000)
    t.not(await find(), null)
    clock.advance(1)
    t.equal(await find(), null, 'silent for three minutes')
    heartbeats.record(id, vitals)
    t.strictSame(await find(), { at: at(), ports: [ssh, web] }, 'a heartbeat confirms the list')
    clock.advance(3 * 60_000 + 1)
    heartbeats.recordPorts(id, [])
    t.strictSame(await find(), { at: at(), ports: [] }, 'the box has closed its ports')

    await heartbeats.flush()
    heartbeats.recordPorts(id, [web])
    await boxes.suspend(owner, id)
    await waitForState(id, 'suspended')
    t.equal(await find(), null)
    await heartbeats.flush()
    await boxes.wake(owner, id)
    await waitForState(id, 'running')
    heartbeats.record(id, vitals)
    t.equal(await find(), null, 'ports of before the suspend are not shown again')
    heartbeats.recordPorts(id, [ssh])
    t.match(await find(), { ports: [ssh] })
    await heartbeats.close()
  })
})

t.test('GET port-shares describes the ports of a box that the key may access', async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { api, instance, waitForState } = coordinator
  const { id } = (await api('GET', '/boxes')).json.boxes[0]
  await waitForState(id, 'running')
  t.match((await api('GET', `/boxes/${id}/port-shares`)).json, { listening: null })
  instance.context.heartbeats.recordPorts(id, [web])
  const { status, json } = await api('GET', `/boxes/${id}/port-shares`)
  t.equal(status, 200)
  t.match(json, { shares: [], listening: { at: String, ports: [web] } })
  const other = (await api('POST', '/boxes', { name: 'plum' })).json.box
  for (const [limits, expected] of [
    [{ boxIds: [other.id] }, 404],
    [{ boxIds: [id] }, 200],
    [{ access: { boxes: 'none' } }, 403],
    [{ access: { boxes: 'read' } }, 200],
  ] as const) {
    const key = await createLimitedKey(coordinator, {
      ...limits,
      ...('boxIds' in limits && { boxIds: [...limits.boxIds] }),
    })
    t.equal((await api('GET', `/boxes/${id}/port-shares`, undefined, { key })).status, expected)
  }
})
