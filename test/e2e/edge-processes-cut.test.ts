// Starts of detached commands while the box's connection is cut again and again: each runs once, none is lost.
import t from 'tap'
import { waitUntil } from '../support/coordinator-process.ts'
import { edgeBox } from './edge-box.ts'

const STARTS = 40

t.test('a start that was answered ran once, whatever happened to the connection', async (t) => {
  const { ask, exec, box, coordinator } = await edgeBox(t)
  const { hub } = coordinator.context
  let cuts = 0
  const cutting = setInterval(() => {
    if (hub.current(box.id) === undefined) return
    hub.disconnect(box.id, 'the test cut it')
    cuts += 1
  }, 40)
  t.teardown(() => clearInterval(cutting))

  const answers = []
  for (let number = 0; number < STARTS; number += 4)
    answers.push(
      ...(await Promise.all(
        [0, 1, 2, 3].map((one) =>
          ask('POST', '/exec', { command: `echo ${number + one} >> ran`, detached: true }),
        ),
      )),
    )
  clearInterval(cutting)
  t.ok(cuts >= 3, `it was cut ${cuts} times`)
  t.same(
    answers.filter(({ status }) => status !== 200).map(({ text }) => text),
    [],
    'every start was answered',
  )
  const ids = new Set(answers.map(({ json }) => json.processId))
  t.equal(ids.size, STARTS)

  const { processes } = await waitUntil('all have ended', async () => {
    const { json } = await ask('GET', '/exec')
    return json.processes?.every(({ running }: { running: boolean }) => !running) && json
  })
  t.same(new Set(processes.map(({ processId }: { processId: string }) => processId)), ids)
  const { stdout } = await exec('sort -n ran')
  t.equal(stdout, Array.from({ length: STARTS }, (_, number) => `${number}\n`).join(''))
})
