// Calls that do not return: only the boxes of the same provider wait.
import t from 'tap'
import { createMachineLimits } from '../../../../coordinator/boxes/lifecycle/machine-limits.ts'

t.test('calls that do not return delay only the boxes of the same provider', async (t) => {
  const limits = createMachineLimits(1)
  const hanging = Promise.withResolvers<string>()
  const first = limits({ provider: 'docker' })(() => hanging.promise)
  let isSecondCalled = false
  const second = limits({ provider: 'docker' })(async () => {
    isSecondCalled = true
  })
  t.equal(await limits({ provider: 'local' })(async () => 'local'), 'local')
  t.notOk(isSecondCalled)
  hanging.resolve('docker')
  t.equal(await first, 'docker')
  await second
  t.ok(isSecondCalled)
})
