// Overwriting a file keeps its mode, owner, symbolic links and hard links, and is atomic.
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
import { listNames, query, readError, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
const upload = (path: string, body: string | Buffer, mode?: string) =>
  fetch(`${url}/upload${query(path)}${mode === undefined ? '' : `&mode=${mode}`}`, { method: 'PUT', body })
const modeOf = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8)
const inHome = (name: string) => join(home, name)

t.test('keeps the mode of an existing file unless the request sets one', async (t) => {
  const umask = process.umask()
  await upload('plain', 'x')
  t.equal(await modeOf(inHome('plain')), (0o644 & ~umask).toString(8))
  await upload('with-mode', 'x', '0755')
  t.equal(await modeOf(inHome('with-mode')), '755')
  await upload('with-mode', 'y')
  t.equal(await modeOf(inHome('with-mode')), '755', 'the mode is kept')
  await upload('with-mode', 'z', '600')
  t.equal(await modeOf(inHome('with-mode')), '600', 'the mode of the request is set')
  await upload('group', 'z', '0o666')
  t.equal(await modeOf(inHome('group')), '666', 'the umask does not apply to a requested mode')
  t.match(await readError(await upload('group', 'n', '888')), { status: 400, code: 'invalid_request' })
  t.equal(await readFile(inHome('group'), 'utf8'), 'z')
})

t.test('sets the modification time that the request has, also of a hard-linked file', async (t) => {
  await writeFile(inHome('dated'), 'old')
  await link(inHome('dated'), inHome('dated-link'))
  for (const name of ['dated', 'dated-new']) {
    const response = await fetch(`${url}/upload${query(name)}&mtime=1500000000.5`, {
      method: 'PUT',
      body: 'x',
    })
    t.equal(response.status, 200)
    t.equal((await stat(inHome(name))).mtimeMs, 1_500_000_000_500, name)
  }
  const invalid = await fetch(`${url}/upload${query('dated')}&mtime=yesterday`, { method: 'PUT', body: 'x' })
  t.match(await readError(invalid), { status: 400, code: 'invalid_request' })
})

t.test('clears the set-user-ID and set-group-ID bits unless the request sets them', async (t) => {
  await writeFile(inHome('set-id'), 'old')
  await chmod(inHome('set-id'), 0o6755)
  await upload('set-id', 'new')
  t.equal(await modeOf(inHome('set-id')), '755', 'replaced by rename')
  await chmod(inHome('set-id'), 0o6755)
  await link(inHome('set-id'), inHome('set-id-link'))
  await upload('set-id', 'newer')
  t.equal(await modeOf(inHome('set-id')), '755', 'overwritten in place')
  await upload('set-id', 'x', '4711')
  t.equal(await modeOf(inHome('set-id')), '4711', 'the mode of the request is set')
  await upload('set-id-new', 'x', '2755')
  t.equal(await modeOf(inHome('set-id-new')), '2755')
})

t.test('writes the target of a symbolic link and keeps the link', async (t) => {
  await mkdir(inHome('sub'))
  await writeFile(inHome('sub/target'), 'old')
  await symlink('sub/target', inHome('link'))
  t.match(await (await upload('link', 'new')).json(), { path: inHome('sub/target'), size: 3 })
  t.equal(await readlink(inHome('link')), 'sub/target')
  t.equal(await readFile(inHome('sub/target'), 'utf8'), 'new')
})

t.test('creates the target of a dangling symbolic link', async (t) => {
  await symlink('sub/later', inHome('dangling'))
  t.match(await (await upload('dangling', 'new')).json(), { path: inHome('sub/later') })
  t.ok((await lstat(inHome('dangling'))).isSymbolicLink())
  await symlink('missing/later', inHome('broken'))
  t.match(await readError(await upload('broken', 'new')), { status: 404, code: 'not_found' })
})

t.test('updates all names of a hard-linked file', async (t) => {
  await writeFile(inHome('first'), 'a long old content')
  await chmod(inHome('first'), 0o640)
  await link(inHome('first'), inHome('second'))
  await upload('second', 'new')
  t.equal(await readFile(inHome('first'), 'utf8'), 'new')
  t.equal((await stat(inHome('first'))).nlink, 2)
  t.equal(await modeOf(inHome('first')), '640')
})

t.test(
  'keeps the owner of the file',
  { skip: process.getuid?.() === 0 ? false : 'requires root' },
  async (t) => {
    const { chown } = await import('node:fs/promises')
    await writeFile(inHome('other-owner'), 'old')
    await chown(inHome('other-owner'), 1234, 2345)
    await chmod(inHome('other-owner'), 0o4755)
    await upload('other-owner', 'new')
    t.match(await stat(inHome('other-owner')), { uid: 1234, gid: 2345 })
    t.equal(await modeOf(inHome('other-owner')), '755')
  },
)

for (const names of [1, 2]) {
  t.test(
    `concurrent writers leave one complete version (${names} ${names === 1 ? 'name' : 'names'})`,
    async (t) => {
      const path = `raced-${names}`
      await writeFile(inHome(path), 'old')
      if (names === 2) await link(inHome(path), inHome('raced-hardlink'))
      const bodies = Array.from({ length: 8 }, (_, n) => Buffer.alloc(3_000_000 + n, `${n}`))
      const responses = await Promise.all(bodies.map((body) => upload(path, body)))
      for (const response of responses) t.equal(response.status, 200)
      const content = await readFile(inHome(path))
      t.ok(
        bodies.some((body) => body.equals(content)),
        'the content is that of one writer',
      )
    },
  )
}

t.test('leaves no temporary file, and removes those of a killed agent', async (t) => {
  t.same(
    (await listNames(home)).filter((name) => name.startsWith('.')),
    [],
  )
  await mkdir(inHome('stale'))
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000)
  for (const [name, age] of [
    ['.boxwood-write-old', 2],
    ['.boxwood-write-young', 0],
    ['.other-old', 2],
  ] as const) {
    await writeFile(inHome(`stale/${name}`), 'x')
    await utimes(inHome(`stale/${name}`), hoursAgo(age), hoursAgo(age))
  }
  await upload('stale/file', 'x')
  t.same(await listNames(inHome('stale')), ['.boxwood-write-young', '.other-old', 'file'])
})
