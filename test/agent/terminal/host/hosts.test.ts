// Terminal hosts: what the agent finds in their directories, and how hosts exit.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readProcess } from '../../../../agent/process-table.ts'
import { createTerminalHosts } from '../../../../agent/terminal/host/hosts.ts'
import { createSession } from '../../../../agent/terminal/session.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { skipWithoutTerminalHost as skip } from '../../../support/native-parts.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { isAlive } from '../../exec/support.ts'
import { encodeHello, startFakeHost } from './support.ts'

const ID = `p_${'1'.repeat(24)}`
const METADATA = { session: 'test', startedAt: 1 }

function createHosts(t: Test) {
  const dir = createTempDir(t, 'terminals')
  const hosts = createTerminalHosts({ dir, log: silentLog })
  const start = async (script: string) => {
    const program = { file: '/bin/sh', args: ['-c', script], cwd: '/', cols: 80, rows: 24 }
    const env = { PATH: process.env.PATH ?? '', BOXWOOD_PROCESS_ID: ID }
    const hosted = await hosts.start(ID, METADATA, { ...program, env })
    if (hosted === null) throw new Error('no host')
    t.teardown(() => hosted.pty.host?.release())
    let output = ''
    hosted.pty.start((bytes) => {
      output += bytes
    })
    return { ...hosted, output: () => output }
  }
  return { hosts, dir, start }
}

const readHostPid = (dir: string) => Number(readFileSync(join(dir, ID, 'started'), 'utf8').split(' ')[2])

t.test('a program has its environment, arguments and terminal', { skip }, async (t) => {
  const { start, dir } = createHosts(t)
  const { pty, output } = await start(
    'echo "$0 $BOXWOOD_PROCESS_ID $BOXWOOD_RUNNER_FOR."; tty; stty size; exit 4',
  )
  t.same(await pty.exit, { exitCode: 4, signal: null })
  t.match(output(), new RegExp(`^/bin/sh ${ID} \\.\r\n/dev/pts/\\d+\r\n24 80\r\n$`))
  t.ok((pty.host?.finishedAt() ?? 0) > 1)
  const host = readHostPid(dir)
  t.ok(isAlive(host), 'the host waits for the acknowledgement')
  await pty.host?.release()
  await waitUntil('the host has exited', () => !isAlive(host))
  t.notOk(existsSync(join(dir, ID)))
})

t.test('a program that cannot be executed is an error, and leaves nothing', { skip }, async (t) => {
  const { hosts, dir } = createHosts(t)
  const options = { file: '/missing', args: [], cwd: '/', env: {}, cols: 80, rows: 24 }
  await t.rejects(hosts.start(ID, METADATA, options), { code: 'exec_failed', message: /no such file/ })
  t.notOk(existsSync(join(dir, ID)))
})

t.test('the host of a deleted directory hangs the program up without an agent', { skip }, async (t) => {
  const { start, dir, hosts } = createHosts(t)
  const { pty } = await start('exec sleep 1000')
  const host = readHostPid(dir)
  rmSync(join(dir, ID), { recursive: true })
  pty.host?.disconnect()
  t.same(await hosts.restore(), [])
  await waitUntil('the program and its host have exited', () => !isAlive(pty.pid) && !isAlive(host))
})

/** The directory of a session, whose host this process is. @param command the process of the program */
async function createFakeSession(
  t: Test,
  dir: string,
  command: { pid: number; startTime: number },
  version = 1,
) {
  const path = join(dir, ID)
  mkdirSync(path, { mode: 0o700 })
  writeFileSync(join(path, 'meta.json'), JSON.stringify(METADATA))
  const host = `${process.pid} ${readProcess(process.pid)?.startTime}`
  writeFileSync(join(path, 'started'), `${command.pid} ${command.startTime} ${host}\n`)
  const hello = encodeHello({ start: 0, end: 0, cols: 80, rows: 24, version })
  return startFakeHost(t, (socket) => socket.write(hello), path)
}

t.test('a session whose host has another version stays for a later agent', async (t) => {
  const { hosts, dir } = createHosts(t)
  const path = await createFakeSession(t, dir, { pid: process.pid, startTime: 1 }, 2)
  t.same(await hosts.restore(), [])
  t.ok(existsSync(join(path, 'meta.json')))
  rmSync(path, { recursive: true })
  await createFakeSession(t, dir, { pid: process.pid, startTime: 1 })
  const [hosted] = await hosts.restore()
  t.equal(hosted?.pty.host?.version, 1)
  hosted?.pty.host?.disconnect()
})

t.test('a process that has the pid of an exited program is not terminated', async (t) => {
  const { hosts, dir } = createHosts(t)
  const other = spawn('sleep', ['1000'], { detached: true })
  t.teardown(() => other.kill('SIGKILL'))
  await once(other, 'spawn')
  await createFakeSession(t, dir, { pid: other.pid ?? 0, startTime: 1 })
  const [hosted] = await hosts.restore()
  if (hosted === undefined) throw new Error('the session was not restored')
  const session = createSession({
    pty: hosted.pty,
    processId: hosted.processId,
    name: 'test',
    command: null,
    size: { cols: 80, rows: 24 },
    startedAt: 1,
    clock: systemClock,
    onActivity: () => undefined,
  })
  t.same(await session.kill(0), { signal: null, survivors: [] })
  t.ok(isAlive(other.pid ?? 0))
  session.disconnect()
})

t.test('what is no session of a host is removed or ignored', async (t) => {
  const { dir, hosts } = createHosts(t)
  const other = createTempDir(t, 'other')
  writeFileSync(join(other, 'kept'), '')
  symlinkSync(other, join(dir, `p_${'2'.repeat(24)}`))
  mkdirSync(join(dir, ID), { mode: 0o700 })
  writeFileSync(join(dir, ID, 'meta.json'), '{"session":"a/b","startedAt":1}')
  mkdirSync(join(dir, 'other'))
  t.same(await hosts.restore(), [])
  t.ok(existsSync(join(other, 'kept')), 'links are not followed')
  t.notOk(existsSync(join(dir, ID)))
  t.ok(existsSync(join(dir, 'other')))
})
