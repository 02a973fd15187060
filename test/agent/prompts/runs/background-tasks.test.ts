// Work in the background: the shutdown waits for it, and its errors are logged.
import { Writable } from 'node:stream'
import pino from 'pino'
import t from 'tap'
import { BackgroundTasks } from '../../../../agent/prompts/runs/background-tasks.ts'

t.test('settle() waits for all work, and an error is logged', async (t) => {
  const lines: string[] = []
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString())
      done()
    },
  })
  const tasks = new BackgroundTasks(pino(stream))
  const slow = Promise.withResolvers<void>()
  let isSettled = false
  tasks.add(slow.promise, 'the slow work failed')
  tasks.add(Promise.reject(new Error('disk full')), 'failed to delete a run')
  const settled = tasks.settle().then(() => {
    isSettled = true
  })
  await new Promise(setImmediate)
  t.notOk(isSettled)
  slow.resolve()
  await settled
  t.match(
    lines.map((line) => JSON.parse(line)),
    [{ msg: 'failed to delete a run', err: { message: 'disk full' } }],
  )
})
