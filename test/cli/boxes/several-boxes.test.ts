// Commands that change or delete several boxes: stop, start, restart, rm and their aliases; the question of rm.
import t from 'tap'
import { runBoxInPty } from '../box-in-pty.ts'
import { startFakeCoordinator } from '../fake-coordinator.ts'
import { runBox } from '../run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
await fake.addBox('plum')
const box = (...args: string[]) => runBox(fake.url, args)
const getState = (name: string) => fake.boxes.find(({ hostname }) => hostname === name)?.observedState
const NO_SUCH_BOX = "box: No such box: 'none'. Run `box ls` to list boxes.\n"

t.test('stop and start take several boxes, and try each', async (t) => {
  const stopped = await box('stop', 'fig', 'none', 'plum')
  t.match(stopped, { code: 5, stdout: '' })
  t.match(stopped.stderr, NO_SUCH_BOX)
  t.match(stopped.stderr, /fig: suspended\n/)
  t.match(stopped.stderr, /plum: suspended\n/)
  t.same([getState('fig'), getState('plum')], ['suspended', 'suspended'])
  t.match(await box('start', 'plum', 'fig', 'plum'), { code: 0 })
  t.same([getState('fig'), getState('plum')], ['running', 'running'])
})

t.test('all requests are sent before the first wait', async (t) => {
  fake.requests.length = 0
  await box('stop', 'fig', 'plum')
  const lines = fake.requests.map(({ line }) => line.replace(/[0-9a-f-]{36}/, 'ID'))
  t.ok(lines.lastIndexOf('POST /api/v1/boxes/ID/suspend?stop=1') < lines.indexOf('GET /api/v1/boxes/ID'))
  await box('start', 'fig', 'plum')
})

t.test('the failure of one box names the box and does not stop the others', async (t) => {
  const { id } = await fake.addBox('kiwi')
  fake.handleNext(`POST /api/v1/boxes/${id}/wake`, (response) => {
    response.writeHead(409).end('{"error":"box_failed","message":"It failed."}')
  })
  t.match(await box('wake', 'kiwi', 'fig'), {
    code: 1,
    stderr: 'box: kiwi: It failed. (box_failed)\nfig: running\n',
  })
  await box('rm', 'kiwi')
})

t.test('an unreachable coordinator is reported once', async (t) => {
  const result = await runBox('http://127.0.0.1:1', ['stop', 'fig', 'plum'])
  t.equal(result.code, 3)
  t.equal(result.stderr.match(/Cannot reach/g)?.length, 1)
})

t.test('--all applies to the boxes that are not in the state yet', async (t) => {
  await box('stop', 'fig')
  t.same(await box('stop', '--all'), { code: 0, stdout: '', stderr: 'plum: running\nplum: suspended\n' })
  t.same(await box('suspend', '-a'), { code: 0, stdout: '', stderr: 'No boxes to suspend.\n' })
  t.match(await box('start', '-a'), { code: 0, stderr: /plum: running\n.*fig: running\n/s })
  t.match(await box('stop', '--all', 'fig'), { code: 2, stderr: /--all cannot be combined with names/ })
  t.match(await box('stop'), { code: 2, stderr: /The name of a box is missing/ })
})

t.test('stop terminates frozen boxes too, suspend does not', async (t) => {
  const plum = fake.boxes.find(({ hostname }) => hostname === 'plum')
  const frozen = { desiredState: 'suspended', observedState: 'suspended', suspendedAs: 'frozen' } as const
  Object.assign(plum ?? {}, frozen)
  t.same(await box('suspend', 'plum'), { code: 0, stdout: '', stderr: 'plum: suspended (frozen)\n' })
  t.same(await box('stop', 'plum'), { code: 0, stdout: '', stderr: 'plum: suspended\n' })
  Object.assign(plum ?? {}, frozen)
  t.match(await box('stop', '--all', '--no-wait'), { code: 0, stderr: /plum: suspended\n/ })
  await box('start', '--all')
})

t.test('stop asks again when the freeze of the box had started before', async (t) => {
  const { id } = fake.boxes.find(({ hostname }) => hostname === 'plum') ?? {}
  fake.requests.length = 0
  fake.handleNext(`POST /api/v1/boxes/${id}/suspend?stop=1`, (response) => {
    const plum = fake.boxes.find((candidate) => candidate.id === id)
    Object.assign(plum ?? {}, { desiredState: 'suspended', suspendedAs: 'frozen' })
    response.writeHead(202).end(JSON.stringify({ box: plum }))
  })
  t.match(await box('stop', 'plum'), { code: 0, stderr: /suspended \(frozen\)\nplum: suspended\n$/ })
  t.equal(fake.requests.filter(({ line }) => line.endsWith('suspend?stop=1')).length, 2)
  await box('start', 'plum')
})

t.test('restart stops a box and starts it again', async (t) => {
  const states = () => fake.requests.flatMap(({ line }) => /\/(suspend\?stop=1|wake)$/.exec(line)?.[1] ?? [])
  fake.requests.length = 0
  t.match(await box('restart', 'fig', 'plum'), {
    code: 0,
    stderr: /fig: suspended\n.*fig: running\n.*plum: running\n$/s,
  })
  t.same(states(), ['suspend?stop=1', 'suspend?stop=1', 'wake', 'wake'])
  t.equal(getState('fig'), 'running')

  await box('stop', 'fig')
  fake.requests.length = 0
  t.match(JSON.parse((await box('restart', 'fig', '--json')).stdout), {
    hostname: 'fig',
    observedState: 'running',
  })
  t.same(states(), ['wake'])
})

t.test('-q prints only results and errors', async (t) => {
  for (const command of ['stop', 'start', 'restart'])
    t.same(await box(command, '-q', 'fig'), { code: 0, stdout: '', stderr: '' }, command)
  t.same(await box('stop', '--no-wait', '--quiet', 'fig', 'none'), {
    code: 5,
    stdout: '',
    stderr: (await box('show', 'none')).stderr,
  })
  await box('start', 'fig')
  t.same(await box('create', '-q', 'kiwi'), { code: 0, stdout: 'kiwi\n', stderr: '' })
  t.same(await box('rm', '-q', 'kiwi'), { code: 0, stdout: '', stderr: '' })
})

t.test('an interrupted restart names the command that starts the box', async (t) => {
  const result = await runBox(fake.url, ['restart', 'fig'], {
    onSpawn: (child) => fake.handleNext('GET /api/v1/boxes/', () => child.kill('SIGINT')),
  })
  t.match(result, {
    code: 130,
    stderr: /^box: interrupted\. fig may be suspended now: start it with `box wake fig`/m,
  })
  await box('start', 'fig')
})

t.test('without a terminal, rm deletes several boxes without a question', async (t) => {
  await fake.addBox('kiwi')
  await fake.addBox('lime')
  t.same(await box('rm', 'kiwi', 'none', 'lime'), {
    code: 5,
    stdout: '',
    stderr: `${NO_SUCH_BOX}kiwi: deleted\nlime: deleted\n`,
  })
  t.same([getState('kiwi'), getState('lime')], ['terminated', 'terminated'])
})

t.test('delete, destroy and remove are rm', async (t) => {
  for (const command of ['delete', 'destroy', 'remove']) {
    await fake.addBox('kiwi')
    t.same(await box(command, 'kiwi'), { code: 0, stdout: '', stderr: 'kiwi: deleted\n' })
  }
})

t.test('on a terminal, rm asks, and deletes only after y or yes', async (t) => {
  await fake.addBox('kiwi')
  for (const answer of ['n\r', '\r', 'yesterday\r', '\x04']) {
    const terminal = runBoxInPty(t, fake.url, 'box rm kiwi; echo code=$?')
    await terminal.waitFor('Delete box kiwi with all its files? [y/N] ')
    terminal.type(answer)
    // In a line of its own, also after Ctrl-D.
    await terminal.waitFor('\nbox: nothing was deleted.')
    await terminal.waitFor('code=1')
  }
  const interrupted = runBoxInPty(t, fake.url, `sh -c 'trap : INT; $BOX rm kiwi; echo code=$?'`)
  await interrupted.waitFor('[y/N]')
  interrupted.type('\x03')
  await interrupted.waitFor('\ncode=130')
  t.equal(getState('kiwi'), 'running')

  for (const answer of ['y\r', 'Yes\r']) {
    await fake.addBox('lime')
    const terminal = runBoxInPty(t, fake.url, 'box rm kiwi lime; echo code=$?')
    await terminal.waitFor('Delete 2 boxes (kiwi, lime) with all their files? [y/N] ')
    terminal.type(answer)
    await terminal.waitFor('kiwi: deleted')
    await terminal.waitFor('lime: deleted')
    await terminal.waitFor('code=0')
    await fake.addBox('kiwi')
  }
  await box('rm', 'kiwi')
})

t.test('rm asks nothing with --yes or --force, for a missing box, or with --json in a pipe', async (t) => {
  for (const script of [
    'box rm -y kiwi',
    'box rm --yes kiwi',
    'box rm -f kiwi',
    'box rm kiwi --json | cat',
    'box rm kiwi </dev/null',
  ]) {
    await fake.addBox('kiwi')
    const terminal = runBoxInPty(t, fake.url, script)
    await terminal.waitForExit()
    t.notMatch(terminal.output, /\[y\/N\]/)
    t.equal(getState('kiwi'), 'terminated', script)
  }
  const missing = runBoxInPty(t, fake.url, 'box rm none; echo code=$?')
  await missing.waitFor('No such box')
  await missing.waitFor('code=5')
})

t.test('rm --all deletes all boxes; without a terminal it needs --yes', async (t) => {
  t.match(await box('rm', '--all'), {
    code: 2,
    stderr: 'box: --all deletes 2 boxes. Add --yes to confirm.\n',
  })
  t.equal(getState('fig'), 'running')
  t.match(await box('rm', '--all', '--yes'), { code: 0, stderr: 'plum: deleted\nfig: deleted\n' })
  t.same(await box('rm', '--all', '--yes'), { code: 0, stdout: '', stderr: 'No boxes to delete.\n' })
})
