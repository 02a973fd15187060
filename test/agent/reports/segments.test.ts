// The segments of the spool: rotation, reading, acknowledgement and removal.
import { readdir } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { createReserve } from '../../../agent/reports/reserve.ts'
import { recoverSegments, Segments } from '../../../agent/reports/segments.ts'
import { START_CURSOR } from '../../../agent/reports/spool.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'

const LINE_BYTES = 100
const toLine = (seq: number, epoch = 'e') =>
  Buffer.from(`${JSON.stringify({ epoch, seq }).padEnd(LINE_BYTES - 1)}\n`)

async function openSegments(t: Test, dir = createTempDir(t, 'segments')) {
  const { segments: recovered } = await recoverSegments(dir, 0, silentLog)
  const reserve = createReserve(`${dir}.reserve`, LINE_BYTES)
  const segments = new Segments({
    dir,
    epoch: 'e',
    recovered,
    segmentBytes: 2 * LINE_BYTES,
    reserve,
    log: silentLog,
  })
  t.teardown(() => segments.close())
  return {
    segments,
    dir,
    append: (...numbers: number[]) => {
      for (const seq of numbers) segments.append(toLine(seq), seq, { mayUseReserve: false })
    },
  }
}

async function readAll(segments: Segments): Promise<string> {
  const chunks: Buffer[] = []
  for (let cursor = START_CURSOR; ; ) {
    const found = await segments.read(cursor)
    if (found === null) return Buffer.concat(chunks).toString()
    cursor = found.next
    chunks.push(found.lines)
  }
}
const toLines = (...numbers: number[]) => numbers.map((seq) => toLine(seq).toString()).join('')

t.test('a full segment is followed by a new one; a new instance reads all of them', async (t) => {
  const { segments, append, dir } = await openSegments(t)
  append(1, 2, 3)
  t.equal((await readdir(dir)).length, 2)
  t.equal(segments.pendingBytes, 3 * LINE_BYTES)
  t.equal(await readAll(segments), toLines(1, 2, 3))
  t.same([segments.hasEpoch('e'), segments.hasEpoch('f')], [true, false])

  const { segments: next, append: appendNext } = await openSegments(t, dir)
  appendNext(4)
  t.equal(await readAll(next), toLines(1, 2, 3, 4))
  t.equal((await readdir(dir)).length, 3, 'the segments of an earlier agent are not continued')
})

t.test('an acknowledgement returns the complete segments, and keeps a small last one', async (t) => {
  const { segments, append } = await openSegments(t)
  append(1, 2, 3)
  t.same(segments.acknowledge(1, Infinity), [], 'the first segment has another report')
  const acknowledged = segments.acknowledge(3, LINE_BYTES)
  t.same(
    acknowledged.map(({ firstSeq }) => firstSeq),
    [1],
  )
  for (const segment of acknowledged) await segments.remove(segment)
  t.equal(segments.pendingBytes, 0)
  t.equal(await readAll(segments), '', 'the acknowledged report of the last segment is not read again')
  append(4)
  t.equal(await readAll(segments), toLines(4))
})

t.test('reports that follow an acknowledged last segment go to a new one', async (t) => {
  const { segments, append, dir } = await openSegments(t)
  append(1)
  const [acknowledged] = segments.acknowledge(1, 0)
  append(2)
  if (acknowledged === undefined) return t.fail('the last segment was kept')
  await segments.remove(acknowledged)
  t.equal(await readAll(segments), toLines(2))
  t.same(await readdir(dir), ['0000000000000002.ndjson'])
})

t.test('the last segment cannot be evicted', async (t) => {
  const { segments, append } = await openSegments(t)
  t.same(segments.listEvictable(), [])
  append(1, 2, 3)
  t.same(
    segments.listEvictable().map(({ firstSeq }) => firstSeq),
    [1],
  )
})
