// Which boxes whom: lists, ids, names.
import t from 'tap'
import { newUuid } from '../../../shared/ids.ts'
import { onEachDatabase } from '../../support/db.ts'
import { boxesOf, join, ownerOf, testClock } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('lists are newest first, and live ones leave out what is terminated', async (t) => {
    const db = await newDb(t)
    const clock = testClock()
    const owner = await ownerOf(db, clock)
    const boxes = boxesOf(db, { clock })
    const created = []
    for (const name of ['fig', 'kiwi', 'plum']) {
      created.push(await boxes.create(owner, { name }))
      clock.advance(1)
    }
    const [fig] = created
    await db.updateTable('boxes').set({ terminated_at: 1 }).where('hostname', '=', 'kiwi').execute()
    t.same(
      (await boxes.list(owner)).map((box) => box.hostname),
      ['plum', 'kiwi', 'fig'],
    )
    t.same(
      (await boxes.list(owner, { live: true })).map((box) => box.hostname),
      ['plum', 'fig'],
    )
    t.equal((await boxes.resolve(owner, 'fig')).id, fig?.id)
    await t.rejects(boxes.resolve(owner, 'kiwi'), { code: 'not_found' }, 'the name is free again')
    await t.resolves(boxes.create(owner, { name: 'kiwi' }))
  })

  t.test('unknown, malformed, foreign and hidden boxes are not found', async (t) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const boxes = boxesOf(db)
    const [mine, other] = [
      await boxes.create(owner, { name: 'mine' }),
      await boxes.create(owner, { name: 'other' }),
    ]
    const limited = await join(db, owner, { role: 'member', boxIds: [mine.id] })
    const contractor = await join(db, owner, { role: 'contractor' })
    const foreigner = { ...owner, workspaceId: 'ws_other' }

    t.same(
      (await boxes.list(limited)).map((box) => box.hostname),
      ['mine'],
    )
    t.same(await boxes.list(contractor), [])
    t.same(await boxes.list(foreigner), [])
    await t.resolves(boxes.get(limited, mine.id))
    for (const [actor, id] of [
      [owner, newUuid()],
      [owner, 'mine'],
      [owner, "'; drop table boxes; --"],
      [owner, mine.id.toUpperCase()],
      [limited, other.id],
      [contractor, mine.id],
      [foreigner, mine.id],
    ] as const) {
      for (const ask of [boxes.get, boxes.wake, boxes.suspend, boxes.remove]) {
        await t.rejects(async () => ask(actor, id), { code: 'not_found' }, `${actor.role}: ${id}`)
      }
    }
    for (const [actor, name] of [
      [limited, 'other'],
      [contractor, 'mine'],
      [foreigner, 'mine'],
      [owner, ''],
      [foreigner, mine.id],
    ] as const) {
      await t.rejects(boxes.resolve(actor, name), { code: 'not_found' }, name)
    }
    t.match(await boxes.list(owner), [{ desiredState: 'running' }, { desiredState: 'running' }])
  })
})
