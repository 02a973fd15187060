// The first start creates a first box.
import t from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('the machine of the first box is created once', async (t) => {
  const infra = new FakeInfrastructure()
  const isReady = Promise.withResolvers<void>()
  infra.before.create = () => isReady.promise
  const { api } = await startTestCoordinator(t, { infra })
  isReady.resolve()
  await waitUntil('the first box is running', async () => {
    const { json } = await api('GET', '/boxes')
    return json.boxes[0]?.observedState === 'running'
  })
  t.equal(infra.calls.filter((call) => call.startsWith('create ')).length, 1)
})
