// The queue passes changed rows on in batches, and waits for the batch before.
import t, { type Test } from 'tap'
import type { RowChange } from '../../../coordinator/db/row-changes.ts'
import { ChangeQueue } from '../../../coordinator/feed/change-queue.ts'
import { waitUntil } from '../../support/wait-until.ts'

const change = (id: string): RowChange => ({ table: 'boxes', id })

/** Each batch waits until the test resolves it. */
function createQueue(t: Test) {
  const batches: { ids: string[]; resolve: () => void }[] = []
  const queue = new ChangeQueue(async (changes) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    batches.push({ ids: changes.map(({ table, id }) => `${table} ${id}`), resolve })
    await promise
  }, 1)
  t.teardown(() => queue.close())
  return { queue, batches }
}

t.test('changes during a batch are in the next one, each row once', async (t) => {
  const { queue, batches } = createQueue(t)
  for (const id of ['a', 'b', 'a']) queue.add(change(id))
  await waitUntil('the first batch', () => batches.length === 1)
  for (let i = 0; i < 100; i++) for (const id of ['a', 'c']) queue.add(change(id))
  queue.add({ table: 'snapshots', id: 'a' })
  t.equal(batches.length, 1)
  batches[0]?.resolve()
  await waitUntil('the second batch', () => batches.length === 2)
  batches[1]?.resolve()
  t.same(
    batches.map(({ ids }) => ids),
    [
      ['boxes a', 'boxes b'],
      ['boxes a', 'boxes c', 'snapshots a'],
    ],
  )
})

t.test('a deletion replaces the changes of its row', async (t) => {
  const got: RowChange[] = []
  const queue = new ChangeQueue(async (changes) => void got.push(...changes))
  t.teardown(() => queue.close())
  const deleted = { workspaceId: 'w', boxId: 'a', ownerUserId: 'u' }
  queue.add(change('a'))
  queue.add({ ...change('a'), deleted })
  await waitUntil('the batch', () => got.length > 0)
  t.same(got, [{ table: 'boxes', id: 'a', deleted }])
})
