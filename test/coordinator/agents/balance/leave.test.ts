// A coordinator that stops moves all its agents away, those in use between two requests.
import t from 'tap'
import { moveAllAway } from '../../../../coordinator/agents/balance/leave.ts'

t.test('every agent is moved once', async (t) => {
  const boxIds = Array.from({ length: 100 }, (_, n) => `box ${n}`)
  const moved: string[] = []
  const remaining = await moveAllAway({
    boxIds,
    isInUse: () => false,
    async moveAway(boxId) {
      moved.push(boxId)
      return true
    },
  })
  t.equal(remaining, 0)
  t.same(moved, boxIds)
  t.equal(await moveAllAway({ boxIds: [], isInUse: () => true, moveAway: async () => false }), 0, 'none')
})

t.test(
  'an agent in use is moved when its request has ended, and the others do not wait for it',
  async (t) => {
    let isBusy = true
    const moved: string[] = []
    const remaining = await moveAllAway({
      boxIds: ['lime', 'plum'],
      isInUse: (boxId) => boxId === 'lime' && isBusy,
      async moveAway(boxId) {
        t.notOk(boxId === 'lime' && isBusy, 'no tunnel in use')
        moved.push(boxId)
        if (boxId === 'plum') setImmediate(() => (isBusy = false))
        return true
      },
    })
    t.equal(remaining, 0)
    t.same(moved, ['plum', 'lime'])
  },
)

t.test('a tunnel that is always in use is asked again until the time has passed, and counted', async (t) => {
  let attempts = 0
  const remaining = await moveAllAway({
    boxIds: ['lime', 'plum'],
    isInUse: (boxId) => boxId === 'lime',
    async moveAway(boxId) {
      if (boxId === 'plum') return true
      attempts += 1
      return false
    },
    graceMs: 100,
  })
  t.equal(remaining, 1)
  t.ok(attempts > 0)
})
