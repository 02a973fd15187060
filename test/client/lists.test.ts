// Lists over several pages: each item once, in the order of the API, and no page that the program does not read.
import t from 'tap'
import { Boxwood, type Transport } from '../../client/exports.ts'
import { fetchTransport } from '../../client/http/fetch-transport.ts'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'

const paths: string[] = []
/** Pages of two items. */
const transport: Transport = {
  ...fetchTransport,
  send(request) {
    const url = request.url.replace(/limit=\d+/, 'limit=2')
    paths.push(new URL(url).pathname)
    return fetchTransport.send({ ...request, url })
  },
}

async function read<Item>(items: AsyncIterable<Item>, { first = Infinity } = {}): Promise<Item[]> {
  const result: Item[] = []
  for await (const item of items) {
    result.push(item)
    if (result.length === first) break
  }
  return result
}

const coordinator = await startCoordinatorWithBox(t)
const boxwood = new Boxwood({ url: coordinator.url, apiKey: coordinator.key, transport })

t.test('the history of commands, with a filter', async (t) => {
  const box = await boxwood.boxes.get(coordinator.box.hostname)
  for (let i = 0; i < 5; i += 1) await box.exec(`exit ${i}`)
  const list = () => box.commands.list({ mode: 'detached' })
  t.same(
    (await read(list())).map(({ exitCode }) => exitCode),
    [4, 3, 2, 1, 0],
  )
  paths.length = 0
  t.equal((await read(list(), { first: 2 })).length, 2)
  t.equal(paths.length, 1)
  t.same(await read(box.commands.list({ mode: 'sync' })), [])
})

t.test('boxes, deleted ones too', async (t) => {
  for (const name of ['a', 'b']) {
    const box = await boxwood.boxes.create({ name })
    await box.delete()
    await coordinator.waitForState(box.id, 'terminated')
  }
  const list = async (options: object) => (await read(boxwood.boxes.list(options))).map(({ name }) => name)
  t.same(await list({}), [coordinator.box.hostname])
  t.same(await list({ includeDeleted: true }), ['b', 'a', coordinator.box.hostname])
})

t.test('the audit log, with a filter', async (t) => {
  const { json } = await coordinator.api('GET', '/audit?limit=1000')
  const events = await read(boxwood.audit.list())
  t.ok(events.length > 4, `${events.length} events`)
  t.same(
    events.map(({ id }) => id),
    json.events.map(({ id }: { id: number }) => id),
  )
  const created = await read(boxwood.audit.list({ kind: 'box.create' }))
  t.equal(created.length, 3)
})

t.test('a coordinator that sends the same page again', async (t) => {
  const looping = new Boxwood({
    url: coordinator.url,
    apiKey: coordinator.key,
    transport: {
      ...fetchTransport,
      send: async () => Response.json({ events: [], nextBefore: 7 }),
    },
  })
  await t.rejects(read(looping.audit.list()), { code: 'invalid_response' })
})
