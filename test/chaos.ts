// npm run chaos -- --minutes N [--seed S]: the cutting test again and again, each round with another seed.
import { parseArgs } from 'node:util'
import t from 'tap'
import { buildStage, cutEverything } from './support/chaos/cutting.ts'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, seed: { type: 'string' } },
})
const minutes = Number(values.minutes)
const first = Number(values.seed ?? Date.now() % 2 ** 31)
if (!(minutes > 0) || !Number.isSafeInteger(first)) {
  console.error('npm run chaos -- --minutes N [--seed S]: N is a number above 0, S a whole number.')
  process.exit(2)
}

t.setTimeout(0)
t.test(`chaos for ${minutes} minutes from seed ${first}`, async (t) => {
  t.setTimeout(0)
  const stage = await buildStage(t)
  const until = performance.now() + minutes * 60_000
  for (let seed = first; seed === first || performance.now() < until; seed++) {
    // A round that fails is tried again with: --seed and the seed it names.
    t.comment(JSON.stringify(await cutEverything(t, stage, { seed, mebibytes: 200, cuts: 20 })))
  }
})
