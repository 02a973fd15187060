// The balance of agents between coordinators, simulated: seconds pass only when the test counts them.
import t from 'tap'
import { Balancer } from '../../../../coordinator/agents/balance/balancer.ts'
import { decideSurplus } from '../../../../coordinator/agents/balance/decide-surplus.ts'
import { createSeededRandom } from '../../../support/random.ts'

const RENEW_SECONDS = 5

type Fleet = {
  /** The numbers of agents at the start. */
  counts: number[]
  seed?: number
  /** The proxy returns each agent to the coordinator that it had. */
  isSticky?: boolean
  isInUse?: (boxId: string) => boolean
}

/** Several coordinators, which renew their leases at different seconds, behind a proxy that selects one at random. */
function simulate({ counts, seed = 1, isSticky = false, isInUse = () => false }: Fleet) {
  const random = createSeededRandom(seed)
  const state = { second: 0, moved: 0 }
  const reconnects: { at: number; boxId: string; from: number }[] = []
  const coordinators = counts.map((count, index) => {
    const boxIds = new Set(Array.from({ length: count }, (_, n) => `${index} ${n}`))
    return { boxIds, reported: count, isAlive: true, lowest: count }
  })
  const balancers = coordinators.map(
    ({ boxIds }, index) =>
      new Balancer({
        listBoxIds: () => [...boxIds],
        countOthers: () =>
          coordinators.filter((other, n) => n !== index && other.isAlive).map(({ reported }) => reported),
        moveAway(boxId, reconnectAfterMs) {
          if (isInUse(boxId)) return false
          boxIds.delete(boxId)
          state.moved += 1
          reconnects.push({ at: state.second + reconnectAfterMs / 1000, boxId, from: index })
          return true
        },
        clock: { now: () => state.second * 1000 },
        random,
        log: { info() {} },
      }),
  )

  function connect(boxId: string, from: number): void {
    const alive = coordinators.filter(({ isAlive }) => isAlive)
    const target = isSticky ? coordinators[from] : alive[Math.floor(random() * alive.length)]
    target?.boxIds.add(boxId)
  }

  /** Passes until the end of a second. */
  function runTo(end: number): void {
    while (state.second < end) {
      state.second += 1
      const due = reconnects.filter(({ at }) => at <= state.second)
      for (const reconnect of due) {
        reconnects.splice(reconnects.indexOf(reconnect), 1)
        connect(reconnect.boxId, reconnect.from)
      }
      for (const [index, coordinator] of coordinators.entries()) {
        if (!coordinator.isAlive) continue
        if ((state.second + index) % RENEW_SECONDS === 0) {
          coordinator.reported = coordinator.boxIds.size
          balancers[index]?.onCounts()
        }
        balancers[index]?.tick()
        coordinator.lowest = Math.min(coordinator.lowest, coordinator.boxIds.size)
      }
    }
  }

  return {
    state,
    coordinators,
    runTo,
    sizes: () => coordinators.filter(({ isAlive }) => isAlive).map(({ boxIds }) => boxIds.size),
    kill(index: number) {
      const killed = coordinators[index]
      if (killed === undefined) return
      killed.isAlive = false
      for (const boxId of killed.boxIds) connect(boxId, index)
      killed.boxIds.clear()
    },
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

t.test('the surplus is what is above the average', async (t) => {
  t.equal(decideSurplus(3000, [0, 0]), 2000)
  t.equal(decideSurplus(3000, [1500, 1500]), 0, '1.5 times the average')
  t.equal(decideSurplus(3001, [1499, 1499]), 1001)
  t.equal(decideSurplus(1000, [1000, 0]), 0)
  t.equal(decideSurplus(29, [0]), 0, 'less than 20 more')
  t.equal(decideSurplus(40, [0]), 20)
  t.equal(decideSurplus(5000, []), 0, 'no other coordinator accepts agents')
  t.equal(decideSurplus(0, [5000]), 0)
})

for (const counts of [
  [2000, 0],
  [2000, 0, 0],
  [10_000, 0, 0],
  [900, 900, 0, 0, 0],
  [60, 0, 0],
  [3000, 1000, 200],
])
  t.test(`${counts.join(', ')} agents are balanced within two minutes, and then stay`, async (t) => {
    for (const seed of [1, 2, 3]) {
      const { state, sizes, coordinators, runTo } = simulate({ counts, seed })
      const share = sum(counts) / counts.length
      runTo(120)
      t.ok(Math.max(...sizes()) <= 1.5 * share + 20, `after two minutes: ${sizes()}`)
      for (const { lowest } of coordinators.filter((_, index) => (counts[index] ?? 0) > share))
        t.ok(lowest >= share * 0.8, `none has moved many more than its surplus: ${lowest} of ${share}`)
      runTo(300)
      const { moved } = state
      runTo(3600)
      t.equal(state.moved, moved, 'nothing moves any more')
      t.equal(sum(sizes()), sum(counts))
    }
  })

t.test('after a death, the agents of the coordinator are balanced between the others', async (t) => {
  const { state, sizes, runTo, kill } = simulate({ counts: [1000, 1000, 1000] })
  runTo(60)
  t.equal(state.moved, 0)
  kill(1)
  runTo(180)
  t.ok(Math.max(...sizes()) <= 2250, String(sizes()))
})

t.test('agents that are in use stay', async (t) => {
  const isInUse = (boxId: string) => Number(boxId.split(' ')[1]) % 4 > 0
  const { sizes, coordinators, runTo } = simulate({ counts: [1000, 0], isInUse })
  runTo(600)
  t.equal([...(coordinators[0]?.boxIds ?? [])].filter(isInUse).length, 750)
  t.ok((sizes()[0] ?? 0) <= 760, String(sizes()))
})

t.test('where the proxy returns all agents, pauses become longer', async (t) => {
  const { state, runTo } = simulate({ counts: [100, 0], isSticky: true })
  runTo(3600)
  const { moved } = state
  runTo(7200)
  t.ok(state.moved > moved)
  t.ok(state.moved - moved <= 6 * 50, `${state.moved - moved} in an hour`)
})
