// Spec §4.14, the detached part: processes over real HTTP on a real box.
import t from 'tap'
import { waitUntil } from '../support/coordinator-process.ts'
import { type EdgeBox, edgeBox } from './edge-box.ts'

const ID = /^p_[0-9a-f]{24}$/
const TIME = /^\d{4}-\d\d-\d\dT.*Z$/

function detachedOn({ ask }: EdgeBox) {
  const start = async (command: string, more: object = {}) =>
    (await ask('POST', '/exec', { command, detached: true, ...more })).json
  const status = async (id: string, query = '') => (await ask('GET', `/exec/${id}${query}`)).json
  const ended = (id: string) =>
    waitUntil(`${id} ended`, async () => {
      const found = await status(id)
      return found.running === false && found
    })
  return { start, status, ended, run: async (command: string) => ended((await start(command)).processId) }
}

t.test('a detached command: started, listed, read, ended', async (t) => {
  const box = await edgeBox(t)
  const { ask } = box
  const { start, status, ended, run } = detachedOn(box)

  await t.test('the start answers at once, and names the log', async (t) => {
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
    t.equal(started.commandId, started.processId, 'one id for the process and its record')
    const { processId, pid } = started
    const running = await waitUntil('it has printed', async () => {
      const found = await status(processId)
      return found.stdout === 'out\n' && found.stderr === 'err\n' && found
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
    const log = await ask('GET', `/download?path=${encodeURIComponent(started.logPath)}`)
    t.match(log, { status: 200, text: 'out\n' }, 'the log can be fetched whole')
    const list = await ask('GET', '/exec')
    t.match(list, { status: 200, json: { ok: true, type: 'exec.list' } })
    t.match(
      list.json.processes.find((process: { processId: string }) => process.processId === processId),
      { pid, running: true, lost: false, exitCode: null, signal: null, startedAt: TIME, command: /^echo/ },
    )

    t.match(await ask('DELETE', `/exec/${processId}`), {
      status: 200,
      json: { ok: true, type: 'exec.killed', processId, wasRunning: true, signal: 'TERM' },
    })
    t.match(await status(processId), {
      running: false,
      lost: false,
      exitCode: null,
      signal: 'TERM',
      finishedAt: TIME,
    })
    t.match(
      await ask('DELETE', `/exec/${processId}`),
      { status: 200, json: { processId, wasRunning: false, signal: null } },
      'a second time changes nothing',
    )
  })

  await t.test('one that ignores TERM is ended by KILL, and the answer says so', async (t) => {
    const { processId } = await start(`trap '' TERM; echo ready; while :; do sleep 62; done`)
    await waitUntil('it ignores TERM', async () => (await status(processId)).stdout === 'ready\n')
    t.match((await ask('DELETE', `/exec/${processId}`)).json, { wasRunning: true, signal: 'KILL' })
    t.match(await ended(processId), { exitCode: null, signal: 'KILL', lost: false })
  })

  await t.test('how it ended is told as it was', async (t) => {
    t.match(await run('exit 7'), { exitCode: 7, signal: null, lost: false, finishedAt: TIME, cwd: '~' })
    t.match(await run('kill -9 $$'), { exitCode: null, signal: 'KILL', lost: false })
    t.match(await run('exit 124'), { exitCode: 124, signal: null })
    const { processId } = await start('sleep 63', { timeoutSeconds: 1 })
    t.match(await ended(processId), { exitCode: null, lost: false })
  })

  await t.test('tail is in bytes, of each stream', async (t) => {
    const { processId } = await start('seq 1 100000; printf 12345 >&2')
    await ended(processId)
    const all = Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join('')
    t.match(await status(processId), {
      stdout: all.slice(-16_384),
      stdoutTruncated: true,
      stderr: '12345',
      stderrTruncated: false,
    })
    t.match(await status(processId, '?tail=6'), {
      stdout: '00000\n'.slice(-6),
      stderr: '12345',
      stderrTruncated: false,
    })
    t.match(await status(processId, '?tail=3'), { stderr: '345', stderrTruncated: true })
    t.match(await status(processId, '?tail=0'), { stdout: '', stdoutTruncated: true })
    t.match(await status(processId, '?tail=1048576'), { stdout: all, stdoutTruncated: false })
  })

  await t.test("env, the box's own variables and cwd reach it", async (t) => {
    const { processId } = await start('echo $A; pwd', { env: { A: 'x y' }, cwd: '/tmp' })
    t.match(await ended(processId), { stdout: 'x y\n/tmp\n', cwd: '/tmp' })
  })

  await t.test('each kind of bad request has its code', async (t) => {
    const refused = async (method: string, path: string, body: unknown, status: number, code: string) => {
      const answer = await ask(method, path, body)
      t.match(
        answer,
        { status, json: { ok: false, error: { code } } },
        `${method} ${path} ${JSON.stringify(body)}`,
      )
      return answer
    }
    const { processId } = await start('true')
    await refused('POST', '/exec', { command: ' ', detached: true }, 400, 'invalid_request')
    await refused('POST', '/exec', { command: 'true', detached: 'yes' }, 400, 'invalid_request')
    await refused('POST', '/exec', { command: 'true', detached: true, cwd: 'a\nb' }, 400, 'invalid_request')
    await refused(
      'POST',
      '/exec',
      { command: 'true', detached: true, env: { '1A': '' } },
      400,
      'invalid_request',
    )
    for (const timeoutSeconds of [0, 601, 'x'])
      await refused(
        'POST',
        '/exec',
        { command: 'true', detached: true, timeoutSeconds },
        400,
        'invalid_timeout',
      )
    await refused(
      'POST',
      '/exec',
      { command: 'true', detached: true, cwd: '/no/such/folder' },
      404,
      'not_found',
    )
    for (const tail of ['-1', '1048577', 'x', '1.5'])
      await refused('GET', `/exec/${processId}?tail=${tail}`, undefined, 400, 'invalid_request')
    const unknown = 'p_0123456789abcdef01234567'
    for (const id of [unknown, 'p_1', 'nothing', '%2e%2e%2fexec', `${processId}0`])
      for (const [method, path] of [
        ['GET', `/exec/${id}`],
        ['DELETE', `/exec/${id}`],
        ['GET', `/exec/${id}/stream`],
      ] as const)
        await refused(method, path, undefined, 404, 'not_found')
    t.match(
      (await refused('PUT', '/exec', {}, 405, 'method_not_allowed')).headers.get('allow'),
      /GET, POST|POST, GET/,
    )
    const wrong = await refused('POST', `/exec/${processId}`, {}, 405, 'method_not_allowed')
    t.match(wrong.headers.get('allow'), /DELETE/)
    for (const [method, path] of [
      ['GET', '/exec'],
      ['GET', `/exec/${processId}`],
      ['DELETE', `/exec/${processId}`],
      ['GET', `/exec/${processId}/stream`],
    ] as const) {
      t.match(await ask(method, path, undefined, { key: 'dcp_wrong' }), {
        status: 401,
        json: { ok: false, error: { code: 'unauthorized' } },
      })
      t.match(await box.edge('no-such-box', method, path), {
        status: 404,
        json: { error: { code: 'not_found' } },
      })
    }
  })
})

t.test('a suspended box: a detached start wakes it, its other routes say box_not_running', async (t) => {
  const box = await edgeBox(t)
  const { api, ask, waitForState } = box
  const { start, ended, run } = detachedOn(box)
  const { processId } = await run('echo before')
  const { processId: cut } = await start('sleep 64')
  await api('POST', `/boxes/${box.box.id}/suspend`)
  await waitForState(box.box.id, 'suspended')
  for (const [method, path] of [
    ['GET', '/exec'],
    ['GET', `/exec/${processId}`],
    ['GET', `/exec/${processId}/stream`],
    ['DELETE', `/exec/${processId}`],
  ] as const)
    t.match(
      await ask(method, path),
      { status: 409, json: { ok: false, error: { code: 'box_not_running', state: 'suspended' } } },
      `${method} ${path}`,
    )
  t.match(await run('echo awake'), { stdout: 'awake\n', exitCode: 0 })
  t.match(await ended(processId), { stdout: 'before\n', exitCode: 0 }, 'what had ended is still known')
  t.match(await ended(cut), { running: false, exitCode: null }, 'and no exit code is made up')
})
