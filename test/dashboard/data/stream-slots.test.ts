// Tabs share a small number of event streams.
import t from 'tap'
import { createStreamSlots } from '../../../dashboard/data/stream-slots.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('three streams at the same time, and the next one when one has ended', async (t) => {
  // The locks of Node are those of this process; the browser shares them between its tabs.
  const acquire = createStreamSlots(navigator.locks)
  const slots = [await acquire(), await acquire(), await acquire()]
  t.notOk(slots.includes(null))
  t.equal(await acquire(), null)
  slots[1]?.()
  const next = await waitUntil('the lock is free', acquire)
  t.equal(await acquire(), null)
  for (const release of [...slots, next]) release?.()
})

t.test('a page without locks has no limit', async (t) => {
  const slots = await Promise.all(Array.from({ length: 5 }, createStreamSlots(undefined)))
  t.notOk(slots.includes(null))
})
