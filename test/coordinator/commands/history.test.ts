// Reading and deleting the history of a box: pages, filters, what stays deleted, and what goes by itself.
import t from 'tap'
import { onEachDatabase } from '../../support/db.ts'
import { boxesOf, join } from '../../support/workspace.ts'
import { finished, output, setUp } from './support.ts'

const DAY = 24 * 60 * 60 * 1000

onEachDatabase(t, async (t, newDb) => {
  t.test('pages go from the newest to the oldest, without gap or repeat', async (t) => {
    const { commands, owner, boxId, report, run } = await setUp(await newDb(t))
    const ids: string[] = []
    for (let i = 0; i < 7; i++) ids.unshift((await run({ mode: i % 2 ? 'detached' : 'sync' })).id)
    await report(ids.slice(0, 3).map((id) => finished(id)))
    const read = async (query: Parameters<typeof commands.history.list>[2]) => {
      const seen: string[] = []
      for (let before: string | undefined; ; ) {
        const page = await commands.history.list(owner, boxId, { ...query, ...(before && { before }) })
        seen.push(...page.commands.map(({ id }) => id))
        if (page.nextBefore === null) return seen
        before = page.nextBefore
      }
    }
    t.same(await read({}), ids)
    t.same(await read({ limit: 1 }), ids)
    t.same(await read({ limit: 3 }), ids)
    t.same(await read({ limit: 7 }), ids, 'a full last page is the last')
    t.same(
      await read({ mode: 'detached', limit: 2 }),
      ids.filter((_, i) => i % 2 === 1),
    )
    t.same(await read({ status: 'exited', limit: 2 }), ids.slice(0, 3))
    t.same(await read({ status: 'running', mode: 'sync', limit: 1 }), [ids[4], ids[6]])
    for (const before of ['x', 'MQ', '-', ids[0] ?? ''])
      await t.rejects(commands.history.list(owner, boxId, { before }), { code: 'bad_request' })
  })

  t.test('what is deleted stays so, whatever the box still reports', async (t) => {
    const { db, commands, owner, boxId, report, run } = await setUp(await newDb(t))
    const { history } = commands
    const [one, two, three] = [
      await run({ command: 'private' }),
      await run(),
      await run({ mode: 'detached' }),
    ]
    await report([output(one.id, 0, 'private')])
    await history.remove(owner, boxId, one.id)
    await report([one.started, output(one.id, 7, 'more'), finished(one.id, { stdoutBytes: 11 })])
    await report([one.started, output(one.id, 0, 'private')], 'e2')
    await t.rejects(history.get(owner, boxId, one.id), { code: 'not_found' })
    await t.rejects(history.output(owner, boxId, one.id, {}), { code: 'not_found' })
    t.notMatch(JSON.stringify(await db.selectFrom('commands').selectAll().execute()), 'private')
    t.same(await db.selectFrom('command_output').select('data').execute(), [])
    await history.remove(owner, boxId, one.id)
    for (const id of ['p_1', 'x', 'p_000000000000000000000000'])
      await t.rejects(history.remove(owner, boxId, id), { code: 'not_found' })

    t.equal(await history.removeAll(owner, boxId), 2)
    t.equal(await history.removeAll(owner, boxId), 0)
    await report([two.started, three.started, finished(three.id)], 'e3')
    t.same(await history.list(owner, boxId, {}), { commands: [], nextBefore: null })
    const rows = await db.selectFrom('audit_events').selectAll().orderBy('seq').execute()
    const row = { kind: 'command_history.delete', origin: 'server', actor_kind: 'user', box_id: boxId }
    t.match(
      rows.map(({ detail, ...rest }) => ({ ...rest, ...JSON.parse(detail) })),
      [
        { ...row, commandId: one.id, actor_user_id: owner.userId, actor_token_id: owner.keyId },
        { ...row, deleted: 2 },
      ],
    )
    t.equal(rows.length, 2)
  })

  t.test('more records than go in one transaction', async (t) => {
    const { commands, owner, boxId, ask, report } = await setUp(await newDb(t))
    const all = await Promise.all(Array.from({ length: 120 }, () => ask()))
    await report(all.map(({ started }) => started))
    t.equal(await commands.history.removeAll(owner, boxId), 120)
    t.same((await commands.history.list(owner, boxId, {})).commands, [])
  })

  t.test('whoever may not see the box sees none of it', async (t) => {
    const { db, commands, owner, boxId, clock, run } = await setUp(await newDb(t))
    const { id } = await run()
    const other = await boxesOf(db, { clock }).create(owner, {})
    const strangers = [
      await join(db, owner, { role: 'member', boxIds: [other.id] }),
      await join(db, owner, { role: 'contractor' }),
    ]
    for (const stranger of strangers) {
      const refused = { code: 'not_found' }
      await t.rejects(commands.history.list(stranger, boxId, {}), refused)
      await t.rejects(commands.history.get(stranger, boxId, id), refused)
      await t.rejects(commands.history.output(stranger, boxId, id, {}), refused)
      await t.rejects(commands.history.remove(stranger, boxId, id), refused)
      await t.rejects(commands.history.removeAll(stranger, boxId), refused)
    }
    const limited = await join(db, owner, { role: 'member', boxIds: [boxId] })
    t.equal((await commands.history.get(limited, boxId, id)).id, id)
  })

  t.test('old records go, those beyond the number go, and output beyond the size', async (t) => {
    const retention = { days: 30, records: 4, outputBytes: 250 }
    const { db, commands, owner, boxId, clock, report, run } = await setUp(await newDb(t), retention)
    const listed = async () => (await commands.history.list(owner, boxId, {})).commands
    const old = [await run(), await run({ mode: 'detached' })]
    await report([finished(old[0]?.id ?? '')])
    clock.advance(30 * DAY + 1)
    t.equal(await commands.prune(), 1)
    t.same(
      (await listed()).map(({ id }) => id),
      [old[1]?.id],
      'one that runs stays',
    )

    const runs = []
    for (let i = 0; i < 5; i++) runs.unshift(await run())
    await report(
      runs.flatMap(({ id }) => [output(id, 0, 'x'.repeat(100)), finished(id, { stdoutBytes: 100 })]),
    )
    await commands.prune()
    const left = await listed()
    t.same(
      left.map(({ id }) => id),
      [...runs.slice(0, 4).map(({ id }) => id), old[1]?.id],
    )
    t.same(
      left.map(({ stdoutBytes, stdoutTruncated }) => [stdoutBytes, stdoutTruncated]),
      [
        [100, false],
        [100, false],
        [100, true],
        [100, true],
        [0, false],
      ],
    )
    const gone = await commands.history.output(owner, boxId, left[2]?.id ?? '', {})
    t.match(gone, { data: '', skipped: 100, nextOffset: 100, done: true })
    t.equal((await db.selectFrom('command_output').select('size').execute()).length, 2)
    await commands.close()
  })
})
