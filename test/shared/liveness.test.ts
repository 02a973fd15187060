import t from 'tap'
import { checkPulse, newPulse } from '../../shared/liveness.ts'

const settings = { tickMs: 100, pingEveryMs: 300, deadAfterMs: 1000 }
const half = () => 0.5

function run(ticks: { bytes: number; elapsedMs: number }[]) {
  const pulse = newPulse(settings, half)
  return ticks.map((seen) => checkPulse(pulse, seen, settings, half))
}
const tick = (bytes: number, elapsedMs = 100) => ({ bytes, elapsedMs })
const silent = (count: number) => Array.from({ length: count }, () => tick(5))

t.test('silence for long enough is death, and pings are sent before', async (t) => {
  const verdicts = run([tick(5), ...silent(10)])
  t.same(verdicts, [
    'quiet',
    'quiet',
    'ping',
    'quiet',
    'quiet',
    'ping',
    'quiet',
    'quiet',
    'ping',
    'quiet',
    'dead',
  ])
})

t.test('any byte is life', async (t) => {
  t.notOk(run([tick(5), ...silent(9), tick(6), ...silent(9).map(() => tick(6))]).includes('dead'))
})

t.test('a check that fired late condemns nobody', async (t) => {
  t.notOk(run([tick(5), ...silent(5), tick(5, 3_600_000)]).includes('dead'), 'the machine slept for an hour')
  t.notOk(
    run([tick(5), ...silent(5), tick(5, 3_600_000), tick(5)]).includes('dead'),
    'nor does the one after it',
  )
})

t.test('a clock that jumps back neither kills nor keeps alive for ever', async (t) => {
  const verdicts = run([tick(5), tick(5, -3_600_000), ...silent(10)])
  t.equal(verdicts.at(-1), 'dead')
  t.equal(verdicts.indexOf('dead'), verdicts.length - 1)
})
