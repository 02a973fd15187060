// Starts detached commands while the box is repeatedly disconnected: each runs exactly once.
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const STARTS = 40

t.test('every acknowledged start ran once, despite disconnects', async (t) => {
  const { boxRequest, exec, box, instance: coordinator } = sharedCoordinator
  const { agentConnections } = coordinator.context
  let disconnects = 0
  const timer = setInterval(() => {
    if (agentConnections.current(box.id) === undefined) return
    agentConnections.disconnect(box.id, 'disconnected by the test')
    disconnects += 1
  }, 40)
  t.teardown(() => clearInterval(timer))

  const start = (number: number) =>
    boxRequest('POST', '/exec', { command: `echo ${number} >> ran`, detached: true })
  const responses = []
  for (let first = 0; first < STARTS; first += 4)
    responses.push(...(await Promise.all([0, 1, 2, 3].map((index) => start(first + index)))))
  clearInterval(timer)
  t.ok(disconnects >= 3, `${disconnects} disconnects`)
  t.same(
    responses.filter(({ status }) => status !== 200).map(({ text }) => text),
    [],
    'every start was acknowledged',
  )
  const ids = new Set(responses.map(({ json }) => json.processId))
  t.equal(ids.size, STARTS)

  const { processes } = await waitUntil('all processes have exited', async () => {
    const { json } = await boxRequest('GET', '/exec')
    return json.processes?.every(({ running }: { running: boolean }) => !running) && json
  })
  t.same(new Set(processes.map(({ processId }: { processId: string }) => processId)), ids)
  const { stdout } = await exec('sort -n ran')
  t.equal(stdout, Array.from({ length: STARTS }, (_, number) => `${number}\n`).join(''))
})
