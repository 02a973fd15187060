// A pause for idleness and a new request to the box exclude each other.
import t from 'tap'
import { createPauseGate } from '../../../../coordinator/boxes/schedules/pause-gate.ts'

t.test('does not decide on a pause while a request is in flight', async (t) => {
  let hasRequests = true
  const gate = createPauseGate(() => hasRequests)
  const decided: string[] = []
  const decide = async () => {
    decided.push('decided')
    return 'result'
  }
  t.equal(await gate.run('box', decide), 'busy')
  t.same(decided, [])
  t.equal(gate.version, 0)
  hasRequests = false
  t.equal(await gate.run('box', decide), 'result')
  t.equal(gate.version, 2, 'increased at the start and at the end')
})

t.test('new requests to the box wait until the pause is decided', async (t) => {
  const gate = createPauseGate(() => false)
  const { promise: decision, resolve: decide } = Promise.withResolvers<void>()
  const pause = gate.run('box', () => decision)
  t.equal(await gate.run('box', async () => undefined), 'busy', 'one decision at a time')
  const waiting = gate.wait('box')
  t.equal(gate.wait('other'), undefined)
  let hasWaited = false
  void waiting?.then(() => {
    hasWaited = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(hasWaited, false)
  decide()
  await pause
  await waiting
  t.equal(gate.wait('box'), undefined)
})

t.test('requests continue when the decision fails', async (t) => {
  const gate = createPauseGate(() => false)
  const pause = gate.run('box', async () => {
    throw new Error('no connection')
  })
  const waiting = gate.wait('box')
  await t.rejects(pause, /no connection/)
  await waiting
  t.equal(gate.wait('box'), undefined)
})
