// Spec §4.14: detached commands over HTTP on a real box.
import t from 'tap'
import { isNativeRunner } from '../agent/exec/detached/support.ts'
import { waitUntil } from '../support/wait-until.ts'
import type { CoordinatorWithBox } from './coordinator-with-box.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const ID = /^p_[0-9a-f]{24}$/
const TIME = /^\d{4}-\d\d-\d\dT.*Z$/

function createProcessClient({ boxRequest }: CoordinatorWithBox) {
  const start = async (command: string, options: object = {}) =>
    (await boxRequest('POST', '/exec', { command, detached: true, ...options })).json
  const getStatus = async (id: string, query = '') => (await boxRequest('GET', `/exec/${id}${query}`)).json
  /** Resolves with the status of the exited process. */
  const waitForExit = (id: string) =>
    waitUntil(`${id} has exited`, async () => {
      const status = await getStatus(id)
      return status.running === false && status
    })
  const run = async (command: string) => waitForExit((await start(command)).processId)
  return { start, getStatus, waitForExit, run }
}

t.test('starts, lists, reads and kills detached commands', async (t) => {
  const coordinator = sharedCoordinator
  const { boxRequest } = coordinator
  const { start, getStatus, waitForExit, run } = createProcessClient(coordinator)

  await t.test('reports a process from its start until it is killed', async (t) => {
    const started = await start('echo out; echo err >&2; sleep 61; echo never', { cwd: '/tmp' })
    t.match(started, {
      ok: true,
      type: 'exec.started',
      processId: ID,
      pid: Number,
      cwd: '/tmp',
      startedAt: TIME,
      logPath: /^\//,
    })
    t.equal(started.commandId, started.processId, 'the process and its record have the same id')
    const { processId, pid } = started
    const running = await waitUntil('the output is written', async () => {
      const status = await getStatus(processId)
      return status.stdout === 'out\n' && status.stderr === 'err\n' && status
    })
    t.match(running, {
      ok: true,
      type: 'exec.status',
      processId,
      pid,
      running: true,
      lost: false,
      exitCode: null,
      signal: null,
      finishedAt: null,
      cwd: '/tmp',
      command: 'echo out; echo err >&2; sleep 61; echo never',
      startedAt: started.startedAt,
      stdoutTruncated: false,
      stderrTruncated: false,
    })
    const log = await boxRequest('GET', `/download?path=${encodeURIComponent(started.logPath)}`)
    t.match(log, { status: 200, text: 'out\n' }, 'the log can be downloaded')
    const list = await boxRequest('GET', '/exec')
    t.match(list, { status: 200, json: { ok: true, type: 'exec.list' } })
    t.match(
      list.json.processes.find((process: { processId: string }) => process.processId === processId),
      { pid, running: true, lost: false, exitCode: null, signal: null, startedAt: TIME, command: /^echo/ },
    )

    t.match(await boxRequest('DELETE', `/exec/${processId}`), {
      status: 200,
      json: { ok: true, type: 'exec.killed', processId, wasRunning: true, signal: 'TERM' },
    })
    t.match(await getStatus(processId), {
      running: false,
      lost: false,
      exitCode: null,
      signal: 'TERM',
      finishedAt: TIME,
    })
    t.match(
      await boxRequest('DELETE', `/exec/${processId}`),
      { status: 200, json: { processId, wasRunning: false, signal: null } },
      'a second DELETE has no effect',
    )
  })

  await t.test('a process that ignores TERM is killed by KILL', async (t) => {
    const { processId } = await start(`trap '' TERM; echo ready; while :; do sleep 62; done`)
    await waitUntil('the process ignores TERM', async () => (await getStatus(processId)).stdout === 'ready\n')
    t.match((await boxRequest('DELETE', `/exec/${processId}`)).json, { wasRunning: true, signal: 'KILL' })
    t.match(await waitForExit(processId), { exitCode: null, signal: 'KILL', lost: false })
  })

  await t.test('the status has the exit code or the signal', async (t) => {
    t.match(await run('exit 7'), { exitCode: 7, signal: null, lost: false, finishedAt: TIME, cwd: '~' })
    const killed = isNativeRunner ? { exitCode: null, signal: 'KILL' } : { exitCode: 128 + 9, signal: null }
    t.match(await run('kill -9 $$'), { ...killed, lost: false, timedOut: false })
    t.match(await run('exit 124'), { exitCode: 124, signal: null })
    const { processId } = await start('sleep 63', { timeoutSeconds: 1 })
    t.match(await waitForExit(processId), { exitCode: null, lost: false, timedOut: true })
    const list = (await boxRequest('GET', '/exec')).json.processes
    t.match(
      list.find((process: { processId: string }) => process.processId === processId),
      { running: false, timedOut: true },
    )
  })

  await t.test('tail limits the bytes of each stream', async (t) => {
    const { processId } = await start('seq 1 100000; printf 12345 >&2')
    await waitForExit(processId)
    const all = Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join('')
    t.match(await getStatus(processId), {
      stdout: all.slice(-16_384),
      stdoutTruncated: true,
      stderr: '12345',
      stderrTruncated: false,
    })
    t.match(await getStatus(processId, '?tail=6'), {
      stdout: '00000\n'.slice(-6),
      stderr: '12345',
      stderrTruncated: false,
    })
    t.match(await getStatus(processId, '?tail=3'), { stderr: '345', stderrTruncated: true })
    t.match(await getStatus(processId, '?tail=0'), { stdout: '', stdoutTruncated: true })
    t.match(await getStatus(processId, '?tail=1048576'), { stdout: all, stdoutTruncated: false })
  })

  await t.test("env, the box's own variables and cwd apply to the command", async (t) => {
    const { db } = coordinator.instance.context
    const boxVariables = [
      { name: 'A', value: 'from box' },
      { name: 'B', value: 'from box' },
    ]
    await db
      .updateTable('boxes')
      .set({ env_vars: JSON.stringify(boxVariables) })
      .execute()
    const { processId } = await start('echo $A; pwd', { env: { A: 'x y' }, cwd: '/tmp' })
    t.match(await waitForExit(processId), { stdout: 'x y\n/tmp\n', cwd: '/tmp' })
    t.match(await run('echo $A, $B'), { stdout: 'from box, from box\n' })
    t.match(await coordinator.exec('echo $A, $B', { env: { A: 'x y' } }), { stdout: 'x y, from box\n' })
  })

  await t.test('rejects each kind of invalid request with its code', async (t) => {
    const expectError = async (method: string, path: string, body: unknown, status: number, code: string) => {
      const response = await boxRequest(method, path, body)
      t.match(
        response,
        { status, json: { ok: false, error: { code } } },
        `${method} ${path} ${JSON.stringify(body)}`,
      )
      return response
    }
    const expectStartError = (body: object, status: number, code: string) =>
      expectError('POST', '/exec', { command: 'true', detached: true, ...body }, status, code)
    const { processId } = await start('true')
    await expectStartError({ command: ' ' }, 400, 'invalid_request')
    await expectStartError({ detached: 'yes' }, 400, 'invalid_request')
    await expectStartError({ cwd: 'a\nb' }, 400, 'invalid_request')
    await expectStartError({ env: { '1A': '' } }, 400, 'invalid_request')
    for (const timeoutSeconds of [0, 601, 'x'])
      await expectStartError({ timeoutSeconds }, 400, 'invalid_timeout')
    await expectStartError({ cwd: '/no/such/dir' }, 404, 'not_found')
    for (const tail of ['-1', '1048577', 'x', '1.5'])
      await expectError('GET', `/exec/${processId}?tail=${tail}`, undefined, 400, 'invalid_request')
    const unknownId = 'p_0123456789abcdef01234567'
    for (const id of [unknownId, 'p_1', 'nothing', '%2e%2e%2fexec', `${processId}0`])
      for (const [method, path] of [
        ['GET', `/exec/${id}`],
        ['DELETE', `/exec/${id}`],
        ['GET', `/exec/${id}/stream`],
      ] as const)
        await expectError(method, path, undefined, 404, 'not_found')
    t.match(
      (await expectError('PUT', '/exec', {}, 405, 'method_not_allowed')).headers.get('allow'),
      /^GET, HEAD, POST$/,
    )
    const wrongMethod = await expectError('POST', `/exec/${processId}`, {}, 405, 'method_not_allowed')
    t.match(wrongMethod.headers.get('allow'), /DELETE/)
    for (const [method, path] of [
      ['GET', '/exec'],
      ['GET', `/exec/${processId}`],
      ['DELETE', `/exec/${processId}`],
      ['GET', `/exec/${processId}/stream`],
    ] as const) {
      t.match(await boxRequest(method, path, undefined, { key: 'dcp_wrong' }), {
        status: 401,
        json: { ok: false, error: { code: 'unauthorized' } },
      })
      t.match(await coordinator.edge('no-such-box', method, path), {
        status: 404,
        json: { error: { code: 'not_found' } },
      })
    }
  })
})

t.test('a detached start wakes a suspended box; other routes respond box_not_running', async (t) => {
  const coordinator = sharedCoordinator
  const { api, box, boxRequest, waitForState } = coordinator
  const { start, waitForExit, run } = createProcessClient(coordinator)
  const { processId } = await run('echo before')
  const { processId: runningId } = await start('sleep 64')
  await api('POST', `/boxes/${box.id}/suspend?stop=1`)
  await waitForState(box.id, 'suspended')
  for (const [method, path] of [
    ['GET', '/exec'],
    ['GET', `/exec/${processId}`],
    ['GET', `/exec/${processId}/stream`],
    ['DELETE', `/exec/${processId}`],
  ] as const)
    t.match(
      await boxRequest(method, path),
      { status: 409, json: { ok: false, error: { code: 'box_not_running', state: 'suspended' } } },
      `${method} ${path}`,
    )
  t.match(await run('echo awake'), { stdout: 'awake\n', exitCode: 0 })
  t.match(
    await waitForExit(processId),
    { stdout: 'before\n', exitCode: 0 },
    'a process that exited before the suspend is unchanged',
  )
  t.match(
    await waitForExit(runningId),
    { running: false, exitCode: null },
    'a process that ran during the suspend has no exit code',
  )
})
