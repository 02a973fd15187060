// One round of the chaos test. `npm run chaos -- --minutes N` runs it for longer.
import t from 'tap'
import { runChaosRound, startChaosSetup } from '../support/chaos/chaos-round.ts'

t.setTimeout(300_000)

t.test('a client receives the exact output of a detached command despite 20 random faults', async (t) => {
  const setup = await startChaosSetup(t)
  const result = await runChaosRound(t, setup, { seed: 20_261_121, mebibytes: 200, faults: 20 })
  t.comment(JSON.stringify(result))
})
