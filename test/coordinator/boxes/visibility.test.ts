// Which boxes an actor can list, and find by id or name.
import t from 'tap'
import { newId, newUuid } from '../../../shared/ids.ts'
import { onEachDatabase } from '../../support/db.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test(
    'lists boxes newest first, and without terminated ones when only live boxes are requested',
    async (t) => {
      const db = await newDb(t)
      const clock = createTestClock()
      const owner = await createOwner(db, clock)
      const boxes = createTestBoxService(db, { clock })
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
      await t.rejects(
        boxes.resolve(owner, 'kiwi'),
        { code: 'not_found' },
        'a terminated box does not resolve by name',
      )
      await t.resolves(boxes.create(owner, { name: 'kiwi' }))
    },
  )

  t.test('lists the live box with a name, and boxes with an id or the start of an id', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const fig = await boxes.create(owner, { name: 'fig' })
    await db.updateTable('boxes').set({ terminated_at: 1 }).where('hostname', '=', 'fig').execute()
    const later = await boxes.create(owner, { name: 'fig' })
    const foreign = { ...owner, workspaceId: newId('workspace') }
    const list = async (box: string, actor = owner) =>
      (await boxes.list(actor, { box })).map(({ id }) => id).sort()
    for (const text of [
      '',
      'plum',
      'FIG',
      fig.id.slice(0, 7),
      `${fig.id}0`,
      'ffffffffffffffff',
      "fig' or '1",
    ])
      t.same(await list(text), [], text)
    t.same(await list('fig'), [later.id])
    for (const { id } of [fig, later])
      for (const length of [8, 9, 13, 36]) t.same(await list(id.slice(0, length)), [id])
    t.same(await list(later.id, foreign), [])
    const limited = { ...owner, boxIds: [fig.id] }
    for (const text of ['fig', later.id, later.id.slice(0, 8)]) t.same(await list(text, limited), [], text)
    t.same(await list(fig.id.slice(0, 8), limited), [fig.id])
    t.same((await boxes.listPage(owner, { box: 'fig', live: true, limit: 1 })).boxes, [later])
  })

  t.test('lists the box with a name that was deleted last, of those that the actor may see', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const contractor = await addUser(db, owner, { role: 'contractor' })
    const create = async (actor: typeof owner, deletedAt: number | null) => {
      const { id } = await boxes.create(actor, { name: 'fig' })
      if (deletedAt !== null)
        await db.updateTable('boxes').set({ terminated_at: deletedAt }).where('id', '=', id).execute()
      return id
    }
    const first = await create(contractor, 1)
    const last = await create(owner, 3)
    const second = await create(owner, 2)
    const live = await create(owner, null)
    const list = async (box: string, actor = owner) =>
      (await boxes.list(actor, { box, deleted: true })).map(({ id }) => id)
    t.same(await list('fig'), [last])
    t.same(await list('fig', contractor), [first])
    t.same(await list('fig', { ...owner, boxIds: [second, live] }), [second])
    t.same(await list('fig', { ...owner, boxIds: [live] }), [])
    t.same(await list('fig', { ...owner, workspaceId: newId('workspace') }), [])
    t.same(await list('plum'), [])
    t.same(await list(live), [])
    t.same(await list(live.slice(0, 8)), [])
    t.same(await list(second), [second])
    t.same(await list(first.slice(0, 13)), [first])
    t.same(await list(first, { ...owner, boxIds: [last] }), [])
    t.match(await boxes.listPage(owner, { box: 'fig', deleted: true, limit: 1 }), {
      boxes: [{ id: last }],
      nextBefore: null,
    })
  })

  t.test('lists boxes by page', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const owner = await createOwner(db, clock)
    const boxes = createTestBoxService(db, { clock })
    // All are created in the same millisecond.
    for (const name of ['fig', 'kiwi', 'plum', 'lime', 'date']) await boxes.create(owner, { name })
    await db.updateTable('boxes').set({ terminated_at: 1 }).where('hostname', '=', 'kiwi').execute()
    const all = (await boxes.list(owner)).map(({ id }) => id)
    const listPages = async (query: { live?: true }) => {
      const pages: string[][] = []
      for (let before: string | undefined; ; ) {
        const page = await boxes.listPage(owner, { ...query, limit: 2, ...(before && { before }) })
        pages.push(page.boxes.map(({ id }) => id))
        if (!page.nextBefore) return pages
        before = page.nextBefore
      }
    }
    t.same(await listPages({}), [all.slice(0, 2), all.slice(2, 4), all.slice(4)])
    t.same(
      (await listPages({ live: true })).map((page) => page.length),
      [2, 2],
    )
    for (const before of ['x', Buffer.from('1.p_1').toString('base64url')])
      await t.rejects(boxes.listPage(owner, { limit: 2, before }), { code: 'invalid_cursor' })
    const limited = await addUser(db, owner, { role: 'member', boxIds: all.slice(0, 1) })
    t.match(await boxes.listPage(limited, { limit: 2 }), { boxes: [{ id: all[0] }], nextBefore: null })
  })

  t.test('throws not_found for unknown and malformed ids, and for boxes the actor may not see', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const [box, other] = [
      await boxes.create(owner, { name: 'fig' }),
      await boxes.create(owner, { name: 'kiwi' }),
    ]
    const limited = await addUser(db, owner, { role: 'member', boxIds: [box.id] })
    const contractor = await addUser(db, owner, { role: 'contractor' })
    const otherWorkspace = { ...owner, workspaceId: 'ws_other' }

    t.same(
      (await boxes.list(limited)).map((box) => box.hostname),
      ['fig'],
    )
    t.same(await boxes.list(contractor), [])
    t.same(await boxes.list(otherWorkspace), [])
    await t.resolves(boxes.get(limited, box.id))
    for (const [actor, id] of [
      [owner, newUuid()],
      [owner, 'fig'],
      [owner, "'; drop table boxes; --"],
      [owner, box.id.toUpperCase()],
      [limited, other.id],
      [contractor, box.id],
      [otherWorkspace, box.id],
    ] as const) {
      for (const call of [boxes.get, boxes.wake, boxes.suspend, boxes.remove]) {
        await t.rejects(async () => call(actor, id), { code: 'not_found' }, `${actor.role}: ${id}`)
      }
    }
    for (const [actor, name] of [
      [limited, 'kiwi'],
      [contractor, 'fig'],
      [otherWorkspace, 'fig'],
      [owner, ''],
      [otherWorkspace, box.id],
    ] as const) {
      await t.rejects(boxes.resolve(actor, name), { code: 'not_found' }, name)
    }
    t.match(await boxes.list(owner), [{ desiredState: 'running' }, { desiredState: 'running' }])
  })
})
