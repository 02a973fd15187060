// The final reports of a box are collected before its machine stops.
import t from 'tap'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

t.test('collects reports before a suspend, a delete and Ctrl-C, while the machine runs', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState } = lifecycle
  const coordinator = await startLifecycle()
  const { id } = await boxes.create(owner, {})
  const other = await boxes.create(owner, {})
  await waitForState(id, 'running')
  await waitForState(other.id, 'running')
  const callsOf = (boxId: string) =>
    infra.calls
      .filter((call) => call.endsWith(boxId))
      .map((call) => call.split(' ')[0])
      .filter((method) => method === 'flushReports' || method === 'stop' || method === 'destroy')

  await boxes.suspend(owner, id)
  await waitForState(id, 'suspended')
  t.same(
    callsOf(id),
    ['flushReports', 'flushReports', 'stop'],
    'before the attempt to freeze, and before the stop',
  )
  await boxes.remove(owner, id)
  await waitForState(id, 'terminated')
  t.same(callsOf(id).slice(3), ['destroy'], 'the agent of a stopped machine never connects')
  await coordinator.suspendLocalBoxes('stopped')
  t.same(callsOf(other.id), ['flushReports', 'stop'])
})

t.test('waits for an agent that reconnects, and deletes a box whose agent does not respond', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, waitFor } = lifecycle
  await startLifecycle({ disconnectGraceMs: 60_000 })
  const [first, second] = [await boxes.create(owner, {}), await boxes.create(owner, {})]
  await waitForState(first.id, 'running')
  await waitForState(second.id, 'running')
  infra.dropTunnel(first.id)
  await boxes.remove(owner, first.id)
  await waitFor('the inspection', () => infra.countCalls('inspect', first.id) > 0)
  t.equal(infra.countCalls('destroy', first.id), 0)
  infra.connectAgent(first.id)
  await waitForState(first.id, 'terminated')
  t.ok(infra.calls.indexOf(`flushReports ${first.id}`) < infra.calls.indexOf(`destroy ${first.id}`))

  infra.flushFails = true
  await boxes.remove(owner, second.id)
  await waitForState(second.id, 'terminated')
})
