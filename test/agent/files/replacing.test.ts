// What a write keeps of the file it replaces: mode, owner, links to it and from it; and the old one until the end.
import {
  chmod,
  link,
  lstat,
  mkdir,
  readFile,
  readlink,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { errorOf, namesIn, query, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
const upload = (path: string, body: string | Buffer, mode?: string) =>
  fetch(`${url}/upload${query(path)}${mode === undefined ? '' : `&mode=${mode}`}`, { method: 'PUT', body })
const modeOf = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8)
const at = (name: string) => join(home, name)

t.test('modes', async (t) => {
  const umask = process.umask()
  await upload('plain', 'x')
  t.equal(await modeOf(at('plain')), (0o644 & ~umask).toString(8))
  await upload('asked', 'x', '0755')
  t.equal(await modeOf(at('asked')), '755')
  await upload('asked', 'y')
  t.equal(await modeOf(at('asked')), '755', 'kept')
  await upload('asked', 'z', '600')
  t.equal(await modeOf(at('asked')), '600', 'changed when asked for')
  await upload('group', 'z', '0o666')
  t.equal(await modeOf(at('group')), '666', 'a mode that was asked for is not masked')
  t.match(await errorOf(await upload('group', 'n', '888')), { status: 400, code: 'invalid_request' })
  t.equal(await readFile(at('group'), 'utf8'), 'z')
})

t.test('a link stays a link, and its target is written', async (t) => {
  await mkdir(at('sub'))
  await writeFile(at('sub/target'), 'old')
  await symlink('sub/target', at('link'))
  t.match(await (await upload('link', 'new')).json(), { path: at('sub/target'), size: 3 })
  t.equal(await readlink(at('link')), 'sub/target')
  t.equal(await readFile(at('sub/target'), 'utf8'), 'new')
})

t.test('a dangling link creates its target', async (t) => {
  await symlink('sub/later', at('dangling'))
  t.match(await (await upload('dangling', 'new')).json(), { path: at('sub/later') })
  t.ok((await lstat(at('dangling'))).isSymbolicLink())
  await symlink('nowhere/later', at('lost'))
  t.match(await errorOf(await upload('lost', 'new')), { status: 404, code: 'not_found' })
})

t.test('every name of a hard-linked file sees the new content', async (t) => {
  await writeFile(at('first'), 'a long old content')
  await chmod(at('first'), 0o640)
  await link(at('first'), at('second'))
  await upload('second', 'new')
  t.equal(await readFile(at('first'), 'utf8'), 'new')
  t.equal((await stat(at('first'))).nlink, 2)
  t.equal(await modeOf(at('first')), '640')
})

t.test(
  'the owner is kept',
  { skip: process.getuid?.() === 0 ? false : 'only root can have another’s file' },
  async (t) => {
    const { chown } = await import('node:fs/promises')
    await writeFile(at('theirs'), 'old')
    await chown(at('theirs'), 1234, 2345)
    await chmod(at('theirs'), 0o4755)
    await upload('theirs', 'new')
    t.match(await stat(at('theirs')), { uid: 1234, gid: 2345 })
    t.equal(await modeOf(at('theirs')), '4755')
  },
)

for (const names of [1, 2]) {
  t.test(`of many writers at once one whole version stays (${names} names)`, async (t) => {
    const path = `raced-${names}`
    await writeFile(at(path), 'old')
    if (names === 2) await link(at(path), at('raced-too'))
    const bodies = Array.from({ length: 8 }, (_, n) => Buffer.alloc(3_000_000 + n, `${n}`))
    const answers = await Promise.all(bodies.map((body) => upload(path, body)))
    for (const answer of answers) t.equal(answer.status, 200)
    const left = await readFile(at(path))
    t.ok(
      bodies.some((body) => body.equals(left)),
      'it is one of them',
    )
  })
}

t.test('no temporary file is left, and what a killed agent left is removed', async (t) => {
  t.same(
    (await namesIn(home)).filter((name) => name.startsWith('.')),
    [],
  )
  await mkdir(at('left'))
  const hours = (ago: number) => new Date(Date.now() - ago * 3_600_000)
  for (const [name, ago] of [
    ['.boxwood-write-old', 2],
    ['.boxwood-write-young', 0],
    ['.other-old', 2],
  ] as const) {
    await writeFile(at(`left/${name}`), 'x')
    await utimes(at(`left/${name}`), hours(ago), hours(ago))
  }
  await upload('left/file', 'x')
  t.same(await namesIn(at('left')), ['.boxwood-write-young', '.other-old', 'file'])
})
