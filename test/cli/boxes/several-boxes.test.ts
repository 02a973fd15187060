// Commands that change or delete several boxes: stop, start, restart, rm and their aliases; the question of rm.
import t from 'tap'
import type { Box } from '../../../shared/api/boxes.ts'
import { runBoxInPty } from '../box-in-pty.ts'
import { startCliCoordinator } from '../coordinator.ts'
import { runBox } from '../run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'])
const box = (...args: string[]) => runBox(coordinator, args)
/** undefined: the box is deleted. */
const getState = async (name: string): Promise<string | undefined> => {
  const { json } = await coordinator.api('GET', '/boxes?live=1')
  return json.boxes.find(({ hostname }: Box) => hostname === name)?.observedState
}
const infra = coordinator.infra
const NO_SUCH_BOX = "box: No such box: 'none'. Run `box ls` to list boxes.\n"

t.test('stop and start take several boxes, and try each', async (t) => {
  const stopped = await box('stop', 'fig', 'none', 'plum')
  t.match(stopped, { code: 5, stdout: '' })
  t.match(stopped.stderr, NO_SUCH_BOX)
  t.match(stopped.stderr, /fig: suspended\n/)
  t.match(stopped.stderr, /plum: suspended\n/)
  t.same([await getState('fig'), await getState('plum')], ['suspended', 'suspended'])
  t.match(await box('start', 'plum', 'fig', 'plum'), { code: 0 })
  t.same([await getState('fig'), await getState('plum')], ['running', 'running'])
})

t.test('all requests are sent before the first wait', async (t) => {
  coordinator.requests.length = 0
  await box('stop', 'fig', 'plum')
  const lines = coordinator.requests.map(({ line }) => line.replace(/[0-9a-f-]{36}/, 'ID'))
  t.ok(lines.lastIndexOf('POST /api/v1/boxes/ID/suspend?stop=1') < lines.indexOf('GET /api/v1/boxes/ID'))
  await box('start', 'fig', 'plum')
})

t.test('the failure of one box names the box and does not stop the others', async (t) => {
  const { id } = await coordinator.addBox('kiwi')
  coordinator.respondNext(`POST /api/v1/boxes/${id}/wake`, 409, {
    error: 'box_failed',
    message: 'It failed.',
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
  coordinator.holdUntilPolled('stop')
  t.same(await box('stop', '--all'), { code: 0, stdout: '', stderr: 'plum: suspending\nplum: suspended\n' })
  t.same(await box('suspend', '-a'), { code: 0, stdout: '', stderr: 'No boxes to suspend.\n' })
  t.match(await box('start', '-a'), { code: 0, stderr: /plum: running\n.*fig: running\n/s })
  t.match(await box('stop', '--all', 'fig'), { code: 2, stderr: /--all cannot be combined with names/ })
  t.match(await box('stop'), { code: 2, stderr: /The name of a box is missing/ })
})

t.test('--label applies to the boxes with a label', async (t) => {
  const lime = await coordinator.addBox('lime', { labels: { stage: 'test' } })
  await coordinator.addBox('kiwi', { labels: { stage: 'test', team: 'web' } })
  t.match(await box('stop', '--label', 'stage=test', '--label', 'team'), {
    code: 0,
    stderr: /kiwi: suspended\n$/,
  })
  t.same([await getState('lime'), await getState('kiwi')], ['running', 'suspended'])
  t.match(await box('start', '--label', 'stage'), { code: 0, stderr: /kiwi: running\n$/ })
  t.match(await box('restart', '--label', 'team'), {
    code: 0,
    stderr: /kiwi: suspended\n.*kiwi: running\n$/s,
  })
  t.match(await box('suspend', '--label', 'stage=none'), { code: 0, stderr: 'No boxes to suspend.\n' })
  t.match(await box('stop', 'fig', '--label', 'stage'), {
    code: 2,
    stderr: /--label cannot be combined with/,
  })
  t.match(await box('restart'), { code: 2, stderr: /The name of a box is missing/ })

  t.match(await box('rm', '--label', 'stage'), {
    code: 2,
    stderr: 'box: --label deletes 2 boxes. Add --yes to confirm.\n',
  })
  const terminal = runBoxInPty(t, coordinator, 'box rm --label stage; echo code=$?')
  await terminal.waitFor('Delete 2 boxes (kiwi, lime) with all their files? [y/N] ')
  terminal.type('n\r')
  await terminal.waitFor('code=1')
  t.equal(await getState('lime'), 'running')
  // A coordinator of an earlier version ignores the parameter.
  coordinator.respondNext('GET /api/v1/boxes', 200, { boxes: [{ ...lime, labels: undefined }] })
  t.match(await box('rm', '-y', '--label', 'stage'), { code: 0, stderr: 'No boxes to delete.\n' })
  t.match(await box('rm', '-y', '--label', 'stage'), { code: 0, stderr: /kiwi: deleted\nlime: deleted\n$/ })
  t.same([await getState('lime'), await getState('fig')], [undefined, 'running'])
})

t.test('stop terminates frozen boxes too, suspend does not', async (t) => {
  infra.canFreeze = true
  await box('suspend', 'plum')
  t.same(await box('suspend', 'plum'), { code: 0, stdout: '', stderr: 'plum: suspended (frozen)\n' })
  t.same(await box('stop', 'plum'), { code: 0, stdout: '', stderr: 'plum: suspended\n' })
  await box('start', 'plum')
  await box('suspend', 'plum')
  infra.canFreeze = false
  t.match(await box('stop', '--all', '--no-wait'), { code: 0, stderr: /plum: stopping\n/ })
  t.match(await box('wait', 'plum', '--for', 'stopped'), { code: 0 })
  await box('start', '--all')
})

t.test('stop asks again when the freeze of the box had started before', async (t) => {
  const { id } = await coordinator.findBox('plum')
  coordinator.requests.length = 0
  infra.canFreeze = true
  coordinator.failNext(`POST /api/v1/boxes/${id}/suspend?stop=1`, async (response) => {
    const { text } = await coordinator.api('POST', `/boxes/${id}/suspend`)
    await coordinator.waitForState(id, 'suspended')
    infra.canFreeze = false
    response.writeHead(202, { 'content-type': 'application/json' }).end(text)
  })
  t.match(await box('stop', 'plum'), { code: 0, stderr: /suspended \(frozen\)\nplum: suspended\n$/ })
  t.equal(coordinator.requests.filter(({ line }) => line.endsWith('suspend?stop=1')).length, 2)
  await box('start', 'plum')
})

t.test('restart stops a box and starts it again', async (t) => {
  const states = () =>
    coordinator.requests.flatMap(({ line }) => /\/(suspend\?stop=1|wake)$/.exec(line)?.[1] ?? [])
  coordinator.requests.length = 0
  t.match(await box('restart', 'fig', 'plum'), {
    code: 0,
    stderr: /fig: suspended\n.*fig: running\n.*plum: running\n$/s,
  })
  t.same(states(), ['suspend?stop=1', 'suspend?stop=1', 'wake', 'wake'])
  t.equal(await getState('fig'), 'running')

  await box('stop', 'fig')
  coordinator.requests.length = 0
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
  const result = await runBox(coordinator, ['restart', 'fig'], {
    onSpawn: (child) => coordinator.failNext('GET /api/v1/boxes/', () => child.kill('SIGINT')),
  })
  t.match(result, {
    code: 130,
    stderr: /^box: interrupted\. fig may be suspended now: start it with `box wake fig`/m,
  })
  await box('start', 'fig')
})

t.test('without a terminal, rm deletes several boxes without a question', async (t) => {
  await coordinator.addBox('kiwi')
  await coordinator.addBox('lime')
  t.same(await box('rm', 'kiwi', 'none', 'lime'), {
    code: 5,
    stdout: '',
    stderr: `${NO_SUCH_BOX}kiwi: deleted\nlime: deleted\n`,
  })
  t.same([await getState('kiwi'), await getState('lime')], [undefined, undefined])
})

t.test('delete, destroy and remove are rm', async (t) => {
  for (const command of ['delete', 'destroy', 'remove']) {
    await coordinator.addBox('kiwi')
    t.same(await box(command, 'kiwi'), { code: 0, stdout: '', stderr: 'kiwi: deleted\n' })
  }
})

t.test('on a terminal, rm asks, and deletes only after y or yes', async (t) => {
  await coordinator.addBox('kiwi')
  for (const answer of ['n\r', '\r', 'yesterday\r', '\x04']) {
    const terminal = runBoxInPty(t, coordinator, 'box rm kiwi; echo code=$?')
    await terminal.waitFor('Delete box kiwi with all its files? [y/N] ')
    terminal.type(answer)
    // In a line of its own, also after Ctrl-D.
    await terminal.waitFor('\nbox: nothing was deleted.')
    await terminal.waitFor('code=1')
  }
  const interrupted = runBoxInPty(t, coordinator, `sh -c 'trap : INT; $BOX rm kiwi; echo code=$?'`)
  await interrupted.waitFor('[y/N]')
  interrupted.type('\x03')
  await interrupted.waitFor('\ncode=130')
  t.equal(await getState('kiwi'), 'running')

  for (const answer of ['y\r', 'Yes\r']) {
    await coordinator.addBox('lime')
    const terminal = runBoxInPty(t, coordinator, 'box rm kiwi lime; echo code=$?')
    await terminal.waitFor('Delete 2 boxes (kiwi, lime) with all their files? [y/N] ')
    terminal.type(answer)
    await terminal.waitFor('kiwi: deleted')
    await terminal.waitFor('lime: deleted')
    await terminal.waitFor('code=0')
    await coordinator.addBox('kiwi')
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
    await coordinator.addBox('kiwi')
    const terminal = runBoxInPty(t, coordinator, script)
    await terminal.waitForExit()
    t.notMatch(terminal.output, /\[y\/N\]/)
    t.equal(await getState('kiwi'), undefined, script)
  }
  const missing = runBoxInPty(t, coordinator, 'box rm none; echo code=$?')
  await missing.waitFor('No such box')
  await missing.waitFor('code=5')
})

t.test('rm --all deletes all boxes; without a terminal it needs --yes', async (t) => {
  t.match(await box('rm', '--all'), {
    code: 2,
    stderr: 'box: --all deletes 2 boxes. Add --yes to confirm.\n',
  })
  t.equal(await getState('fig'), 'running')
  t.match(await box('rm', '--all', '--yes'), { code: 0, stderr: 'plum: deleted\nfig: deleted\n' })
  t.same(await box('rm', '--all', '--yes'), { code: 0, stdout: '', stderr: 'No boxes to delete.\n' })
})
