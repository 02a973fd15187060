// The coordinator and the engine of a provider are killed at random. `npm run chaos -- --provider` runs it for longer.
import t from 'tap'
import { runEngineRound } from '../../support/chaos/engine-round.ts'
import { TEST_PROVIDERS, type TestProviderName } from '../../support/engines/providers.ts'

export function testKilledEngine(name: TestProviderName): void {
  t.test(`no box of the provider ${name} is lost, doubled or left over`, async (t) => {
    const provider = await TEST_PROVIDERS[name].start()
    if ('skip' in provider) return void t.pass('', { skip: provider.skip })
    t.teardown(provider.close)
    const options = { seed: 20_261_127, histories: 2, operations: 2 }
    t.comment(JSON.stringify(await runEngineRound(t, provider, options)))
  })
}
