// Responses of an agent that are too large, have too many values or unknown fields.
import t from 'tap'
import { createResponseParser } from '../../../coordinator/edge/response-parser.ts'
import type { ExecResult } from '../../../shared/api/exec.ts'
import { startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'
import { measureHeapBytes } from '../../support/heap.ts'

const MiB = 1024 * 1024
const ID = 'p_0123456789abcdef01234567'
const RESULT: ExecResult = {
  ok: true,
  type: 'exec.result',
  exitCode: 0,
  signal: null,
  stdout: '',
  stderr: '',
  stdoutTruncated: false,
  stderrTruncated: false,
  timedOut: false,
  startedAt: '2026-01-01T00:00:00.000Z',
  finishedAt: '2026-01-01T00:00:00.000Z',
  cwd: '~',
}
const KILLED = { ok: true, type: 'exec.killed', processId: ID, wasRunning: true, signal: 'TERM' }

/** A box whose agent responds to every request with `response.text`. */
async function startBox(t: Parameters<typeof startBoxWithFakeAgent>[0]) {
  const response = { status: 200, text: '' }
  const box = await startBoxWithFakeAgent(t, async () => ({
    status: response.status,
    body: Buffer.from(response.text),
  }))
  const send = (method: string, path: string, body?: unknown) =>
    box.edge(box.box.hostname, method, path, body)
  return { send, response }
}

t.test('a response with millions of values is rejected before it is parsed', async (t) => {
  const { send, response } = await startBox(t)
  const before = await measureHeapBytes()
  const cases: [string, string, string, string][] = [
    ['GET', '/exec', `{"processes":[${'0,'.repeat(6 * MiB)}0]}`, 'JSON tokens'],
    ['GET', '/exec', `{"processes":[${'{},'.repeat(4 * MiB)}{}]}`, 'JSON tokens'],
    ['GET', '/exec', `${'['.repeat(12 * MiB)}`, 'JSON tokens'],
    ['GET', `/exec/${ID}`, `{"":[${'0,'.repeat(5 * MiB)}0]}`, 'JSON tokens'],
    ['GET', '/files?path=a', `{${'"":0,'.repeat(MiB)}"":0}`, 'JSON tokens'],
    [
      'GET',
      '/exec',
      `{"ok":true,"type":"exec.list","processes":[${'0,'.repeat(1000)}0]}`,
      'at most 1000 items',
    ],
  ]
  for (const [method, path, text, problem] of cases) {
    response.text = text
    const { status, json } = await send(method, path)
    t.equal(status, 502, path)
    t.match(json, { error: { code: 'exec_failed' } })
    t.match(json.error.message, problem)
  }
  response.text = ''
  const growth = (await measureHeapBytes()) - before
  t.ok(growth < 64 * MiB, `the heap grew by ${growth} bytes`)
})

t.test('each route has its own bound of the response', async (t) => {
  const { send, response } = await startBox(t)
  const padding = 'x'.repeat(300 * 1024)
  for (const [method, path, body, limit] of [
    ['DELETE', `/exec/${ID}`, undefined, 4096],
    ['PUT', '/files', { path: 'a', content: '' }, 262_144],
    ['PUT', '/upload?path=a', 'x', 262_144],
  ] as const) {
    response.text = JSON.stringify({ ...KILLED, type: 'file.written', path: padding })
    const { status, json } = await send(method, path, body)
    t.equal(status, 502)
    t.match(json.error.message, `exceeds ${limit} bytes`)
  }
})

t.test('an error response with many values, or one that is too large, is exec_failed', async (t) => {
  const { send, response } = await startBox(t)
  response.status = 404
  const error = { code: 'not_found', message: 'no such process' }
  for (const [extra, code] of [
    [{}, 'not_found'],
    [{ details: Array(1000).fill(0) }, 'exec_failed'],
    [{ message: 'x'.repeat(300 * 1024) }, 'exec_failed'],
  ] as const) {
    response.text = JSON.stringify({ ok: false, error: { ...error, ...extra } })
    const { json } = await send('GET', '/exec')
    t.equal(json.error.code, code)
  }
})

t.test('errors of a working directory are forwarded with their code', async (t) => {
  const { send, response } = await startBox(t)
  for (const [status, code] of [
    [400, 'invalid_path'],
    [403, 'permission_denied'],
    [404, 'not_found'],
  ] as const) {
    response.status = status
    response.text = JSON.stringify({ ok: false, error: { code, message: 'the working directory' } })
    t.match(await send('POST', '/exec', { command: 'true', cwd: '/' }), { status, json: { error: { code } } })
  }
})

t.test('unknown fields of a response are not forwarded', async (t) => {
  const { send, response } = await startBox(t)
  response.text = JSON.stringify({ ...KILLED, secret: 'x'.repeat(1000), __proto__: null })
  t.same((await send('DELETE', `/exec/${ID}`)).json, KILLED)
  response.text = JSON.stringify({ ...RESULT, stdout: 'y'.repeat(MiB), padding: 'x'.repeat(10 * MiB) })
  t.same((await send('POST', '/exec', { command: 'true' })).json, { ...RESULT, stdout: 'y'.repeat(MiB) })
})

t.test('the largest response of a correct agent arrives complete', async (t) => {
  const { send, response } = await startBox(t)
  for (const character of ['\u0001', '\ufffd', '"', 'é']) {
    const output = character.repeat(MiB / Math.min(2, Buffer.byteLength(character)))
    const result = { ...RESULT, stdout: output, stderr: output }
    response.text = JSON.stringify(result)
    const { status, json } = await send('POST', '/exec', { command: 'true' })
    t.equal(status, 200)
    t.ok(json.stdout === output && json.stderr === output, 'the output is unchanged')
  }
  const process = {
    processId: ID,
    pid: 2,
    running: true,
    lost: false,
    exitCode: null,
    signal: null,
    timedOut: false,
    attached: false,
    startedAt: RESULT.startedAt,
    command: '\u0001'.repeat(2048),
  }
  const list = { ok: true, type: 'exec.list', processes: Array(1000).fill(process) }
  response.text = JSON.stringify(list)
  const { json } = await send('GET', '/exec')
  t.same(json.processes?.length, 1000)
  t.same(json.processes?.at(-1), process)
})

t.test('the parser continues after a worker that ran out of memory, and closes', async (t) => {
  const parser = createResponseParser({ workerHeapMiB: 16 })
  // Many small values: one large allocation above the limit would end the whole process.
  const events = Buffer.from(`{"events":[${'{},'.repeat(500_000)}{}]}`)
  const problem = { name: 'InvalidResponseError', message: /too much memory/ }
  await t.rejects(parser.parse('prompt.events', events), problem)
  const medium = () => Buffer.from(JSON.stringify({ ...RESULT, stdout: 'x'.repeat(100_000) }))
  const { json } = await parser.parse('exec.result', medium())
  t.equal(JSON.parse(json.toString()).stdout.length, 100_000)
  const closed = t.rejects(parser.parse('exec.result', medium()), { message: /stopping/ })
  await parser.close()
  await closed
  await t.rejects(parser.parse('exec.result', medium()), { message: /stopping/ }, 'no new worker starts')
})
