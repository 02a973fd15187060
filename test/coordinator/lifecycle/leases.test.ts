// Several coordinators on one database: no step is run by two of them.
import t from 'tap'
import { claimNext, release, renew, stepDone, stepFailed } from '../../../coordinator/lifecycle/claim.ts'
import { setUp } from '../../support/coordinators.ts'
import { onEachDatabase } from '../../support/db.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('a claim is held until it ends, is given back or runs out', async (t) => {
    const { db, owner, boxes } = await setUp(t, await newDb(t))
    const { id } = await boxes.create(owner, {})
    const lease = (who: string, now: number) => ({ owner: who, now, leaseMs: 1000 })
    const both = await Promise.all([claimNext(db, id, lease('a', 5000)), claimNext(db, id, lease('b', 5000))])
    const winners = both.flatMap((claimed) =>
      typeof claimed === 'object' && 'claim' in claimed ? [claimed.claim] : [],
    )
    t.equal(winners.length, 1)
    const [claim] = winners
    if (!claim) return
    const [mine, other] = typeof both[0] === 'object' && 'claim' in both[0] ? ['a', 'b'] : ['b', 'a']
    t.equal(await renew(db, id, lease(mine, 5500)), true)
    t.same(await claimNext(db, id, lease(other, 6400)), { dueAt: 6500 })
    t.match(await claimNext(db, id, lease(other, 6501)), { claim: { step: 'provision' } }, 'it ran out')
    t.equal(await renew(db, id, lease(mine, 6502)), false)
    await stepDone(db, claim, {}, { owner: mine, now: 6503 })
    t.match(
      await boxes.get(owner, id),
      { job: { step: 'provision' } },
      'what a late one reports is not believed',
    )
    await release(db, id, other)
    t.match(await claimNext(db, id, lease(mine, 6504)), { claim: { step: 'provision' } })
  })

  t.test('a step that ends after something else was wanted does not speak for that', async (t) => {
    const { db, owner, boxes } = await setUp(t, await newDb(t))
    const { id } = await boxes.create(owner, {})
    await db.deleteFrom('jobs').execute()
    await db.updateTable('boxes').set({ observed_state: 'running' }).execute()
    await boxes.suspend(owner, id)
    const lease = { owner: 'a', now: 5000, leaseMs: 1000 }
    const claimed = await claimNext(db, id, lease)
    if (typeof claimed === 'string' || !('claim' in claimed)) return t.fail('nothing was claimed')
    await boxes.remove(owner, id)
    await stepDone(db, claimed.claim, {}, lease)
    const failure = { message: 'no', permanent: false, retryAt: () => 9e12 }
    await stepFailed(db, claimed.claim, failure, lease)
    t.match(await boxes.get(owner, id), {
      box: { observedState: 'suspending' },
      job: { op: 'delete', step: 'destroy', attempt: 0, lastError: null },
    })
    t.match(await claimNext(db, id, lease), { claim: { op: 'delete' } })
  })

  t.test('three at once, many boxes: each machine is made and started once', async (t) => {
    const { world, owner, boxes, newLife, until } = await setUp(t, await newDb(t))
    const created = await Promise.all(Array.from({ length: 12 }, () => boxes.create(owner, {})))
    const lives = await Promise.all([newLife(), newLife(), newLife()])
    const everywhere = (id: string) => {
      for (const life of lives) life.poke(id)
    }
    for (const { id } of created) everywhere(id)
    for (const { id } of created) await until(id, 'running')
    for (const { id } of created) {
      await boxes.suspend(owner, id)
      everywhere(id)
    }
    for (const { id } of created) await until(id, 'suspended')
    for (const { id } of created) {
      t.equal(world.count('create', id), 1)
      t.equal(world.count('start', id), 1)
      t.equal(world.count('stop', id), 1)
    }
    await Promise.all(lives.map((life) => life.close()))
  })
})
