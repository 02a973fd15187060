// box prompt over connections that fail: each event once.
import t from 'tap'
import { startPromptCoordinator } from './coordinator-with-prompts.ts'
import { createRandom } from './random.ts'
import { runBox } from './run-box.ts'
import { rewind, type StreamFault, setStreamFaults } from './stream-faults.ts'

const COUNT = 60
const LINES = Array.from({ length: COUNT }, (_, index) => `line ${index}\n`).join('')
const STREAM = 'GET /v1/box/fig/prompts/run_'

const coordinator = await startPromptCoordinator(t, {
  onStart(run) {
    for (let index = 0; index < COUNT; index++) run.emit('text', `line ${index}`)
    run.end('done')
  },
})
const { api, failNext, waitForState } = coordinator
const { id: boxId } = await coordinator.findBox('fig')
const prompt = () => runBox(coordinator, ['prompt', 'fig', 'count'])
const setFaults = (faults: StreamFault[]) => setStreamFaults(coordinator, STREAM, faults)

/** The first connection is lost after two events. The second one is requested after `action`. */
const actDuringDisconnect = (action: () => Promise<unknown>) => {
  setFaults([{ kind: 'disconnect', afterEvents: 2 }])
  failNext(STREAM, async (response, _, forward) => {
    await action()
    const upstream = await forward()
    upstream.pipe(response.writeHead(upstream.statusCode ?? 0, upstream.headers))
  })
}

for (const seed of [1, 2])
  t.test(`prints every event once despite lost connections, seed ${seed}`, async (t) => {
    const random = createRandom(seed)
    const { getConnections } = setFaults(
      Array.from({ length: 8 }, (_, index): StreamFault => {
        if (index % 3 === 2)
          return {
            kind: 'error_response',
            code: random.pick(['box_unreachable', 'rate_limited', 'control_plane_unavailable']),
          }
        const repeated = random.below(3)
        const afterEvents = repeated + random.below(6)
        return { kind: random.pick(['disconnect', 'error']), afterEvents, seek: rewind(repeated) }
      }),
    )
    const result = await prompt()
    t.equal(result.code, 0, result.stderr)
    t.equal(result.stdout, LINES)
    const positions = getConnections().map(({ headers }) => headers['last-event-id'])
    t.ok(positions.length > 8, `${positions.length} connections`)
    t.equal(positions[0], undefined, 'the first connection has no Last-Event-ID')
    t.ok(Number(positions.at(-1)) > 0)
  })

t.test('a run that is deleted meanwhile', async (t) => {
  setFaults([
    { kind: 'disconnect', afterEvents: 2 },
    { kind: 'error_response', code: 'not_found' },
  ])
  t.match(await prompt(), { code: 5, stderr: /box: No such run on fig: 'run_\w+'\..*\n$/ })
})

t.test('events that the box has discarded are reported', async (t) => {
  const change = (event: string) => (/"seq":[234],/.test(event) ? null : event)
  setFaults([{ kind: 'complete', change }])
  const { code, stdout, stderr } = await prompt()
  t.same([code, stdout.split('\n').slice(0, 3)], [0, ['line 0', 'line 4', 'line 5']])
  t.equal(stderr, 'box: 3 events before this point are missing: fig has discarded them.\n')
})

t.test('stops when the box is stopped during the run', async (t) => {
  actDuringDisconnect(async () => {
    await api('POST', `/boxes/${boxId}/suspend`)
    await waitForState(boxId, 'suspended')
  })
  t.match(await prompt(), {
    code: 1,
    stdout: 'line 0\nline 1\n',
    stderr:
      /box: fig is not running\. A stop interrupts.*box prompts fig run_\w+` shows the run\. \(box_not_running\)\n$/,
  })
})

t.test('a stream without a run: the prompt was removed from the queue', async (t) => {
  failNext(STREAM, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('event: done\ndata: {"run":null,"next":0}\n\n')
  })
  t.match(await prompt(), { code: 130, stderr: 'box: the prompt was removed from the queue.\n' })
})

t.test('an invalid event is an error', async (t) => {
  failNext(STREAM, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('event: unknown\ndata: {}\n\nevent: prompt\ndata: {"seq":"1"}\n\n')
  })
  t.match(await prompt(), { code: 1, stderr: /the event prompt without a valid seq/ })
})

t.test('a box that is deleted meanwhile', async (t) => {
  actDuringDisconnect(() => api('DELETE', `/boxes/${boxId}`))
  t.match(await prompt(), { code: 5, stdout: 'line 0\nline 1\n', stderr: /box: Box fig was deleted\.\n$/ })
})
