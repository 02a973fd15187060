// box ports: the listening ports of a box, and how current they are.
import t from 'tap'
import { runBoxInPty } from './box-in-pty.ts'
import { createVitals, startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const { api, instance, findBox, waitForState } = coordinator
const { id } = await findBox('fig')
const box = (...args: string[]) => runBox(coordinator, ['ports', 'fig', ...args])
const PORTS = [
  { port: 22, process: null, pid: null },
  { port: 8080, process: 'node\u001b[2J', pid: 7 },
]
/** The agent of fig reports these ports. */
const listen = (ports: typeof PORTS) => {
  const { heartbeats } = instance.context
  heartbeats.record(id, createVitals())
  heartbeats.recordPorts(id, ports)
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
    listening: { at: /^\d{4}-.*Z$/, ports: [{ port: 22, process: null, pid: null }] },
  })
  listen([])
  t.same(await box(), { code: 0, stdout: '', stderr: 'No known listening ports on fig.\n' })
})

t.test('each port has the address of its link, or the command that opens it', async (t) => {
  listen(PORTS)
  const { stdout } = await runBox(coordinator, ['share', 'fig', '8080', '-q'])
  t.match((await box()).stdout, `node�[2J  ${stdout}`)
  coordinator.changeNext(`GET /api/v1/boxes/${id}/port-shares`, (body) => {
    body.modes.members = { allowed: false, error: 'port_share_disabled', message: 'Off.' }
  })
  t.match((await box()).stdout, /^22 .* box forward fig 22$/m)
})

t.test('a note says when the list is old or unknown', async (t) => {
  await api('POST', `/boxes/${id}/suspend`)
  await waitForState(id, 'suspended')
  t.match(await box(), {
    code: 0,
    stderr: /^box: fig is suspended: no process listens\. Start it with `box wake fig`\.\n/,
  })
  t.match(JSON.parse((await box('--json')).stdout), { listening: null })
  await api('POST', `/boxes/${id}/wake`)
  await waitForState(id, 'running')
  coordinator.changeDetailNext({}, { state: { desired: 'running', observed: 'degraded', connected: false } })
  const at = new Date(Date.now() - 125_000).toISOString()
  coordinator.changeNext(`GET /api/v1/boxes/${id}/port-shares`, (body) => {
    body.listening = { at, ports: PORTS }
  })
  t.match(await box(), {
    stdout: /^8080/m,
    stderr: 'box: fig is not connected. These ports are from 2m ago.\n',
  })
})

t.test('--watch replaces the list on a terminal, and prints changes without one', async (t) => {
  listen(PORTS.slice(0, 1))
  const pty = runBoxInPty(t, coordinator, 'exec $BOX ports fig --watch', { env: { NO_COLOR: '1' } })
  await pty.waitFor(/22 +- +- +box share fig 22\r\n/)
  listen(PORTS)
  await pty.waitFor(/8080 +7 +node/)
  pty.type('\u0003')
  t.match(await pty.waitForExit(), { exitCode: 130 })

  const piped = runBoxInPty(t, coordinator, 'box ports fig --watch | cat', { env: { NO_COLOR: '1' } })
  await piped.waitFor(/8080 +7 +node/)
  listen(PORTS.slice(0, 1))
  await piped.waitFor(/8080 +7 +closed/)
  piped.type('\u0003')
  await piped.waitForExit()
})

t.test('a missing or deleted box', async (t) => {
  t.match(await runBox(coordinator, ['ports', 'pear']), { code: 5, stderr: /No such box: 'pear'/ })
})
