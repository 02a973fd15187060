// Leases: of several coordinators on one database, only one runs a step.
import t from 'tap'
import { claimNextStep, completeStep, failStep } from '../../../../coordinator/boxes/lifecycle/claim.ts'
import { createLeases } from '../../../../coordinator/jobs/leases.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('a claim is exclusive until it is released or expires', async (t) => {
    const { db, owner, boxes } = await createRestartableLifecycle(t, await newDb(t))
    const leases = createLeases(db, 'jobs')
    const { id } = await boxes.create(owner, {})
    const lease = (leaseOwner: string, now: number) => ({ owner: leaseOwner, now, leaseMs: 1000 })
    const results = await Promise.all([
      claimNextStep(db, id, lease('a', 5000)),
      claimNextStep(db, id, lease('b', 5000)),
    ])
    const claims = results.flatMap((result) =>
      typeof result === 'object' && 'claim' in result ? [result.claim] : [],
    )
    t.equal(claims.length, 1)
    const [claim] = claims
    if (!claim) return
    const firstWon = typeof results[0] === 'object' && 'claim' in results[0]
    const [winner, loser] = firstWon ? ['a', 'b'] : ['b', 'a']
    t.equal(await leases.renew(id, lease(winner, 5500)), true)
    t.same(await claimNextStep(db, id, lease(loser, 6400)), { dueAt: 6500 })
    t.match(
      await claimNextStep(db, id, lease(loser, 6501)),
      { claim: { step: 'provision' } },
      'an expired claim can be taken over',
    )
    t.equal(await leases.renew(id, lease(winner, 6502)), false)
    await completeStep(db, claim, {}, { owner: winner, now: 6503 })
    t.match(
      await boxes.get(owner, id),
      { job: { step: 'provision' } },
      'a result is ignored after the lease has expired',
    )
    await leases.release(id, loser)
    t.match(await claimNextStep(db, id, lease(winner, 6504)), { claim: { step: 'provision' } })
  })

  t.test('ignores the result of a step whose job has been replaced', async (t) => {
    const { db, owner, boxes } = await createRestartableLifecycle(t, await newDb(t))
    const { id } = await boxes.create(owner, {})
    await db.deleteFrom('jobs').execute()
    await db.updateTable('boxes').set({ observed_state: 'running' }).execute()
    await boxes.suspend(owner, id)
    const lease = { owner: 'a', now: 5000, leaseMs: 1000 }
    const result = await claimNextStep(db, id, lease)
    if (typeof result === 'string' || !('claim' in result)) return t.fail('no step was claimed')
    await boxes.remove(owner, id)
    await completeStep(db, result.claim, {}, lease)
    const failure = { message: 'simulated failure', kind: 'attempt', retryAt: 9e12 } as const
    await failStep(db, result.claim, failure, lease)
    t.match(await boxes.get(owner, id), {
      box: { observedState: 'suspending' },
      job: { op: 'delete', step: 'collect', attempt: 0, lastError: null },
    })
    t.match(await claimNextStep(db, id, lease), { claim: { op: 'delete' } })
  })

  t.test('three coordinators create, start and stop each machine once', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { infra, owner, boxes, startLifecycle, waitForState } = lifecycle
    // A start releases all leases.
    const coordinators = await Promise.all([startLifecycle(), startLifecycle(), startLifecycle()])
    const created = await Promise.all(Array.from({ length: 12 }, () => boxes.create(owner, {})))
    const scheduleOnAll = (id: string) => {
      for (const coordinator of coordinators) coordinator.schedule(id)
    }
    for (const { id } of created) scheduleOnAll(id)
    for (const { id } of created) await waitForState(id, 'running')
    for (const { id } of created) {
      await boxes.suspend(owner, id)
      scheduleOnAll(id)
    }
    for (const { id } of created) await waitForState(id, 'suspended')
    for (const { id } of created) {
      t.equal(infra.countCalls('create', id), 1)
      t.equal(infra.countCalls('start', id), 1)
      t.equal(infra.countCalls('stop', id), 1)
    }
    await Promise.all(coordinators.map((coordinator) => coordinator.close()))
  })
})
