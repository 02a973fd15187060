// Which provider has the boxes of a region, and which regions new boxes can use.
import t from 'tap'
import { machineProvider } from '../../../coordinator/providers/enrolled/provider.ts'
import type { Provider } from '../../../coordinator/providers/provider.ts'
import { createProviders, serveAllRegions } from '../../../coordinator/providers/regions.ts'
import { DEFAULT_REGION, REGIONS } from '../../../shared/tiers.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'

const createProvider = (fields: Partial<Provider> = {}): Provider => ({
  ...new FakeInfrastructure().provider,
  ...fields,
})

t.test('a region has its provider; one without fails permanently', async (t) => {
  const [first, second] = [createProvider(), createProvider()]
  const providers = createProviders(
    new Map([
      ['us-east-1', first],
      ['us-east-2', first],
      ['eu-central-1', second],
    ]),
    ['us-east-1', 'eu-central-1'],
  )
  t.equal(providers.inRegion('us-east-2'), first)
  t.equal(providers.inRegion('eu-central-1'), second)
  t.throws(() => providers.inRegion('us-west-2'), {
    name: 'PermanentProviderError',
    message: /us-west-2.*BOXWOOD_REGIONS/,
  })
  t.equal(providers.for({ kind: 'managed', region: 'us-east-2' }), first)
  t.equal(providers.for({ kind: 'machine', region: 'us-east-2' }), machineProvider)
  t.equal(providers.for({ kind: 'machine', region: 'us-west-2' }), machineProvider, 'a region is a label')
  t.same(providers.all, [first, second], 'a provider of several regions appears once')
  t.ok(providers.serves('us-east-1'))
  t.notOk(providers.serves('us-east-2'), 'new boxes cannot use the region')
  t.equal(providers.defaultRegion, 'us-east-1', 'the default region is not served')
  t.equal(serveAllRegions(first).defaultRegion, DEFAULT_REGION)
  t.same(serveAllRegions(first).regions, REGIONS)
})

t.test('providers with different agents have no common agent version', async (t) => {
  const [first, second] = [createProvider({ agentVersion: '1' }), createProvider({ agentVersion: '2' })]
  t.equal(serveAllRegions(first).agentVersion, '1')
  const providers = createProviders(
    new Map([
      ['us-east-1', first],
      ['us-east-2', second],
    ]),
  )
  t.equal(providers.agentVersion, undefined)
})

t.test('describes equal providers once, and closes each once', async (t) => {
  const closed: string[] = []
  const createNamed = (name: string) =>
    createProvider({ describe: () => 'same text', close: async () => void closed.push(name) })
  const [first, second] = [createNamed('first'), createNamed('second')]
  const providers = createProviders(
    new Map([
      ['us-east-1', first],
      ['us-east-2', first],
      ['eu-central-1', second],
    ]),
  )
  t.equal(providers.describe(), 'same text')
  await providers.close()
  t.same(closed.sort(), ['first', 'second'])
})
