// Stopping the coordinator, with its boxes (Ctrl-C) and without them.
import pLimit from 'p-limit'
import t from 'tap'
import { suspendLocalBoxes } from '../../../../coordinator/boxes/lifecycle/suspend-local-boxes.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { createFailingFault, createHangingFault } from '../../../support/fake-infrastructure.ts'
import { createFakeReplica } from '../../../support/replica.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

t.test('Ctrl-C suspends every box and the next start wakes them', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, getDetail, waitFor } = lifecycle
  const coordinator = await startLifecycle()
  const running = await boxes.create(owner, { name: 'running' })
  const suspended = await boxes.create(owner, { name: 'suspended' })
  await waitForState(running.id, 'running')
  await waitForState(suspended.id, 'running')
  await boxes.suspend(owner, suspended.id)
  await waitForState(suspended.id, 'suspended')
  infra.agentsConnect = false
  const starting = await boxes.create(owner, { name: 'starting' })
  await waitFor('the start of the third box', () => infra.countCalls('start', starting.id) === 1)

  t.same(await coordinator.suspendLocalBoxes('the coordinator was stopped'), {
    suspended: ['running'],
    stopped: ['starting'],
    failed: [],
    left: [],
  })
  t.same(
    [...infra.machines.values()].map((machine) => machine.state),
    ['stopped', 'stopped', 'stopped'],
  )
  t.match(await getDetail(running.id), {
    box: { desiredState: 'running', observedState: 'suspended' },
    job: null,
    events: [
      {
        toState: 'suspended',
        reason: /^the coordinator was stopped; its processes were terminated$/,
        actor: 'system',
      },
    ],
  })
  infra.agentsConnect = true
  await startLifecycle()
  await waitForState(running.id, 'running')
  await waitForState(starting.id, 'running')
  t.match(await getDetail(suspended.id), { box: { observedState: 'suspended' } })
})

t.test('the next start completes a failed suspend of a box, and wakes the box', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, getDetail } = lifecycle
  const coordinator = await startLifecycle()
  const { id, hostname } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  infra.before.stop = createFailingFault(1)
  t.same(await coordinator.suspendLocalBoxes('stopped'), {
    suspended: [],
    stopped: [],
    failed: [hostname],
    left: [],
  })
  t.match(await getDetail(id), { box: { observedState: 'suspending' } })
  await startLifecycle()
  await waitForState(id, 'running')
})

t.test('closing the coordinator does not stop running boxes', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState } = lifecycle
  const coordinator = await startLifecycle()
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  await coordinator.close()
  t.equal(infra.countCalls('stop'), 0)
  await startLifecycle()
  await waitForState(id, 'running')
  t.equal(infra.countCalls('start'), 1)
})

t.test('Ctrl-C ends when a machine does not stop, and while a step does not return', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, getDetail } = lifecycle
  const coordinator = await startLifecycle({
    closeTimeoutMs: 50,
    stopTimeoutMs: 50,
    maxConcurrentMachines: 1,
  })
  const stuck = await boxes.create(owner, { name: 'stuck' })
  const healthy = await boxes.create(owner, { name: 'healthy' })
  const deleted = await boxes.create(owner, { name: 'deleted' })
  for (const { id } of [stuck, healthy, deleted]) await waitForState(id, 'running')
  const { fault, triggered } = createHangingFault()
  infra.before.stop = fault
  await boxes.remove(owner, deleted.id)
  await triggered
  infra.before.stop = (boxId) => (boxId === stuck.id ? new Promise(() => undefined) : undefined)
  t.same(await coordinator.suspendLocalBoxes('stopped'), {
    suspended: ['healthy'],
    stopped: ['deleted'],
    failed: ['stuck'],
    left: [],
  })
  t.match(await getDetail(stuck.id), { box: { observedState: 'suspending' } })
  infra.before.stop = () => undefined
  await startLifecycle()
  await waitForState(stuck.id, 'running')
})

t.test('a box that only a coordinator can stop continues to run, and is named', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { db, infra, owner, boxes, startLifecycle, waitForState, getDetail } = lifecycle
  await startLifecycle()
  const { id, hostname } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  const options = {
    db,
    clock: systemClock,
    log: { warn: () => undefined, error: () => undefined },
    replica: createFakeReplica(),
    providers: { inRegion: () => infra.provider },
    canStop: ({ provider }: { provider: string }) => provider === 'local',
    tunnels: null,
    machineLimit: pLimit(1),
  }
  const result = await suspendLocalBoxes(options, 'stopped')
  t.same(result, { suspended: [], stopped: [], failed: [], left: [hostname] })
  t.match(await getDetail(id), { box: { observedState: 'running' } })
  t.equal(infra.machines.get(id)?.state, 'running')
})

t.test('the machine of a box that waits for its files is stopped', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState } = lifecycle
  // No reconciler runs, as while the files of a fork are copied.
  const { id, hostname } = await boxes.create(owner, {})
  infra.machines.set(id, { state: 'running', token: '', files: '' })
  const options = {
    db: lifecycle.db,
    clock: systemClock,
    log: { warn: () => undefined, error: () => undefined },
    replica: createFakeReplica(),
    providers: { inRegion: () => infra.provider },
    tunnels: null,
    machineLimit: pLimit(1),
  }
  const result = await suspendLocalBoxes(options, 'stopped')
  t.same(result, { suspended: [], stopped: [hostname], failed: [], left: [] })
  t.equal(infra.machines.get(id)?.state, 'stopped')
  await startLifecycle()
  await waitForState(id, 'running')
})
