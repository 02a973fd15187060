// What reports make of records: sealed by the coordinator, told by the box, each once, and nothing that is not its own.
import t from 'tap'
import { newId, newUuid } from '../../../shared/ids.ts'
import { onEachDatabase } from '../../support/db.ts'
import { boxesOf } from '../../support/workspace.ts'
import { finished, output, setUp } from './support.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('a record says who asked, and what the box says became of it', async (t) => {
    const { commands, owner, boxId, ask, report } = await setUp(await newDb(t))
    const { history } = commands
    const { id, started } = await ask({ command: 'make test', cwd: 'src', fromCli: true })
    await report([started])
    const actor = { kind: 'user', userId: owner.userId, tokenId: owner.keyId }
    const known = { id, boxId, mode: 'sync', source: 'cli', command: 'make test', cwd: 'src', pid: 7, actor }
    const running = { ...known, status: 'running', exitCode: null, signal: null, finishedAt: null }
    t.match(await history.get(owner, boxId, id), running)
    await report([
      finished(id, { status: 'killed', exitCode: null, signal: 'TERM', stdoutBytes: 2, stdout: 'aGk=' }),
    ])
    const ended = { ...known, status: 'killed', signal: 'TERM', stdoutBytes: 2, stdoutTruncated: false }
    t.match(await history.get(owner, boxId, id), ended)
    t.match(await history.output(owner, boxId, id, {}), { data: 'hi', done: true })
  })

  t.test('a start and an end that come together, again, and in two spools make one record', async (t) => {
    const { commands, owner, boxId, ask, report } = await setUp(await newDb(t))
    const { id, started } = await ask()
    const all = [started, output(id, 0, 'abc'), finished(id, { exitCode: 5, stdoutBytes: 3 })]
    await report(all)
    await report(all)
    await report([started, started, ...all], 'e2')
    await report([finished(id, { exitCode: 6 })], 'e2')
    const page = await commands.history.list(owner, boxId, {})
    t.match(page, { commands: [{ id, status: 'exited', exitCode: 5, stdoutBytes: 3 }], nextBefore: null })
    t.match(await commands.history.output(owner, boxId, id, {}), { data: 'abc' })
  })

  t.test(
    'forged, foreign and altered: refused with a line in the log, and no harm to what comes with it',
    async (t) => {
      const db = await newDb(t)
      const { commands, owner, boxId, refusals, clock, ask, report, run } = await setUp(db)
      const other = await boxesOf(db, { clock }).create(owner, {})
      const mine = await run()
      const { started } = await ask()
      const [payload = '', seal = ''] = started.receipt.split('.')
      const foreign = (await ask()).started
      const bad = [
        { ...started, receipt: `${payload}.${'A'.repeat(43)}` },
        { ...started, receipt: `${Buffer.from('{"version":1}').toString('base64url')}.${seal}` },
        { ...started, receipt: '' },
        { ...started, receipt: 'x'.repeat(2048) },
        { ...started, commandId: newId('process') },
        { ...started, command: 'rm -rf /' },
        { ...started, cwd: '/root' },
        { ...started, command: null },
        { ...started, commandTruncated: true },
      ]
      const good = await ask()
      await report([...bad, output(newId('process'), 0, 'x'), finished(newId('process')), good.started])
      t.equal(refusals.length, bad.length)
      t.same(
        (await commands.history.list(owner, boxId, {})).commands.map(({ id }) => id),
        [good.id, mine.id],
      )

      await t.test("another box's record cannot be made, ended or written to", async (t) => {
        await report(
          [foreign, finished(mine.id, { exitCode: 66 }), output(mine.id, 0, 'evil')],
          'other',
          other.id,
        )
        t.match(await commands.history.get(owner, boxId, mine.id), { status: 'running', stdoutBytes: 0 })
        t.same((await commands.history.list(owner, other.id, {})).commands, [])
        await t.rejects(commands.history.get(owner, other.id, mine.id), { code: 'not_found' })
      })
    },
  )

  t.test('under zero data retention neither text nor output is kept, whatever the box sends', async (t) => {
    const { db, commands, owner, boxId, ask, report } = await setUp(await newDb(t))
    await db.updateTable('workspaces').set({ zero_data_retention: 1 }).execute()
    const { id, record, started } = await ask({ command: 'secret' })
    t.equal(record.keepOutput, false)
    await report([started, output(id, 0, 'secret'), finished(id, { stdoutBytes: 6, stdout: 'c2VjcmV0' })])
    const kept = { command: null, cwd: null, outputKept: false, status: 'exited', stdoutBytes: 6 }
    t.match(await commands.history.get(owner, boxId, id), kept)
    t.match(await commands.history.output(owner, boxId, id, {}), {
      data: '',
      skipped: 6,
      size: 6,
      done: true,
    })
    t.same(await db.selectFrom('command_output').select('data').execute(), [])
    t.notMatch(JSON.stringify(await db.selectFrom('commands').selectAll().execute()), 'secret')
  })

  t.test('lost is what nobody saw end, until somebody did', async (t) => {
    const { db, commands, owner, boxId, report, run } = await setUp(await newDb(t))
    const statusOf = async (id: string) => (await commands.history.get(owner, boxId, id)).status
    const [sync, detached] = [await run(), await run({ mode: 'detached' })]
    const agent = { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'b', agentVersion: 'v' } as const
    const next = await run()
    await report([finished(next.id), agent])
    t.equal(await statusOf(next.id), 'exited', 'it ended before the agent did')
    t.equal(await statusOf(sync.id), 'lost', 'it ended with its agent')
    t.equal(await statusOf(detached.id), 'running')
    await report([agent], 'e2')
    t.equal(await statusOf(detached.id), 'lost', 'the box has forgotten')
    await report([detached.started], 'e2')
    t.equal(await statusOf(detached.id), 'running', 'and has it after all')
    await report([sync.started], 'e2')
    t.equal(await statusOf(sync.id), 'lost', 'a synchronous run never comes back')
    await report([finished(sync.id, { exitCode: 9 })], 'e2')
    t.equal(await statusOf(sync.id), 'exited', 'but its end may have been seen')
    t.same((await db.selectFrom('commands').select('id').execute()).length, 3)
    await t.rejects(commands.history.get(owner, newUuid(), sync.id), { code: 'not_found' })
  })
})
