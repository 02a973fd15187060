// The size of a box: that of its tier, or less on a smaller machine.
import t from 'tap'
import { boundTier } from '../../shared/tiers.ts'

const GiB = 1024 ** 3

t.test('a box has no more than the machine on which it runs', async (t) => {
  const laptop = { cpus: 2, memoryBytes: 3 * GiB, diskBytes: 50e9 }
  t.same(boundTier('nano', laptop), { cpus: 1, memoryBytes: GiB, diskBytes: 10e9 })
  t.same(boundTier('lite', laptop), { cpus: 2, memoryBytes: 3 * GiB, diskBytes: 40e9 })
  t.same(boundTier('ultra', laptop), laptop)
  t.same(boundTier('ultra'), { cpus: 32, memoryBytes: 64 * GiB, diskBytes: 640e9 })
})
