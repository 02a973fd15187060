// A coordinator killed during any lifecycle step: the next coordinator completes the operation.
import t from 'tap'
import { createOperationService } from '../../../../coordinator/jobs/operations/service.ts'
import { systemClock as clock } from '../../../../shared/clock.ts'
import { createHangingFault } from '../../../support/fake-infrastructure.ts'
import { findTarget } from '../../../support/owners.ts'
import {
  createRestartableLifecycle,
  type RestartableLifecycle,
} from '../../../support/restartable-lifecycle.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

const PROVIDER_CALLS = {
  create: ['create', 'start'],
  suspend: ['stop'],
  wake: ['start'],
  delete: ['stop', 'destroy'],
} as const

type Op = keyof typeof PROVIDER_CALLS

/** Creates a box, brings it to the initial state of the operation, injects the fault, and requests the operation. */
async function requestOperation(
  op: Op,
  { owner, boxes, waitForState }: RestartableLifecycle,
  injectFault: () => void,
) {
  if (op === 'create') {
    injectFault()
    return { id: (await boxes.create(owner, {})).id, finalState: 'running' as const }
  }
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  if (op === 'wake') {
    await boxes.suspend(owner, id)
    await waitForState(id, 'suspended')
  }
  injectFault()
  if (op === 'suspend') await boxes.suspend(owner, id)
  if (op === 'wake') await boxes.wake(owner, id)
  if (op === 'delete') await boxes.remove(owner, id)
  const finalStates = { suspend: 'suspended', wake: 'running', delete: 'terminated' } as const
  return { id, finalState: finalStates[op] }
}

for (const [op, calls] of Object.entries(PROVIDER_CALLS) as [
  Op,
  readonly ('create' | 'start' | 'stop' | 'destroy')[],
][]) {
  for (const call of calls) {
    for (const moment of ['before', 'after'] as const) {
      t.test(`completes a ${op} after a kill ${moment} the provider's ${call}`, async (t) => {
        const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
        const { infra, startLifecycle, waitForState, getDetail } = lifecycle
        await startLifecycle()
        const { fault, triggered } = createHangingFault()
        const { id, finalState } = await requestOperation(op, lifecycle, () => {
          infra[moment][call] = fault
        })
        await triggered
        delete infra[moment][call]
        t.equal((await getDetail(id)).job?.op, op)
        await startLifecycle()
        await waitForState(id, finalState)
        t.match(
          infra.machines.get(id)?.state,
          finalState === 'terminated' ? undefined : finalState === 'running' ? 'running' : 'stopped',
        )
      })
    }
  }
}

t.test('continues to wait for an agent after a restart', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, getDetail, waitFor } = lifecycle
  infra.agentsConnect = false
  const firstLifecycle = await startLifecycle()
  const { id } = await boxes.create(owner, {})
  await waitFor('the connect step', async () => (await getDetail(id)).job?.step === 'connect')
  await firstLifecycle.close()
  t.equal((await getDetail(id)).job?.step, 'connect', 'closing leaves the job unchanged')
  infra.powerOff(id)
  await startLifecycle()
  await waitFor('a second start', () => infra.countCalls('start') === 2)
  infra.connectAgent(id)
  await waitForState(id, 'running')
  t.equal(infra.countCalls('create'), 1)
})

t.test('runs operations that were accepted before the coordinator was killed', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { db, infra, owner, boxes, startLifecycle, waitForState } = lifecycle
  const { id } = await boxes.create(owner, {})
  const deletedBox = await boxes.create(owner, {})
  const { operation } = await boxes.remove(owner, deletedBox.id)
  await startLifecycle()
  await waitForState(id, 'running')
  await waitForState(deletedBox.id, 'terminated')
  t.match(await createOperationService({ db, clock, findTarget }).get(owner, operation.id), {
    status: 'completed',
  })
  t.equal(infra.countCalls('create', deletedBox.id), 0)
})

t.test(
  'freezes a box whose agent reconnects to a coordinator that was killed during the suspend',
  async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
    const { infra, owner, boxes, startLifecycle, waitForState, waitFor } = lifecycle
    infra.canFreeze = true
    await startLifecycle({ disconnectGraceMs: 0 })
    const { id } = await boxes.create(owner, {})
    await waitForState(id, 'running')
    const { fault, triggered } = createHangingFault()
    infra.before.freeze = fault
    await boxes.suspend(owner, id)
    await triggered
    delete infra.before.freeze
    infra.dropTunnel(id)
    await waitFor('the inspection of the disconnected box', () => infra.countCalls('inspect', id) === 1)
    await startLifecycle({ agentReconnectMs: 60_000 })
    await waitFor('the inspection of the box to suspend', () => infra.countCalls('inspect', id) === 2)
    infra.connectAgent(id)
    const { box } = await waitForState(id, 'suspended')
    t.equal(box.suspendedAs, 'frozen')
    t.equal(infra.countCalls('stop', id), 0, 'the processes of the box still exist')
  },
)

t.test('a coordinator that closes does not stop the box whose agent it waits for', async (t) => {
  const lifecycle = await createRestartableLifecycle(t, await sqliteForTest(t))
  const { infra, owner, boxes, startLifecycle, waitForState, getDetail, waitFor } = lifecycle
  infra.canFreeze = true
  const first = await startLifecycle()
  const { id } = await boxes.create(owner, {})
  await waitForState(id, 'running')
  await first.close()
  infra.dropTunnel(id)
  await boxes.suspend(owner, id)
  const second = await startLifecycle({ agentReconnectMs: 60_000 })
  await waitFor('the inspection', () => infra.countCalls('inspect', id) > 0)
  await second.close()
  t.match((await getDetail(id)).job, { op: 'suspend', step: 'freeze', attempt: 0 })
  infra.connectAgent(id)
  await startLifecycle()
  const { box } = await waitForState(id, 'suspended')
  t.equal(box.suspendedAs, 'frozen')
})
