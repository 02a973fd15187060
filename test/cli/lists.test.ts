// The options that all lists share: formats, filters and --watch.
import type { ChildProcess } from 'node:child_process'
import t from 'tap'
import { createPatternMatcher } from '../../cli/lists/filters.ts'
import { createScreenRegion } from '../../cli/lists/screen-region.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeHistory } from './fake-history.ts'
import { addFakeProcesses } from './fake-processes.ts'
import { type BoxResult, runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const web1 = await fake.addBox('web-1')
const web2 = await fake.addBox('web-2')
Object.assign(web1, { tier: 'pro', region: 'us-east-1' })
web2.observedState = 'suspended'
const processes = addFakeProcesses(fake)
const box = (...args: string[]) => runBox(fake.url, args)
const names = async (...args: string[]) => (await box('ls', '-q', ...args)).stdout.split('\n').slice(0, -1)

t.test('-q and -o name print only names, one per line', async (t) => {
  const expected = { code: 0, stdout: 'web-2\nweb-1\nfig\n', stderr: '' }
  t.same(await box('ls', '-q'), expected)
  t.same(await box('ls', '-o', 'name'), expected)
  const { id } = processes.add()
  t.same(await box('ps', 'fig', '-q'), { code: 0, stdout: `${id}\n`, stderr: '' })
})

t.test('-q without rows prints nothing, so that a script gets no names', async (t) => {
  t.same(await box('ls', '-q', '--filter', 'name=pear'), { code: 0, stdout: '', stderr: '' })
  t.same(await box('ls', '--filter', 'name=pear'), { code: 0, stdout: '', stderr: 'No matching boxes.\n' })
})

t.test('-o wide adds columns, --no-header omits the header', async (t) => {
  const [header, row] = (await box('ls', '-o', 'wide')).stdout.split('\n')
  t.match(header, /^NAME +STATE +TIER +ISOLATION +IMAGE +AGE +NETWORK +REGION +LIMITS +CREATED +ID$/)
  t.match(row, new RegExp(`^web-2 +suspended .* own +us-west-2 +- +2030-01-01T00:00:00.000Z +${web2.id}$`))
  t.match((await box('ls', '--no-header')).stdout, /^web-2 .*\nweb-1 .*\nfig .*\n$/)
})

t.test('-o json and --json print the response with the matching rows', async (t) => {
  for (const option of [['-o', 'json'], ['--json']]) {
    const { stdout } = await box('ls', ...option, '--filter', 'state=suspended')
    t.match(JSON.parse(stdout), { boxes: [{ id: web2.id }] })
  }
})

t.test('--filter: values of one key are alternatives, different keys must all match', async (t) => {
  t.same(await names('--filter', 'name=web'), ['web-2', 'web-1'])
  t.same(await names('--filter', 'name=web-?', '--filter', 'state=running'), ['web-1'])
  t.same(await names('--filter', 'name=WEB-2', '--filter', 'name=f*'), ['web-2', 'fig'])
  t.same(await names('--filter', 'name=*eb'), [])
  t.same(await names('--filter', 'tier=pro'), ['web-1'])
  t.same(await names('--filter', 'region=us-west-2', '--filter', 'state=suspended'), ['web-2'])
})

t.test('a pattern matches its special characters literally', async (t) => {
  t.ok(createPatternMatcher('a.b*')('a.b c'))
  t.notOk(createPatternMatcher('a.b*')('axb c'))
  t.ok(createPatternMatcher('*(x)+')('make (x)+'))
  t.ok(createPatternMatcher('make*')('make \\\nworld'), 'a command of several lines')
})

t.test('an unknown key or value lists the valid ones', async (t) => {
  const fails = async (filter: string, stderr: string) =>
    t.same(await box('ls', '--filter', filter), { code: 2, stdout: '', stderr: `box: ${stderr}\n` })
  await fails('color=red', "Unknown filter 'color'. Valid keys: name, state, kind, tier, image, region.")
  await fails('fig', '--filter must be KEY=VALUE. Valid keys: name, state, kind, tier, image, region.')
  await fails('toString=x', "Unknown filter 'toString'. Valid keys: name, state, kind, tier, image, region.")
  await fails('tier=huge', "Unknown tier 'huge'. Valid values: nano, micro, lite, flow, pro, max, ultra.")
  t.match(await box('ls', '-o', 'yaml'), { code: 2, stderr: /Allowed choices are table, wide, json, name/ })
  t.match(await box('ls', '-q', '--json'), { code: 2, stderr: /cannot be used with/ })
})

t.test('filters of ps, history and sessions', async (t) => {
  const current = await fakeWithFig(t)
  const { add } = addFakeProcesses(current)
  add({ command: 'make world', exit: null })
  const killed = add({ command: 'sleep 1', exit: { status: 'killed', exitCode: null, signal: 'KILL' } })
  const ps = (...args: string[]) => runBox(current.url, ['ps', 'fig', '-q', ...args])
  t.match(await ps('--filter', 'state=killed'), { stdout: `${killed.id}\n` })
  t.match(await ps('--filter', 'command=sleep*'), { stdout: `${killed.id}\n` })
  t.match(await ps('--filter', 'state=asleep'), {
    code: 2,
    stderr: /Valid values: running, exited, killed, timed_out, lost\.\n$/,
  })
  const { add: addRecord } = addFakeHistory(current)
  const history = (...args: string[]) => runBox(current.url, ['history', 'fig', '-q', ...args])
  const make = addRecord({ command: 'make world', status: 'failed', exitCode: null })
  for (let count = 0; count < 60; count++) addRecord({ command: 'true', status: 'killed', exitCode: null })
  const other = addRecord({ actor: { kind: 'user', userId: 'usr_other', tokenId: 'key_2' } })
  t.match(await history('--filter', 'command=make'), { stdout: `${make.id}\n` }, 'beyond the first page')
  t.match(await history('--filter', 'status=failed', '--filter', 'mode=sync'), { stdout: `${make.id}\n` })
  t.match(await history('--filter', 'user=usr_other'), { stdout: `${other.id}\n` })
  t.match(await history('--filter', 'user=owner', '--limit', '1'), {
    stdout: /^p_\d+\n$/,
    stderr: 'More commands match: use --all or a larger --limit.\n',
  })
  const twoStates = await history('--status', 'failed', '--filter', 'status=killed', '--all')
  t.equal(twoStates.stdout.split('\n').length, 62)
  const sessions = (...args: string[]) => runBox(current.url, ['sessions', 'fig', '-q', ...args])
  t.same(await sessions('--filter', 'name=work'), { code: 0, stdout: '', stderr: '' })
})

t.test(
  '--watch without a terminal prints changed rows, also after a restart of the coordinator',
  async (t) => {
    const current = await fakeWithFig(t)
    const plum = await current.addBox('plum')
    const watch = startWatch(current.url, 'ls', '--watch', '-o', 'table')
    await watch.waitFor(/fig +running/)
    plum.observedState = 'suspending'
    await watch.waitFor(/plum +suspending/)
    await current.stopDuring(async () => {
      plum.observedState = 'terminated'
      await watch.waitFor(/Cannot reach the coordinator .* Retrying/)
    })
    await watch.waitFor(/reconnected\.\n/)
    await watch.waitFor(/plum +terminated/)
    const { code, stdout } = await watch.interrupt()
    t.equal(code, 130)
    t.same(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ +/).slice(0, 2).join(' ')),
      ['NAME STATE', 'plum running', 'fig running', 'plum suspending', 'plum terminated'],
    )
  },
)

t.test('--watch with JSON prints an object per changed row', async (t) => {
  const current = await fakeWithFig(t)
  const watch = startWatch(current.url, 'ls', '--watch', '--json')
  await watch.waitFor(/running/)
  Object.assign(current.boxes[0] ?? {}, { observedState: 'suspended' })
  await watch.waitFor(/"suspended"/)
  const { stdout } = await watch.interrupt()
  t.match(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [{ observedState: 'running' }, { observedState: 'suspended' }],
  )
})

t.test('--watch fails when the first request fails', async (t) => {
  t.match(await runBox('http://127.0.0.1:1', ['ls', '--watch']), { code: 3, stderr: /Cannot reach/ })
  t.match(await box('ps', 'pear', '--watch'), { code: 5, stderr: /No such box: 'pear'/ })
})

t.test('--watch on a terminal replaces the table', async (t) => {
  const current = await fakeWithFig(t)
  const pty = runBoxInPty(t, current.url, 'exec $BOX ls --watch', { rows: 4, env: { NO_COLOR: '1' } })
  await pty.waitFor(/NAME .*\r\nfig +running .*\r\n/)
  Object.assign(current.boxes[0] ?? {}, { observedState: 'suspended' })
  // The cursor moves up over the two lines.
  await pty.waitFor('\u001b[2A\r\u001b[JNAME')
  await pty.waitFor(/fig +suspended .*\r\n/)
  for (const name of ['plum', 'kiwi', 'lime']) await current.addBox(name)
  await pty.waitFor(/NAME .*\r\nlime .*\r\n… 3 more lines\r\n/)
  pty.type('\u0003')
  t.match(await pty.waitForExit(), { exitCode: 130 })
})

t.test('--watch on a terminal shows a note below the table, and replaces wrapped lines', async (t) => {
  const current = await fakeWithFig(t)
  const { add } = addFakeProcesses(current)
  const { id } = add({ exit: null })
  addFakeHistory(current).add({
    id,
    mode: 'detached',
    command: 'make world',
    status: 'killed',
    signal: 'TERM',
  })
  const pty = runBoxInPty(t, current.url, 'exec $BOX ps fig --watch', { cols: 40, env: { NO_COLOR: '1' } })
  await pty.waitFor(`${id}  7    running`)
  current.handleNext('GET /v1/box/fig/exec', (response) => {
    response.writeHead(409).end('{"ok":false,"error":{"code":"box_not_running","message":"Not running."}}')
  })
  await pty.waitFor(/fig is not running\. These processes are from the command history\.\r\n/)
  // The header, the process and the note have two rows each.
  await pty.waitFor('\u001b[6A\r\u001b[J')
  await pty.waitFor(`${id}  7    running`)
  pty.type('\u0003')
  await pty.waitForExit()
})

t.test('a region of the screen has the height of the terminal, with wrapped lines', async (t) => {
  let output = ''
  const terminal = { rows: 5, columns: 10, write: (text: string) => (output += text) }
  const region = createScreenRegion(terminal)
  region.draw(['a', '\u001b[32m0123456789\u001b[39m'])
  region.draw(['b', '0123456789x', 'c'])
  region.draw(['b', '0123456789x', 'c'])
  region.draw(['1', '2', '3', '4', '5'])
  t.equal(
    output,
    [
      '\r\u001b[Ja\n\u001b[32m0123456789\u001b[39m\n',
      '\u001b[2A\r\u001b[Jb\n0123456789x\nc\n',
      '\u001b[4A\r\u001b[J1\n2\n3\n… 2 more lines\n',
    ].join(''),
  )
})

t.test('on a narrow terminal, only -o wide prints whole rows', async (t) => {
  const pty = runBoxInPty(t, fake.url, 'box ls -o wide', { cols: 40, env: { NO_COLOR: '1' } })
  await pty.waitFor(`${web2.id}\r\n`)
  processes.add({ command: 'make a world of many words' })
  await pty.waitForExit()
  const long = runBoxInPty(t, fake.url, 'box ps fig', { cols: 40, env: { NO_COLOR: '1' } })
  await long.waitFor('make a world of man…\r\n')
  await long.waitForExit()
})

t.test('states have colours on a terminal', async (t) => {
  const pty = runBoxInPty(t, fake.url, 'box ls; echo end')
  await pty.waitFor('\u001b[90msuspended\u001b[39m')
  await pty.waitFor('\u001b[32mrunning\u001b[39m')
  await pty.waitForExit()
})

async function fakeWithFig(t: Parameters<typeof startFakeCoordinator>[0]) {
  const current = await startFakeCoordinator(t)
  await current.addBox('fig')
  return current
}

function startWatch(url: string, ...args: string[]) {
  let output = ''
  let child: ChildProcess | undefined
  const result: Promise<BoxResult> = runBox(url, args, {
    onSpawn(spawned) {
      child = spawned
      for (const stream of [spawned.stdout, spawned.stderr])
        stream?.on('data', (chunk: Buffer) => {
          output += chunk
        })
    },
  })
  t.teardown(() => child?.kill('SIGKILL'))
  return {
    waitFor: (pattern: RegExp) => waitUntil(`the output matches ${pattern}`, () => pattern.test(output)),
    interrupt() {
      child?.kill('SIGINT')
      return result
    },
  }
}
