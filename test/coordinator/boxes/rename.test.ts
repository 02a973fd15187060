// The rename of a box: in every state, with the old name free immediately, and names that are taken.
import t from 'tap'
import { OBSERVED_STATES } from '../../../shared/field-values.ts'
import { onEachDatabase } from '../../support/db.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('a box is renamed in every state in which it exists, and its old name is free', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const { id } = await boxes.create(owner, { name: 'fig' })
    const states = OBSERVED_STATES.filter((state) => !state.startsWith('terminat'))
    for (const [index, state] of states.entries()) {
      await db.updateTable('boxes').set({ observed_state: state }).where('id', '=', id).execute()
      const [oldName, name] = [index === 0 ? 'fig' : `fig-${index - 1}`, `fig-${index}`]
      t.match(await boxes.patch(owner, id, { name }), { hostname: name }, state)
      t.match((await boxes.get(owner, id)).events[0], {
        fromState: state,
        toState: state,
        reason: `renamed from ${oldName} to ${name}`,
        actor: `user:${owner.userId}`,
      })
      await t.rejects(boxes.resolve(owner, oldName), { code: 'not_found' })
      t.match(await boxes.resolve(owner, name), { id })
    }
    t.match(await boxes.create(owner, { name: 'fig' }), { hostname: 'fig' })
    await db.updateTable('boxes').set({ desired_state: 'terminated' }).where('id', '=', id).execute()
    await t.rejects(boxes.patch(owner, id, { name: 'late' }), { code: 'not_found' })
  })

  t.test('an enrolled machine is renamed too', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const { id } = await boxes.create(owner, { name: 'fig' })
    await db
      .updateTable('boxes')
      .set({ kind: 'machine', observed_state: 'degraded' })
      .where('id', '=', id)
      .execute()
    t.match(await boxes.patch(owner, id, { name: 'rack1' }), { hostname: 'rack1', kind: 'machine' })
  })

  t.test('the own name is no change, and settings of the same request are written', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const owner = await createOwner(db, clock)
    const boxes = createTestBoxService(db, { clock })
    const { id } = await boxes.create(owner, { name: 'fig' })
    t.match(await boxes.patch(owner, id, { name: 'fig', autoPauseMin: 60 }), {
      hostname: 'fig',
      autoPauseMin: 60,
    })
    t.equal((await boxes.get(owner, id)).events.length, 1)
  })

  t.test(
    'a taken name is refused and changes nothing; of two concurrent requests one gets the name',
    async (t) => {
      const db = await newDb(t)
      const owner = await createOwner(db)
      const boxes = createTestBoxService(db)
      const fig = await boxes.create(owner, { name: 'fig' })
      const plum = await boxes.create(owner, { name: 'plum' })
      await t.rejects(boxes.patch(owner, fig.id, { name: 'plum', autoPauseMin: 60 }), {
        code: 'name_taken',
        message: 'A box named plum already exists. Choose another name.',
      })
      t.match((await boxes.get(owner, fig.id)).box, { hostname: 'fig', autoPauseMin: null })
      const results = await Promise.allSettled(
        [fig, plum].map(({ id }) => boxes.patch(owner, id, { name: 'lime' })),
      )
      const refusals = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
      t.match(refusals, [{ code: 'name_taken' }])
      t.match(await boxes.resolve(owner, 'lime'), { hostname: 'lime' })
    },
  )
})
