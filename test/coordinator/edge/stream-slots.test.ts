// A stream's slot comes back however the stream ends, and the box's own stream is ended with it.
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import type { TunnelRequest, TunnelResponse } from '../../../coordinator/tunnel/types.ts'
import { ApiError } from '../../../shared/errors.ts'
import { type ScriptedAnswer, scriptedBox } from '../../support/scripted-box.ts'
import { until } from '../../support/tunnel.ts'

const ID = 'p_0123456789abcdef01234567'
const ATTACHED = `event: attached\nid: 0:0\ndata: {"processId":"${ID}","stdoutOffset":0,"stderrOffset":0}\n\n`
const EXIT =
  'event: exit\nid: 0:0\ndata: {"status":"exited","exitCode":0,"signal":null,"stdoutOffset":0,"stderrOffset":0}\n\n'

/** A box with one stream after another; `asked` and `bodies` grow with each. */
async function box(t: Test, answer?: ScriptedAnswer) {
  const asked: TunnelRequest[] = []
  const bodies: PassThrough[] = []
  const scripted = await scriptedBox(
    t,
    async (request): Promise<TunnelResponse> => {
      asked.push(request)
      if (answer) return answer(request)
      if (!request.path.includes('/stream')) throw new ApiError('box_unreachable')
      const body = new PassThrough()
      bodies.push(body)
      body.write(ATTACHED)
      return { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
    },
    { BOXWOOD_EDGE_RATE: '1000' },
  )
  const { url, key } = scripted
  const path = `${url}/v1/box/${scripted.box.hostname}/exec/${ID}/stream`
  /** Opens a stream; the request can be destroyed before its head has come. */
  const open = (headers: Record<string, string> = {}) => {
    const request = get(path, { agent: false, headers: { authorization: `Bearer ${key}`, ...headers } })
    request.on('error', () => undefined)
    const head = once(request, 'response').then(([response]) => {
      response.on('error', () => undefined)
      return response as IncomingMessage
    })
    head.catch(() => undefined)
    return { request, head }
  }
  const free = () => until('every slot is free', () => scripted.held() === 0)
  return { ...scripted, asked, bodies, open, free }
}

const textOf = async (response: IncomingMessage) => Buffer.concat(await response.toArray()).toString()
const last = <T>(all: readonly T[]): T => {
  const found = all.at(-1)
  if (found === undefined) throw new Error('the box was not asked')
  return found
}

t.test('one stream after another, each ending in its own way', async (t) => {
  const { open, held, free, bodies, asked } = await box(t)

  const whole = open()
  const response = await whole.head
  t.match(response, {
    statusCode: 200,
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  })
  t.notOk(response.headers['content-encoding'])
  t.equal(held(), 1, 'an open stream holds a slot')
  last(bodies).end(EXIT)
  t.equal(await textOf(response), ATTACHED + EXIT)
  await free()
  t.match(last(asked), {
    method: 'GET',
    path: new RegExp(`^/exec/${ID}/stream\\?`),
    headers: { 'last-event-id': '0:0' },
  })

  const left = open({ 'last-event-id': '12:34', 'accept-encoding': 'gzip' })
  t.notOk((await left.head).headers['content-encoding'], 'never compressed')
  t.match(last(asked).headers, { 'last-event-id': '12:34' })
  left.request.destroy()
  await free()
  await until("the box's stream has ended", () => last(bodies).destroyed)

  const cut = open()
  const cutResponse = await cut.head
  last(bodies).destroy(new ApiError('box_unreachable'))
  t.match(await textOf(cutResponse), /event: error\nid: 0:0\ndata: \{"code":"box_unreachable"/)
  await free()

  const hostile = open()
  const hostileResponse = await hostile.head
  last(bodies).write('garbage\n\n')
  t.match(await textOf(hostileResponse), /event: error\nid: 0:0\ndata: \{"code":"exec_failed"/)
  t.ok(last(bodies).destroyed)
  await free()
})

t.test('a client that leaves before the head', async (t) => {
  let reset = false
  const { open, held, free, asked } = await box(
    t,
    ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => {
          reset = true
          reject(signal.reason)
        })
      }),
  )
  const { request } = open()
  await until('the box is asked', () => asked.length === 1)
  t.equal(held(), 1)
  request.destroy()
  await free()
  await until('the box is told', () => reset)
})

t.test('a box that refuses, answers with nonsense, or is gone', async (t) => {
  const answers: [ScriptedAnswer, number, string][] = []
  const refuse = (status: number, body: string) => async () => {
    const answer = new PassThrough()
    answer.end(body)
    return { status, headers: {}, body: answer }
  }
  const said = (code: string) => JSON.stringify({ ok: false, error: { code, message: 'no' } })
  answers.push([refuse(404, said('not_found')), 404, 'not_found'])
  answers.push([refuse(500, said('unauthorized')), 502, 'exec_failed'])
  answers.push([refuse(500, 'oops'), 502, 'exec_failed'])
  answers.push([() => Promise.reject(new ApiError('box_unreachable')), 502, 'box_unreachable'])
  const left = [...answers]
  const { open, free } = await box(t, (request) => {
    const [answer] = left.shift() ?? []
    if (!answer) throw new Error('asked too often')
    return answer(request)
  })
  for (const [, status, code] of answers) {
    const response = await open().head
    t.equal(response.statusCode, status)
    t.match(JSON.parse(await textOf(response)), { ok: false, error: { code } })
    await free()
  }
})

t.test('a Last-Event-ID that is none is refused before a slot or the box', async (t) => {
  const { open, asked, held } = await box(t)
  for (const id of ['5', 'a:b', '1:2:3', '-1:0', '1:2, 3:4', `${'9'.repeat(16)}:0`]) {
    const response = await open({ 'last-event-id': id }).head
    t.equal(response.statusCode, 400, id)
    t.match(JSON.parse(await textOf(response)), { error: { code: 'invalid_request' } })
  }
  t.equal(held(), 0)
  t.equal(asked.length, 0)
})

t.test(
  'the fifth stream is refused with the time that the first one has left; others end and it is taken',
  async (t) => {
    const { open, held, free, ask } = await box(t).then((all) => ({
      ...all,
      ask: () => all.edge(all.box.hostname, 'GET', '/exec'),
    }))
    const four = Array.from({ length: 4 }, () => open())
    for (const { head } of four) t.equal((await head).statusCode, 200)
    const fifth = await open().head
    t.equal(fifth.statusCode, 429)
    t.match(JSON.parse(await textOf(fifth)), { ok: false, error: { code: 'rate_limited' } })
    const seconds = Number(fifth.headers['retry-after'])
    t.ok(seconds > 590 && seconds <= 601, `Retry-After: ${seconds}`)
    t.equal((await ask()).status, 502, 'another request goes on: it reaches the box')
    four[0]?.request.destroy()
    await until('its slot is free', () => held() === 3)
    const again = open()
    t.equal((await again.head).statusCode, 200)
    for (const { request } of [...four, again]) request.destroy()
    await free()
  },
)

t.test(
  'a coordinator that drains ends its streams with a reconnect, and does not wait for them',
  async (t) => {
    const { open, coordinator, bodies, free } = await box(t)
    const open1 = await open().head
    const open2 = await open({ 'last-event-id': '3:4' }).head
    const draining = coordinator.drain(60_000)
    const reconnect = (id: string) => new RegExp(`event: reconnect\\nid: ${id}\\ndata: \\{"stdoutOffset":`)
    t.match(await textOf(open1), reconnect('0:0'))
    t.match(await textOf(open2), reconnect('0:0'))
    await draining
    t.ok(bodies.every((body) => body.destroyed))
    await free()
  },
)
