// The positions at which a stream is split.
import { createHash } from 'node:crypto'
import t from 'tap'
import { CHUNK_SIZES, createChunker } from '../../../../../coordinator/providers/parts/archives/chunker.ts'

/** The same bytes in each run. */
function createBytes(length: number): Buffer {
  const blocks: Buffer[] = []
  for (let i = 0; i * 32 < length; i++) blocks.push(createHash('sha256').update(`${i}`).digest())
  return Buffer.concat(blocks).subarray(0, length)
}

function split(content: Buffer, pieceBytes: number): string[] {
  const chunks: Buffer[] = []
  const chunker = createChunker((chunk) => chunks.push(Buffer.from(chunk)))
  for (let offset = 0; offset < content.length; offset += pieceBytes)
    chunker.push(content.subarray(offset, offset + pieceBytes))
  chunker.flush()
  t.ok(Buffer.concat(chunks).equals(content), 'the chunks are the content')
  for (const chunk of chunks.slice(0, -1))
    t.ok(chunk.length >= CHUNK_SIZES.minBytes && chunk.length <= CHUNK_SIZES.maxBytes)
  return chunks.map((chunk) => createHash('sha256').update(chunk).digest('hex'))
}

const content = createBytes(4 * 1024 ** 2)

t.test('the chunks do not depend on how the stream arrives', async (t) => {
  const chunks = split(content, content.length)
  t.ok(chunks.length > 20 && chunks.length < 80, `${chunks.length} chunks`)
  t.same(split(content, 4099), chunks)
  t.same(split(content, 65_536), chunks)
})

t.test('an insertion changes only the chunks around it', async (t) => {
  const before = new Set(split(content, 65_536))
  const changed = Buffer.concat([
    content.subarray(0, 2_000_000),
    Buffer.from('new'),
    content.subarray(2_000_000),
  ])
  const added = split(changed, 65_536).filter((chunk) => !before.has(chunk))
  t.ok(added.length <= 3, `${added.length} chunks changed`)
})

t.test('content without variety is split at the maximum', async (t) => {
  t.same(split(Buffer.alloc(CHUNK_SIZES.maxBytes * 3 + 7), 65_536).length, 4)
})

// Changed positions would share no chunk with the archives of earlier versions.
t.test('the positions stay the same in each version', async (t) => {
  const digest = createHash('sha256').update(split(content, 65_536).join('\n')).digest('hex')
  t.equal(digest, 'f2fdcbe0d85a06a3d5aec1b7937875164af05995b8053fa6a864dfad96841c85')
})
