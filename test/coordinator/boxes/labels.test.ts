// Labels of boxes on both databases: which boxes a list selects, and which labels a change leaves.
import t from 'tap'
import { newId } from '../../../shared/ids.ts'
import type { LabelSelector } from '../../../shared/labels.ts'
import { onEachDatabase } from '../../support/db.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { createOwner, createTestBoxService } from '../../support/workspace.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('a list selects the boxes that have all labels', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const labels = {
      team: 'web',
      'example.com/stage': '',
      '0': '0',
      constructor: 'null',
      note: '"team":"ops"',
    }
    await boxes.create(owner, { name: 'fig', labels })
    await boxes.create(owner, { name: 'plum', labels: { team: 'ops' } })
    await boxes.create(owner, { name: 'kiwi' })
    const foreign = { ...owner, workspaceId: newId('workspace') }
    const list = async (label: LabelSelector[], actor = owner) =>
      (await boxes.list(actor, { label })).map(({ hostname }) => hostname).sort()
    t.same(await list([{ key: 'team', value: null }]), ['fig', 'plum'])
    t.same(await list([{ key: 'team', value: null }], foreign), [])
    t.same(await list([{ key: 'team', value: 'ops' }]), ['plum'])
    for (const [key, value] of Object.entries(labels)) {
      t.same(await list([{ key, value }]), ['fig'], key)
      t.same(await list([{ key, value: `${value}x` }]), [], key)
    }
    t.same(
      await list([
        { key: 'team', value: 'web' },
        { key: '0', value: null },
      ]),
      ['fig'],
    )
    t.same(
      await list([
        { key: 'team', value: 'ops' },
        { key: '0', value: null },
      ]),
      [],
    )
    t.same(await list([{ key: 'te', value: null }]), [])
  })

  t.test('a change merges labels, removes those that are null, and adds at most 32', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    const { id } = await boxes.create(owner, { labels: { b: '1', a: '2' } })
    const patch = async (labels: Record<string, string | null>) =>
      (await boxes.patch(owner, id, { labels })).labels
    t.same(await patch({ c: 'ü 🫐' }), { a: '2', b: '1', c: 'ü 🫐' })
    t.same(await patch({ a: null, b: '', missing: null }), { b: '', c: 'ü 🫐' })
    const many = Object.fromEntries(Array.from({ length: 31 }, (_, index) => [`k${index}`, '']))
    await t.rejects(patch(many), { code: 'invalid_labels' })
    t.same((await boxes.get(owner, id)).box.labels, { b: '', c: 'ü 🫐' }, 'nothing is written')
    t.equal(Object.keys(await patch({ ...many, b: null })).length, 32)
    await t.rejects(boxes.create(owner, { name: 'plum', labels: { ...many, x: '', y: '' } }), {
      code: 'invalid_labels',
    })
    t.same(await boxes.list(owner, { box: 'plum' }), [])
  })

  t.test('the query reads the boxes of the workspace by an index', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const owner = await createOwner(db)
    const boxes = createTestBoxService(db)
    await readPlans()
    await boxes.list(owner, { live: true, label: [{ key: 'team', value: 'web' }] })
    const plans = await readPlans()
    t.ok(
      plans.some((line) => line.includes('boxes_live')),
      plans.join('\n'),
    )
  })
})
