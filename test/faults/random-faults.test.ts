// One short round of the chaos test. `npm run chaos -- --minutes N` runs longer ones.
import t from 'tap'
import { runChaosRound, startChaosSetup } from '../support/chaos/chaos-round.ts'
import { runDeletionRound } from '../support/chaos/deletion-round.ts'
import { checkRefusedUploads } from '../support/chaos/refused-uploads.ts'

const setup = await startChaosSetup(t)

t.test('a client receives the exact output of a detached command despite 10 random faults', async (t) => {
  const result = await runChaosRound(t, setup, { seed: 20_261_121, mebibytes: 40, faults: 10 })
  t.comment(JSON.stringify(result))
})

t.test('a deleted box leaves nothing, although it resists and the coordinator is killed', async (t) => {
  await runDeletionRound(t, setup, { seed: 20_261_121 })
})

t.test('every refused upload gets its response', async (t) => {
  await checkRefusedUploads(t, setup)
})
