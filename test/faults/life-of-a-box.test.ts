// A box goes through its whole life while the coordinator is killed. `npm run chaos` runs it for longer.
import t from 'tap'
import { runLifeRound } from '../support/chaos/life-round.ts'

t.test('a tree survives every operation of a box, also when the coordinator is killed', async (t) => {
  const result = await runLifeRound(t, { seed: 20_261_123, mebibytes: 16, randomOperations: 0 })
  t.comment(JSON.stringify(result))
})
