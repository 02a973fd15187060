// The command history of a box: pages, filters, deletion, access and retention.
import t from 'tap'
import { onEachDatabase } from '../../../support/db.ts'
import { addUser, createTestBoxService } from '../../../support/workspace.ts'
import { finished, output, setUp } from './support.ts'

const DAY = 24 * 60 * 60 * 1000

onEachDatabase(t, async (t, newDb) => {
  t.test('lists commands page by page, newest first, without gaps or repeats', async (t) => {
    const { commands, owner, boxId, report, run } = await setUp(await newDb(t))
    const ids: string[] = []
    for (let i = 0; i < 7; i++) ids.unshift((await run({ mode: i % 2 ? 'detached' : 'sync' })).id)
    await report(ids.slice(0, 3).map((id) => finished(id)))
    const readAll = async (query: Parameters<typeof commands.history.list>[2]) => {
      const listed: string[] = []
      for (let before: string | undefined; ; ) {
        const page = await commands.history.list(owner, boxId, { ...query, ...(before && { before }) })
        listed.push(...page.commands.map(({ id }) => id))
        if (page.nextBefore === null) return listed
        before = page.nextBefore
      }
    }
    t.same(await readAll({}), ids)
    t.same(await readAll({ limit: 1 }), ids)
    t.same(await readAll({ limit: 3 }), ids)
    t.same(await readAll({ limit: 7 }), ids, 'a full last page has no cursor')
    t.same(
      await readAll({ mode: 'detached', limit: 2 }),
      ids.filter((_, i) => i % 2 === 1),
    )
    t.same(await readAll({ status: 'exited', limit: 2 }), ids.slice(0, 3))
    t.same(await readAll({ status: 'running', mode: 'sync', limit: 1 }), [ids[4], ids[6]])
    for (const before of ['x', 'MQ', '-', ids[0] ?? ''])
      await t.rejects(commands.history.list(owner, boxId, { before }), { code: 'invalid_cursor' })
  })

  t.test('lists the commands that were requested before a time', async (t) => {
    const { commands, owner, boxId, run, clock } = await setUp(await newDb(t))
    const ids = [(await run()).id, (await run()).id]
    clock.advance(60_000)
    const to = clock.now()
    await run()
    const first = await commands.history.list(owner, boxId, { to, limit: 1 })
    t.same(
      first.commands.map(({ id }) => id),
      [ids[1]],
      'without the later command',
    )
    const second = await commands.history.list(owner, boxId, { to, limit: 1, before: first.nextBefore ?? '' })
    t.same(
      second.commands.map(({ id }) => id),
      [ids[0]],
    )
    t.equal(second.nextBefore, null)
  })

  t.test('a deleted record stays deleted when the agent reports the command again', async (t) => {
    const { db, commands, owner, boxId, report, run } = await setUp(await newDb(t))
    const { history } = commands
    const [first, second, third] = [
      await run({ command: 'private' }),
      await run(),
      await run({ mode: 'detached' }),
    ]
    await report([output(first.id, 0, 'private')])
    await history.remove(owner, boxId, first.id)
    await report([first.started, output(first.id, 7, 'more'), finished(first.id, { stdoutBytes: 11 })])
    await report([first.started, output(first.id, 0, 'private')], 'e2')
    await t.rejects(history.get(owner, boxId, first.id), { code: 'not_found' })
    await t.rejects(history.getOutput(owner, boxId, first.id, {}), { code: 'not_found' })
    t.notMatch(JSON.stringify(await db.selectFrom('commands').selectAll().execute()), 'private')
    t.same(await db.selectFrom('command_output').select('data').execute(), [])
    await history.remove(owner, boxId, first.id)
    for (const id of ['p_1', 'x', 'p_000000000000000000000000'])
      await t.rejects(history.remove(owner, boxId, id), { code: 'not_found' })

    t.equal(await history.removeAll(owner, boxId), 2)
    t.equal(await history.removeAll(owner, boxId), 0)
    await report([second.started, third.started, finished(third.id)], 'e3')
    t.same(await history.list(owner, boxId, {}), { commands: [], nextBefore: null })
    const auditEvents = await db
      .selectFrom('audit_log')
      .selectAll()
      .where('kind', '=', 'command_history.delete')
      .orderBy('no')
      .execute()
    const expected = { kind: 'command_history.delete', origin: 'server', actor_kind: 'user', box_id: boxId }
    t.match(
      auditEvents.map(({ detail, ...rest }) => ({ ...rest, ...JSON.parse(detail ?? '') })),
      [
        {
          ...expected,
          commandId: first.id,
          actor_user_id: owner.userId,
          actor_token_id: owner.credential.id,
        },
        { ...expected, deleted: 2 },
      ],
    )
    t.equal(auditEvents.length, 2)
  })

  t.test('deletes more records than fit in one transaction', async (t) => {
    const { db, commands, owner, boxId, request, report } = await setUp(await newDb(t))
    const commandsSent = await Promise.all(Array.from({ length: 120 }, () => request()))
    await report(commandsSent.map(({ started }) => started))
    const { history } = commands
    const results = await Promise.all([1, 2, 3].map(() => history.removeAll(owner, boxId)))
    t.equal(
      results.reduce((sum, count) => sum + count, 0),
      120,
      'concurrent requests delete each record once',
    )
    t.same((await history.list(owner, boxId, {})).commands, [])
    const events = await db
      .selectFrom('audit_log')
      .select('detail')
      .where('kind', '=', 'command_history.delete')
      .execute()
    const counts = events.map(({ detail }) => JSON.parse(detail ?? '').deleted)
    t.same(counts, [50, 50, 20], 'each transaction records what it deletes')
  })

  t.test('throws not_found for an actor that may not see the box', async (t) => {
    const { db, commands, owner, boxId, clock, run } = await setUp(await newDb(t))
    const { id } = await run()
    const other = await createTestBoxService(db, { clock }).create(owner, {})
    const actors = [
      await addUser(db, owner, { role: 'member', boxIds: [other.id] }),
      await addUser(db, owner, { role: 'contractor' }),
    ]
    for (const actor of actors) {
      const notFound = { code: 'not_found' }
      await t.rejects(commands.history.list(actor, boxId, {}), notFound)
      await t.rejects(commands.history.get(actor, boxId, id), notFound)
      await t.rejects(commands.history.getOutput(actor, boxId, id, {}), notFound)
      await t.rejects(commands.history.remove(actor, boxId, id), notFound)
      await t.rejects(commands.history.removeAll(actor, boxId), notFound)
    }
    const limited = await addUser(db, owner, { role: 'member', boxIds: [boxId] })
    t.equal((await commands.history.get(limited, boxId, id)).id, id)
  })

  t.test(
    'deletes expired records and those above the count limit, and discards output above the size limit',
    async (t) => {
      const retention = { days: 30, records: 4, outputBytes: 250 }
      const { db, commands, owner, boxId, clock, report, run } = await setUp(await newDb(t), retention)
      const list = async () => (await commands.history.list(owner, boxId, {})).commands
      const old = [await run(), await run({ mode: 'detached' })]
      await report([finished(old[0]?.id ?? '')])
      clock.advance(30 * DAY + 1)
      t.equal(await commands.prune(), 1)
      t.same(
        (await list()).map(({ id }) => id),
        [old[1]?.id],
        'the record of a running command stays',
      )

      const runs = []
      for (let i = 0; i < 5; i++) runs.unshift(await run())
      await report(
        runs.flatMap(({ id }) => [output(id, 0, 'x'.repeat(100)), finished(id, { stdoutBytes: 100 })]),
      )
      await commands.prune()
      const remaining = await list()
      t.same(
        remaining.map(({ id }) => id),
        [...runs.slice(0, 4).map(({ id }) => id), old[1]?.id],
      )
      t.same(
        remaining.map(({ stdoutBytes, stdoutTruncated }) => [stdoutBytes, stdoutTruncated]),
        [
          [100, false],
          [100, false],
          [100, true],
          [100, true],
          [0, false],
        ],
      )
      const discarded = await commands.history.getOutput(owner, boxId, remaining[2]?.id ?? '', {})
      t.match(discarded, { data: '', skipped: 100, nextOffset: 100, done: true })
      t.equal((await db.selectFrom('command_output').select('size').execute()).length, 2)
      await commands.close()
    },
  )
})
