// A promise that rejects after the signal was aborted is handled: an unhandled rejection would end the coordinator.
import t from 'tap'
import { unlessAborted } from '../../../coordinator/base/unless-aborted.ts'

for (const [name, when] of [
  ['before the call', 'before'],
  ['after it', 'after'],
] as const)
  t.test(`an abort ${name}`, async (t) => {
    const controller = new AbortController()
    const late = Promise.withResolvers<string>()
    if (when === 'before') controller.abort('closing')
    const result = unlessAborted(late.promise, controller.signal).catch((reason: unknown) => reason)
    controller.abort('closing')
    t.equal(await result, 'closing')
    // tap reports an unhandled rejection as a failure.
    late.reject(new Error('too late'))
    await new Promise((resolve) => setImmediate(resolve))
  })

t.test('without an abort, the result is that of the promise', async (t) => {
  const { signal } = new AbortController()
  t.equal(await unlessAborted(Promise.resolve('done'), signal), 'done')
  await t.rejects(unlessAborted(Promise.reject(new Error('failed')), signal), { message: 'failed' })
})
