// Runs that are starting occupy a slot until the start has ended, and can be interrupted.
import { once } from 'node:events'
import t from 'tap'
import { StartSlots } from '../../../../agent/prompts/queue/start-slots.ts'

const run = (id: string) => ({ id, conversationId: `cv_${id}`, provider: 'claude' as const })

t.test('a run is listed until its start has ended', async (t) => {
  let settled = 0
  const starting = new StartSlots(() => {
    settled += 1
  })
  const first = Promise.withResolvers<string>()
  const second = Promise.withResolvers<string>()
  const firstStart = starting.occupy(run('1'), () => first.promise)
  const secondStart = starting.occupy(run('2'), () => second.promise)
  t.same(starting.list(), [run('2'), run('1')], 'newest first')
  t.ok(starting.has('1'))
  first.resolve('started')
  t.equal(await firstStart, 'started')
  t.same(starting.list(), [run('2')])
  second.reject(new Error('no program'))
  await t.rejects(() => secondStart, { message: 'no program' })
  t.same(starting.list(), [])
  t.equal(settled, 2, 'the callback is called after a start and after a failed start')
})

t.test('an interrupt aborts the start with the cause, and waits for its end', async (t) => {
  const starting = new StartSlots(() => undefined)
  const end = Promise.withResolvers<void>()
  let cause: unknown
  const start = starting.occupy(run('1'), async (signal) => {
    await once(signal, 'abort')
    cause = signal.reason
    await end.promise
    throw new Error('interrupted')
  })
  const failure = t.rejects(() => start, { message: 'interrupted' })
  let isInterrupted = false
  const interrupted = starting.interrupt('1', 'by a request').then(() => {
    isInterrupted = true
  })
  const settled = starting.settle()
  await new Promise(setImmediate)
  t.equal(cause, 'by a request')
  t.notOk(isInterrupted)
  end.resolve()
  await Promise.all([interrupted, settled, failure])
  await starting.interrupt('1', 'not starting any more')
})
