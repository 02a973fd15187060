// Commands, their records and their limits, with requests and responses of all sizes.

import t from 'tap'
import { PREVIOUS_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../../shared/protocol.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'
import { type CoordinatorWithBox, startCoordinatorWithBox } from './coordinator-with-box.ts'

type Result = Record<string, unknown>

/** The body of POST /exec, the expected response, and the expected record where there is one. */
const CASES: [string, object, Result, Result | null][] = [
  [
    'output and exit code',
    { command: 'echo out; echo err >&2; exit 3', cwd: '/tmp' },
    { exitCode: 3, stdout: 'out\n', stderr: 'err\n', timedOut: false, cwd: '/tmp' },
    {
      status: 'exited',
      exitCode: 3,
      stdoutBytes: 4,
      stderrBytes: 4,
      cwd: '/tmp',
      mode: 'sync',
      source: 'api',
    },
  ],
  [
    'a signal',
    { command: 'kill -9 $$' },
    { exitCode: null, signal: 'KILL' },
    { status: 'killed', signal: 'KILL' },
  ],
  [
    'variables',
    { command: 'echo "$A"', env: { A: 'é "x"\n' } },
    { stdout: 'é "x"\n\n' },
    { status: 'exited', stdoutBytes: 8 },
  ],
  [
    'output that is too large for a message',
    { command: 'head -c 200000 /dev/zero | tr "\\0" x' },
    { stdout: 'x'.repeat(200_000), stdoutTruncated: false },
    { status: 'exited', stdoutBytes: 200_000 },
  ],
  [
    'output above the bound of a response',
    { command: 'head -c 1500000 /dev/zero | tr "\\0" x' },
    { stdout: 'x'.repeat(1024 * 1024), stdoutTruncated: true },
    { status: 'exited', stdoutBytes: 1_500_000, stdoutTruncated: true },
  ],
  [
    'a command that is too large for a message',
    { command: `: ${'x'.repeat(60_000)}`, env: { A: 'y'.repeat(5000) } },
    { exitCode: 0, stdout: '' },
    { status: 'exited', commandTruncated: true },
  ],
  [
    'a time limit, which ends the process tree',
    { command: 'sleep 7301 & sleep 7301', timeoutSeconds: 1 },
    { timedOut: true },
    { status: 'timed_out' },
  ],
  ['a directory that does not exist', { command: 'true', cwd: '/no/such' }, { code: 'not_found' }, null],
  ['an invalid request', { command: 'true', timeoutSeconds: 0 }, { code: 'invalid_timeout' }, null],
  [
    'a detached command',
    { command: 'echo detached', detached: true },
    { type: 'exec.started', pid: Number },
    { status: 'exited', mode: 'detached', stdoutBytes: 9 },
  ],
]

/** Whether a process with this command line runs. The pattern does not match the command line of grep itself. */
const isRunning = async ({ exec }: CoordinatorWithBox, seconds: number) => {
  const pattern = `sleep ${String(seconds).slice(0, -1)}[${String(seconds).at(-1)}]`
  const command = `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '${pattern}'`
  return (await exec(command)).exitCode === 0
}

t.test('commands', async (t) => {
  const coordinator = await startCoordinatorWithBox(t)
  const { api, box, boxRequest, exec, instance, key, url } = coordinator
  t.equal(instance.context.tunnels.current(box.id)?.protocolVersion, PROTOCOL_VERSION)

  for (const [name, body, expected, record] of CASES) {
    const { json } = await boxRequest('POST', '/exec', body)
    t.match(json.error ?? json, expected, name)
    const id = json.commandId ?? json.processId
    t.equal(id !== undefined, record !== null, `${name}: whether it has a receipt`)
    if (record === null) continue
    const recorded = await waitUntil('the command has a final record', async () => {
      const { command } = (await api('GET', `/boxes/${box.id}/commands/${id}`)).json
      return command.status !== 'running' && command
    })
    t.match(recorded, { ...record, id, boxId: box.id, actor: { kind: 'user' } }, `${name}: its record`)
  }
  t.equal(await isRunning(coordinator, 7301), false, 'the time limit ended the process tree')

  const client = new AbortController()
  const cancelled = fetch(`${url}/v1/box/${box.hostname}/exec`, {
    method: 'POST',
    signal: client.signal,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ command: 'sleep 7302 & sleep 7302', timeoutSeconds: 600 }),
  }).catch((error: Error) => error.name)
  await waitUntil('the command runs', () => isRunning(coordinator, 7302))
  client.abort()
  t.equal(await cancelled, 'AbortError')
  await waitUntil('its process tree has ended', async () => !(await isRunning(coordinator, 7302)))

  const cut = exec('sleep 7303 & sleep 7303', { timeoutSeconds: 600 })
  await waitUntil('the command runs', () => isRunning(coordinator, 7303))
  instance.context.tunnels.disconnect(box.id, 'cut by the test', { reconnect: 'immediately' })
  t.match(await cut, { ok: false, error: { code: 'box_unreachable' } })
  await waitUntil('its process tree has ended', async () => !(await isRunning(coordinator, 7303)))
})

t.test('limits', async (t) => {
  const { boxRequest } = await startCoordinatorWithBox(t, {
    env: limitsEnv({ edgeRequestsPerSecond: 5, edgeConcurrency: 2 }),
  })
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => boxRequest('POST', '/exec', { command: 'sleep 0.2' })),
  )
  const codes = responses.map(({ json }) => json.error?.code ?? 'ok')
  t.equal(codes.filter((code) => code === 'ok').length, 2, codes.join())
  t.ok(
    codes.every((code) => ['ok', 'rate_limited'].includes(code)),
    codes.join(),
  )
})

t.test('an agent of the previous version runs commands, and transfers fail with the reason', async (t) => {
  const { boxRequest, box, exec, instance } = await startCoordinatorWithBox(t, {
    agentConnections: { acceptedVersions: [PREVIOUS_PROTOCOL_VERSION] },
  })
  t.equal(instance.context.tunnels.current(box.id)?.protocolVersion, PREVIOUS_PROTOCOL_VERSION)
  t.match(await exec('echo works'), { stdout: 'works\n' })
  const reason = { code: 'box_unreachable', message: /earlier version/ }
  for (const [method, path, body] of [
    ['GET', '/download?path=.', undefined],
    ['PUT', '/upload?path=a', 'content'],
  ] as const)
    t.match(await boxRequest(method, path, body), { status: 502, json: { error: reason } }, path)
  const large = { path: 'a', content: 'x'.repeat(100_000) }
  t.match(await boxRequest('PUT', '/files', large), { status: 502, json: { error: reason } })
  t.match(await exec('ls a'), { exitCode: 2 }, 'no file was written')
})
