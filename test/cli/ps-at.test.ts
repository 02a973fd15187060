// box ps-at: the processes and ports of a past moment.
import t from 'tap'
import { procsAtSchema } from '../../shared/api/process-snapshots.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const { id } = await coordinator.findBox('fig')
const run = (...args: string[]) =>
  runBox(coordinator, ['ps-at', 'fig', ...args], { env: { TZ: 'Europe/Berlin' } })
const respondWith = (snapshot: unknown) =>
  coordinator.respondNext(`GET /api/v1/boxes/${id}/procs-at?t=`, 200, procsAtSchema.parse(snapshot))
/** The coordinator has SNAPSHOT. */
const box = (...args: string[]) => {
  respondWith(SNAPSHOT)
  return run(...args)
}

const createProcess = (pid: number, fields: object) => ({
  pid,
  ppid: 1,
  user: 'user',
  name: 'sh',
  command: 'sh -c "make world"',
  cpuPct: 0,
  memBytes: 2048,
  startedAt: '2026-01-31T01:00:00.000Z',
  ...fields,
})
const SNAPSHOT = {
  v: 1,
  at: '2026-01-31T02:14:12.000Z',
  procs: [
    createProcess(1, { ppid: 0, command: null, name: 'init' }),
    createProcess(7, { cpuPct: 97.25, memBytes: 3 * 1024 ** 2, command: 'node server.js \u001b[2J' }),
    createProcess(8, { cpuPct: 3 }),
  ],
  ports: [
    { port: 22, process: null, pid: null },
    { port: 8080, process: 'node', pid: 7 },
    { port: 9090, process: 'node', pid: 7 },
  ],
  total: 3,
}
const TIME = '2026-01-31T03:14:02+01:00'

t.test('lists the processes by CPU usage with their ports, and when the snapshot was taken', async (t) => {
  const { code, stdout, stderr } = await box(TIME)
  t.equal(code, 0)
  t.equal(
    coordinator.requests.at(-1)?.line,
    `GET /api/v1/boxes/${id}/procs-at?t=2026-01-31T02%3A14%3A02.000Z`,
  )
  const [header, ...rows] = stdout.trimEnd().split('\n')
  t.match(header, /^PID +USER +%CPU +MEMORY +STARTED +PORTS +COMMAND$/)
  t.same(
    rows.map((row) => row.replace(/ +/g, ' ')),
    [
      '7 user 97.3 3.00 MiB 2026-01-31 02:00:00 8080,9090 node server.js �[2J',
      '8 user 3.0 2.00 KiB 2026-01-31 02:00:00 - sh -c "make world"',
      '1 user 0.0 2.00 KiB 2026-01-31 02:00:00 - [init]',
    ],
  )
  t.equal(
    stderr,
    'box: snapshot of 2026-01-31 03:14:12, 10s after the requested time. Also listening, by unknown processes: 22.\n',
  )
})

t.test('the time may be several words, and precedes or equals that of the snapshot', async (t) => {
  t.match(await box('yesterday', '03:14'), { code: 0, stderr: /before the requested time\./ })
  t.match(await box('2026-01-31T02:14:12Z'), { code: 0, stderr: /03:14:12, the requested time\./ })
  t.match(await run('2', 'h'), { code: 2, stderr: /^box: The time must be a duration such as/ })
  t.match(await run(), { code: 2, stderr: /missing.*time/ })
})

t.test('the formats and filters of lists, except --watch', async (t) => {
  t.match(await box(TIME, '-q', '--filter', 'port=8080'), { code: 0, stdout: '7\n' })
  t.match(await box(TIME, '-q', '--filter', 'command=make'), { stdout: '8\n' })
  t.match(await box(TIME, '--filter', 'user=root'), { stderr: /No matching processes on fig\.\n$/ })
  t.match(await box(TIME, '-o', 'wide'), { stdout: /^PID +PPID +USER/ })
  t.same(JSON.parse((await box(TIME, '--json')).stdout), SNAPSHOT)
  t.match(await run(TIME, '--watch'), { code: 2, stderr: /unknown option '--watch'/ })
})

t.test('a snapshot with more processes than are stored', async (t) => {
  respondWith({ ...SNAPSHOT, total: 1500, ports: [] })
  t.match(await run(TIME), { stderr: /requested time\. 3 of 1500 processes are stored\.\n$/ })
})

t.test(
  'without a snapshot, the message of the API says which moments are known, in local time',
  async (t) => {
    const message =
      'No snapshot near 2026-01-31T02:14:02.000Z. The nearest: 2026-01-30T22:59:00.002Z.\u001b[2J'
    coordinator.respondNext(`GET /api/v1/boxes/${id}/procs-at`, 404, { error: 'not_found', message })
    t.same(await run(TIME), {
      code: 5,
      stdout: '',
      stderr:
        'box: No snapshot near 2026-01-31 03:14:02. The nearest: 2026-01-30 23:59:00.�[2J (not_found)\n',
    })
  },
)
