// Lookups of the time of output read the index only where the time changes.
import t from 'tap'
import type { OutputTimes } from '../../../../agent/exec/detached/output-times.ts'
import { createOutputTimeLookup } from '../../../../agent/prompts/events/output-time-lookup.ts'

/** Output has another time every 100 bytes. */
function createTimes() {
  let lookups = 0
  let opened = 0
  const times: OutputTimes = {
    getOffsetSince: () => 0,
    limitRead: (_offset, max) => max,
    limitChunk(offset, length) {
      lookups += 1
      const start = Math.floor(offset / 100) * 100
      return { length: Math.min(length, start + 100 - offset), at: start }
    },
  }
  return {
    openTimes() {
      opened += 1
      return times
    },
    getCounts: () => ({ lookups, opened }),
  }
}

t.test('output of one time is found once', async (t) => {
  const times = createTimes()
  const lookup = createOutputTimeLookup(times)
  t.same(
    [10, 50, 99, 100, 180, 20].map((offset) => lookup.find(offset, 1000)),
    [0, 0, 0, 100, 100, 0],
  )
  t.equal(times.getCounts().lookups, 3)
})

t.test('the time of output after the end of the last read is not assumed', async (t) => {
  const times = createTimes()
  const lookup = createOutputTimeLookup(times)
  lookup.find(10, 20)
  lookup.find(20, 30)
  t.equal(times.getCounts().lookups, 2)
})

t.test('the index is opened again after a while', async (t) => {
  const times = createTimes()
  let now = 0
  const lookup = createOutputTimeLookup(times, () => now)
  for (let offset = 0; offset < 3_600_000; offset += 1000) {
    now = offset
    lookup.find(offset, offset + 1)
  }
  t.equal(times.getCounts().opened, 6)
})

t.test('without an index the time is unknown', async (t) => {
  t.equal(createOutputTimeLookup({ openTimes: () => null }).find(0, 10), null)
})
