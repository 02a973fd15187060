// The number of files that run at the same time.
import t from 'tap'
import { getSlots, runInSlots } from './slots.ts'

/** Runs ten items, each of which ends when the test calls `end`. */
function start(idleShare: () => number, min: number, max: number) {
  const waiting = Array.from({ length: 10 }, (_, i) => i)
  const running = new Map<number, () => void>()
  let measure = () => {}
  const done = runInSlots(
    () => waiting.shift(),
    (item) =>
      new Promise<void>((resolve) =>
        running.set(item, () => {
          running.delete(item)
          resolve()
        }),
      ),
    {
      min,
      max,
      readIdleShare: idleShare,
      nextMeasurement: () =>
        new Promise<void>((resolve) => {
          measure = resolve
        }),
    },
  )
  const settle = async () => {
    for (let i = 0; i < 5; i++) await new Promise(setImmediate)
    return [...running.keys()]
  }
  const afterMeasurement = () => {
    measure()
    return settle()
  }
  return { done, running, settle, afterMeasurement, end: (item: number) => running.get(item)?.() }
}

t.test('busy CPUs run one file each', async (t) => {
  const { running, settle, afterMeasurement, end, done } = start(() => 0.1, 2, 4)
  t.same(await settle(), [0, 1])
  t.same(await afterMeasurement(), [0, 1])
  end(0)
  t.same(await settle(), [1, 2])
  while (running.size > 0) {
    end([...running.keys()][0] ?? -1)
    await settle()
  }
  await done
})

t.test('idle CPUs run one more file after each measurement, up to the maximum', async (t) => {
  let idleShare = 0.9
  const { running, settle, afterMeasurement, end, done } = start(() => idleShare, 2, 4)
  t.same(await settle(), [0, 1])
  t.same(await afterMeasurement(), [0, 1, 2])
  t.same(await afterMeasurement(), [0, 1, 2, 3])
  t.same(await afterMeasurement(), [0, 1, 2, 3])
  idleShare = 0
  t.same(await afterMeasurement(), [0, 1, 2, 3])
  end(0)
  t.same(await settle(), [1, 2, 3], 'the CPUs are busy')
  end(1)
  end(2)
  t.same(await settle(), [3, 4])
  while (running.size > 0) {
    end([...running.keys()][0] ?? -1)
    await settle()
  }
  await done
})

t.test('the number follows the machine, unless it is given', async (t) => {
  t.match(getSlots(3), { min: 3, max: 3 })
  const { min, max } = getSlots(undefined)
  t.ok(min >= 1 && max >= min, `${min} to ${max}`)
})
