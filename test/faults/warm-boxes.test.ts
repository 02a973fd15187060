// Boxes that get machines which wait for them, while the coordinator is killed.
import t from 'tap'
import { runWarmRound } from '../support/chaos/warm-round.ts'

t.test('bursts of boxes under kill -9', async (t) => {
  const result = await runWarmRound(t, { seed: 51, creates: 30 })
  t.comment(JSON.stringify(result))
  t.ok(result.kills > 0)
  t.ok(result.warm > 0, 'some boxes have got machines that waited')
})
