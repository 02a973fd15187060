// Creating boxes: names, limits across fields, who owns the box and who may not create one.
import t from 'tap'
import { FRUITS } from '../../../coordinator/boxes/names.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { onEachDatabase } from '../../support/db.ts'
import { boxesOf, join, ownerOf, testClock } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('the answer is the row as written, with its first event and its job', async (t) => {
    const db = await newDb(t)
    const clock = testClock()
    const owner = await ownerOf(db, clock)
    const poked: string[] = []
    const boxes = boxesOf(db, { clock, poke: (id) => poked.push(id) })
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
    t.same(poked, [box.id])
  })

  t.test('a name that a live box has is taken, also between two creates at once', async (t) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const boxes = boxesOf(db)
    const results = await Promise.allSettled(
      Array.from({ length: 5 }, () => boxes.create(owner, { name: 'kiwi' })),
    )
    t.equal(results.filter((result) => result.status === 'fulfilled').length, 1)
    const refusals = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
    t.same(refusals, Array(4).fill('name_taken'))
    t.equal((await boxes.list(owner)).length, 1)
  })

  t.test('a refused create inside a transaction does not spoil it', async (t) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const boxes = boxesOf(db)
    await boxes.create(owner, { name: 'kiwi' })
    await transaction(db, async (trx) => {
      await t.rejects(boxes.create(owner, { name: 'kiwi' }, trx), { code: 'name_taken' })
      await boxes.create(owner, { name: 'fig' }, trx)
    })
    t.equal((await boxes.list(owner)).length, 2)
  })

  t.test('a create in a transaction that fails made nothing and told nobody', async (t) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const poked: string[] = []
    const boxes = boxesOf(db, { poke: (id) => poked.push(id) })
    await t.rejects(
      transaction(db, async (trx) => {
        await boxes.create(owner, {}, trx)
        throw new Error('later')
      }),
    )
    t.same(await boxes.list(owner), [])
    t.same(poked, [])
  })

  t.test('boxes without a name get fruits, numbered when all are taken, also many at once', async (t) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const boxes = boxesOf(db, { random: () => 0 })
    const created = await Promise.all(
      Array.from({ length: FRUITS.length + 2 }, () => boxes.create(owner, {})),
    )
    const names = created.map((box) => box.hostname)
    t.equal(new Set(names).size, FRUITS.length + 2, 'every name is free when it is given')
    t.same(new Set(names), new Set([...FRUITS, `${FRUITS[0]}-2`, `${FRUITS[0]}-3`]))
  })

  t.test('what a create refuses', async (t) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const boxes = boxesOf(db)
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`V${i}`, '']))
    const cases = [
      [{ fromSnapshotId: 'snp_1', fromTemplate: 'x', region: 'us-east-1' }, 'invalid_template'],
      [{ fromTemplate: 'x', region: 'us-east-1' }, 'invalid_region'],
      [{ fromSnapshotId: 'snp_1' }, 'not_found'],
      [{ fromTemplate: 'x' }, 'not_found'],
      [{ environment: 'x' }, 'not_found'],
      [{ env: many }, 'invalid_env'],
      [{ env: { A: 'x'.repeat(65_536) } }, 'environment_too_large'],
    ] as const
    for (const [input, code] of cases) await t.rejects(boxes.create(owner, input), { code }, code)
    await t.resolves(boxes.create(owner, { env: { A: 'x'.repeat(65_535) } }))
    t.equal((await boxes.list(owner)).length, 1, 'the refused ones wrote nothing')
  })

  t.test("a contractor's box is restricted; a key limited to boxes creates none", async (t) => {
    const db = await newDb(t)
    const owner = await ownerOf(db)
    const boxes = boxesOf(db)
    const contractor = await join(db, owner, { role: 'contractor' })
    t.match(await boxes.create(contractor, { restricted: false }), {
      restricted: true,
      ownerUserId: contractor.userId ?? '',
    })
    const limited = await join(db, owner, { role: 'owner', boxIds: [] })
    await t.rejects(boxes.create(limited, {}), { code: 'key_access_denied', fields: { scope: 'boxes' } })
  })
})
