// The options that all lists share: formats, filters and --watch.
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { createPatternMatcher } from '../../cli/lists/filters.ts'
import { createScreenRegion } from '../../cli/lists/screen-region.ts'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { createFakeAgents } from '../support/box-with-fake-agent.ts'
import { respondError, respondJson } from '../support/fake-prompt-agent.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { createRecordAdder } from './command-records.ts'
import { type CliCoordinator, startCliCoordinator } from './coordinator.ts'
import { type BoxResult, runBox } from './run-box.ts'

/** The detached processes that the agents of all boxes report. */
let processes: object[] = []
const startCoordinator = (t: Test) =>
  startCliCoordinator(
    t,
    ['fig'],
    createFakeAgents(async ({ path }) => {
      if (path === '/exec') return respondJson(200, { ok: true, type: 'exec.list', processes })
      if (path === '/terminal/sessions')
        return respondJson(200, { ok: true, type: 'terminal.list', sessions: [] })
      return respondError(new ApiError('not_found'))
    }),
  )
function addProcess(fields: object = {}): { processId: string } {
  const process = {
    processId: `p_${randomBytes(12).toString('hex')}`,
    ...{ pid: 7, running: true, lost: false, exitCode: null, signal: null, timedOut: false },
    ...{ startedAt: new Date().toISOString(), command: 'make world' },
    ...fields,
  }
  processes.unshift(process)
  return process
}

const coordinator = await startCoordinator(t)
await coordinator.addBox('web-1', { tier: 'pro', region: 'us-east-1' })
const web2 = await coordinator.addBox('web-2')
await suspend(coordinator, web2.id)
t.beforeEach(() => {
  processes = []
})
const box = (...args: string[]) => runBox(coordinator, args)
const names = async (...args: string[]) => (await box('ls', '-q', ...args)).stdout.split('\n').slice(0, -1)

t.test('-q and -o name print only names, one per line', async (t) => {
  const expected = { code: 0, stdout: 'web-2\nweb-1\nfig\n', stderr: '' }
  t.same(await box('ls', '-q'), expected)
  t.same(await box('ls', '-o', 'name'), expected)
  const { processId } = addProcess()
  t.same(await box('ps', 'fig', '-q'), { code: 0, stdout: `${processId}\n`, stderr: '' })
})

t.test('-q without rows prints nothing, so that a script gets no names', async (t) => {
  t.same(await box('ls', '-q', '--filter', 'name=pear'), { code: 0, stdout: '', stderr: '' })
  t.same(await box('ls', '--filter', 'name=pear'), { code: 0, stdout: '', stderr: 'No matching boxes.\n' })
})

t.test('-o wide adds columns, --no-header omits the header', async (t) => {
  const [header, row] = (await box('ls', '-o', 'wide')).stdout.split('\n')
  t.match(
    header,
    /^NAME +STATE +TIER +ISOLATION +IMAGE +AGE +NETWORK +REGION +LIMITS +LABELS +DELETION +CREATED +ID$/,
  )
  t.match(row, new RegExp(`^web-2 +suspended .* host +us-west-2 +\\S+ +- +- +\\d{4}-\\S+Z +${web2.id}$`))
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
  await fails(
    'color=red',
    "Unknown filter 'color'. Valid keys: name, state, kind, tier, image, region, label.",
  )
  await fails('fig', '--filter must be KEY=VALUE. Valid keys: name, state, kind, tier, image, region, label.')
  await fails(
    'toString=x',
    "Unknown filter 'toString'. Valid keys: name, state, kind, tier, image, region, label.",
  )
  await fails('tier=huge', "Unknown tier 'huge'. Valid values: nano, micro, lite, flow, pro, max, ultra.")
  t.match(await box('ls', '-o', 'yaml'), { code: 2, stderr: /Allowed choices are table, wide, json, name/ })
  t.match(await box('ls', '-q', '--json'), { code: 2, stderr: /cannot be used with/ })
})

t.test('filters of ps, history and sessions', async (t) => {
  const current = await startCoordinator(t)
  addProcess()
  const killed = addProcess({ command: 'sleep 1', running: false, signal: 'KILL' })
  const ps = (...args: string[]) => runBox(current, ['ps', 'fig', '-q', ...args])
  t.match(await ps('--filter', 'state=killed'), { stdout: `${killed.processId}\n` })
  t.match(await ps('--filter', 'command=sleep*'), { stdout: `${killed.processId}\n` })
  t.match(await ps('--filter', 'state=asleep'), {
    code: 2,
    stderr: /Valid values: running, exited, killed, timed_out, lost\.\n$/,
  })
  const { id } = await current.findBox('fig')
  const addRecord = createRecordAdder(current, id)
  const history = (...args: string[]) => runBox(current, ['history', 'fig', '-q', ...args])
  const make = await addRecord({ command: 'make world', status: 'failed', exitCode: null })
  for (let count = 0; count < 60; count++)
    await addRecord({ command: 'true', status: 'killed', exitCode: null })
  const { userId } = await createTestSession(current, 'member')
  const other = await addRecord({ actor: { actor_kind: 'user', actor_user_id: userId } })
  t.match(await history('--filter', 'command=make'), { stdout: `${make.id}\n` }, 'beyond the first page')
  t.match(await history('--filter', 'status=failed', '--filter', 'mode=sync'), { stdout: `${make.id}\n` })
  t.match(await history('--filter', `user=${userId}`), { stdout: `${other.id}\n` })
  t.match(await history('--filter', 'user=owner', '--limit', '1'), {
    stdout: /^p_\w+\n$/,
    stderr: 'More commands match: use --all or a larger --limit.\n',
  })
  const twoStates = await history('--status', 'failed', '--filter', 'status=killed', '--all')
  t.equal(twoStates.stdout.split('\n').length, 62)
  const sessions = (...args: string[]) => runBox(current, ['sessions', 'fig', '-q', ...args])
  t.same(await sessions('--filter', 'name=work'), { code: 0, stdout: '', stderr: '' })
})

t.test(
  '--watch without a terminal prints changed rows, also after a restart of the coordinator',
  async (t) => {
    const current = await startCoordinator(t)
    const plum = await current.addBox('plum')
    const watch = startWatch(current, 'ls', '--watch', '-o', 'table')
    await watch.waitFor(/fig +running/)
    const { promise, resolve } = Promise.withResolvers<void>()
    current.infra.before.stop = () => promise
    await current.api('POST', `/boxes/${plum.id}/suspend`)
    await watch.waitFor(/plum +suspending/)
    await current.stopDuring(async () => {
      resolve()
      await current.waitForState(plum.id, 'suspended')
      await current.api('DELETE', `/boxes/${plum.id}`)
      await current.waitForState(plum.id, 'terminated')
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
  const current = await startCoordinator(t)
  const watch = startWatch(current, 'ls', '--watch', '--json')
  await watch.waitFor(/running/)
  await suspend(current, (await current.findBox('fig')).id)
  await watch.waitFor(/"suspended"/)
  const { stdout } = await watch.interrupt()
  const changes = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  t.match(changes[0], { observedState: 'running' })
  t.match(changes.at(-1), { observedState: 'suspended' })
})

t.test('--watch fails when the first request fails', async (t) => {
  t.match(await runBox('http://127.0.0.1:1', ['ls', '--watch']), { code: 3, stderr: /Cannot reach/ })
  t.match(await box('ps', 'pear', '--watch'), { code: 5, stderr: /No such box: 'pear'/ })
})

t.test('--watch on a terminal replaces the table', async (t) => {
  const current = await startCoordinator(t)
  const pty = runBoxInPty(t, current, 'exec $BOX ls --watch', { rows: 4, env: { NO_COLOR: '1' } })
  await pty.waitFor(/NAME .*\r\nfig +running .*\r\n/)
  await suspend(current, (await current.findBox('fig')).id)
  // The cursor moves up over the two lines.
  await pty.waitFor('\u001b[2A\r\u001b[JNAME')
  await pty.waitFor(/fig +suspended .*\r\n/)
  for (const name of ['plum', 'kiwi', 'lime']) await current.addBox(name)
  await pty.waitFor(/NAME .*\r\nlime .*\r\n… 3 more lines\r\n/)
  pty.type('\u0003')
  t.match(await pty.waitForExit(), { exitCode: 130 })
})

t.test('--watch on a terminal shows a note below the table, and replaces wrapped lines', async (t) => {
  const current = await startCoordinator(t)
  const { processId: id } = addProcess()
  const add = createRecordAdder(current, (await current.findBox('fig')).id)
  await add({ id, mode: 'detached', command: 'make world', status: 'killed', signal: 'TERM', exitCode: null })
  const pty = runBoxInPty(t, current, 'exec $BOX ps fig --watch', { cols: 40, env: { NO_COLOR: '1' } })
  await pty.waitFor(`${id}  7    running`)
  const error = new ApiError('box_not_running')
  current.respondNext('GET /v1/box/fig/exec', error.status, edgeErrorBody(error))
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
  const pty = runBoxInPty(t, coordinator, 'box ls -o wide', { cols: 40, env: { NO_COLOR: '1' } })
  await pty.waitFor(`${web2.id}\r\n`)
  addProcess({ command: 'make a world of many words' })
  await pty.waitForExit()
  const long = runBoxInPty(t, coordinator, 'box ps fig', { cols: 40, env: { NO_COLOR: '1' } })
  await long.waitFor('make a world of man…\r\n')
  await long.waitForExit()
})

t.test('states have colours on a terminal', async (t) => {
  const pty = runBoxInPty(t, coordinator, 'box ls; echo end')
  await pty.waitFor('\u001b[90msuspended\u001b[39m')
  await pty.waitFor('\u001b[32mrunning\u001b[39m')
  await pty.waitForExit()
})

async function suspend({ api, waitForState }: CliCoordinator, id: string): Promise<void> {
  await api('POST', `/boxes/${id}/suspend`)
  await waitForState(id, 'suspended')
}

function startWatch(target: CliCoordinator, ...args: string[]) {
  let output = ''
  let child: ChildProcess | undefined
  const result: Promise<BoxResult> = runBox(target, args, {
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
