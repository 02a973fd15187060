// The lifecycle of a box, run by the reconciler: transitions, failures, retries and concurrent requests.
import t from 'tap'
import { createOperationService } from '../../../../coordinator/jobs/operations/service.ts'
import {
  PermanentProviderError,
  ProviderUnavailableError,
} from '../../../../coordinator/providers/provider.ts'
import { systemClock as clock } from '../../../../shared/clock.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createFailingFault, createHangingFault } from '../../../support/fake-infrastructure.ts'
import { findTarget } from '../../../support/owners.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('creates, suspends, wakes and deletes a box', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { db, infra, owner, boxes, startLifecycle, waitForState, listStates } = lifecycle
    await startLifecycle()
    const { id } = await boxes.create(owner, {})
    t.match(await waitForState(id, 'running'), {
      job: null,
      box: { isolation: { level: 'process' } },
      pausesSurvived: 0,
    })
    await boxes.suspend(owner, id)
    await waitForState(id, 'suspended')
    t.equal(infra.machines.get(id)?.state, 'stopped')
    await boxes.wake(owner, id)
    t.match(await waitForState(id, 'running'), { pausesSurvived: 0 })
    const { operation } = await boxes.remove(owner, id)
    const terminated = await waitForState(id, 'terminated')
    t.equal(infra.machines.size, 0)
    t.match(await createOperationService({ db, clock, findTarget }).get(owner, operation.id), {
      status: 'completed',
      completedAt: terminated.events[0]?.at,
    })
    t.match(await boxes.remove(owner, id), { operation: { id: operation.id, status: 'completed' } })
    t.same(await listStates(id), [
      ...['requested', 'provisioning', 'bootstrapping', 'running', 'suspending', 'suspended'],
      ...['waking', 'running', 'terminating', 'terminated'],
    ])
  })

  t.test(
    'retries a failed step, reports the failure, and retries immediately on a new request',
    async (t) => {
      const lifecycle = await createRestartableLifecycle(t, await newDb(t))
      const { infra, owner, boxes, startLifecycle, waitForState, getDetail, waitFor } = lifecycle
      infra.before.create = createFailingFault(1, new Error('the disk is full'))
      await startLifecycle({ backoff: () => 100_000 })
      const { id } = await boxes.create(owner, {})
      await waitFor('a failure', async () => (await getDetail(id)).job?.attempt === 1)
      t.match(await getDetail(id), {
        box: { observedState: 'provisioning' },
        job: { op: 'create', step: 'provision', lastError: 'the disk is full', nextRetryAt: /^2/ },
      })
      await startLifecycle()
      await boxes.wake(owner, id)
      t.equal(infra.countCalls('create'), 1, 'an unchanged desired state does not trigger a retry')
      await boxes.suspend(owner, id)
      await waitForState(id, 'suspended')
      t.equal(infra.countCalls('create'), 2, 'a changed desired state triggers a retry')
    },
  )

  t.test('a create that fails five times ends in provision_failed, with its machine stopped', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState } = lifecycle
    infra.agentsConnect = false
    await startLifecycle({ connectTimeoutMs: 1 })
    const { id } = await boxes.create(owner, {})
    t.match(await waitForState(id, 'provision_failed'), { box: { desiredState: 'running' } })
    t.equal(infra.countCalls('start'), 5)
    t.equal(infra.machines.get(id)?.state, 'stopped')
    await t.rejects(boxes.wake(owner, id), { code: 'box_failed' })
    await boxes.remove(owner, id)
    await waitForState(id, 'terminated')
  })

  t.test('does not retry a permanent failure', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState } = lifecycle
    infra.before.create = createFailingFault(1, new PermanentProviderError('no such kernel'))
    await startLifecycle()
    const { id } = await boxes.create(owner, {})
    t.match(await waitForState(id, 'provision_failed'), { events: [{ reason: 'no such kernel' }] })
    t.equal(infra.countCalls('create'), 1)
  })

  t.test('waits for a provider that cannot be reached, which counts as no attempt', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState, waitFor, getDetail } = lifecycle
    let isDown = true
    const failures: number[] = []
    const fault = () => {
      if (isDown) throw new ProviderUnavailableError('the engine is down')
    }
    for (const call of ['create', 'inspect', 'stop', 'destroy'] as const) infra.before[call] = fault
    const backoff = (count: number) => {
      failures.push(count)
      return 1
    }
    await startLifecycle({ backoff })
    const created = await boxes.create(owner, { name: 'created' })
    await waitFor('more failures than attempts', () => infra.countCalls('create', created.id) > 6)
    t.match(await getDetail(created.id), {
      box: { observedState: 'provisioning' },
      job: { op: 'create', attempt: 0, lastError: 'the engine is down' },
    })
    t.same(failures.slice(0, 6), [1, 2, 3, 4, 5, 6], 'the delays increase')
    const deleted = await boxes.create(owner, { name: 'deleted' })
    await waitFor('a failure', () => infra.countCalls('create', deleted.id) > 0)
    await boxes.remove(owner, deleted.id)
    await waitFor(
      'more attempts to delete than a spool has',
      () => infra.countCalls('inspect', deleted.id) > 4,
    )
    t.match(await getDetail(deleted.id), { box: { observedState: 'terminating' }, job: { attempt: 0 } })
    isDown = false
    await waitForState(created.id, 'running')
    await waitForState(deleted.id, 'terminated')
    t.equal(infra.machines.size, 1)
  })

  t.test('waits at most 30 s before it tries to reach a provider again', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitFor, getDetail } = lifecycle
    infra.before.create = createFailingFault(1, new ProviderUnavailableError('the engine is down'))
    await startLifecycle({ backoff: () => 60_000 })
    const { id } = await boxes.create(owner, {})
    await waitFor('a failure', async () => !!(await getDetail(id)).job?.nextRetryAt)
    const { job } = await getDetail(id)
    t.ok(Date.parse(job?.nextRetryAt ?? '') <= Date.now() + 30_000)
  })

  t.test('prepares a box after each start and before it is running, and retries a failure', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState, waitFor, getDetail } = lifecycle
    const prepared: string[] = []
    let failures = 1
    await startLifecycle({
      async prepareBox(id, signal) {
        signal.throwIfAborted()
        prepared.push((await getDetail(id)).box.observedState)
        t.ok(infra.tunnels.current(id), 'the agent is connected')
        if (failures-- > 0) throw new Error('the agent has disconnected')
      },
    })
    const { id } = await boxes.create(owner, {})
    await waitForState(id, 'running')
    t.same(prepared, ['bootstrapping', 'bootstrapping'])
    await boxes.suspend(owner, id)
    await waitForState(id, 'suspended')
    await boxes.wake(owner, id)
    await waitForState(id, 'running')
    t.same(prepared.slice(2), ['waking'])
    infra.powerOff(id)
    await waitFor('the recovery', () => prepared.length === 4)
    await waitForState(id, 'running')
    t.same(prepared.slice(3), ['degraded'])
  })

  t.test('runs a delete after the current step of a create', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState, listStates } = lifecycle
    const started = Promise.withResolvers<void>()
    const finish = Promise.withResolvers<void>()
    infra.before.create = () => {
      started.resolve()
      return finish.promise
    }
    await startLifecycle()
    const { id } = await boxes.create(owner, {})
    await started.promise
    await boxes.remove(owner, id)
    t.equal(infra.countCalls('destroy'), 0)
    finish.resolve()
    await waitForState(id, 'terminated')
    t.equal(infra.machines.size, 0)
    t.equal(infra.countCalls('start'), 0)
    t.same(await listStates(id), ['requested', 'provisioning', 'terminating', 'terminated'])
  })

  t.test('a delete interrupts waiting for the agent', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState, getDetail, waitFor } = lifecycle
    infra.agentsConnect = false
    await startLifecycle({ connectTimeoutMs: 60_000 })
    const { id } = await boxes.create(owner, {})
    await waitFor('the connect step', async () => (await getDetail(id)).job?.step === 'connect')
    await boxes.remove(owner, id)
    await waitForState(id, 'terminated')
  })

  t.test('quickly alternating requests end in the last desired state', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState } = lifecycle
    await startLifecycle()
    const { id } = await boxes.create(owner, {})
    for (let i = 0; i < 10; i++) {
      await boxes.suspend(owner, id)
      await new Promise((resolve) => setTimeout(resolve, i))
      await boxes.wake(owner, id)
    }
    await waitForState(id, 'running')
    t.equal(infra.machines.get(id)?.state, 'running')
    for (let i = 0; i < 10; i++) await (i % 2 ? boxes.suspend(owner, id) : boxes.wake(owner, id))
    await waitForState(id, 'suspended')
    t.equal(infra.machines.get(id)?.state, 'stopped')
  })

  t.test('a hanging provider call does not block other boxes', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState } = lifecycle
    const { fault } = createHangingFault()
    const hanging = await boxes.create(owner, { name: 'hanging' })
    infra.before.create = (id) => (id === hanging.id ? fault(id) : undefined)
    infra.agentsConnect = false
    await startLifecycle({ maxConcurrentMachines: 2 })
    const connecting = await boxes.create(owner, { name: 'connecting' })
    const deleted = await boxes.create(owner, { name: 'deleted' })
    await boxes.remove(owner, deleted.id)
    await waitForState(deleted.id, 'terminated')
    infra.connectAgent(connecting.id)
    await waitForState(connecting.id, 'running')
    await startLifecycle()
    infra.before.create = () => undefined
    infra.agentsConnect = true
  })
})
