// When the signing keys of the issuer change.
import fc from 'fast-check'
import t from 'tap'
import {
  type KeyTimes,
  PUBLISHED_BEFORE_USE_MS,
  planRotation,
  RETIRED_MS,
  ROTATION_MS,
} from '../../../../coordinator/federation/issuer/plan-rotation.ts'

const key = (id: string, state: KeyTimes['state'], at: number): KeyTimes => ({
  id,
  state,
  created_at: at,
  activated_at: state === 'next' ? null : at,
  retired_at: state === 'retired' ? at : null,
})

const NOTHING = { promote: null, create: [], remove: [] }

t.test('the first keys', async (t) => {
  t.same(planRotation([], 0), { ...NOTHING, create: ['active', 'next'] })
  t.same(planRotation([key('a', 'active', 0)], 0), { ...NOTHING, create: ['next'] })
})

t.test('a rotation is due after 30 days, and needs a key that has been published for a day', async (t) => {
  const keys = [key('a', 'active', 0), key('n', 'next', 0)]
  t.same(planRotation(keys, ROTATION_MS - 1), NOTHING)
  const promoted = { promote: { next: 'n', active: 'a' }, create: ['next'], remove: [] }
  t.same(planRotation(keys, ROTATION_MS), promoted)
  t.same(planRotation(keys, PUBLISHED_BEFORE_USE_MS - 1, { isRequested: true }), NOTHING)
  t.same(planRotation(keys, PUBLISHED_BEFORE_USE_MS, { isRequested: true }), promoted)
  const late = [key('a', 'active', 0), key('n', 'next', ROTATION_MS)]
  t.same(planRotation(late, ROTATION_MS), NOTHING)
})

t.test('a retired key is deleted when its last token has expired everywhere', async (t) => {
  const keys = [key('r', 'retired', 0), key('a', 'active', 0), key('n', 'next', 0)]
  t.same(planRotation(keys, RETIRED_MS - 1), NOTHING)
  t.same(planRotation(keys, RETIRED_MS), { ...NOTHING, remove: ['r'] })
})

t.test('at any times, each token verifies with the keys that were published an hour before', async () => {
  const HOUR = 3_600_000
  const steps = fc.array(
    fc.record({ ms: fc.integer({ min: HOUR, max: 20 * 24 * HOUR }), isRequested: fc.boolean() }),
    { maxLength: 30 },
  )
  fc.assert(
    fc.property(steps, (times) => {
      let now = 0
      let keys: KeyTimes[] = []
      let count = 0
      for (const { ms, isRequested } of times) {
        const published = keys.map(({ id }) => id)
        const { promote, create, remove } = planRotation(keys, now, { isRequested })
        keys = keys.map((row) => {
          if (row.id === promote?.active) return { ...row, state: 'retired', retired_at: now }
          return row.id === promote?.next ? { ...row, state: 'active', activated_at: now } : row
        })
        for (const state of create) keys.push(key(`k${count++}`, state, now))
        keys = keys.filter(({ id }) => !remove.includes(id))
        const active = keys.filter(({ state }) => state === 'active')
        const next = keys.filter(({ state }) => state === 'next')
        if (active.length !== 1 || next.length !== 1) return false
        // The first key signs at once: no verifier has cached documents before.
        if (published.length > 0 && !published.includes(active[0]?.id ?? '')) return false
        now += ms
      }
      return true
    }),
  )
})
