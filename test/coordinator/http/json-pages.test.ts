// Lists with all items in one response are read and serialized page by page.
import t from 'tap'
import { joinFields, readPages, stringifyPages } from '../../../coordinator/http/json-pages.ts'

const createRows = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `id-${n}`, created_at: count - n }))

/** Pages of rows as a database returns them. */
const createReader =
  (rows: ReturnType<typeof createRows>): Parameters<typeof readPages<(typeof rows)[number]>>[0] =>
  async ({ before, limit }) => {
    const start = before === undefined ? 0 : rows.findIndex(({ id }) => id === before.id) + 1
    return rows.slice(start, start + limit)
  }

t.test('the text is that of one list, for each number of pages', async (t) => {
  for (const count of [0, 1, 99, 100, 101, 200, 250]) {
    const rows = createRows(count)
    t.equal(await stringifyPages(readPages(createReader(rows))), JSON.stringify(rows), `${count} rows`)
  }
})

t.test('other work runs between two pages', async (t) => {
  const events: string[] = []
  async function* readLoggedPages() {
    for await (const rows of readPages(createReader(createRows(300)))) {
      events.push(`page of ${rows.length}`)
      setImmediate(() => events.push('other work'))
      yield rows
    }
  }
  await stringifyPages(readLoggedPages())
  t.same(events.slice(0, 6), Array.from({ length: 3 }, () => ['page of 100', 'other work']).flat())
})

t.test('serialized lists are joined with other fields', async (t) => {
  t.equal(joinFields({ a: '[1]' }), '{"a":[1]}')
  t.equal(joinFields({ a: '[1]', b: '[]' }, { c: null, d: undefined }), '{"a":[1],"b":[],"c":null}')
})
