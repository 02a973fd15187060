// The slots of subjects that share something: limits, and what is evicted at a limit.
import t from 'tap'
import { listShares, rejectFull, type ShareLimits, Slots } from '../../../coordinator/base/slots.ts'

const LIMITS = { perCredential: 3, perUser: 4, perWorkspace: 5, total: 8 }

/** Opens uses that can be evicted. */
function createUses(limits: ShareLimits = LIMITS) {
  const slots = new Slots()
  const evicted: string[] = []
  /** @param name workspace, user, credential, and anything: `w1 u1 k1 a` */
  function open(name: string, { isIdle = false, canEvict = true } = {}) {
    const [workspaceId = '', userId = '', credentialId = ''] = name.split(' ')
    const shares = listShares('uses', { workspaceId, userId, credentialId }, limits)
    const eviction = { evict: () => void evicted.push(name), isIdle: () => isIdle }
    const acquisition = slots.acquire(shares, canEvict ? eviction : undefined)
    return 'full' in acquisition ? acquisition.full.holder : acquisition.release
  }
  const fill = (count: number, prefix: string) => {
    for (let i = 0; i < count; i += 1) open(`${prefix} ${i}`)
  }
  return { slots, evicted, open, fill }
}

t.test('a subject has its limit, until a use is released', async (t) => {
  const { slots, open, fill } = createUses()
  fill(2, 'w1 u1 k1')
  const release = open('w1 u1 k1')
  t.equal(open('w1 u1 k1'), 'This API key or session')
  t.type(open('w1 u1 k2'), 'function')
  t.equal(open('w1 u1 k3', { canEvict: false }), 'Your user')
  t.type(open('w1 u2 k4'), 'function')
  t.equal(open('w1 u3 k5', { canEvict: false }), 'The workspace')
  fill(3, 'w2 u4 k6')
  t.equal(open('w3 u5 k7', { canEvict: false }), 'This coordinator')
  t.equal(slots.size, 8)
  if (typeof release === 'function') for (let i = 0; i < 2; i += 1) release()
  t.equal(slots.size, 7)
  t.type(open('w1 u1 k1'), 'function')
})

t.test('the limit of a user holds in all its workspaces', async (t) => {
  const { open, fill } = createUses()
  fill(2, 'w1 u1 k1')
  fill(2, 'w2 u1 k2')
  t.equal(open('w3 u1 k3', { canEvict: false }), 'Your user')
})

t.test('a credential without a user has the limit of a user', async (t) => {
  const slots = new Slots()
  const limits = { perCredential: 3, perUser: 2, perWorkspace: 9 }
  const open = (credentialId: string) =>
    slots.acquire(listShares('uses', { workspaceId: 'w1', userId: null, credentialId }, limits))
  for (const key of ['k1', 'k1', 'k2', 'k2']) t.notOk('full' in open(key))
  t.match(open('k1'), { full: { limit: 2 } })
})

t.test('one workspace cannot keep another one out', async (t) => {
  const { slots, evicted, open, fill } = createUses()
  fill(3, 'w1 u1 k1')
  fill(2, 'w1 u2 k2')
  fill(3, 'w2 u3 k3')
  t.type(open('w3 u4 k4'), 'function')
  t.same(
    evicted,
    ['w1 u1 k1 0'],
    'the oldest of the credential with the most, of the workspace with the most',
  )
  t.equal(slots.size, 8)
  t.equal(open('w1 u1 k1'), 'This coordinator', 'the use that was evicted evicts no other one')
  t.equal(evicted.length, 1)
})

t.test('members of a workspace, and keys of a user, cannot keep others of it out', async (t) => {
  const { evicted, open, fill } = createUses()
  fill(3, 'w1 u1 k1')
  fill(1, 'w1 u1 k2')
  t.type(open('w1 u1 k3'), 'function')
  t.same(evicted, ['w1 u1 k1 0'])
  fill(1, 'w1 u2 k4')
  t.type(open('w1 u3 k5'), 'function')
  t.same(evicted, ['w1 u1 k1 0', 'w1 u1 k1 1'])
})

t.test('equal subjects do not evict each other', async (t) => {
  const { evicted, open } = createUses({ perCredential: 1, perUser: 1, perWorkspace: 1, total: 2 })
  open('w1 u1 k1')
  open('w2 u2 k2')
  t.equal(open('w3 u3 k3'), 'This coordinator')
  t.same(evicted, [])
})

t.test('an idle use is evicted before an older one of the same credential', async (t) => {
  const { slots, evicted, open } = createUses()
  open('w1 u1 k1 busy')
  open('w1 u1 k1 idle', { isIdle: true })
  t.ok(slots.evictOne('uses total'))
  t.same(evicted, ['w1 u1 k1 idle'])
  t.notOk(slots.evictOne('uses total'), 'the only use is kept')
  t.notOk(slots.evictOne('other total'))
})

t.test('the message of a full slot names the limit', async (t) => {
  const [, , , total] = listShares('uses', { workspaceId: 'w1', userId: 'u1', credentialId: 'k1' }, LIMITS)
  if (total === undefined) throw new Error('there is no total')
  t.throws(() => rejectFull(total, 5000), {
    code: 'rate_limited',
    message: 'This coordinator has reached the limit of 8 uses. Close one, or try again in 5 s.',
    headers: { 'retry-after': '5' },
  })
})
