// Starting a detached command whose response is lost: the start is repeated with the same id, within a time limit.
import t from 'tap'
import type { Tunnel, TunnelCallResponse, Tunnels } from '../../../coordinator/agents/tunnel/types.ts'
import type { BoxRow } from '../../../coordinator/db/schema.ts'
import { createResponseParser } from '../../../coordinator/edge/response-parser.ts'
import { startDetached } from '../../../coordinator/edge/start-detached.ts'
import { ApiError } from '../../../shared/errors.ts'
import { type AgentHandler, callHandler } from '../../support/box-with-fake-agent.ts'

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

const respond = (status: number, body: unknown) => async (): Promise<TunnelCallResponse> => ({
  status,
  body: Buffer.from(JSON.stringify(body)),
})
/** The tunnel closes before the response. */
const disconnect: AgentHandler = () => Promise.reject(new ApiError('box_unreachable'))
const neverRespond: AgentHandler = (request) =>
  new Promise((_resolve, reject) => {
    request.signal?.addEventListener('abort', () => reject(request.signal?.reason))
  })

/** Starts a command on a box whose agent handles request n with handlers[n], and disconnects after the last of them. */
function start(
  handlers: AgentHandler[],
  { timeoutMs = 5000, reconnects = true, signal = new AbortController().signal } = {},
) {
  const requests: object[] = []
  const accepted: unknown[] = []
  const tunnel = {
    call(call) {
      requests.push(JSON.parse(String(call.body)))
      return callHandler(handlers[requests.length - 1] ?? disconnect, call)
    },
  } as Tunnel
  const rejectAfter = (ms: number, signal?: AbortSignal) =>
    new Promise<Tunnel>((_resolve, reject) => {
      const timer = setTimeout(() => reject(new ApiError('box_unreachable')), ms)
      signal?.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(signal.reason)
      })
    })
  const tunnels = {
    wait: (_boxId: string, ms: number, signal?: AbortSignal) =>
      reconnects ? Promise.resolve(tunnel) : rejectAfter(ms, signal),
  } as Tunnels
  const record = { commandId: ID, claimsToken: 'signed', keepOutput: true }
  const response = startDetached(
    { tunnels, responseParser: createResponseParser() },
    { box: { id: 'box' } as BoxRow, tunnel, signal },
    { command: 'true', boxEnv: { A: '1' }, record },
    { record, acceptResponse: (response: unknown) => void accepted.push(response) },
    timeoutMs,
  )
  return { response: response.then((bytes) => JSON.parse(String(bytes))), requests, accepted }
}

t.test('repeats the same request when the tunnel closes before the response', async (t) => {
  const { response, requests, accepted } = start([disconnect, disconnect, disconnect, respond(200, started)])
  t.same(await response, started)
  t.equal(requests.length, 4)
  t.match(requests[0], {
    processId: ID,
    command: 'true',
    detached: true,
    boxEnv: { A: '1' },
    record: { commandId: ID },
  })
  for (const request of requests) t.same(request, requests[0])
  t.equal(accepted.length, 1)
})

t.test('does not retry after an error response of the agent', async (t) => {
  const error = { ok: false, error: { code: 'not_found', message: 'no such directory' } }
  const { response, requests } = start([respond(404, error), respond(200, started)])
  await t.rejects(response, { code: 'not_found', message: 'no such directory' })
  t.equal(requests.length, 1)
})

t.test('an invalid response, or one about another process, is exec_failed', async (t) => {
  for (const invalid of [
    { ...started, processId: 'p_111111111111111111111111' },
    { ...started, pid: 'x' },
    { ok: true },
  ]) {
    const { response, accepted } = start([respond(200, invalid)])
    await t.rejects(response, { code: 'exec_failed' })
    t.same(accepted, [])
  }
})

t.test('fails with box_unreachable and the id when the agent does not reconnect or respond', async (t) => {
  const error = { code: 'box_unreachable', message: new RegExp(ID) }
  await t.rejects(start([disconnect], { timeoutMs: 200, reconnects: false }).response, error)
  await t.rejects(start([neverRespond], { timeoutMs: 50 }).response, error)
})

t.test('stops retrying when the client disconnects', async (t) => {
  const client = new AbortController()
  const { response, requests } = start([], { signal: client.signal })
  client.abort()
  await t.rejects(response, { name: 'AbortError' })
  const before = requests.length
  // A client that stays gets at least two retries in the meantime.
  const control = start([disconnect, disconnect, respond(200, started)])
  await control.response
  t.equal(control.requests.length, 3)
  t.equal(requests.length, before)
})
