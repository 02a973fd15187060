// ps and logs of a box that is not running, which read the command history; and why a followed process was terminated.
import t from 'tap'
import { findStopEvent } from '../../cli/logs/box-stop.ts'
import type { BoxEvent } from '../../shared/api/boxes.ts'
import { createRecordAdder } from './command-records.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const { api, waitForState } = coordinator
const { id: boxId } = await coordinator.findBox('fig')
const box = (...args: string[]) => runBox(coordinator, args)
const add = createRecordAdder(coordinator, boxId)

async function suspend(): Promise<void> {
  await api('POST', `/boxes/${boxId}/suspend`)
  await waitForState(boxId, 'suspended')
}
await suspend()
t.beforeEach(() => api('DELETE', `/boxes/${boxId}/commands`))

/** The next stream of the process has these events, and ends. */
const streamNext = (processId: string, ...events: [name: string, data: object][]) =>
  coordinator.failNext(`GET /v1/box/fig/exec/${processId}/stream`, async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [name, data] of events) response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
    await suspend()
    response.destroy()
  })

const NOTE = 'box: fig is not running. This is the stored output: the last 1 MiB of each stream.\n'

t.test('ps lists the detached processes of the history', async (t) => {
  await add({ mode: 'sync' })
  await add({ mode: 'detached', status: 'failed', exitCode: null, pid: null })
  const killed = await add({ mode: 'detached', status: 'killed', exitCode: null, signal: 'TERM' })
  const late = await add({
    mode: 'detached',
    status: 'timed_out',
    exitCode: null,
    signal: 'KILL',
    command: null,
  })
  const { code, stdout, stderr } = await box('ps', 'fig')
  t.equal(code, 0)
  t.equal(stderr, 'box: fig is not running. These processes are from the command history.\n')
  t.match(
    stdout
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {2,}/)),
    [
      [late.id, '7', 'timed_out KILL', /^\d+\w ago$/, '(not stored)'],
      [killed.id, '7', 'killed TERM', /^\d+\w ago$/, 'true'],
    ],
  )
  t.match(JSON.parse((await box('ps', 'fig', '--json')).stdout), {
    type: 'exec.list',
    processes: [
      { processId: late.id, timedOut: true },
      { processId: killed.id, signal: 'TERM' },
    ],
  })
})

t.test('logs prints the stored output of both streams', async (t) => {
  const { id } = await add({ mode: 'detached', output: Buffer.from('1\n2\n3\n') })
  t.same(await box('logs', 'fig', id), { code: 0, stdout: '1\n2\n3\n', stderr: `${NOTE}\n3\n2\n1` })
  t.same(await box('logs', 'fig'), { code: 0, stdout: '1\n2\n3\n', stderr: `${NOTE}\n3\n2\n1` })
  t.match(await box('logs', '-n', '1', 'fig', id.slice(2, 26)), { stdout: '3\n', stderr: `${NOTE}1` })
  t.match(await box('logs', '--bytes', '3', 'fig', id), { stdout: '\n3\n', stderr: `${NOTE}2\n1` })
  t.match(await box('logs', 'fig', 'p_ffffffffffffffffffffffff'), {
    code: 5,
    stderr: /No such process on fig/,
  })
  const { id: truncated } = await add({ mode: 'detached', output: Buffer.from('12345'), firstStoredByte: 3 })
  t.match(await box('logs', 'fig', truncated), {
    stdout: '45',
    stderr: /box: 3 bytes of stdout before this point are missing: fig has discarded them\.\n/,
  })
})

t.test(
  'logs -f prints the stored output and the status of the process, and exits with its code',
  async (t) => {
    const { id } = await add({ mode: 'detached', output: Buffer.from('1\n'), exitCode: 7 })
    t.same(await box('logs', '-f', 'fig', id), {
      code: 7,
      stdout: '1\n',
      stderr: `${NOTE}\n1box: the process is not running: exited 7.\n`,
    })
    const { id: lost } = await add({ mode: 'detached', status: 'lost', exitCode: null })
    t.match(await box('logs', '-f', 'fig', lost), {
      code: 125,
      stderr: /is not running: lost\.\n(?:.*\n)?box: The exit status .* unknown/,
    })
    const { id: notStored } = await add({ mode: 'detached', outputKept: false })
    t.match(await box('logs', '-f', 'fig', notStored), {
      code: 0,
      stdout: '',
      stderr: /^box: fig is not running, and the output was not stored/,
    })
  },
)

t.test('logs -f continues with the stored output when the box is suspended', async (t) => {
  const { id } = await add({
    mode: 'detached',
    output: Buffer.from('1\n2\n3\n'),
    status: 'killed',
    exitCode: null,
    signal: 'TERM',
  })
  await api('POST', `/boxes/${boxId}/wake`)
  await waitForState(boxId, 'running')
  streamNext(
    id,
    ['attached', { processId: id, stdoutOffset: 0, stderrOffset: 0 }],
    ['stdout', { data: Buffer.from('1\n').toString('base64'), offset: 0, nextOffset: 2 }],
  )
  const result = await box('logs', '-f', 'fig', id)
  t.match(result, {
    code: 143,
    stdout: '1\n2\n3\n',
    stderr: /the process is not running: killed TERM\.\nbox: fig was stopped at .*\n$/,
  })
})

t.test('logs -f reports that the box was stopped', async (t) => {
  const exit = { status: 'killed', exitCode: null, signal: 'TERM' } as const
  const startedAt = '2026-01-01T00:00:00.000Z'
  const times = { startedAt, finishedAt: '2026-01-01T00:10:00.200Z' }
  const { id } = await add({ mode: 'detached', ...times, ...exit })
  const events = [
    createEvent('running', '2026-01-01T00:20:00.000Z', 'woken'),
    createEvent('suspending', '2026-01-01T00:10:00.000Z', 'the coordinator was stopped'),
  ]
  coordinator.changeDetailNext({}, { events })
  const offsets = { stdoutOffset: 0, stderrOffset: 0 }
  streamNext(
    id,
    ['attached', { processId: id, ...offsets }],
    ['exit', { ...exit, timedOut: false, ...offsets }],
  )
  t.same(await box('logs', '-f', 'fig', id), {
    code: 143,
    stdout: '',
    stderr:
      'box: fig was stopped at 2026-01-01T00:10:00.000Z (the coordinator was stopped), which terminated the process.\n',
  })
  const unknown = 'p_0123456789abcdef01234567'
  streamNext(
    unknown,
    ['attached', { processId: unknown, ...offsets }],
    ['exit', { ...exit, timedOut: false, ...offsets }],
  )
  t.match(await box('logs', '-f', 'fig', unknown), { code: 143, stderr: '' }, 'without a record')
})

t.test('only the stop that ended the process is reported', async (t) => {
  const stop = createEvent('suspending', '2026-01-01T00:10:00.000Z', 'suspended')
  const events = [createEvent('suspending', '2026-01-01T00:30:00.000Z', 'suspended'), stop]
  const find = (startedAt: string, finishedAt: string | null) =>
    findStopEvent(events, { startedAt, finishedAt })
  t.equal(find('2026-01-01T00:00:00Z', '2026-01-01T00:10:00.100Z'), stop)
  t.equal(find('2026-01-01T00:00:00Z', null), stop, 'lost')
  t.equal(find('2026-01-01T00:00:00Z', '2026-01-01T00:05:00Z'), null, 'killed before the stop')
  t.equal(find('2026-01-01T00:15:00Z', '2026-01-01T00:20:00Z'), null, 'started after the first stop')
  t.equal(find('2026-01-01T00:40:00Z', null), null)
})

const createEvent = (toState: BoxEvent['toState'], at: string, reason: string): BoxEvent => ({
  id: `evt_${at}`,
  fromState: null,
  toState,
  reason,
  code: null,
  actor: 'system',
  at,
})
