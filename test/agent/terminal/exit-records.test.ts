// The exit of a terminal session outlives its output: a client that was away for longer gets it, also from the next agent.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DEFAULT_RETENTION } from '../../../agent/exec/detached/retention.ts'
import { createExitRecords, type SessionExit } from '../../../agent/terminal/exit-records.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { describeLines } from '../../support/terminal-screen.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { attachClient, createSessions } from './support.ts'

const log = silentLog

t.test('a client gets the exit after the output has been forgotten', async (t) => {
  const exitsFile = join(createTempDir(t, 'exits'), 'sub', 'exits.json')
  const sessions = createSessions(t, { exitedSessionMs: 1, exitsFile })
  const { start, getExited, findExited, createNext } = sessions
  const session = await start({ command: 'read line; echo last; exit 5' })
  const client = attachClient(session, { client: 'a' })
  const other = attachClient(session, { client: 'b' })
  other.type('\n')
  await other.waitForMessage('exit')
  client.disconnect()
  await session.exit
  await waitUntil(
    'the output is forgotten',
    () => getExited('test') === undefined && sessions.hasExited('test'),
  )

  const current = attachClient(findExited('test', 'b') ?? session, { client: 'b', offset: other.received() })
  t.match(await current.waitForMessage('exit'), { status: 'exited', exitCode: 5 })
  t.match(current.messages, [{ type: 'attached', stdinOffset: 1 }, {}, { type: 'exit' }], 'it has all output')
  t.equal(findExited('test', 'unknown'), undefined, 'not for another client')

  // The name may be used again.
  const second = await start({ command: 'exit 6' })
  await second.exit
  await waitUntil('the second one is forgotten', () => getExited('test') === undefined)
  await sessions.close()
  const next = await createNext()
  for (const [id, exitCode] of [
    ['a', 5],
    ['unknown', 6],
  ] as const) {
    const found = next.findExited('test', id)
    t.ok(found, `the next agent knows the exit for ${id}`)
    const late = attachClient(found ?? session, { client: id, ...(id === 'a' && { offset: 0 }) })
    t.match(await late.waitForMessage('exit'), { status: 'exited', exitCode })
    t.match(describeLines(late.terminal).join('\n'), /last output is not kept/)
  }
  t.equal(next.findExited('test', 'third'), undefined, 'a session without clients is for the first one')
})

const createRecord = (number: number): SessionExit => ({
  name: `s${number}`,
  startedAt: number,
  exit: { exitCode: 0, signal: null },
  stdoutOffset: 0,
  cols: 80,
  rows: 24,
  hadClient: true,
  clients: [['a', 0]],
})

t.test('exits are kept as long as the records of detached processes', async (t) => {
  let now = 1
  const records = createExitRecords({ file: null, clock: { now: () => now }, log })
  for (let number = 0; number < DEFAULT_RETENTION.count + 1; number++) records.add(createRecord(number))
  t.equal(records.find('s0', 'a'), undefined)
  t.ok(records.find('s1', 'a'))
  now += DEFAULT_RETENTION.ageMs
  t.ok(records.find('s1', 'a'))
  now += 1
  t.equal(records.find('s1', 'a'), undefined)
})

t.test('a file that the user of the box has damaged is ignored', async (t) => {
  const file = join(createTempDir(t, 'exits'), 'exits.json')
  for (const content of ['', '{', '[]', '[{"name":1}]', 'null']) {
    writeFileSync(file, content)
    const records = createExitRecords({ file, clock: { now: () => 1 }, log })
    records.add(createRecord(1))
    await records.close()
    t.ok(createExitRecords({ file, clock: { now: () => 1 }, log }).find('s1', 'a'), content)
  }
})
