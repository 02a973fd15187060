// The desktop of a box, with scripts in place of its programs.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { waitUntil } from '../../support/wait-until.ts'
import { createFakeDesktop, FAKE_PROGRAMS } from './fake-programs.ts'

t.test('the status names the installed programs, and a start needs those of its mode', async (t) => {
  const fake = createFakeDesktop(t, { openbox: null, xterm: null, chromium: null })
  const desktop = await fake.open()
  const { programs, session } = await desktop.status()
  t.same(programs, [
    { role: 'display', program: 'Xvfb' },
    { role: 'viewer', program: 'x11vnc' },
    { role: 'windowManager', program: null },
    { role: 'terminal', program: null },
    { role: 'browser', program: null },
  ])
  t.equal(session, null)
  await t.rejects(desktop.start({}), { code: 'desktop_not_installed' })
  await t.rejects(desktop.start({ mode: 'browser' }), { code: 'desktop_not_installed' })
  t.same(fake.listProcesses(), [])
  fake.install('icewm', 'exec /bin/sleep 1000')
  t.match(await desktop.start({}), { alreadyRunning: false }, 'another window manager, and no terminal')
})

t.test('a program that is not executable is not installed', async (t) => {
  const fake = createFakeDesktop(t, { xterm: null })
  writeFileSync(join(fake.bin, 'xterm'), '', { mode: 0o644 })
  const { programs } = await (await fake.open()).status()
  t.equal(programs.find(({ role }) => role === 'terminal')?.program, null)
})

t.test('a second start returns the running session, and stop ends every process', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  const started = await desktop.start({ width: 640, height: 480 })
  t.match(started, {
    mode: 'desktop',
    alreadyRunning: false,
    session: { display: ':42', modes: ['desktop'] },
  })
  t.match(started.session, { width: 640, height: 480, dpi: 96, viewers: 0 })
  // Xvfb, openbox with its child in another session, and xterm.
  await waitUntil('all programs run', () => fake.listProcesses().length === 4)
  t.equal(new Set(fake.listProcesses().map(({ processId }) => processId)).size, 1)

  const again = await desktop.start({ width: 1000 })
  t.match(again, { alreadyRunning: true, session: { display: ':42', width: 640 } })
  t.equal(fake.listProcesses().length, 4)

  await desktop.stop('desktop')
  t.same(fake.listProcesses(), [])
  t.equal((await desktop.status()).session, null)
  await desktop.stop('desktop')
  await desktop.stop('browser')
})

t.test('concurrent starts start one session', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  const results = await Promise.all([desktop.start({}), desktop.start({}), desktop.start({})])
  t.same(
    results.map(({ alreadyRunning }) => alreadyRunning),
    [false, true, true],
  )
  await desktop.stop('desktop')
  t.same(fake.listProcesses(), [])
})

t.test('the browser shares the display: its stop ends only the browser', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  await desktop.start({})
  await waitUntil('the desktop runs', () => fake.listProcesses().length === 4)
  const { session } = await desktop.start({ mode: 'browser', url: 'http://localhost:3000/' })
  t.same(session.modes, ['desktop', 'browser'])
  const args = readFileSync(join(fake.home, '.local/share/boxwood/desktop-browser/arguments'), 'utf8')
  t.match(args, /--kiosk .*--window-size=1280,800 .*http:\/\/localhost:3000\/\n$/)
  const processes = fake.listProcesses()
  t.equal(processes.length, 6)
  t.equal(
    processes.filter(({ usesProxy }) => usesProxy).length,
    4,
    'the browser does not use the proxy for secrets',
  )
  await desktop.stop('browser')
  t.equal(fake.listProcesses().length, 4)
  t.same((await desktop.status()).session?.modes, ['desktop'])
  await desktop.stop('browser')
  t.equal(fake.listProcesses().length, 4, 'a browser that is not running: no effect')
})

t.test('stop of the desktop includes the browser', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  await desktop.start({ mode: 'browser' })
  await desktop.start({ mode: 'desktop' })
  await desktop.stop('desktop')
  t.same(fake.listProcesses(), [])
})

t.test('a desktop that is being stopped is not running', async (t) => {
  // The X server gets SIGKILL some time after SIGTERM.
  const Xvfb = `trap '' TERM; echo 42 >&3; exec 3>&-; while :; do /bin/sleep 1; done`
  const desktop = await createFakeDesktop(t, { Xvfb }).open()
  t.not((await desktop.start({})).session, null)
  const stopped = desktop.stop('desktop')
  t.equal((await desktop.status()).session, null)
  await t.rejects(desktop.openViewer(), { code: 'not_found' })
  t.equal(await stopped, true)
})

t.test('the X server ends with the browser when no desktop was started', async (t) => {
  const fake = createFakeDesktop(t, { openbox: null })
  const desktop = await fake.open()
  t.same((await desktop.start({ mode: 'browser' })).session.modes, ['browser'])
  await desktop.stop('browser')
  t.same(fake.listProcesses(), [])
  t.equal((await desktop.status()).session, null)
})

t.test('a window manager that was missing or has exited is started', async (t) => {
  const fake = createFakeDesktop(t, { openbox: null })
  const desktop = await fake.open()
  await desktop.start({ mode: 'browser' })
  fake.install('openbox', FAKE_PROGRAMS.openbox)
  t.same((await desktop.start({})).session.modes, ['desktop', 'browser'])
  // Xvfb, chromium and openbox with their children, and xterm.
  await waitUntil('all programs run', () => fake.listProcesses().length === 6)

  const readPid = () => fake.readRecord().windowManager.pid
  const exited = readPid()
  process.kill(exited, 'SIGKILL')
  await waitUntil('it has exited', () => fake.listProcesses().every(({ pid }) => pid !== exited))
  t.match(await desktop.start({}), { alreadyRunning: true, session: { modes: ['desktop', 'browser'] } })
  t.ok(fake.listProcesses().some(({ pid }) => pid === readPid()))
})

t.test('a start without space on the disk, for example, gives the reason of the system', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  // A file in place of the directory makes the start fail, also for root.
  writeFileSync(join(fake.home, '.local'), '')
  await t.rejects(desktop.start({ mode: 'browser' }), {
    code: 'exec_failed',
    message: /cannot be started: not a directory \(ENOTDIR/,
  })
  t.same(fake.listProcesses(), [])
})

t.test('the browser gets a temporary directory in which it can create its socket', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  for (const [TMPDIR, expected] of [
    ['/short', '/short'],
    [`/${'long'.repeat(20)}`, '/tmp'],
  ] as const) {
    await desktop.start({ mode: 'browser', boxEnv: { TMPDIR } })
    const file = join(fake.home, '.local/share/boxwood/desktop-browser/temp-dir')
    t.equal(readFileSync(file, 'utf8').trim(), expected)
    await desktop.stop('browser')
  }
})

t.test('a browser that exits is not running, and starts again despite its lock', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  await desktop.start({ mode: 'browser' })
  const browserId = fake.readRecord().browser.id
  for (const { pid, processId } of fake.listProcesses())
    if (processId === browserId) process.kill(pid, 'SIGKILL')
  await waitUntil(
    'the browser is not running',
    async () => (await desktop.status()).session?.modes.length === 0,
  )
  t.match(await desktop.start({ mode: 'browser' }), {
    alreadyRunning: false,
    session: { modes: ['browser'] },
  })
})

t.test('the next agent finds the session, and one after a reboot does not', async (t) => {
  const fake = createFakeDesktop(t)
  await (await fake.open()).start({})
  await waitUntil('the desktop runs', () => fake.listProcesses().length === 4)
  const next = await fake.open()
  t.match(await next.start({}), { alreadyRunning: true, session: { display: ':42' } })
  t.equal((await (await fake.open('other-boot')).status()).session, null)
  await next.stop('desktop')
  t.same(fake.listProcesses(), [])
})

t.test('an agent that was killed during a start leaves no processes after the next stop', async (t) => {
  const fake = createFakeDesktop(t)
  const killed = await fake.open()
  await killed.start({ mode: 'browser' })
  const path = join(fake.dir, 'session.json')
  const record = JSON.parse(readFileSync(path, 'utf8'))
  writeFileSync(
    path,
    JSON.stringify({ ...record, server: null, browser: { ...record.browser, process: null } }),
  )
  const next = await fake.open()
  t.equal((await next.status()).session, null)
  await next.stop('desktop')
  t.same(fake.listProcesses(), [])
})

t.test('a session whose X server was killed is replaced', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  await desktop.start({})
  await waitUntil('the desktop runs', () => fake.listProcesses().length === 4)
  const before = fake.listProcesses().map(({ pid }) => pid)
  const { pid } = fake.readRecord().server
  process.kill(pid, 'SIGKILL')
  await waitUntil('the session has ended', async () => (await desktop.status()).session === null)
  t.equal((await desktop.start({})).alreadyRunning, false)
  await waitUntil('the desktop runs', () => fake.listProcesses().length === 4)
  t.notOk(fake.listProcesses().some((process) => before.includes(process.pid)))
})

t.test('a failed start names the reason and leaves no process', async (t) => {
  const fake = createFakeDesktop(t, { Xvfb: 'echo "warning" >&2; echo "(EE) no screens found" >&2; exit 1' })
  const desktop = await fake.open()
  await t.rejects(desktop.start({}), {
    code: 'exec_failed',
    message: 'Xvfb did not start: (EE) no screens found',
  })
  t.equal((await desktop.status()).session, null)
  t.same(fake.listProcesses(), [])
})

t.test('a browser that does not start leaves the desktop running', async (t) => {
  const fake = createFakeDesktop(t, { chromium: 'exit 7' })
  const desktop = await fake.open()
  await desktop.start({})
  await waitUntil('the desktop runs', () => fake.listProcesses().length === 4)
  await t.rejects(desktop.start({ mode: 'browser' }), { code: 'exec_failed', message: /exited with 7/ })
  t.same((await desktop.status()).session?.modes, ['desktop'])
  t.equal(fake.listProcesses().length, 4)
  await desktop.stop('desktop')
  await t.rejects(desktop.start({ mode: 'browser' }), { code: 'exec_failed' })
  t.equal((await desktop.status()).session, null)
  t.same(fake.listProcesses(), [])
})

t.test('a record that the user of the box has changed is ignored', async (t) => {
  const fake = createFakeDesktop(t)
  const desktop = await fake.open()
  await desktop.start({})
  const path = join(fake.dir, 'session.json')
  const content = readFileSync(path, 'utf8')
  for (const damaged of ['', '{', '[]', content.replace('desktop-', 'other-')]) {
    writeFileSync(path, damaged)
    t.equal((await (await fake.open()).status()).session, null)
  }
  writeFileSync(path, content)
})
