// Detached processes: exec -d, ps and kill, and their records in the command history.
import t from 'tap'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createProcessStarter } from './detached-processes.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { api, failNext, changeNext, waitForState } = coordinator
const { id: boxId } = await coordinator.findBox('fig')
const { start, run, readStatus, waitForOutput } = createProcessStarter(coordinator)
const box = (...args: string[]) => runBox(coordinator, args)
const startByCommand = async (command: string) =>
  (await box('exec', '-d', 'fig', '--', command)).stdout.trimEnd()
const ID = /^p_[0-9a-f]{24}$/

t.test('exec -d prints only the id, and sends all options', async (t) => {
  t.match(await box('ps', 'fig'), { code: 0, stdout: '', stderr: /No detached processes.*box exec -d fig/ })
  const { code, stdout, stderr } = await box('exec', '-d', 'fig', '--', 'echo', 'my world')
  t.same({ code, stderr }, { code: 0, stderr: '' })
  const id = stdout.trimEnd()
  t.match(id, ID)
  t.match(await readStatus(id), { command: "echo 'my world'", attached: false })

  await runBox(coordinator, ['exec', 'fig', '--', 'mkdir src'])
  const options = ['--cwd', 'src', '--env', 'A=1', '--timeout', '1', '--json']
  const started = await box('exec', '--detach', ...options, 'fig', '--', 'pwd; echo $A; sleep 1000')
  const { processId, ...fields } = JSON.parse(started.stdout)
  t.match(fields, { type: 'exec.started', cwd: 'src', logPath: String })
  t.match(await box('logs', '-f', 'fig', processId), { code: 143, stdout: /\/src\n1\n$/ })
  t.match(await readStatus(processId), { timedOut: true })
})

t.test('exec -d without a response says that the command may have started', async (t) => {
  failNext('POST /v1/box/fig/exec', (response) => response.destroy())
  t.match(await box('exec', '-d', 'fig', '--', 'make'), {
    code: 125,
    stdout: '',
    stderr: /Cannot reach.*may have started anyway: check with `box ps fig`/,
  })
})

t.test('Ctrl-C before the response of exec says that the command may have started', async (t) => {
  const args = ['exec', '--env', 'TOKEN=secret-value', 'fig', '--', 'sleep 60']
  const result = await runBox(coordinator, args, {
    onSpawn: (child) => failNext('POST /v1/box/fig/exec', () => child.kill('SIGINT')),
  })
  t.same(result, {
    code: 130,
    stdout: '',
    stderr: 'box: interrupted. If the command on fig was started, it is terminated after 60 s.\n',
  })
})

t.test('ps prints a row for each detached process', async (t) => {
  const lost = await run('a\u001b[2J\nb')
  const expected = [
    [await start('sleep 1000'), 'running', 'sleep 1000'],
    [await run('sleep 1000', { timeoutSeconds: 1 }), 'timed_out TERM', 'sleep 1000'],
    [await run('exit 3'), 'exited 3', 'exit 3'],
    [await run('kill -KILL $$'), 'killed KILL', 'kill -KILL $$'],
    [lost, 'lost', 'a\uFFFD[2J …'],
  ]
  const order = expected.map(([id]) => id)
  /** In this order, without the processes of other tests. */
  const select = (body: { processes: { processId: string }[] }) => ({
    ...body,
    processes: order.map((id) => {
      const found = body.processes.find(({ processId }) => processId === id)
      return id === lost ? { ...found, lost: true, exitCode: null, signal: null } : found
    }),
  })
  changeNext('GET /v1/box/fig/exec', select)
  const { code, stdout } = await box('ps', 'fig')
  const [header = '', ...rows] = stdout.trimEnd().split('\n')
  t.equal(code, 0)
  t.match(header, /^ID +PID +STATE +STARTED +COMMAND$/)
  t.match(
    rows.map((row) => row.split(/ {2,}/)),
    expected.map(([id, state, command]) => [id, /^\d+$/, state, /^\d+\w ago$/, command]),
  )
  changeNext('GET /v1/box/fig/exec', select)
  const { processes } = JSON.parse((await box('ps', 'fig', '--json')).stdout)
  t.equal(processes.length, 5)
  t.match(await box('ps', 'plum'), { code: 5, stderr: /No such box: 'plum'/ })
})

t.test('kill prints the signal that was needed, and continues after an id that does not exist', async (t) => {
  const running = await start('echo ready; sleep 1000')
  const ignoringTerm = await start("trap '' TERM; echo ready; while :; do sleep 1000; done")
  const exited = await run('true')
  await waitForOutput(running, 'ready\n')
  await waitForOutput(ignoringTerm, 'ready\n')
  t.same(await box('kill', 'fig', running, 'p_x', ignoringTerm, exited), {
    code: 5,
    stdout: '',
    stderr: [
      `${running}: terminated (SIGTERM)`,
      "box: No such process on fig: 'p_x'. Run `box ps fig` to list processes.",
      `${ignoringTerm}: killed (SIGKILL; it did not exit on SIGTERM)`,
      `${exited}: already exited\n`,
    ].join('\n'),
  })
  t.match(JSON.parse((await box('kill', '--json', 'fig', running)).stdout), {
    wasRunning: false,
    signal: null,
  })
  t.match(await box('logs', '-f', 'fig', running), { code: 143, stdout: 'ready\n' })
  t.match(await box('kill', 'plum', 'p_x', 'p_y'), { code: 5, stderr: /^box: No such box: 'plum'.*\n$/ })
})

t.test('a unique prefix identifies a process, with and without p_', async (t) => {
  const first = await start('echo 1; sleep 1000')
  const second = await start('echo 2; sleep 1001')
  await waitForOutput(first, '1\n')
  await waitForOutput(second, '2\n')
  const { processes } = JSON.parse((await box('ps', 'fig', '--json')).stdout)
  const ids: string[] = processes.map(({ processId }: { processId: string }) => processId)
  /** The shortest unique prefix of at least four characters. */
  const findPrefix = (id: string): string => {
    const isUnique = (length: number) =>
      ids.filter((other) => other.startsWith(id.slice(0, length))).length === 1
    const lengths = Array.from({ length: id.length - 3 }, (_, index) => index + 4)
    return id.slice(0, lengths.find(isUnique))
  }
  t.same(await box('logs', 'fig', findPrefix(first)), { code: 0, stdout: '1\n', stderr: '' })
  t.same(await box('logs', 'fig', findPrefix(second).slice(2)), { code: 0, stdout: '2\n', stderr: '' })

  const listOnly = (...selected: string[]) =>
    changeNext('GET /v1/box/fig/exec', (body) => ({
      ...body,
      processes: body.processes.filter(({ processId }: { processId: string }) =>
        selected.includes(processId),
      ),
    }))
  listOnly(first, second)
  t.same(await box('logs', 'fig', 'p_'), {
    code: 2,
    stdout: '',
    stderr: [
      "box: 'p_' matches 2 processes of fig. Type more characters:",
      `  ${second}  echo 2; sleep 1001`,
      `  ${first}  echo 1; sleep 1000\n`,
    ].join('\n'),
  })
  listOnly(first, second)
  t.match(await box('kill', 'fig', 'p_', findPrefix(first)), {
    code: 2,
    stderr: new RegExp(`matches 2 processes of fig[^]*\n${first}: terminated \\(SIGTERM\\)\n$`),
  })
})

t.test('without an id, logs prints the newest process; kill needs an id', async (t) => {
  await run('echo old')
  const newest = await run('echo new # \u001b[2J')
  t.same(await box('logs', 'fig'), { code: 0, stdout: 'new\n', stderr: '' })
  const pty = runBoxInPty(t, coordinator, 'box logs fig')
  await pty.waitFor(`box: newest process ${newest}: echo new # \uFFFD[2J\r\nnew\r\n`)
  await pty.waitForExit()
  t.match(await box('kill', 'fig'), { code: 2, stderr: /missing required argument 'id'/ })
})

t.test('the history has a detached process, with its output, until the record is deleted', async (t) => {
  const id = await startByCommand('echo ready; exit 3')
  await coordinator.waitForCommand('fig', ({ status }) => status === 'exited')
  t.match((await box('history', 'fig')).stdout, new RegExp(`^${id} .*detached +cli .*exited 3`, 'm'))
  t.same(await box('output', 'fig', id), { code: 0, stdout: 'ready\n', stderr: '' })
  t.match(await box('history', 'fig', '--delete', id), { code: 0 })
  t.match(await box('output', 'fig', id), { code: 5, stderr: /No such record/ })
})

t.test('on a suspended box, kill names the commands that work', async (t) => {
  const id = await startByCommand('sleep 1000')
  await api('POST', `/boxes/${boxId}/suspend`)
  await waitForState(boxId, 'suspended')
  t.match(await box('kill', 'fig', id, 'p_y'), {
    code: 1,
    stderr: /^box: Box fig is not running\. Start it with `box wake fig`\. `box history fig` and/,
  })
})
