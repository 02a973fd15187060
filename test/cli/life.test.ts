// The commands resize, move, set, events and wait, and what ls and show print about suspended boxes and schedules.
import t from 'tap'
import type { Box, BoxEvent } from '../../shared/api/boxes.ts'
import { enrollMachine } from '../support/enroll.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const CONTAINER: Box['isolation'] = { level: 'container', limits: [], network: 'own' }
const infra = new FakeInfrastructure()
const coordinator = await startCliCoordinator(t, ['fig'], {
  infra,
  provider: {
    ...infra.provider,
    // The hostname inside such a box is set when it starts.
    create: async (spec) => ({ ...(await infra.provider.create(spec)), isolation: CONTAINER }),
    start: async (spec) => ({ ...(await infra.provider.start(spec)), isolation: CONTAINER }),
  },
})
const { api, addBox, findBox, waitForState, holdUntilPolled, changeDetailNext } = coordinator
const fig = await findBox('fig')
const box = (...args: string[]) => runBox(coordinator, args)
const boxJson = async (...args: string[]) => JSON.parse((await box(...args, '--json')).stdout)
const AT = '2030-01-01T00:00:00.000Z'
const createEvent = (id: string, fromState: string | null, toState: string, reason: string) =>
  ({ id, fromState, toState, reason, actor: 'system', at: AT }) as BoxEvent

t.beforeEach(async () => {
  await api('POST', `/boxes/${fig.id}/wake`)
  await waitForState(fig.id, 'running')
})

t.test('resize waits until the box runs with the new tier', async (t) => {
  holdUntilPolled('stop')
  t.same(await box('resize', 'fig', 'pro'), {
    code: 0,
    stdout: '',
    stderr: 'fig: resizing\nfig: running\nfig: resized to pro (8 CPUs, 16 GiB memory, 160 GB disk)\n',
  })
  t.match(await findBox('fig'), { tier: 'pro' })
  t.match(await box('resize', 'fig', 'nano', '--no-wait'), { code: 0, stderr: 'fig: resizing to nano\n' })
  t.match(await box('wait', 'fig'), { code: 0 })
  t.match(await boxJson('resize', 'fig', 'micro'), {
    hostname: 'fig',
    tier: 'micro',
    observedState: 'running',
  })
})

t.test('resize says when the machine has less than the tier', async (t) => {
  const size = { cpus: 2, memoryBytes: 23.5 * 1024 ** 3, diskBytes: 250e9 }
  changeDetailNext({ tier: 'ultra', observedState: 'running' }, { size })
  t.match(await box('resize', 'fig', 'ultra'), {
    code: 0,
    stderr:
      /resized to ultra \(2 CPUs, 23\.5 GiB memory, 250 GB disk: limited by the machine; the tier has 32 CPUs, 64 GiB memory, 640 GB disk\)\n$/,
  })
})

t.test('resize waits for its job, also while the box has not changed its state yet', async (t) => {
  const job = { op: 'resize', step: 'stop', attempt: 2, lastError: 'no memory', nextRetryAt: null }
  changeDetailNext({ tier: 'pro', observedState: 'running' }, { job })
  changeDetailNext({ observedState: 'resizing' })
  t.match(await box('resize', 'fig', 'pro'), {
    code: 0,
    stderr: /^fig: running, attempt 2 failed: no memory\nfig: resizing\nfig: running\n/,
  })
})

t.test('a refusal during a change names the command that waits', async (t) => {
  const resume = Promise.withResolvers<void>()
  infra.before.stop = () => resume.promise
  await box('stop', 'fig', '--no-wait')
  t.match(await box('resize', 'fig', 'max'), {
    code: 1,
    stderr: /^box: .*\. `box wait fig` waits for the current change\. \(resize_rejected\)\n$/,
  })
  delete infra.before.stop
  resume.resolve()
  t.match(await box('wait', 'fig'), { code: 0 })
})

t.test('move waits until the box has arrived', async (t) => {
  for (const name of ['kaki', 'pear']) await addBox(name)
  holdUntilPolled('stop')
  t.same(await box('move', 'kaki', 'eu-central-1'), {
    code: 0,
    stdout: '',
    stderr: 'kaki: migrating\nkaki: running\nkaki: moved from us-west-2 to eu-central-1\n',
  })
  t.match(await box('move', 'kaki', 'us-west-2'), {
    code: 1,
    stderr: /^box: Box kaki has been moved in the last 24 hours\. .* \(move_rejected\)\n$/,
  })
  t.match(await box('move', 'pear', 'us-east-1', '--no-wait'), {
    code: 0,
    stderr: 'pear: moving to us-east-1\n',
  })
  t.match(await box('wait', 'pear'), { code: 0 })
  t.match(await findBox('pear'), { region: 'us-east-1' })
})

t.test('move shows the step, and why the box has stayed', async (t) => {
  await addBox('melon')
  const job = { op: 'move', step: 'transfer', attempt: 1, lastError: null, nextRetryAt: null }
  changeDetailNext({ observedState: 'migrating', desiredRegion: 'us-east-1' }, { job })
  const stayed = { region: 'us-west-2', desiredRegion: null, observedState: 'running' } as const
  changeDetailNext(stayed, {
    events: [
      createEvent('evt_9', 'suspended', 'waking', 'woken'),
      createEvent('evt_8', 'migrating', 'suspended', 'the disk is full'),
    ],
  })
  t.match(await box('move', 'melon', 'us-east-1'), {
    code: 1,
    stderr:
      /^melon: migrating, transferring the files\nmelon: running\nbox: Could not move melon to us-east-1: the disk is full\. The box is in us-west-2\./,
  })
})

t.test('rename changes the name, and says what keeps the old one', async (t) => {
  const kiwi = await addBox('kiwi')
  t.same(await box('rename', 'kiwi', 'lime'), {
    code: 0,
    stdout: '',
    stderr: 'kiwi: renamed to lime. Inside the box, the hostname is kiwi until its next start.\n',
  })
  t.match(await findBox('lime'), { id: kiwi.id })
  await box('stop', 'lime')
  t.match(await box('rename', 'lime', 'kiwi'), { code: 0, stderr: 'lime: renamed to kiwi\n' })
  await box('wake', 'kiwi')
  infra.canFreeze = true
  t.match(await box('suspend', 'kiwi'), { stderr: /kiwi: suspended \(frozen\)\n$/ })
  infra.canFreeze = false
  t.match(await box('rename', kiwi.id, 'lime'), { code: 0, stderr: /^kiwi: .* until its next start\.\n$/ })
  coordinator.changeNext('GET /api/v1/regions', ({ regions }) => ({
    regions: regions.map((region: object) => ({ ...region, provider: 'podman' })),
  }))
  t.match(await box('rename', 'lime', 'kiwi'), { code: 0, stderr: /hostname remains what it was when/ })
  t.match(await box('rename', 'kiwi', 'fig'), { code: 1, stderr: /^box: .*\(name_taken\)\n$/ })
  t.match(await box('rename', 'nobox', 'fig'), { code: 5, stderr: /No such box: 'nobox'/ })
  await enrollMachine(coordinator, { name: 'server' })
  t.match(await box('rename', 'server', 'build'), { code: 0, stderr: 'server: renamed to build\n' })
  await box('rm', '-y', 'kiwi')
})

t.test('set changes the schedules', async (t) => {
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
  t.match(await findBox('fig'), {
    pauseAt: null,
    autoPauseMin: 90,
    autoSnapshotHours: 24,
    autoSnapshotKeep: 7,
  })
  t.equal(await set('--auto-pause', 'none', '--auto-snapshot', 'off'), 'fig: no schedules\n')
  t.match(await findBox('fig'), { autoPauseMin: null, autoSnapshotHours: null })
  t.match(await set('--delete-after', '7d'), /^fig: delete at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in 7d\)\n$/)
  t.match((await box('show', 'fig')).stdout, /^delete at +\d{4}-.* \(in 7d\)$/m)
  t.match((await box('ls', '-o', 'wide')).stdout, /DELETION.*^fig .* \d{4}-\d\d-\d\dT\S+Z +\d{4}-/ms)
  t.equal(await set('--delete-after', 'never'), 'fig: no schedules\n')
  await set('--quiet-hours-exempt', 'on')
  t.match(await findBox('fig'), { quietHoursExempt: true })
})

t.test('set --pause-at takes the next time of day', async (t) => {
  const TZ = 'Etc/GMT-3'
  const result = await runBox(coordinator, ['set', 'fig', '--pause-at', '18:00'], { env: { TZ } })
  t.match(result, { code: 0, stderr: /^fig: suspend at \d{4}-\d\d-\d\d 18:00:00/ })
  const pauseAt = (await findBox('fig')).pauseAt ?? ''
  t.match(pauseAt, /T15:00:00\.000Z$/)
  t.ok(Date.parse(pauseAt) > Date.now() && Date.parse(pauseAt) < Date.now() + 86_400_000)
  t.match(await box('set', 'fig', '--pause-at', 'off'), { code: 0 })
  t.match(await findBox('fig'), { pauseAt: null })
  t.match(await box('set', 'fig', '--pause-at', 'yesterday 18:00'), {
    code: 2,
    stderr: /a time in the future/,
  })
})

t.test('set rejects values and combinations before any request', async (t) => {
  const first = coordinator.requests.length
  const cases: [string[], RegExp][] = [
    [[], /^box: Nothing to set\. Use --ttl/],
    [['--ttl', '1m'], /--ttl must be a duration from 5m to 30d in whole minutes/],
    [['--delete-after', '366d'], /--delete-after must be a duration from 5m to 365d in whole minutes/],
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
  t.notOk(coordinator.requests.slice(first).some(({ line }) => line.startsWith('PATCH ')))
})

t.test('set tries each of several boxes', async (t) => {
  await addBox('kiwi')
  t.match(await box('set', 'kiwi', 'none', 'fig', '--auto-pause', '2h'), {
    code: 5,
    stderr: /No such box: 'none'.*\n.*kiwi: suspend when idle for 2h\n.*fig: suspend when idle for 2h\n/s,
  })
})

t.test(
  'ls and show name a frozen box, show also the schedules, the snapshots and the failing job',
  async (t) => {
    await box('snapshot', 'fig', '-q')
    await addBox('lime')
    infra.canFreeze = true
    await box('suspend', 'lime')
    infra.canFreeze = false
    t.match((await box('ls')).stdout, /^lime +suspended \(frozen\) +lite/m)
    const job = { op: 'wake', step: 'unpack', attempt: 3, lastError: 'the disk is full', nextRetryAt: AT }
    changeDetailNext(
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
    t.match(stdout, /^state +suspended \(frozen\) for \d+s$/m)
    t.match(stdout, /^region +us-west-2, moving to us-east-1$/m)
    t.match(stdout, /^suspend at +\d{4}-\d\d-\d\d \d\d:00:00 \(in \d+d/m)
    t.match(stdout, /^suspend when +idle for 2h$/m)
    t.match(stdout, /^snapshot every +1d, keeping the last 3$/m)
    t.match(stdout, /^snapshots +1 \(box snapshots fig\)$/m)
    t.match(stdout, /^frozen +2 times; the processes continued with their memory$/m)
    t.match(stdout, /^in progress +wake: unpack, attempt 3, next attempt in /m)
    t.match(stdout, /^last error +the disk is full$/m)
    changeDetailNext({}, { pausesSurvived: 1 })
    t.match((await box('show', 'fig')).stdout, /^frozen +1 time; the processes/m)
    await box('rm', '-y', 'lime')
  },
)

t.test('stop and restart accept a box in deep sleep', async (t) => {
  const asleep = { desiredState: 'suspended', observedState: 'deep_sleep' } as const
  changeDetailNext(asleep)
  t.match(await box('stop', 'fig'), { code: 0, stderr: 'fig: deep_sleep\n' })
  await waitForState(fig.id, 'suspended')
  coordinator.changeNext('GET /api/v1/boxes?box=fig', ({ boxes }) => ({
    boxes: boxes.map((box: Box) => ({ ...box, ...asleep })),
  }))
  changeDetailNext(asleep)
  holdUntilPolled('start')
  t.match(await box('restart', 'fig'), { code: 0, stderr: 'fig: deep_sleep\nfig: waking\nfig: running\n' })
})

t.test('suspend and wake show frozen processes and long steps', async (t) => {
  changeDetailNext({ desiredState: 'suspended', observedState: 'suspended', suspendedAs: 'frozen' })
  t.match(await box('suspend', 'fig'), { code: 0, stderr: 'fig: suspended (frozen)\n' })
  const job = { op: 'wake', step: 'unpack', attempt: 1, lastError: null, nextRetryAt: null }
  changeDetailNext({ observedState: 'waking' }, { job })
  changeDetailNext({})
  t.match(await box('wake', 'fig'), { code: 0, stderr: 'fig: waking, unpacking the files\nfig: running\n' })
})

const EVENTS = [
  createEvent('evt_3', 'suspended', 'suspended', 'stopped after an hour\u001b[2J'),
  createEvent('evt_2', 'suspending', 'suspended', 'frozen'),
  createEvent('evt_1', 'running', 'suspending', 'suspended'),
]

t.test('events prints the state changes, oldest first', async (t) => {
  changeDetailNext({}, { events: EVENTS })
  const { code, stdout } = await box('events', 'fig')
  t.equal(code, 0)
  const lines = stdout.trimEnd().split('\n')
  t.match(lines, [
    /^TIME +CHANGE +ACTOR +REASON$/,
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +running → suspending +system +suspended$/,
    /suspending → suspended +system +frozen$/,
    /suspended +system +stopped after an hour\uFFFD\[2J$/,
  ])
  changeDetailNext({}, { events: EVENTS })
  t.equal((await box('events', 'fig', '-n', '1', '-q')).stdout, 'evt_3\n')
  changeDetailNext({}, { events: EVENTS })
  t.match(await boxJson('events', 'fig', '--filter', 'reason=frozen'), { events: [{ id: 'evt_2' }] })
})

t.test('events --follow prints new events, also on a terminal, and ends with the box', async (t) => {
  changeDetailNext({}, { events: EVENTS.slice(1) })
  changeDetailNext({}, { events: EVENTS })
  const deleted = createEvent('evt_4', 'terminating', 'terminated', 'deleted')
  changeDetailNext(
    { observedState: 'terminated', desiredState: 'terminated' },
    { events: [deleted, ...EVENTS] },
  )
  const pty = runBoxInPty(t, coordinator, 'box events fig --follow -n 1; echo code=$?')
  await pty.waitFor('code=5')
  t.notMatch(pty.output, /running → suspending/)
  t.match(pty.output, /suspending → suspended.*stopped after.*terminating → terminated.*No such box: 'fig'/s)
  t.notOk(pty.output.includes('\u001b[J'), 'the table is not redrawn')
})

t.test('wait returns when the change of a box is complete', async (t) => {
  holdUntilPolled('stop')
  await box('suspend', 'fig', '--no-wait')
  t.same(await box('wait', 'fig'), { code: 0, stdout: '', stderr: 'fig: suspending\nfig: suspended\n' })
  t.match(await boxJson('wait', 'fig'), { observedState: 'suspended' })
  const job = { op: 'clean_up', step: 'clean_up', attempt: 1, lastError: null, nextRetryAt: null }
  changeDetailNext({}, { job })
  t.same(await box('wait', 'fig', '-q'), { code: 0, stdout: '', stderr: '' })
})

t.test('wait --for waits for a state', async (t) => {
  changeDetailNext({ desiredState: 'suspended', observedState: 'suspended', suspendedAs: 'frozen' })
  changeDetailNext({ desiredState: 'suspended', observedState: 'suspended', suspendedAs: 'stopped' })
  t.match(await box('wait', 'fig', '--for', 'stopped'), {
    code: 0,
    stderr: 'fig: suspended (frozen)\nfig: suspended\n',
  })
  changeDetailNext({ desiredState: 'terminated', observedState: 'terminating' })
  changeDetailNext({ desiredState: 'terminated', observedState: 'terminated' })
  t.match(await box('wait', 'fig', '--for', 'deleted'), {
    code: 0,
    stderr: 'fig: terminating\nfig: terminated\n',
  })
  t.match(await box('wait', 'none', '--for', 'deleted'), { code: 0, stderr: 'none: no such box\n' })
  t.match(await box('wait', 'none', '--for', 'running'), { code: 5 })
  t.match(await box('wait', 'fig', '--for', 'asleep'), { code: 2, stderr: /deep_sleep/ })
})

t.test('wait fails when the state cannot be reached', async (t) => {
  changeDetailNext({ desiredState: 'terminated', observedState: 'terminating' })
  t.match(await box('wait', 'fig', '--for', 'running'), {
    code: 1,
    stderr: /fig will not become running: it was deleted/,
  })
  changeDetailNext(
    { observedState: 'provision_failed' },
    { events: [createEvent('evt_1', null, 'provision_failed', 'no disk')] },
  )
  t.match(await box('wait', 'fig'), { code: 1, stderr: /Could not create fig: no disk/ })
})

t.test('wait --timeout exits with 124', async (t) => {
  await box('suspend', 'fig')
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
  infra.before.capture = () => coordinator.waitForResponse('GET /api/v1/snapshots')
  const id = (await box('snapshot', 'fig', 'before', '--no-wait')).stdout.trim()
  t.match(await box('wait', id), { code: 0, stdout: '', stderr: /^before: creating\nbefore: available/ })
  t.match(await box('wait', id, '--for', 'running'), { code: 2, stderr: /is for boxes/ })
  t.match(await box('wait', 'fig', '--for', 'available'), { code: 2, stderr: /is for snapshots/ })
})
