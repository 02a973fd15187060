// Leases: of several coordinators on one database, only one runs a step.
import t from 'tap'
import { claimNextStep, completeStep, failStep } from '../../../../coordinator/boxes/lifecycle/claim.ts'
import { createLeases } from '../../../../coordinator/jobs/leases.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { addReplica, createFakeReplica, startSharedReplica, TEST_HOST } from '../../../support/replica.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'

const HOUR_MS = 60 * 60_000

onEachDatabase(t, async (t, newDb) => {
  t.test('a claim is exclusive until it is released or its coordinator is not alive', async (t) => {
    const { db, owner, boxes } = await createRestartableLifecycle(t, await newDb(t))
    const { id } = await boxes.create(owner, {})
    const claimant = (replicaId: string) => ({ owner: replicaId, host: TEST_HOST, now: 5000 })
    await addReplica(db, 'a', HOUR_MS)
    await addReplica(db, 'b', HOUR_MS)
    const results = await Promise.all([
      claimNextStep(db, id, claimant('a')),
      claimNextStep(db, id, claimant('b')),
    ])
    const claims = results.flatMap((result) =>
      typeof result === 'object' && 'claim' in result ? [result.claim] : [],
    )
    t.equal(claims.length, 1)
    const [claim] = claims
    if (!claim) return
    const firstWon = typeof results[0] === 'object' && 'claim' in results[0]
    const [winner, loser] = firstWon ? ['a', 'b'] : ['b', 'a']
    const leases = (replicaId: string) => createLeases(db, 'jobs', createFakeReplica(replicaId))
    t.equal(await claimNextStep(db, id, claimant(loser)), 'leased')
    t.same(await leases(loser).listDueIds(6400), [])
    t.same(await leases(winner).listDueIds(6400), [id], 'it may have failed to release the job')
    await addReplica(db, winner, -1)
    t.same(await leases(loser).listDueIds(6400), [id])
    t.match(
      await claimNextStep(db, id, claimant(loser)),
      { claim: { step: 'provision' } },
      'the claim of a coordinator that is not alive can be taken over',
    )
    await completeStep(db, claim, {}, claimant(winner))
    t.match(await boxes.get(owner, id), { job: { step: 'provision' } }, 'its result is ignored')
    await addReplica(db, winner, HOUR_MS)
    t.equal(await claimNextStep(db, id, claimant(winner)), 'leased')
    await leases(loser).release(id)
    t.match(await claimNextStep(db, id, claimant(winner)), { claim: { step: 'provision' } })
  })

  t.test('ignores the result of a step whose job has been replaced', async (t) => {
    const { db, owner, boxes } = await createRestartableLifecycle(t, await newDb(t))
    const { id } = await boxes.create(owner, {})
    await db.deleteFrom('jobs').execute()
    await db.updateTable('boxes').set({ observed_state: 'running' }).execute()
    await boxes.suspend(owner, id)
    const lease = { owner: 'a', host: TEST_HOST, now: 5000 }
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
    const replicas = await Promise.all([1, 2, 3].map(() => startSharedReplica(lifecycle.db)))
    const coordinators = await Promise.all(replicas.map((replica) => startLifecycle({ replica })))
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
    await Promise.all(replicas.map((replica) => replica.close()))
  })
})
