// Nothing is lost, repeated or invented while client, tunnel, agent and coordinator are cut: the short form.
// `npm run chaos -- --minutes N` is the long one.
import t from 'tap'
import { buildStage, cutEverything } from '../support/chaos/cutting.ts'

t.setTimeout(300_000)

t.test('a detached command under at least 20 cuts', async (t) => {
  const stage = await buildStage(t)
  const said = await cutEverything(t, stage, { seed: 20_261_121, mebibytes: 200, cuts: 20 })
  t.comment(JSON.stringify(said))
})
