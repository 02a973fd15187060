// Atomic replacement of files: content, mode, leftovers of a killed agent, and failures.
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { replaceFile, replaceFileSync, writeDurably } from '../../agent/durable-file.ts'
import { createTempDir } from '../support/temp-dir.ts'

const WRITERS = [
  ['replaceFile', replaceFile],
  ['replaceFileSync', async (path: string, content: string) => replaceFileSync(path, content)],
  ['writeDurably', writeDurably],
] as const

for (const [name, write] of WRITERS) {
  t.test(`${name} replaces the file and leaves no other file`, async (t) => {
    const dir = createTempDir(t, 'durable-file')
    const path = join(dir, 'state')
    await writeFile(path, 'a longer old content', { mode: 0o644 })
    await write(path, 'new')
    t.equal(await readFile(path, 'utf8'), 'new')
    t.equal((await stat(path)).mode & 0o777, 0o600)
    t.same(await readdir(dir), ['state'])
  })

  t.test(`${name} replaces a leftover with the name of its temporary file`, async (t) => {
    const leftovers: Record<string, (path: string) => unknown> = {
      'a file': (path) => writeFile(path, 'partial'),
      'a directory': (path) => mkdir(join(path, 'child'), { recursive: true }),
      'a FIFO': (path) => execFileSync('mkfifo', [path]),
    }
    for (const [kind, createLeftover] of Object.entries(leftovers)) {
      const dir = createTempDir(t, 'durable-file')
      const path = join(dir, 'state')
      await createLeftover(`${path}.new`)
      await write(path, kind)
      t.equal(await readFile(path, 'utf8'), kind)
      t.same(await readdir(dir), ['state'])
    }
  })
}

t.test('a failed replacement leaves no temporary file', async (t) => {
  const dir = createTempDir(t, 'durable-file')
  const path = join(dir, 'state')
  await mkdir(join(path, 'child'), { recursive: true })
  await t.rejects(replaceFile(path, 'content'))
  t.same(await readdir(dir), ['state'])
})
