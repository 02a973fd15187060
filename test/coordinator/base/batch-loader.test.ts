// The number of queries is limited, and no call is refused.
import t from 'tap'
import { createBatchLoader } from '../../../coordinator/base/batch-loader.ts'

t.test('calls above the rate share queries', async (t) => {
  const queries: string[][] = []
  const load = createBatchLoader({
    burst: 10,
    perSecond: 1000,
    now: () => 0,
    async load(keys) {
      queries.push([...keys])
      return new Map(keys.filter((key) => key !== 'unknown').map((key) => [key, `row of ${key}`]))
    },
  })
  for (let i = 0; i < 10; i += 1) t.equal(await load(`a${i}`), `row of a${i}`)
  t.equal(queries.length, 10, 'a query for each call of the burst')
  const rows = await Promise.all(Array.from({ length: 500 }, (_, i) => load(`b${i}`)))
  t.equal(queries.length, 11, 'one query for all further calls')
  t.equal(rows[499], 'row of b499')
  t.equal(await load('unknown'), undefined)
  await Promise.all(Array.from({ length: 2500 }, (_, i) => load(`c${i}`)))
  t.ok(Math.max(...queries.map(({ length }) => length)) <= 1000)
})

t.test('the failure of a query rejects its calls only', async (t) => {
  let isBroken = true
  const load = createBatchLoader({
    burst: 1,
    perSecond: 1000,
    now: () => 0,
    async load(keys) {
      if (isBroken) throw new Error('the database is locked')
      return new Map(keys.map((key) => [key, key]))
    },
  })
  await t.rejects(load('a'))
  const results = await Promise.allSettled([load('b'), load('c')])
  t.ok(results.every(({ status }) => status === 'rejected'))
  isBroken = false
  t.equal(await load('d'), 'd')
})
