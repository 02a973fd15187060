// Detection of a dead peer: pings, silence and clock jumps.
import t from 'tap'
import { checkLiveness, newLivenessState } from '../../shared/liveness.ts'

const settings = { tickMs: 100, pingEveryMs: 300, deadAfterMs: 1000 }
const half = () => 0.5

function run(ticks: { bytes: number; elapsedMs: number }[]) {
  const state = newLivenessState(settings, half)
  return ticks.map((observed) => checkLiveness(state, observed, settings, half))
}
const tick = (bytes: number, elapsedMs = 100) => ({ bytes, elapsedMs })
const silent = (count: number) => Array.from({ length: count }, () => tick(5))

t.test('pings a silent peer, then reports it as dead', async (t) => {
  const results = run([tick(5), ...silent(10)])
  t.same(results, ['none', 'none', 'ping', 'none', 'none', 'ping', 'none', 'none', 'ping', 'none', 'dead'])
})

t.test('any received byte restarts the silence timer', async (t) => {
  t.notOk(run([tick(5), ...silent(9), tick(6), ...silent(9).map(() => tick(6))]).includes('dead'))
})

t.test('the delay of a late check does not count as silence', async (t) => {
  t.notOk(run([tick(5), ...silent(5), tick(5, 3_600_000)]).includes('dead'), 'after an hour of system sleep')
  t.notOk(run([tick(5), ...silent(5), tick(5, 3_600_000), tick(5)]).includes('dead'), 'nor at the next check')
})

t.test('a late check pings the peer', async (t) => {
  t.same(run([tick(5), tick(6, 3_600_000), tick(6)]), ['none', 'ping', 'none'])
})

t.test('when the clock jumps back, only a dead peer is reported as dead', async (t) => {
  const results = run([tick(5), tick(5, -3_600_000), ...silent(10)])
  t.equal(results.at(-1), 'dead')
  t.equal(results.indexOf('dead'), results.length - 1)
})
