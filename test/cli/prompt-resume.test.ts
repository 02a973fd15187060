// box prompt over connections that fail: each event once.
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakePrompts, type FakeRun, type StreamFault } from './fake-prompts.ts'
import { createRandom } from './random.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const fig = await fake.addBox('fig')
const prompts = addFakePrompts(fake)
const prompt = () => runBox(fake.url, ['prompt', 'fig', 'count'])
const COUNT = 60
const LINES = Array.from({ length: COUNT }, (_, index) => `line ${index}\n`).join('')

function startCount(faults: readonly StreamFault[]): { getRun(): FakeRun } {
  let started: FakeRun | undefined
  prompts.onStart = (run) => {
    for (let index = 0; index < COUNT; index++) run.emit('text', `line ${index}`)
    run.end('done')
    run.getFault = (connection) => faults[connection] ?? null
    started = run
  }
  return {
    getRun() {
      if (started === undefined) throw new Error('no run')
      return started
    },
  }
}

for (const seed of [1, 2])
  t.test(`prints every event once despite lost connections, seed ${seed}`, async (t) => {
    const random = createRandom(seed)
    const faults = Array.from({ length: 8 }, (_, index): StreamFault => {
      if (index % 3 === 2)
        return {
          kind: 'error_response',
          code: random.pick(['box_unreachable', 'rate_limited', 'control_plane_unavailable']),
        }
      const rewind = random.below(3)
      return { kind: random.pick(['disconnect', 'error']), events: rewind + random.below(6), rewind }
    })
    const { getRun } = startCount(faults)
    const result = await prompt()
    t.equal(result.code, 0, result.stderr)
    t.equal(result.stdout, LINES)
    const { connections } = getRun()
    t.ok(connections.length > 8, `${connections.length} connections`)
    t.equal(connections[0], undefined, 'the first connection has no Last-Event-ID')
    t.ok(Number(connections.at(-1)) > 0)
  })

t.test('a run, or its box, that is deleted meanwhile', async (t) => {
  const faults: StreamFault[] = [
    { kind: 'disconnect', events: 2 },
    { kind: 'error_response', code: 'not_found' },
  ]
  startCount(faults)
  t.match(await prompt(), { code: 5, stderr: /box: No such run on fig: 'run_\w+'\..*\n$/ })
  startCount(faults)
  fig.desiredState = 'terminated'
  t.teardown(() => {
    fig.desiredState = 'running'
  })
  t.match(await prompt(), { code: 5, stdout: 'line 0\nline 1\n', stderr: /box: Box fig was deleted\.\n$/ })
})

t.test('events that the box has discarded are reported', async (t) => {
  prompts.onStart = (run) => {
    for (let index = 0; index < 5; index++) run.emit('text', `line ${index}`)
    run.events.splice(1, 3)
    run.end('done')
  }
  t.same(await prompt(), {
    code: 0,
    stdout: 'line 0\nline 4\n',
    stderr: 'box: 3 events before this point are missing: fig has discarded them.\n',
  })
})

t.test('stops when the box is stopped during the run', async (t) => {
  const faults: StreamFault[] = [
    { kind: 'disconnect', events: 2 },
    { kind: 'error_response', code: 'box_not_running' },
  ]
  startCount(faults)
  fig.desiredState = 'suspended'
  t.teardown(() => {
    fig.desiredState = fig.observedState = 'running'
  })
  t.match(await prompt(), {
    code: 1,
    stdout: 'line 0\nline 1\n',
    stderr:
      /box: fig is not running\. A stop interrupts.*box prompts fig run_\w+` shows the run\. \(box_not_running\)\n$/,
  })
})

t.test('a stream without a run: the prompt was removed from the queue', async (t) => {
  fake.handleNext('GET /v1/box/fig/prompts/run', (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('event: done\ndata: {"run":null,"next":0}\n\n')
  })
  t.match(await prompt(), { code: 130, stderr: 'box: the prompt was removed from the queue.\n' })
})

t.test('an invalid event is an error', async (t) => {
  fake.handleNext('GET /v1/box/fig/prompts/run', (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('event: unknown\ndata: {}\n\nevent: prompt\ndata: {"seq":"1"}\n\n')
  })
  t.match(await prompt(), { code: 1, stderr: /the event prompt without a valid seq/ })
})
