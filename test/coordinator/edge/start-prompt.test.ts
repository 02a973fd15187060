// A prompt whose response is lost is repeated with the same ids, and never reported as refused when it may run.
import t, { type Test } from 'tap'
import type { Tunnel, TunnelCall } from '../../../coordinator/agents/tunnel/types.ts'
import type { AcquiredBox } from '../../../coordinator/edge/acquire-box.ts'
import { createResponseParser } from '../../../coordinator/edge/response-parser.ts'
import { startPrompt } from '../../../coordinator/edge/start-prompt.ts'
import { ApiError } from '../../../shared/errors.ts'
import { createRun } from '../../support/fake-prompt-agent.ts'

/** Each request gets the next result. `wait` returns the same tunnel, or rejects when `isGone`. */
function setUp(t: Test, results: ((body: { runId: string; newConversationId: string }) => object | Error)[]) {
  const responseParser = createResponseParser()
  t.teardown(() => responseParser.close())
  const bodies: { runId: string; newConversationId: string }[] = []
  const waits: number[] = []
  const state = { isGone: false }
  const tunnel = {
    async call({ body }: TunnelCall) {
      const parsed = JSON.parse(String(body))
      bodies.push(parsed)
      const result = results.shift()?.(parsed) ?? new ApiError('box_unreachable')
      if (result instanceof Error) throw result
      return { status: 200, body: Buffer.from(JSON.stringify(result)) }
    },
  } as Partial<Tunnel> as Tunnel
  const tunnels = {
    async wait(_boxId: string, ms: number) {
      waits.push(ms)
      if (state.isGone) throw new ApiError('box_unreachable')
      return tunnel
    },
  }
  const acquired = { box: { id: 'box' }, tunnel, signal: new AbortController().signal }
  const submit = () =>
    startPrompt(
      { tunnels: tunnels as never, responseParser },
      acquired as Partial<AcquiredBox> as AcquiredBox,
      { provider: 'pi', prompt: 'Hello' },
      {},
    )
  return { submit, bodies, waits, state }
}

const lost = () => new ApiError('box_unreachable')
const started = ({ runId, newConversationId }: { runId: string; newConversationId: string }) => ({
  ...{ ok: true, type: 'prompt.started' },
  run: createRun({ id: runId, conversationId: newConversationId, provider: 'pi' }),
})

t.test('a lost response', async (t) => {
  const { submit, bodies } = setUp(t, [lost, lost, started])
  const response = JSON.parse(String(await submit()))
  t.equal(response.run.id, bodies[0]?.runId)
  t.equal(bodies.length, 3)
  t.same(bodies[1], bodies[0])
  t.same(bodies[2], bodies[0])
})

t.test('a box that does not connect again', async (t) => {
  const { submit, bodies, waits, state } = setUp(t, [lost])
  state.isGone = true
  const error = await submit().catch((error: unknown) => error)
  t.match(error, {
    code: 'box_unreachable',
    message: /may have been accepted as run_[0-9a-f]{24}\. Check with GET/,
  })
  t.match((error as Error).message, bodies[0]?.runId)
  t.ok((waits[0] ?? 0) <= 60_000, 'shorter than an installation may take')
})

t.test('a response for another run, and an error of the agent', async (t) => {
  const other = setUp(t, [(body) => started({ ...body, runId: 'run_0123456789abcdef01234567' })])
  await t.rejects(other.submit(), { code: 'exec_failed', message: /different run/ })
  const refused = setUp(t, [() => new ApiError('provider_not_installed')])
  await t.rejects(refused.submit(), { code: 'provider_not_installed' })
  t.equal(refused.bodies.length, 1, 'not repeated')
})
