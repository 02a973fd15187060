// The stored output of a command: the last MiB without gaps, read in pages that do not split characters.
import { sql } from 'kysely'
import t from 'tap'
import { onEachDatabase } from '../../../support/db.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'
import { finished, output, setUp } from './support.ts'

const MiB = 1024 * 1024

onEachDatabase(t, async (t, newDb) => {
  const setup = await setUp(await newDb(t))
  const { db, commands, owner, boxId, report, run } = setup
  const { history } = commands
  const readPage = (id: string, query = {}) => history.getOutput(owner, boxId, id, query)
  const chunkSizes = async (id: string) =>
    (await db.selectFrom('command_output').select('size').where('command_id', '=', id).execute()).map(
      ({ size }) => size,
    )
  /** Reads all pages, as a client does. */
  async function readAll(id: string, query: { encoding?: 'utf8' | 'base64'; limit?: number } = {}) {
    const parts: string[] = []
    for (let offset = 0; ; ) {
      const { data, nextOffset, done } = await readPage(id, { ...query, offset })
      parts.push(query.encoding === 'base64' ? Buffer.from(data, 'base64').toString('latin1') : data)
      if (done) return parts
      if (nextOffset <= offset) throw new Error(`no progress at ${offset}`)
      offset = nextOffset
    }
  }

  t.test('stores repeated output once, and replaces earlier output after a gap', async (t) => {
    const { id } = await run({ mode: 'detached' })
    await report([output(id, 0, 'abcdef'), output(id, 3, 'defgh'), output(id, 0, 'ab')])
    t.match(await readPage(id), { data: 'abcdefgh', size: 8, skipped: 0, done: false, status: 'running' })
    await report([output(id, 8, 'ij'), output(id, 20, 'xyz'), output(id, 23, '!')])
    t.match(await readPage(id), { data: 'xyz!', offset: 20, skipped: 20, nextOffset: 24, size: 24 })
    t.match(await readPage(id, { offset: 22 }), { data: 'z!', offset: 22, skipped: 0 })
    t.match(await readPage(id, { offset: 24 }), { data: '', nextOffset: 24, skipped: 0, done: false })
    t.match(await readPage(id, { offset: 99 }), { data: '', nextOffset: 99, skipped: 0, size: 24 })
    await report([finished(id, { stdoutBytes: 24 })])
    t.match(await readPage(id, { offset: 24 }), { done: true, status: 'exited' })
    t.match(await history.get(owner, boxId, id), {
      stdoutBytes: 24,
      stdoutTruncated: true,
      stderrTruncated: false,
    })
  })

  t.test('stores no output when the end of the stream is missing', async (t) => {
    const { id } = await run()
    await report([output(id, 0, 'beginning'), finished(id, { stdoutBytes: 100 })])
    t.match(await readPage(id), { data: '', skipped: 100, nextOffset: 100, size: 100, done: true })
    t.same(await chunkSizes(id), [])
  })

  t.test('stores exactly the last MiB of a long stream, whatever the size of the segments', async (t) => {
    for (const size of [100_000, 131_072, 7_777]) {
      const { id } = await run({ mode: 'detached' })
      const whole = Buffer.alloc(3 * MiB, Array.from({ length: 9973 }, (_, i) => `${i} `).join(''))
      for (let at = 0; at < whole.length; at += size * 8) {
        const segments = []
        for (let from = at; from < Math.min(whole.length, at + size * 8); from += size)
          segments.push(output(id, from, whole.subarray(from, from + size), 'stderr'))
        await report(segments)
      }
      await report([finished(id, { stderrBytes: whole.length })])
      const last = await readPage(id, { stream: 'stderr' })
      t.match(last, { offset: 2 * MiB, skipped: 2 * MiB, size: 3 * MiB, nextOffset: 3 * MiB, done: true })
      t.ok(last.data === whole.subarray(-MiB).toString(), `segments of ${size} bytes`)
      const sizes = await chunkSizes(id)
      t.ok(
        sizes.length <= 256 && sizes.reduce((a, b) => a + b, 0) < MiB + 256 * 1024,
        `${sizes.length} chunks`,
      )
    }
  })

  t.test('stores a thousand small segments in one chunk', async (t) => {
    const { id } = await run({ mode: 'detached' })
    for (let i = 0; i < 1000; i += 10)
      await report(Array.from({ length: 10 }, (_, j) => output(id, (i + j) * 4, String(i + j).padStart(4))))
    t.ok((await readPage(id)).data === Array.from({ length: 1000 }, (_, i) => String(i).padStart(4)).join(''))
    t.equal((await chunkSizes(id)).length, 1)
  })

  t.test(
    'utf8 pages hold whole characters and always make progress; base64 pages hold exact bytes',
    async (t) => {
      const text = 'añ€😀'.repeat(50)
      const { id } = await run()
      await report([output(id, 0, text), finished(id, { stdoutBytes: Buffer.byteLength(text) })])
      for (const limit of [1, 2, 3, 4, 5, 7, 64]) {
        const parts = await readAll(id, { limit })
        t.equal(parts.join(''), text, `limit ${limit}`)
        t.ok(parts.every((part) => Buffer.byteLength(part) <= limit + 3))
        const exact = await readAll(id, { limit, encoding: 'base64' })
        t.equal(Buffer.from(exact.join(''), 'latin1').toString(), text)
        t.ok(exact.slice(0, -1).every((part) => part.length === limit))
      }

      await t.test(
        'an incomplete character is held back until it is complete or the command exits',
        async (t) => {
          const { id } = await run({ mode: 'detached' })
          const euro = Buffer.from('€')
          await report([output(id, 0, Buffer.concat([Buffer.from('a'), euro.subarray(0, 2)]))])
          t.match(await readPage(id), { data: 'a', nextOffset: 1, size: 3 })
          t.match(await readPage(id, { offset: 1 }), { data: '', nextOffset: 1 })
          await report([output(id, 3, euro.subarray(2))])
          t.match(await readPage(id, { offset: 1 }), { data: '€', nextOffset: 4 })
          await report([output(id, 4, euro.subarray(0, 1)), finished(id, { stdoutBytes: 5 })])
          t.match(await readPage(id, { offset: 4 }), { data: '\ufffd', nextOffset: 5, done: true })
        },
      )

      await t.test('invalid UTF-8 becomes U+FFFD, identically for every page size', async (t) => {
        const noise = Buffer.from(Array.from({ length: 600 }, (_, i) => (i * 167 + (i >> 3) * 59) & 0xff))
        const { id } = await run()
        await report([output(id, 0, noise), finished(id, { stdoutBytes: noise.length })])
        for (const limit of [1, 2, 3, 5, 11, 1000])
          t.equal((await readAll(id, { limit })).join(''), noise.toString(), `limit ${limit}`)
      })

      await t.test('a page after discarded output starts with a whole character', async (t) => {
        const { id } = await run()
        const bytes = Buffer.concat([Buffer.from('€').subarray(1), Buffer.from('uro')])
        await report([output(id, 10, bytes), finished(id, { stdoutBytes: 15 })])
        t.match(await readPage(id), { data: 'uro', offset: 12, skipped: 12 })
        t.match(await readPage(id, { encoding: 'base64' }), { data: bytes.toString('base64'), skipped: 10 })
      })
    },
  )
})

t.test('output is not stored at a wrong offset when its last chunk cannot be taken', async (t) => {
  const { db, commands, owner, boxId, report, run } = await setUp(await sqliteForTest(t))
  const { id } = await run({ mode: 'detached' })
  await report([output(id, 0, 'abc')])
  // Stands for another transaction that has deleted the chunk after it was found.
  await sql`create trigger no_delete before delete on command_output begin select raise(ignore); end`.execute(
    db,
  )
  await t.rejects(report([output(id, 3, 'def')]), { message: /was deleted meanwhile/ })
  t.match(await commands.history.getOutput(owner, boxId, id, {}), { data: 'abc', size: 3 })
})
