// The client when responses are lost, late, refused or redirected.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import t from 'tap'
import {
  Boxwood,
  type BoxwoodError,
  ConnectionError,
  RateLimitError,
  TimeoutError,
  UnavailableError,
} from '../../client/exports.ts'
import { startCliCoordinator } from '../cli/coordinator.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { failNext, respondNext, requests, key, url } = coordinator
const boxwood = new Boxwood({ url, apiKey: key })
const count = (prefix: string) => requests.filter(({ line }) => line.startsWith(prefix)).length
const box = await boxwood.boxes.get('fig')

t.test('a create whose response is lost creates one box', async (t) => {
  failNext('POST /api/v1/boxes', async (response, _request, forward) => {
    await text(await forward())
    response.destroy()
  })
  const created = await boxwood.boxes.create({ name: 'once' })
  t.equal(count('POST /api/v1/boxes'), 2)
  const { boxes } = await boxwood.routes.boxes.list({ live: true })
  t.same(boxes.map(({ hostname }) => hostname).sort(), [box.name, 'once'].sort())
  await created.delete()
})

t.test('a command whose response is lost is started once', async (t) => {
  const start = `POST /v1/box/${box.id}/exec`
  const before = count(start)
  failNext(start, async (response, _request, forward) => {
    await text(await forward())
    response.destroy()
  })
  t.match(await box.exec('echo started >> starts; cat starts'), { stdout: 'started\n', exitCode: 0 })
  t.equal(count(start), before + 2)
})

t.test('a request that changes something is not repeated blindly', async (t) => {
  const before = count('PATCH')
  failNext('PATCH', (response) => response.destroy())
  await t.rejects(box.update({ labels: { a: 'b' } }), ConnectionError)
  t.equal(count('PATCH'), before + 1)
  respondNext('PATCH', 503, {
    error: 'control_plane_unavailable',
    message: 'The coordinator is not available.',
  })
  await t.rejects(box.update({ labels: { a: 'b' } }), UnavailableError)
  t.equal(count('PATCH'), before + 2)
})

t.test('429 and 503 wait as Retry-After says, within the budget', async (t) => {
  const refusal = { error: 'rate_limited', message: 'Too many requests.' }
  respondNext('PATCH', 429, refusal, { 'retry-after': '0' })
  respondNext(
    'PATCH',
    503,
    { error: 'control_plane_unavailable', message: 'Not now.' },
    { 'retry-after': '0' },
  )
  await box.update({ labels: { a: 'c' } })
  t.equal(box.data.labels.a, 'c')
  respondNext('PATCH', 429, refusal, { 'retry-after': '60' })
  const error = await box.update({ labels: { a: 'd' } }).catch((rejection: BoxwoodError) => rejection)
  t.ok(error instanceof RateLimitError)
  t.match(error, { code: 'rate_limited', status: 429, retryAfterMs: 60_000 })
})

t.test('many bytes, which are sent in parts, are sent again after 503', async (t) => {
  const bytes = new Uint8Array(2_500_001).map((_byte, index) => index % 251)
  const before = count('PUT')
  failNext(`PUT /v1/box/${box.id}/upload`, async (response, request) => {
    await text(request)
    const body = { ok: false, error: { code: 'box_unreachable', message: 'The agent is not connected.' } }
    response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '0' })
    response.end(JSON.stringify(body))
  })
  await box.files.write('large', bytes)
  t.equal(count('PUT'), before + 2)
  t.equal(requests.at(-1)?.headers['content-length'], String(bytes.length))
  t.equal(Buffer.compare(await box.files.readBytes('large'), bytes), 0)
})

t.test('the time limit of a call is kept, and its timer does not keep the process alive', async (t) => {
  failNext('GET /api/v1/environments', () => undefined)
  await t.rejects(boxwood.routes.environments.list({ timeoutMs: 300 }), TimeoutError)
  await t.rejects(async () => boxwood.routes.environments.list({ timeoutMs: 0 }), RangeError)
  const controller = new AbortController()
  failNext('GET /api/v1/environments', () => controller.abort(new Error('enough')))
  await t.rejects(boxwood.routes.environments.list({ signal: controller.signal }), { message: 'enough' })
})

t.test('a call that is aborted while the edge is found does not end the others', async (t) => {
  const other = new Boxwood({ url, apiKey: key })
  const controller = new AbortController()
  failNext('GET /api/v1/me', async (response, _request, forward) => {
    controller.abort(new Error('enough'))
    const body = await text(await forward())
    response.setHeader('content-type', 'application/json')
    response.end(body)
  })
  const first = other.routes.processes.list(box.id, { signal: controller.signal })
  const second = other.routes.processes.list(box.id)
  await t.rejects(first, { message: 'enough' })
  t.match(await second, { type: 'exec.list' })
})

t.test('the time limit of a call that waits for a box limits all of it', async (t) => {
  for (let i = 0; i < 50; i += 1)
    failNext(`GET /api/v1/boxes/`, async (response, _request, forward) => {
      const { box: data, ...rest } = JSON.parse(await text(await forward()))
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ ...rest, box: { ...data, observedState: 'waking' } }))
    })
  await t.rejects(box.waitUntilRunning({ timeoutMs: 300 }), TimeoutError)
  coordinator.clearFaults()
  await box.waitUntilRunning({ timeoutMs: 60_000 })
})

t.test('the API key is sent to no other origin, and is in no error', async (t) => {
  const seen: (string | undefined)[] = []
  const other = createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/`
  for (const status of [301, 302, 303, 307, 308]) {
    failNext('GET /api/v1/environments', (response) => response.writeHead(status, { location }).end())
    const error = await boxwood.routes.environments.list().catch((rejection: BoxwoodError) => rejection)
    t.match(error, { code: 'invalid_response', status })
    t.notMatch(inspect(error, { depth: 10 }), key)
  }
  failNext('GET /api/v1/environments', (response) => response.destroy())
  const lost = await boxwood
    .request('PATCH', '/api/v1/keys', { body: {} })
    .catch((rejection: BoxwoodError) => rejection)
  t.notMatch(inspect(lost, { depth: 10 }), key)
  t.notMatch(inspect(boxwood, { depth: 10, showHidden: true }), key)
  t.same(seen, [])
})

t.test('a response that is not of the API is reported as such', async (t) => {
  failNext('GET /api/v1/environments', (response) => response.writeHead(404).end('<h1>nginx</h1>'))
  await t.rejects(boxwood.routes.environments.list(), { name: 'NotFoundError', code: 'invalid_response' })
  failNext('GET /api/v1/environments', (response) => response.end('{"keys":'))
  await t.rejects(boxwood.routes.environments.list(), { code: 'invalid_response' })
  respondNext('GET /api/v1/environments', 418, { error: 'of_tomorrow', message: 'A new code.', hint: 1 })
  await t.rejects(boxwood.routes.environments.list(), {
    name: 'InvalidRequestError',
    code: 'of_tomorrow',
    message: 'A new code.',
    fields: { hint: 1 },
  })
})

t.test('output is whole and exact over lost connections', async (t) => {
  const stream = `GET /v1/box/${box.id}/exec/`
  const cut = (bytes: number) =>
    failNext(stream, async (response, _request, forward) => {
      let left = bytes
      const source = await forward()
      response.writeHead(200, source.headers)
      source.on('data', (data: Buffer) => {
        if (left > 0) response.write(data.subarray(0, left))
        left -= data.length
        if (left <= 0) response.destroy()
      })
    })
  for (const bytes of [1, 700, 50_000, 300_000]) cut(bytes)
  failNext(stream, (response) => response.writeHead(502).end('bad gateway'))
  const { stdout, stderr, exitCode, missing } = await box.exec('seq 1 100000; echo end >&2; exit 7')
  t.equal(stdout, Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join(''))
  t.same({ stderr, exitCode, missing }, { stderr: 'end\n', exitCode: 7, missing: { stdout: 0, stderr: 0 } })
})

t.test('output of a box that stays away ends with an error', async (t) => {
  const impatient = new Boxwood({ url, apiKey: key, outageMs: 1 })
  const sleeper = await (await impatient.boxes.get(box.id)).start('sleep 600')
  const stream = `GET /v1/box/${box.id}/exec/`
  const unreachable = {
    ok: false,
    error: { code: 'box_unreachable', message: 'The agent is not connected.' },
  }
  for (let i = 0; i < 20; i += 1) respondNext(stream, 503, unreachable)
  await t.rejects(sleeper.wait(), { name: 'UnavailableError', code: 'box_unreachable' })
  coordinator.clearFaults()
  await sleeper.kill()
})

t.test('a traceparent goes along', async (t) => {
  const traced = new Boxwood({
    url,
    apiKey: key,
    traceparent: () => '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01',
  })
  await traced.routes.environments.list()
  t.match(requests.at(-1)?.headers, { traceparent: /^00-a/, 'boxwood-cli-version': undefined })
})
