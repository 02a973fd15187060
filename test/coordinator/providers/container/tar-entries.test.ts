// Reads what GNU tar writes, and what no engine may see.
import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  encodeFile,
  rewriteTar,
  TAR_TRAILER,
  type TarEntry,
} from '../../../../coordinator/providers/container/tar-entries.ts'
import { ArchiveError } from '../../../../coordinator/providers/provider.ts'

async function* chunksOf(data: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let offset = 0; offset < data.length; offset += size) yield data.subarray(offset, offset + size)
}

async function rewrite(data: Buffer, change: Parameters<typeof rewriteTar>[1]): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of rewriteTar(chunksOf(data, 700), change)) chunks.push(chunk)
  return Buffer.concat([...chunks, TAR_TRAILER])
}

t.test('names of any length and encoding get another directory, with their links and contents', async (t) => {
  const dir = t.testdir({ source: { a: 'content of a' } })
  const source = join(dir, 'source')
  const deep = join(source, 'd'.repeat(90), 'e'.repeat(90))
  mkdirSync(deep, { recursive: true })
  writeFileSync(join(deep, 'file'), 'x'.repeat(10_000))
  writeFileSync(Buffer.concat([Buffer.from(`${source}/`), Buffer.from([0xe9, 0x41])]), 'latin1 name')
  symlinkSync('../../etc/passwd', join(source, 'link'))
  linkSync(join(deep, 'file'), join(source, 'hard'))
  const original = execFileSync('tar', ['-c', '--format=pax', '-C', source, '.'])
  const toTarget = (name: string) => `target/${name.slice(2)}`
  const rewritten = await rewrite(original, ({ name, type, linkName }) => ({
    name: toTarget(name),
    ...(type === 'hard link' && { linkName: toTarget(linkName) }),
  }))
  execFileSync('tar', ['-x', '-C', dir], { input: rewritten })
  execFileSync('diff', ['-r', '--no-dereference', source, join(dir, 'target')])
  t.equal(
    execFileSync('find', [join(dir, 'target'), '-links', '+1', '-type', 'f'])
      .toString()
      .split('\n').length,
    3,
  )
})

t.test('what is damaged or ambiguous is refused', async (t) => {
  const file = encodeFile('home/file', Buffer.from('content'))
  const patch = (offset: number, text: string): Buffer => {
    const changed = Buffer.from(file)
    changed.write(text, offset, 'latin1')
    // The sum of the header.
    changed.fill(' ', 148, 156)
    const sum = changed.subarray(0, 512).reduce((total, byte) => total + byte, 0)
    changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
    return changed
  }
  const cases: Record<string, Buffer> = {
    'an incomplete stream': file.subarray(0, 600),
    'no end': file,
    'a wrong sum': Buffer.concat([Buffer.from('x'), file.subarray(1), TAR_TRAILER]),
    'an unknown type': Buffer.concat([patch(156, 'S'), TAR_TRAILER]),
    'a link with content, which engines read as a header': Buffer.concat([patch(156, '2'), TAR_TRAILER]),
    'a negative size': Buffer.concat([patch(124, '-0000000001'), TAR_TRAILER]),
    'an extended header without a separator': Buffer.concat([patch(156, 'x'), file, TAR_TRAILER]),
  }
  for (const [name, data] of Object.entries(cases))
    await t.rejects(
      rewrite(data, (entry: TarEntry) => entry),
      ArchiveError,
      name,
    )
})

t.test('owners are changed, also those that only an extended header can have', async (t) => {
  const ids = [0, 1000, 2_097_151, 2_097_152, 200_001_234]
  for (const id of ids) {
    const written = await rewrite(
      Buffer.concat([encodeFile('file', Buffer.from('x')), TAR_TRAILER]),
      (entry) => ({
        ...entry,
        uid: id,
        gid: id + 1,
      }),
    )
    const [line] = execFileSync('tar', ['-tv', '--numeric-owner'], { input: written }).toString().split('\n')
    t.match(line, `${id}/${id + 1}`)
    await rewrite(written, (entry) => {
      t.strictSame([entry.uid, entry.gid], [id, id + 1])
      return entry
    })
  }
})
