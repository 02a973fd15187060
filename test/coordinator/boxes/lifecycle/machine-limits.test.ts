// Calls that do not return: only the boxes of the same provider wait.
import t from 'tap'
import { createMachineLimits } from '../../../../coordinator/boxes/lifecycle/machine-limits.ts'

t.test('calls that do not return delay only the boxes of the same provider', async (t) => {
  const limits = createMachineLimits(1)
  const hanging = Promise.withResolvers<string>()
  const first = limits({ provider: 'docker', workspace_id: 'w1' })(() => hanging.promise)
  let isSecondCalled = false
  const second = limits({ provider: 'docker', workspace_id: 'w1' })(async () => {
    isSecondCalled = true
  })
  t.equal(await limits({ provider: 'local', workspace_id: 'w1' })(async () => 'local'), 'local')
  t.notOk(isSecondCalled)
  hanging.resolve('docker')
  t.equal(await first, 'docker')
  await second
  t.ok(isSecondCalled)
})

t.test('the boxes of one workspace do not delay those of another one', async (t) => {
  const limits = createMachineLimits(1)
  const order: string[] = []
  const call = (name: string) =>
    limits({ provider: 'local', workspace_id: name[0] ?? '' })(async () => void order.push(name))
  await Promise.all(['a1', 'a2', 'a3', 'b1'].map(call))
  t.ok(order.indexOf('b1') < order.indexOf('a3'), order.join())
})
