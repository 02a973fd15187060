// The commands resize, move, set, events and wait, and what ls and show print about suspended boxes and schedules.
import t from 'tap'
import type { Box, BoxEvent } from '../../shared/api/boxes.ts'
import type { RegionInfo } from '../../shared/api/images.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { sendJson, startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeImages } from './fake-images.ts'
import { addFakeSettings } from './fake-settings.ts'
import { addFakeSnapshots } from './fake-snapshots.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const fig = await fake.addBox('fig')
const { bodies } = addFakeSettings(fake)
const snapshots = addFakeSnapshots(fake)
const box = (...args: string[]) => runBox(fake.url, args)
const boxJson = async (...args: string[]) => JSON.parse((await box(...args, '--json')).stdout)
const refuseNext = (line: string, status: number, code: string) =>
  fake.handleNext(line, (response) => sendJson(response, { error: code, message: 'Refused.' }, status))
const AT = '2030-01-01T00:00:00.000Z'
/** Replaces the next response of GET /boxes/{id}. */
const detailNext = (fields: Partial<Box>, detail: object = {}) =>
  fake.handleNext('GET /api/v1/boxes/', (response) => {
    const current = { ...fig, ...fields }
    const { desiredState: desired, observedState: observed } = current
    const state = { desired, observed, connected: true, since: AT, lastHeartbeatAt: AT }
    const rest = { vitals: null, machine: null, events: [], job: null, pausesSurvived: 0, envVars: [] }
    sendJson(response, { ...rest, ...detail, box: current, state })
  })
const createEvent = (id: string, fromState: string | null, toState: string, reason: string) =>
  ({ id, fromState, toState, reason, actor: 'system', at: AT }) as BoxEvent

t.beforeEach(() => {
  bodies.length = 0
  Object.assign(fig, { observedState: 'running', desiredState: 'running', region: 'us-west-2' })
})

t.test('resize waits until the box runs with the new tier', async (t) => {
  t.same(await box('resize', 'fig', 'pro'), {
    code: 0,
    stdout: '',
    stderr: 'fig: resizing\nfig: running\nfig: resized to pro (8 CPUs, 16 GiB memory, 160 GB disk)\n',
  })
  t.same(bodies, [{ target_tier: 'pro' }])
  t.match(await box('resize', 'fig', 'nano', '--no-wait'), { code: 0, stderr: 'fig: resizing to nano\n' })
  t.match(await boxJson('resize', 'fig', 'micro'), {
    hostname: 'fig',
    tier: 'micro',
    observedState: 'running',
  })
})

t.test('resize says when the machine has less than the tier', async (t) => {
  const size = { cpus: 2, memoryBytes: 23.5 * 1024 ** 3, diskBytes: 250e9 }
  detailNext({ tier: 'ultra', observedState: 'running' }, { size })
  t.match(await box('resize', 'fig', 'ultra'), {
    code: 0,
    stderr:
      /resized to ultra \(2 CPUs, 23\.5 GiB memory, 250 GB disk: limited by the machine; the tier has 32 CPUs, 64 GiB memory, 640 GB disk\)\n$/,
  })
})

t.test('resize waits for its job, also while the box has not changed its state yet', async (t) => {
  const job = { op: 'resize', step: 'stop', attempt: 2, lastError: 'no memory', nextRetryAt: null }
  detailNext({ tier: 'pro', observedState: 'running' }, { job })
  t.match(await box('resize', 'fig', 'pro'), {
    code: 0,
    stderr: /^fig: running, attempt 2 failed: no memory\nfig: resizing\nfig: running\n/,
  })
})

t.test('a refusal during a change names the command that waits', async (t) => {
  refuseNext('POST /api/v1/boxes/', 400, 'resize_rejected')
  fig.observedState = 'suspending'
  t.match(await box('resize', 'fig', 'pro'), {
    code: 1,
    stderr: 'box: Refused. `box wait fig` waits for the current change. (resize_rejected)\n',
  })
  fig.observedState = 'running'
  refuseNext('POST /api/v1/boxes/', 400, 'move_rejected')
  t.match(await box('move', 'fig', 'us-east-1'), { code: 1, stderr: 'box: Refused. (move_rejected)\n' })
})

t.test('move waits until the box has arrived', async (t) => {
  t.same(await box('move', 'fig', 'eu-central-1'), {
    code: 0,
    stdout: '',
    stderr: 'fig: migrating\nfig: running\nfig: moved to eu-central-1\n',
  })
  t.match(await box('move', 'fig', 'us-east-1', '--no-wait'), {
    code: 0,
    stderr: 'fig: moving to us-east-1\n',
  })
})

t.test('move shows the step, and why the box has stayed', async (t) => {
  const job = { op: 'move', step: 'transfer', attempt: 1, lastError: null, nextRetryAt: null }
  detailNext({ observedState: 'migrating', desiredRegion: 'us-east-1' }, { job })
  const stayed = { region: 'us-west-2', desiredRegion: null, observedState: 'running' } as const
  detailNext(stayed, {
    events: [
      createEvent('evt_9', 'suspended', 'waking', 'woken'),
      createEvent('evt_8', 'migrating', 'suspended', 'the disk is full'),
    ],
  })
  t.match(await box('move', 'fig', 'us-east-1'), {
    code: 1,
    stderr:
      /^fig: migrating, transferring the files\nfig: running\nbox: Could not move fig to us-east-1: the disk is full\. The box is in us-west-2\./,
  })
})

t.test('rename changes the name, and says what keeps the old one', async (t) => {
  const kiwi = await fake.addBox('kiwi')
  t.same(await box('rename', 'kiwi', 'lime'), {
    code: 0,
    stdout: '',
    stderr: 'kiwi: renamed to lime. Inside the box, the hostname is kiwi until its next start.\n',
  })
  t.same(bodies, [{ name: 'lime' }])
  Object.assign(kiwi, { observedState: 'suspended', suspendedAs: 'stopped' })
  t.match(await box('rename', 'lime', 'kiwi'), { code: 0, stderr: 'lime: renamed to kiwi\n' })
  Object.assign(kiwi, { observedState: 'suspended', suspendedAs: 'frozen' })
  t.match(await box('rename', kiwi.id, 'lime'), { code: 0, stderr: /^kiwi: .* until its next start\.\n$/ })
  const { isolation } = kiwi
  addFakeImages(fake).regions = [{ region: kiwi.region, provider: 'podman' }] as RegionInfo[]
  Object.assign(kiwi, { isolation: { level: 'container', limits: [], network: 'own' } })
  t.match(await box('rename', 'lime', 'kiwi'), { code: 0, stderr: /hostname remains what it was when/ })
  t.match(await box('rename', 'kiwi', 'lime'), { code: 0 })
  Object.assign(kiwi, { isolation, observedState: 'running', suspendedAs: null, kind: 'machine' })
  t.match(await box('rename', 'lime', 'kiwi'), { code: 0, stderr: 'lime: renamed to kiwi\n' })
  refuseNext('PATCH /api/v1/boxes/', 409, 'name_taken')
  t.match(await box('rename', 'kiwi', 'fig'), { code: 1, stderr: 'box: Refused. (name_taken)\n' })
  t.match(await box('rename', 'nobox', 'fig'), { code: 5, stderr: /No such box: 'nobox'/ })
  fake.boxes.splice(fake.boxes.indexOf(kiwi), 1)
})

t.test('set sends durations as minutes and hours, and off as null', async (t) => {
  const set = async (...options: string[]) => {
    const result = await box('set', 'fig', ...options)
    t.match(result, { code: 0, stdout: '' }, options.join(' '))
    return result.stderr
  }
  t.match(await set('--ttl', '2h'), /^fig: suspend at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in 2h\)\n$/)
  t.equal(
    await set('--ttl', 'off', '--auto-pause', '90', '--auto-snapshot', '1d', '--keep', '7'),
    'fig: suspend when idle for 1h 30m; snapshot every 1d, keeping the last 7\n',
  )
  t.equal(await set('--auto-pause', 'none', '--auto-snapshot', 'off'), 'fig: no schedules\n')
  await set('--quiet-hours-exempt', 'on')
  t.same(bodies, [
    { ttlMinutes: 120 },
    { ttlMinutes: null, autoPauseMin: 90, autoSnapshotHours: 24, autoSnapshotKeep: 7 },
    { autoPauseMin: null, autoSnapshotHours: null },
    { quietHoursExempt: true },
  ])
})

t.test('set --pause-at takes the next time of day', async (t) => {
  const TZ = 'Etc/GMT-3'
  const result = await runBox(fake.url, ['set', 'fig', '--pause-at', '18:00'], { env: { TZ } })
  t.match(result, { code: 0, stderr: /^fig: suspend at \d{4}-\d\d-\d\d 18:00:00/ })
  const [{ pauseAt }] = bodies as [{ pauseAt: string }]
  t.match(pauseAt, /T15:00:00\.000Z$/)
  t.ok(Date.parse(pauseAt) > Date.now() && Date.parse(pauseAt) < Date.now() + 86_400_000)
  t.match(await box('set', 'fig', '--pause-at', 'off'), { code: 0 })
  t.same(bodies[1], { pauseAt: null })
  t.match(await box('set', 'fig', '--pause-at', 'yesterday 18:00'), {
    code: 2,
    stderr: /a time in the future/,
  })
})

t.test('set rejects values and combinations before any request', async (t) => {
  const cases: [string[], RegExp][] = [
    [[], /^box: Nothing to set\. Use --ttl/],
    [['--ttl', '1m'], /--ttl must be a duration from 5m to 30d in whole minutes/],
    [['--auto-pause', '90s'], /--auto-pause must be a duration from 30m to 7d in whole minutes/],
    [
      ['--auto-snapshot', '90m'],
      /--auto-snapshot must be a duration from 1h to 7d in whole hours, such as 2h or 1d/,
    ],
    [['--keep', '11'], /--keep must be an integer between 1 and 10/],
    [['--ttl', '2h', '--pause-at', '18:00'], /cannot be used with/],
  ]
  for (const [options, message] of cases)
    t.match(await box('set', 'fig', ...options), { code: 2, stderr: message }, options.join(' '))
  t.same(bodies, [])
})

t.test('set tries each of several boxes', async (t) => {
  await fake.addBox('kiwi')
  t.match(await box('set', 'kiwi', 'none', 'fig', '--auto-pause', '2h'), {
    code: 5,
    stderr: /No such box: 'none'.*\n.*kiwi: suspend when idle for 2h\n.*fig: suspend when idle for 2h\n/s,
  })
})

t.test(
  'ls and show name a frozen box, show also the schedules, the snapshots and the failing job',
  async (t) => {
    snapshots.add({ boxId: fig.id })
    const lime = await fake.addBox('lime', {
      desiredState: 'suspended',
      observedState: 'suspended',
      suspendedAs: 'frozen',
    })
    t.match((await box('ls')).stdout, /^lime +suspended \(frozen\) +lite/m)
    const job = { op: 'wake', step: 'unpack', attempt: 3, lastError: 'the disk is full', nextRetryAt: AT }
    detailNext(
      {
        ...{ desiredState: 'suspended', observedState: 'suspended', suspendedAs: 'frozen' },
        ...{
          desiredRegion: 'us-east-1',
          pauseAt: AT,
          autoPauseMin: 120,
          autoSnapshotHours: 24,
          autoSnapshotKeep: 3,
        },
      },
      { pausesSurvived: 2, job },
    )
    const { stdout } = await box('show', 'fig')
    t.match(stdout, /^state +suspended \(frozen\) for 0s$/m)
    t.match(stdout, /^region +us-west-2, moving to us-east-1$/m)
    t.match(stdout, /^suspend at +\d{4}-\d\d-\d\d \d\d:00:00 \(in \d+d/m)
    t.match(stdout, /^suspend when +idle for 2h$/m)
    t.match(stdout, /^snapshot every +1d, keeping the last 3$/m)
    t.match(stdout, /^snapshots +1 \(box snapshots fig\)$/m)
    t.match(stdout, /^frozen +2 times; the processes continued with their memory$/m)
    t.match(stdout, /^in progress +wake: unpack, attempt 3, next attempt in /m)
    t.match(stdout, /^last error +the disk is full$/m)
    lime.observedState = 'terminated'
  },
)

t.test('stop and restart accept a box in deep sleep', async (t) => {
  const asleep = { desiredState: 'suspended', observedState: 'deep_sleep' } as const
  detailNext(asleep)
  t.match(await box('stop', 'fig'), { code: 0, stderr: 'fig: deep_sleep\n' })
  Object.assign(fig, asleep)
  t.teardown(() => Object.assign(fig, { desiredState: 'running', observedState: 'running' }))
  detailNext(asleep)
  detailNext({ desiredState: 'running', observedState: 'running' })
  t.match(await box('restart', 'fig'), { code: 0, stderr: 'fig: deep_sleep\nfig: running\n' })
})

t.test('suspend and wake show frozen processes and long steps', async (t) => {
  detailNext({ desiredState: 'suspended', observedState: 'suspended', suspendedAs: 'frozen' })
  t.match(await box('suspend', 'fig'), { code: 0, stderr: 'fig: suspended (frozen)\n' })
  const job = { op: 'wake', step: 'unpack', attempt: 1, lastError: null, nextRetryAt: null }
  detailNext({ observedState: 'waking' }, { job })
  detailNext({})
  t.match(await box('wake', 'fig'), { code: 0, stderr: 'fig: waking, unpacking the files\nfig: running\n' })
})

const EVENTS = [
  createEvent('evt_3', 'suspended', 'suspended', 'stopped after an hour\u001b[2J'),
  createEvent('evt_2', 'suspending', 'suspended', 'frozen'),
  createEvent('evt_1', 'running', 'suspending', 'suspended'),
]

t.test('events prints the state changes, oldest first', async (t) => {
  detailNext({}, { events: EVENTS })
  const { code, stdout } = await box('events', 'fig')
  t.equal(code, 0)
  const lines = stdout.trimEnd().split('\n')
  t.match(lines, [
    /^TIME +CHANGE +ACTOR +REASON$/,
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +running → suspending +system +suspended$/,
    /suspending → suspended +system +frozen$/,
    /suspended +system +stopped after an hour\uFFFD\[2J$/,
  ])
  detailNext({}, { events: EVENTS })
  t.equal((await box('events', 'fig', '-n', '1', '-q')).stdout, 'evt_3\n')
  detailNext({}, { events: EVENTS })
  t.match(await boxJson('events', 'fig', '--filter', 'reason=frozen'), { events: [{ id: 'evt_2' }] })
})

t.test('events --follow prints new events, also on a terminal, and ends with the box', async (t) => {
  detailNext({}, { events: EVENTS.slice(1) })
  detailNext({}, { events: EVENTS })
  const deleted = createEvent('evt_4', 'terminating', 'terminated', 'deleted')
  detailNext({ observedState: 'terminated', desiredState: 'terminated' }, { events: [deleted, ...EVENTS] })
  const pty = runBoxInPty(t, fake.url, 'box events fig --follow -n 1; echo code=$?')
  await pty.waitFor('code=5')
  t.notMatch(pty.output, /running → suspending/)
  t.match(pty.output, /suspending → suspended.*stopped after.*terminating → terminated.*No such box: 'fig'/s)
  t.notOk(pty.output.includes('\u001b[J'), 'the table is not redrawn')
})

t.test('wait returns when the change of a box is complete', async (t) => {
  Object.assign(fig, { desiredState: 'suspended', observedState: 'suspending' })
  t.same(await box('wait', 'fig'), { code: 0, stdout: '', stderr: 'fig: suspending\nfig: suspended\n' })
  t.match(await boxJson('wait', 'fig'), { observedState: 'suspended' })
  const job = { op: 'clean_up', step: 'clean_up', attempt: 1, lastError: null, nextRetryAt: null }
  detailNext({}, { job })
  t.same(await box('wait', 'fig', '-q'), { code: 0, stdout: '', stderr: '' })
})

t.test('wait --for waits for a state', async (t) => {
  detailNext({ desiredState: 'suspended', observedState: 'suspended', suspendedAs: 'frozen' })
  detailNext({ desiredState: 'suspended', observedState: 'suspended', suspendedAs: 'stopped' })
  t.match(await box('wait', 'fig', '--for', 'stopped'), {
    code: 0,
    stderr: 'fig: suspended (frozen)\nfig: suspended\n',
  })
  detailNext({ desiredState: 'terminated', observedState: 'terminating' })
  detailNext({ desiredState: 'terminated', observedState: 'terminated' })
  t.match(await box('wait', 'fig', '--for', 'deleted'), {
    code: 0,
    stderr: 'fig: terminating\nfig: terminated\n',
  })
  t.match(await box('wait', 'none', '--for', 'deleted'), { code: 0, stderr: 'none: no such box\n' })
  t.match(await box('wait', 'none', '--for', 'running'), { code: 5 })
  t.match(await box('wait', 'fig', '--for', 'asleep'), { code: 2, stderr: /deep_sleep/ })
})

t.test('wait fails when the state cannot be reached', async (t) => {
  detailNext({ desiredState: 'terminated', observedState: 'terminating' })
  t.match(await box('wait', 'fig', '--for', 'running'), {
    code: 1,
    stderr: /fig will not become running: it was deleted/,
  })
  detailNext(
    { observedState: 'provision_failed' },
    { events: [createEvent('evt_1', null, 'provision_failed', 'no disk')] },
  )
  t.match(await box('wait', 'fig'), { code: 1, stderr: /Could not create fig: no disk/ })
})

t.test('wait --timeout exits with 124', async (t) => {
  Object.assign(fig, { desiredState: 'suspended', observedState: 'suspended' })
  t.match(await box('wait', 'fig', '--for', 'running', '--timeout', '300ms'), {
    code: 124,
    stderr: /fig: not running after 0\.3s\. `box show fig` shows the state\.\n$/,
  })
  t.match(await box('wait', 'fig', '--for', 'running', '--timeout', '1ms', '--json'), {
    code: 124,
    stderr: /"code":"timed_out"/,
  })
  t.match(await box('wait', 'fig', '--timeout', 'soon'), { code: 2, stderr: /--timeout must be a duration/ })
})

t.test('wait with the id of a snapshot waits until it is available', async (t) => {
  const { id } = snapshots.add({ name: 'before', status: 'creating' })
  t.same(await box('wait', id), { code: 0, stdout: '', stderr: 'before: creating\nbefore: available\n' })
  t.match(await box('wait', id, '--for', 'running'), { code: 2, stderr: /is for boxes/ })
  t.match(await box('wait', 'fig', '--for', 'available'), { code: 2, stderr: /is for snapshots/ })
})
