// box ports: the listening ports of a box, and how current they are.
import t from 'tap'
import { runBoxInPty } from './box-in-pty.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeShares } from './fake-shares.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const fig = await fake.addBox('fig')
const fakeShares = addFakeShares(fake)
const box = (...args: string[]) => runBox(fake.url, ['ports', 'fig', ...args])
const PORTS = [
  { port: 22, process: null, pid: null },
  { port: 8080, process: 'node\u001b[2J', pid: 7 },
]
const listen = (ports: typeof PORTS) => {
  fakeShares.listening = { at: '2026-01-31T03:14:00.000Z', ports }
}

t.test('lists the ports with process and pid', async (t) => {
  listen(PORTS)
  t.same(await box(), {
    code: 0,
    stdout:
      'PORT  PID  PROCESS   OPEN WITH\n22    -    -         box share fig 22\n8080  7    node�[2J  box share fig 8080\n',
    stderr: '',
  })
  t.match(await box('-q', '--filter', 'process=node*'), { stdout: '8080\n' })
  t.match(await box('-q', '--filter', 'port=22'), { stdout: '22\n' })
  t.match(JSON.parse((await box('--json', '--filter', 'port=22')).stdout), {
    shares: [],
    listening: { at: '2026-01-31T03:14:00.000Z', ports: [{ port: 22, process: null, pid: null }] },
  })
  listen([])
  t.same(await box(), { code: 0, stdout: '', stderr: 'No known listening ports on fig.\n' })
})

t.test('each port has the address of its link, or the command that opens it', async (t) => {
  listen(PORTS)
  const { stdout } = await runBox(fake.url, ['share', 'fig', '8080', '-q'])
  t.match((await box()).stdout, `node�[2J  ${stdout}`)
  fakeShares.modes.members = { allowed: false, error: 'port_share_disabled', message: 'Off.' }
  t.match((await box()).stdout, /^22 .* box forward fig 22$/m)
  fakeShares.modes.members = { allowed: true }
  fakeShares.shares = []
})

t.test('a note says when the list is old or unknown', async (t) => {
  Object.assign(fig, { observedState: 'suspended', desiredState: 'suspended' })
  fakeShares.listening = null
  t.match(await box(), {
    code: 0,
    stderr: /^box: fig is suspended: no process listens\. Start it with `box wake fig`\.\n/,
  })
  t.match(JSON.parse((await box('--json')).stdout), { listening: null })
  fake.handleNext(`GET /api/v1/boxes/${fig.id}`, (response) => {
    const state = { desired: 'running', observed: 'degraded', connected: false, since: fig.createdAt }
    response.end(JSON.stringify({ box: fig, state }))
  })
  fakeShares.listening = { at: new Date(Date.now() - 125_000).toISOString(), ports: PORTS }
  t.match(await box(), {
    stdout: /^8080/m,
    stderr: 'box: fig is not connected. These ports are from 2m ago.\n',
  })
  Object.assign(fig, { observedState: 'running', desiredState: 'running' })
})

t.test('--watch replaces the list on a terminal, and prints changes without one', async (t) => {
  listen(PORTS.slice(0, 1))
  const pty = runBoxInPty(t, fake.url, 'exec $BOX ports fig --watch', { env: { NO_COLOR: '1' } })
  await pty.waitFor(/22 +- +- +box share fig 22\r\n/)
  listen(PORTS)
  await pty.waitFor(/8080 +7 +node/)
  pty.type('\u0003')
  t.match(await pty.waitForExit(), { exitCode: 130 })

  const piped = runBoxInPty(t, fake.url, 'box ports fig --watch | cat', { env: { NO_COLOR: '1' } })
  await piped.waitFor(/8080 +7 +node/)
  listen(PORTS.slice(0, 1))
  await piped.waitFor(/8080 +7 +closed/)
  piped.type('\u0003')
  await piped.waitForExit()
})

t.test('a missing or deleted box', async (t) => {
  t.match(await runBox(fake.url, ['ports', 'pear']), { code: 5, stderr: /No such box: 'pear'/ })
})
