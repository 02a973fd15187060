// Boxes whose agent is disconnected: left alone while their machine runs, restarted when it has stopped.
import t from 'tap'
import { lockBox } from '../../../../coordinator/db/lock-box.ts'
import { transaction } from '../../../../coordinator/db/transaction.ts'
import { createFailingFault } from '../../../support/fake-infrastructure.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

t.test('restarts a machine that has stopped by itself', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, listStates, waitFor } = lifecycle
  // The time limit of the test is shorter: the stopped machine is noticed without the grace period.
  await startLifecycle({ disconnectGraceMs: 60_000 })
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.powerOff(id)
  await waitFor('a second start', () => infra.countCalls('start') === 2)
  t.match(await waitForState(id, 'running'), { pausesSurvived: 0 })
  t.same((await listStates(id)).slice(-3), ['running', 'degraded', 'running'])
})

t.test('restarts a machine that stops after its agent has disconnected', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, waitFor } = lifecycle
  await startLifecycle({ disconnectGraceMs: 60_000 })
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.dropTunnel(id)
  await waitFor('the first inspection', () => infra.countCalls('inspect') === 1)
  t.equal(infra.countCalls('start'), 1)
  infra.powerOff(id)
  await waitFor('a second start', () => infra.countCalls('start') === 2)
  await waitForState(id, 'running')
})

t.test('retries when a machine cannot be inspected', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, waitFor } = lifecycle
  await startLifecycle({ disconnectGraceMs: 60_000 })
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.before.inspect = createFailingFault(1)
  infra.powerOff(id)
  await waitFor('a second start', () => infra.countCalls('start') === 2)
  await waitForState(id, 'running')
})

t.test('reports a running machine without a connection as degraded and never restarts it', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, getDetail, waitFor } = lifecycle
  await startLifecycle()
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.dropTunnel(id)
  await waitFor('several inspections', () => infra.countCalls('inspect') > 3)
  t.match(await getDetail(id), {
    box: { observedState: 'degraded' },
    job: {
      op: 'recover',
      step: 'inspect',
      lastError: 'The machine is running, but its agent is not connected.',
    },
  })
  infra.connectAgent(id)
  await waitForState(id, 'running')
  t.equal(infra.countCalls('stop'), 0)
  t.equal(infra.countCalls('start'), 1)
})

t.test('recovers a degraded box as soon as its agent reconnects', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, getDetail, waitFor } = lifecycle
  await startLifecycle({ backoff: () => 1_000_000 })
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.dropTunnel(id)
  await waitFor('a pending retry', async () => (await getDetail(id)).job?.nextRetryAt != null)
  infra.connectAgent(id)
  await waitForState(id, 'running')
})

t.test('ignores a short disconnection', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, listStates, waitFor } = lifecycle
  const coordinator = await startLifecycle({ disconnectGraceMs: 60_000 })
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.dropTunnel(id)
  await waitFor('the inspection', () => infra.countCalls('inspect') === 1)
  infra.connectAgent(id)
  await coordinator.close()
  t.equal(infra.countCalls('start'), 1)
  t.same((await listStates(id)).at(-1), 'running')
})

t.test('does not recover a box whose agent has connected after the inspection', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { db, infra, owner, boxes, startLifecycle, waitForState, listStates } = lifecycle
  const { tunnels } = infra
  const { current } = tunnels
  const connected = Promise.withResolvers<void>()
  let isStopped = false
  await startLifecycle({ disconnectGraceMs: 60_000 })
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.after.inspect = () => {
    isStopped = true
  }
  // The agent connects between the check after the inspection and the transaction that would create the job.
  tunnels.current = (boxId) => {
    const tunnel = current(boxId)
    if (isStopped && tunnel === undefined) {
      isStopped = false
      delete infra.after.inspect
      infra.connectAgent(id)
      connected.resolve()
    }
    return tunnel
  }
  infra.powerOff(id)
  await connected.promise
  // SQLite runs one transaction after the other.
  await transaction(db, async (trx) => lockBox(trx, id))
  await waitForState(id, 'running')
  t.same(await listStates(id), ['requested', 'provisioning', 'bootstrapping', 'running'])
})

t.test('starts machines that stopped while the coordinator was down', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, waitFor } = lifecycle
  const first = await startLifecycle()
  const [stopped, running] = [await boxes.create(owner, {}), await boxes.create(owner, {})]
  await waitForState(stopped.id, 'running')
  await waitForState(running.id, 'running')
  await first.close()
  infra.powerOff(stopped.id)
  infra.dropTunnel(running.id)
  await startLifecycle({ disconnectGraceMs: 60_000 })
  await waitFor('a second start', () => infra.countCalls('start', stopped.id) === 2)
  await waitForState(stopped.id, 'running')
  t.equal(infra.countCalls('start', running.id), 1, 'a running machine has time to reconnect')
})

t.test('starts a machine that stopped while the archive of its box could not be removed', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { db, infra, owner, boxes, startLifecycle, waitForState, waitFor } = lifecycle
  const first = await startLifecycle()
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  await first.close()
  const leftovers = JSON.stringify([{ region: 'us-west-2', machine: false, archiveId: 'arc_1' }])
  await db.updateTable('boxes').set({ leftovers }).execute()
  infra.before.removeArchive = createFailingFault(Number.POSITIVE_INFINITY)
  const second = await startLifecycle({ backoff: () => 1_000_000 })
  await waitFor('the failed removal', () => infra.countCalls('removeArchive') === 1)
  await second.close()
  infra.powerOff(id)
  await startLifecycle({ backoff: () => 1_000_000 })
  await waitFor('a second start', () => infra.countCalls('start') === 2)
  await waitFor('the recovery', async () => (await lifecycle.listStates(id)).at(-1) === 'running')
})

t.test('suspends and deletes a disconnected box', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, getDetail, waitFor } = lifecycle
  await startLifecycle()
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.dropTunnel(id)
  await waitFor('the degraded state', async () => (await getDetail(id)).box.observedState === 'degraded')
  await boxes.suspend(owner, id)
  await waitForState(id, 'suspended')
  await boxes.remove(owner, id)
  await waitForState(id, 'terminated')
})
