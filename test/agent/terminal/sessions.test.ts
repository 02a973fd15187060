// The names, limits, errors and records of terminal sessions.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { SyncRecorder } from '../../../agent/exec/history/sync-recorder.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { isAlive } from '../exec/support.ts'
import { attachClient, createSessions } from './support.ts'

const record = (digit: string) => ({
  commandId: `p_${digit.repeat(24)}`,
  claimsToken: 'token',
  keepOutput: true,
})

t.test('a name is used once, and is free after the exit', async (t) => {
  const { start, list } = createSessions(t)
  const [first, second] = await Promise.allSettled([start({ command: 'cat' }), start({ command: 'cat' })])
  t.equal(first.status, 'fulfilled')
  t.match(second, { status: 'rejected', reason: { code: 'invalid_request', message: /already in use/ } })
  t.same(
    list().map(({ name }) => name),
    ['test'],
  )
  await list()[0]?.kill()
  await waitUntil('no session runs', () => list().length === 0)
  await start({ command: 'cat' })
})

t.test('a name that is in use is refused when its session can be attached', async (t) => {
  const { start, list } = createSessions(t)
  const first = start({ command: 'cat' })
  await t.rejects(start({ command: 'cat' }), { code: 'invalid_request' })
  t.equal(list().length, 1)
  await first
})

t.test('a repeated start returns the session that the first one started', async (t) => {
  const { start, list } = createSessions(t)
  const [first, second] = await Promise.all([start({ record: record('1') }), start({ record: record('1') })])
  t.equal(second, first)
  t.equal(list().length, 1)
  await t.rejects(start({ record: record('2') }), { code: 'invalid_request' })
})

t.test('sessions are listed newest first, up to the limit', async (t) => {
  const { start, list } = createSessions(t)
  const names = Array.from({ length: 64 }, (_, i) => `s${i}`)
  for (const session of names) await start({ session, command: 'exec sleep 1000' })
  t.same(
    list().map(({ name }) => name),
    names.reverse(),
  )
  await t.rejects(start({ session: 'more' }), { code: 'invalid_request', message: /64 terminal sessions/ })
})

t.test('an unusable directory has the errors of exec, and starts nothing', async (t) => {
  const { start, list, home } = createSessions(t)
  writeFileSync(join(home, 'file'), '')
  await t.rejects(start({ cwd: 'missing' }), { code: 'not_found' })
  await t.rejects(start({ cwd: 'file' }), { code: 'invalid_path' })
  mkdirSync(join(home, 'closed'))
  chmodSync(join(home, 'closed'), 0)
  if (process.getuid?.() !== 0) await t.rejects(start({ cwd: 'closed' }), { code: 'permission_denied' })
  t.same(list(), [])
  await start({ cwd: '~/' })
})

t.test('the exit of a session can be read for some time', async (t) => {
  const { start, get, getExited } = createSessions(t, { exitedSessionMs: 300 })
  const session = await start({ command: 'read line; echo last; exit 5' })
  t.notOk(session.hadClient())
  const client = attachClient(session, { client: 'a' })
  client.disconnect()
  attachClient(session).type('\n')
  await session.exit
  t.throws(() => get('test'), { code: 'not_found' })
  t.equal(getExited('test'), session)
  t.same([session.hadClient(), session.hadClient('a'), session.hadClient('b')], [true, true, false])
  const again = attachClient(session, { client: 'a', offset: client.received() })
  t.match(await again.waitForMessage('exit'), { exitCode: 5 })
  t.match(again.output(), /last\r\n/)
  await waitUntil('the session is forgotten', () => getExited('test') === undefined)
})

t.test('a session without a name gets the lowest free number', async (t) => {
  const { start, list } = createSessions(t)
  const names = []
  for (let i = 0; i < 3; i++) names.push((await start({ session: undefined, command: 'cat' })).name)
  t.same(names, ['1', '2', '3'])
  await list()[1]?.kill()
  await waitUntil('the session has exited', () => list().length === 2)
  t.equal((await start({ session: undefined })).name, '4', 'the name of an exited session is not reused')
})

t.test('sessions are recorded without output', async (t) => {
  const recorded: unknown[] = []
  const recorder: SyncRecorder = {
    start({ record, command, cwd }, pid) {
      recorded.push({ commandId: record?.commandId, command, cwd, pid })
      return {
        commandId: record?.commandId ?? '',
        async finish({ status, exitCode, signal }, { stdout }) {
          recorded.push({ status, exitCode, signal, bytes: stdout.total() })
          return true
        },
      }
    },
    waitUntilIdle: () => Promise.resolve(),
    close: () => undefined,
  }
  const { start } = createSessions(t, { recorder })
  const shell = await start({ record: record('1') })
  await shell.kill()
  await shell.exit
  const command = await start({ record: record('2'), command: 'exit 4', cwd: '/' })
  await command.exit
  t.match(recorded, [
    { commandId: record('1').commandId, command: '$SHELL -l', cwd: undefined, pid: shell.pid },
    { status: 'killed', exitCode: null, signal: 'HUP', bytes: 0 },
    { commandId: record('2').commandId, command: 'exit 4', cwd: '/', pid: command.pid },
    { status: 'exited', exitCode: 4, signal: null, bytes: 0 },
  ])
})

t.test('a system without node-pty gets a clear error', async (t) => {
  const { arch } = process
  t.teardown(() => Object.defineProperty(process, 'arch', { value: arch }))
  Object.defineProperty(process, 'arch', { value: 'riscv64' })
  // A second instance of the module, which has not loaded the addon.
  const url = `${import.meta.resolve('../../../agent/terminal/pty.ts')}?arch=riscv64`
  const { startPty } = await import(url)
  const options = { file: '/bin/sh', args: [], cwd: '/', env: {}, cols: 80, rows: 24 }
  t.throws(() => startPty(options), {
    code: 'exec_failed',
    message: /Terminals are not available on this box: .*linux-riscv64/,
  })
})

t.test('a session that is being started when the agent stops is terminated', async (t) => {
  const { start, terminate } = createSessions(t)
  const starting = start({ command: 'exec sleep 1000' })
  await terminate()
  const session = await starting
  t.notOk(isAlive(session.pid))
  await session.kill()
})
