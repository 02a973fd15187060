// A start whose answer is lost: asked again under the same id, never under another, and not for ever.
import { Readable } from 'node:stream'
import t from 'tap'
import type { BoxRow } from '../../../coordinator/db/schema.ts'
import { startDetached } from '../../../coordinator/edge/start-detached.ts'
import type { Tunnel, TunnelRequest, TunnelResponse, Tunnels } from '../../../coordinator/tunnel/types.ts'
import { ApiError } from '../../../shared/errors.ts'

const ID = 'p_0123456789abcdef01234567'
const started = {
  ok: true,
  type: 'exec.started',
  processId: ID,
  pid: 7,
  cwd: '~',
  startedAt: '2026-01-01T00:00:00.000Z',
  logPath: '/home/box/log',
  commandId: ID,
}
const json = (status: number, body: unknown): TunnelResponse => ({
  status,
  headers: {},
  body: Readable.from([Buffer.from(JSON.stringify(body))]),
})
const died = () => Promise.reject(new ApiError('box_unreachable'))

/** A box that answers each request with the next of `answers`; `then` is what waiting for its tunnel does. */
function start(
  answers: ((request: TunnelRequest) => Promise<TunnelResponse>)[],
  { ms = 5000, waits = true, signal = new AbortController().signal } = {},
) {
  const asked: { processId: string; command: string; boxEnv: object }[] = []
  const accepted: unknown[] = []
  const tunnel = {
    request(request: TunnelRequest) {
      asked.push(JSON.parse(String(request.body)))
      return (answers[asked.length - 1] ?? died)(request)
    },
  } as Tunnel
  const tunnels = {
    wait: (_box: string, ms: number, signal?: AbortSignal) =>
      waits
        ? Promise.resolve(tunnel)
        : new Promise<Tunnel>((_resolve, reject) => {
            const timer = setTimeout(() => reject(new ApiError('box_unreachable')), ms)
            signal?.addEventListener('abort', () => {
              clearTimeout(timer)
              reject(signal.reason)
            })
          }),
  } as Tunnels
  const box = { id: 'box', env_vars: '[{"name":"A","value":"1"}]' } as BoxRow
  const record = { commandId: ID, claimsToken: 'signed', keepOutput: true }
  const accept = (answer: unknown) => void accepted.push(answer)
  const answer = startDetached(
    { tunnels },
    { box, tunnel, signal },
    { command: 'true' },
    { record, acceptResponse: accept },
    ms,
  )
  return { answer: answer.then((bytes) => JSON.parse(String(bytes))), asked, accepted }
}

t.test('the tunnel dies before the answer: the same start is asked for again', async (t) => {
  const cutBody = (): Promise<TunnelResponse> => {
    const body = new Readable({ read: () => undefined })
    setImmediate(() => body.destroy(new ApiError('box_unreachable')))
    return Promise.resolve({ status: 200, headers: {}, body })
  }
  const { answer, asked, accepted } = start([died, cutBody, died, async () => json(200, started)])
  t.same(await answer, started)
  t.equal(asked.length, 4)
  t.match(asked[0], {
    processId: ID,
    command: 'true',
    detached: true,
    boxEnv: { A: '1' },
    record: { commandId: ID },
  })
  for (const again of asked) t.same(again, asked[0])
  t.equal(accepted.length, 1)
})

t.test('a refusal of the box is the answer', async (t) => {
  const refusal = { ok: false, error: { code: 'not_found', message: 'no such folder' } }
  const { answer, asked } = start([async () => json(404, refusal), async () => json(200, started)])
  await t.rejects(answer, { code: 'not_found', message: 'no such folder' })
  t.equal(asked.length, 1)
})

t.test('an answer of another shape, or about another process, is exec_failed', async (t) => {
  for (const wrong of [
    { ...started, processId: 'p_111111111111111111111111' },
    { ...started, pid: 'x' },
    { ok: true },
  ]) {
    const { answer, accepted } = start([async () => json(200, wrong)])
    await t.rejects(answer, { code: 'exec_failed' })
    t.same(accepted, [])
  }
})

t.test('a box that stays away, or never answers, is box_unreachable, and the id is told', async (t) => {
  const never = (request: TunnelRequest) =>
    new Promise<TunnelResponse>((_resolve, reject) => {
      request.signal?.addEventListener('abort', () => reject(request.signal?.reason))
    })
  const refusal = { code: 'box_unreachable', message: new RegExp(ID) }
  await t.rejects(start([died], { ms: 200, waits: false }).answer, refusal)
  await t.rejects(start([never], { ms: 50 }).answer, refusal)
})

t.test('a client that leaves ends the asking', async (t) => {
  const gone = new AbortController()
  const { answer, asked } = start([], { signal: gone.signal })
  gone.abort()
  await t.rejects(answer, { name: 'AbortError' })
  const before = asked.length
  await new Promise((resolve) => setTimeout(resolve, 250))
  t.equal(asked.length, before)
})
