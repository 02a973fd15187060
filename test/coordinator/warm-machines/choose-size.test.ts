// How many machines are kept ready, and why.
import t from 'tap'
import { chooseWarmSize, describeWarmSize } from '../../../coordinator/warm-machines/choose-size.ts'

const GIB = 1024 ** 3
const works = { problem: null }
const memory = { availableBytes: 8 * GIB }

t.test('the coordinator chooses', async (t) => {
  t.same(chooseWarmSize(null, works, memory), { size: 1, reason: '8.0 GiB of memory are available' })
  t.same(chooseWarmSize(null, works, { availableBytes: 1.9 * GIB }), {
    size: 0,
    reason: 'only 1.9 GiB of memory are available',
  })
  t.equal(chooseWarmSize(null, works, { availableBytes: 2 * GIB }).size, 1)
})

t.test('a number is used whatever the memory, where it can be', async (t) => {
  t.same(chooseWarmSize(3, works, { availableBytes: GIB }), { size: 3, reason: null })
  t.equal(chooseWarmSize(0, works, memory).size, 0)
  t.same(chooseWarmSize(3, { problem: 'it cannot' }, memory), { size: 0, reason: 'it cannot' })
  t.equal(chooseWarmSize(3, undefined, memory).size, 0)
})

t.test('says what was chosen, and why', async (t) => {
  const describe = (...args: Parameters<typeof chooseWarmSize>) => describeWarmSize(chooseWarmSize(...args))
  t.equal(
    describe(null, works, memory),
    'A machine waits for the next box, which then starts in an instant: 8.0 GiB of memory are available (BOXWOOD_WARM).',
  )
  t.match(describe(null, works, { availableBytes: GIB }), /^No machine .*: only 1\.0 GiB of memory/)
  t.match(
    describe(2, works, memory),
    /^2 machines wait for the next boxes, which then start in an instant \(/,
  )
  t.equal(describe(0, works, memory), null)
  t.equal(describe(null, undefined, memory), null)
})
