// Long polls of a stream while the box is unreachable or suspended.
import t from 'tap'
import type { Tunnel } from '../../../coordinator/agents/tunnel/types.ts'
import { createAgentPoller, type PollOptions } from '../../../coordinator/edge/poll-agent.ts'
import { createResponseParser } from '../../../coordinator/edge/response-parser.ts'
import { ApiError } from '../../../shared/errors.ts'

type Context = Parameters<typeof createAgentPoller>[0]

function setUp(respond: () => Promise<string>, options: PollOptions, state = { desired: 'running' }) {
  let requests = 0
  const tunnel = {
    call: async () => {
      requests += 1
      return { status: 200, body: Buffer.from(await respond()) }
    },
  } as unknown as Tunnel
  const box = { id: 'b', hostname: 'plum', desired_state: 'running' }
  const context = {
    responseParser: createResponseParser(),
    tunnels: { wait: async () => tunnel },
    boxes: { resolve: async () => ({ ...box, desired_state: state.desired, observed_state: 'suspended' }) },
  } as unknown as Context
  const acquired = { box, tunnel } as unknown as Parameters<typeof createAgentPoller>[1]
  const poller = createAgentPoller(context, acquired, {} as Parameters<typeof createAgentPoller>[2], options)
  const poll = (signal = new AbortController().signal) =>
    poller.poll({ method: 'GET', path: '/prompts/x/events', type: 'prompt.stream' }, signal)
  return { poll, getRequests: () => requests, state }
}

const PAGE = JSON.stringify({
  ok: true,
  type: 'prompt.events',
  run: null,
  events: [],
  next: 0,
  finished: false,
})
const away = () => Promise.reject(new ApiError('box_unreachable'))

t.test('repeats a request until the box responds', async (t) => {
  let failures = 3
  const { poll, getRequests } = setUp(() => (failures-- > 0 ? away() : Promise.resolve(PAGE)), {})
  t.match(await poll(), { batch: { pages: [{ next: 0 }] } })
  t.equal(getRequests(), 4)
})

t.test('fails when the box stays unreachable', async (t) => {
  const { poll, getRequests } = setUp(away, { unreachableMs: 300, stateCheckMs: 50 })
  await t.rejects(poll(), { code: 'box_unreachable' })
  t.ok(getRequests() > 1 && getRequests() < 10, `${getRequests()} requests`)
})

t.test('stops at once when the box is suspended meanwhile', async (t) => {
  const { poll, state } = setUp(away, {})
  state.desired = 'suspended'
  await t.rejects(poll(), { code: 'box_not_running', message: /suspended. Wake it/ })
})

t.test('another error is not repeated, and the signal ends a repetition', async (t) => {
  const invalid = setUp(() => Promise.resolve('x'), {})
  await t.rejects(invalid.poll(), { code: 'exec_failed' })
  t.equal(invalid.getRequests(), 1)
  const { poll } = setUp(away, {})
  const stop = new AbortController()
  const rejected = t.rejects(poll(stop.signal), { message: 'stopped' })
  stop.abort(new Error('stopped'))
  await rejected
})

t.test('many polls leave no listeners on the signal', async (t) => {
  const { poll } = setUp(() => Promise.resolve(PAGE), {})
  const { signal } = new AbortController()
  let listeners = 0
  const { addEventListener: add, removeEventListener: remove } = AbortSignal.prototype
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners += 1
    add.apply(signal, args)
  }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners -= 1
    remove.apply(signal, args)
  }
  for (let i = 0; i < 5; i++) await poll(signal)
  t.ok(listeners <= 1, `${listeners} listeners`)
})
