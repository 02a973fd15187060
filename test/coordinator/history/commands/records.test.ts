// How the reports of a box become records: verified against the claims token, and applied once.
import t from 'tap'
import { newId, newUuid } from '../../../../shared/ids.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createTestBoxService } from '../../../support/workspace.ts'
import { finished, output, setUp } from './support.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('a record shows who ran the command, and the exit that the box reported', async (t) => {
    const { commands, owner, boxId, request, report } = await setUp(await newDb(t))
    const { history } = commands
    const { id, started } = await request({ command: 'make test', cwd: 'src', fromCli: true })
    await report([started])
    const actor = { kind: 'user', userId: owner.userId, tokenId: owner.credential.id }
    const common = { id, boxId, mode: 'sync', source: 'cli', command: 'make test', cwd: 'src', pid: 7, actor }
    const running = { ...common, status: 'running', exitCode: null, signal: null, finishedAt: null }
    t.match(await history.get(owner, boxId, id), running)
    await report([
      finished(id, { status: 'killed', exitCode: null, signal: 'TERM', stdoutBytes: 2, stdout: 'aGk=' }),
    ])
    const killed = { ...common, status: 'killed', signal: 'TERM', stdoutBytes: 2, stdoutTruncated: false }
    t.match(await history.get(owner, boxId, id), killed)
    t.match(await history.getOutput(owner, boxId, id, {}), { data: 'hi', done: true })
  })

  t.test('reports that arrive together, repeatedly and in two epochs make one record', async (t) => {
    const { commands, owner, boxId, request, report } = await setUp(await newDb(t))
    const { id, started } = await request()
    const all = [started, output(id, 0, 'abc'), finished(id, { exitCode: 5, stdoutBytes: 3 })]
    await report(all)
    await report(all)
    await report([started, started, ...all], 'e2')
    await report([finished(id, { exitCode: 6 })], 'e2')
    const page = await commands.history.list(owner, boxId, {})
    t.match(page, { commands: [{ id, status: 'exited', exitCode: 5, stdoutBytes: 3 }], nextBefore: null })
    t.match(await commands.history.getOutput(owner, boxId, id, {}), { data: 'abc' })
  })

  t.test(
    'rejects forged and altered reports with a log line, and applies the valid ones next to them',
    async (t) => {
      const db = await newDb(t)
      const { commands, owner, boxId, logged, clock, request, report, run } = await setUp(db)
      const other = await createTestBoxService(db, { clock }).create(owner, {})
      const running = await run()
      const { started } = await request()
      const [payload = '', signature = ''] = started.claimsToken.split('.')
      const startForFirstBox = (await request()).started
      const invalid = [
        { ...started, claimsToken: `${payload}.${'A'.repeat(43)}` },
        { ...started, claimsToken: `${Buffer.from('{"version":1}').toString('base64url')}.${signature}` },
        { ...started, claimsToken: '' },
        { ...started, claimsToken: 'x'.repeat(2048) },
        { ...started, commandId: newId('process') },
        { ...started, command: 'rm -rf /' },
        { ...started, cwd: '/root' },
        { ...started, command: null },
        { ...started, commandTruncated: true },
      ]
      const valid = await request()
      await report([...invalid, output(newId('process'), 0, 'x'), finished(newId('process')), valid.started])
      t.equal(logged.length, invalid.length)
      t.same(
        (await commands.history.list(owner, boxId, {})).commands.map(({ id }) => id),
        [valid.id, running.id],
      )

      await t.test('a box cannot create, finish or write a record of another box', async (t) => {
        await report(
          [startForFirstBox, finished(running.id, { exitCode: 66 }), output(running.id, 0, 'evil')],
          'other',
          other.id,
        )
        t.match(await commands.history.get(owner, boxId, running.id), { status: 'running', stdoutBytes: 0 })
        t.same((await commands.history.list(owner, other.id, {})).commands, [])
        await t.rejects(commands.history.get(owner, other.id, running.id), { code: 'not_found' })
      })
    },
  )

  t.test(
    'under zero data retention neither text nor output is stored, even when the box sends them',
    async (t) => {
      const { db, commands, owner, boxId, request, report } = await setUp(await newDb(t))
      await db.updateTable('workspaces').set({ zero_data_retention: 1 }).execute()
      const { id, record, started } = await request({ command: 'secret' })
      t.equal(record.keepOutput, false)
      await report([started, output(id, 0, 'secret'), finished(id, { stdoutBytes: 6, stdout: 'c2VjcmV0' })])
      const expected = { command: null, cwd: null, outputKept: false, status: 'exited', stdoutBytes: 6 }
      t.match(await commands.history.get(owner, boxId, id), expected)
      t.match(await commands.history.getOutput(owner, boxId, id, {}), {
        data: '',
        skipped: 6,
        size: 6,
        done: true,
      })
      t.same(await db.selectFrom('command_output').select('data').execute(), [])
      t.notMatch(JSON.stringify(await db.selectFrom('commands').selectAll().execute()), 'secret')
    },
  )

  t.test('a command without a reported exit is lost, until the agent reports it again', async (t) => {
    const { db, commands, owner, boxId, report, run } = await setUp(await newDb(t))
    const statusOf = async (id: string) => (await commands.history.get(owner, boxId, id)).status
    const [sync, detached] = [await run(), await run({ mode: 'detached' })]
    const agent = { type: 'agent.started', at: 1, instanceId: 'i', bootId: 'b', agentVersion: 'v' } as const
    const next = await run()
    await report([finished(next.id), agent])
    t.equal(await statusOf(next.id), 'exited', 'it exited before the agent restarted')
    t.equal(await statusOf(sync.id), 'lost', 'a synchronous command does not survive its agent')
    t.equal(await statusOf(detached.id), 'running')
    await report([agent], 'e2')
    t.equal(await statusOf(detached.id), 'lost', 'the agent lost its state')
    await report([detached.started], 'e2')
    t.equal(await statusOf(detached.id), 'running', 'the agent reports it again')
    await report([sync.started], 'e2')
    t.equal(await statusOf(sync.id), 'lost', 'a start report does not revive a synchronous command')
    await report([finished(sync.id, { exitCode: 9 })], 'e2')
    t.equal(await statusOf(sync.id), 'exited', 'an exit report overrides lost')
    t.same((await db.selectFrom('commands').select('id').execute()).length, 3)
    await t.rejects(commands.history.get(owner, newUuid(), sync.id), { code: 'not_found' })
  })
})
