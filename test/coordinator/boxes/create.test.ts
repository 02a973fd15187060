// Creating boxes: names, transactions, invalid requests and access.
import t from 'tap'
import { FRUITS } from '../../../coordinator/boxes/names.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { onEachDatabase } from '../../support/db.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('a box of a key with no user belongs to the first owner that is not removed', async (t) => {
    const db = await newDb(t)
    const first = await createOwner(db)
    const second = await addUser(db, first, { role: 'owner' })
    const boxes = createTestBoxService(db)
    const withoutUser = { ...first, userId: null }
    t.match(await boxes.create(withoutUser, {}), { ownerUserId: first.userId })
    await db.updateTable('users').set({ removed_at: 1 }).where('id', '=', first.userId).execute()
    t.match(await boxes.create(withoutUser, {}), { ownerUserId: second.userId })
  })

  t.test('returns the box as stored, with its first event and job', async (t) => {
    const db = await newDb(t)
    const clock = createTestClock()
    const owner = await createOwner(db, clock)
    const scheduled: string[] = []
    const boxes = createTestBoxService(db, { clock, schedule: (id) => scheduled.push(id) })
    const box = await boxes.create(owner, {
      name: 'kiwi',
      ttlMinutes: 5,
      autoPauseMin: 30,
      environment: null,
      env: { A: '1', B: 'ü' },
    })
    t.match(box, {
      hostname: 'kiwi',
      tier: 'lite',
      region: 'us-west-2',
      desiredState: 'running',
      observedState: 'requested',
      autoPauseMin: 30,
      pauseAt: '2030-01-01T00:05:00.000Z',
      envVars: [
        { name: 'A', value: '1' },
        { name: 'B', value: 'ü' },
      ],
      restricted: false,
      ownerUserId: owner.userId ?? '',
      createdAt: '2030-01-01T00:00:00.000Z',
    })
    const detail = await boxes.get(owner, box.id)
    t.match(detail.events, [{ fromState: null, toState: 'requested', actor: `user:${owner.userId}` }])
    t.match(detail.job, { op: 'create', step: 'provision', attempt: 0 })
    t.same(scheduled, [box.id])
  })

  t.test('rejects the name of a live box, also among concurrent creates', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const results = await Promise.allSettled(
      Array.from({ length: 5 }, () => boxes.create(owner, { name: 'kiwi' })),
    )
    t.equal(results.filter((result) => result.status === 'fulfilled').length, 1)
    const errorCodes = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
    t.same(errorCodes, Array(4).fill('name_taken'))
    t.equal((await boxes.list(owner)).length, 1)
  })

  t.test('a rejected create does not abort the surrounding transaction', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    await boxes.create(owner, { name: 'kiwi' })
    await transaction(db, async (trx) => {
      await t.rejects(boxes.create(owner, { name: 'kiwi' }, trx), { code: 'name_taken' })
      await boxes.create(owner, { name: 'fig' }, trx)
    })
    t.equal((await boxes.list(owner)).length, 2)
  })

  t.test('a create in a transaction that fails creates and schedules nothing', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const scheduled: string[] = []
    const boxes = createTestBoxService(db, { schedule: (id) => scheduled.push(id) })
    await t.rejects(
      transaction(db, async (trx) => {
        await boxes.create(owner, {}, trx)
        throw new Error('simulated failure')
      }),
    )
    t.same(await boxes.list(owner), [])
    t.same(scheduled, [])
  })

  t.test(
    'names boxes after fruits, with a number when all fruits are taken, also concurrently',
    async (t) => {
      const db = await newDb(t)
      const owner = await createOwner(db)
      const boxes = createTestBoxService(db, { random: () => 0 })
      const created = await Promise.all(
        Array.from({ length: FRUITS.length + 2 }, () => boxes.create(owner, {})),
      )
      const names = created.map((box) => box.hostname)
      t.equal(new Set(names).size, FRUITS.length + 2, 'all names are unique')
      t.same(new Set(names), new Set([...FRUITS, `${FRUITS[0]}-2`, `${FRUITS[0]}-3`]))
    },
  )

  t.test('rejects invalid create requests', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const tooManyVariables = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`V${i}`, '']))
    const cases = [
      [{ fromSnapshotId: 'snp_1', fromTemplate: 'x', region: 'us-east-1' }, 'invalid_template'],
      [{ fromTemplate: 'x', region: 'us-east-1' }, 'invalid_region'],
      [{ fromSnapshotId: 'snp_1' }, 'not_found'],
      [{ fromTemplate: 'x' }, 'not_found'],
      [{ environment: 'x' }, 'not_found'],
      [{ env: tooManyVariables }, 'invalid_env'],
      [{ env: { A: 'x'.repeat(65_536) } }, 'environment_too_large'],
    ] as const
    for (const [input, code] of cases) await t.rejects(boxes.create(owner, input), { code }, code)
    await t.resolves(boxes.create(owner, { env: { A: 'x'.repeat(65_535) } }))
    t.equal((await boxes.list(owner)).length, 1, 'rejected creates stored nothing')
  })

  t.test("a contractor's box is restricted; a key limited to boxes cannot create one", async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const contractor = await addUser(db, owner, { role: 'contractor' })
    t.match(await boxes.create(contractor, {}), {
      restricted: true,
      ownerUserId: contractor.userId ?? '',
    })
    const limited = await addUser(db, owner, { role: 'owner', boxIds: [] })
    await t.rejects(boxes.create(limited, {}), { code: 'key_access_denied', fields: { scope: 'boxes' } })
  })
})
