// Directories are listed, created, moved and removed, whatever the names of their entries are.
import { execFileSync } from 'node:child_process'
import { accessSync, constants, statSync, writeFileSync } from 'node:fs'
import {
  chmod,
  link,
  lstat,
  mkdir,
  readFile,
  readlink,
  rename,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { fileListSchema, fileStatSchema } from '../../../shared/api/files.ts'
import { createTempDir, getDatabaseDir } from '../../support/temp-dir.ts'
import { listNames, query, readError, serveFiles } from './support.ts'

const { home, stateDir, url } = await serveFiles(t)
await mkdir(join(stateDir, 'exec/p_1'), { recursive: true })
await writeFile(join(stateDir, 'token'), 'bxt_secret')

const get = (route: string, path: string, more = '') => fetch(`${url}/files/${route}${query(path)}${more}`)
const list = async (path: string, more?: string) =>
  fileListSchema.strict().parse(await (await get('list', path, more)).json())
const stat = async (path: string) => fileStatSchema.strict().parse(await (await get('stat', path)).json())
const post = (route: string, body: object) =>
  fetch(`${url}/files/${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const remove = (path: string, more = '') => fetch(`${url}/files${query(path)}${more}`, { method: 'DELETE' })
const removeAll = (path: string) => remove(path, '&recursive=1')
const isMissing = (path: string) =>
  lstat(path).then(
    () => false,
    () => true,
  )
const createDir = async (name: string) => {
  const path = join(home, name)
  await mkdir(path)
  return path
}

function findOtherFileSystem(): string | null {
  const path = '/dev/shm'
  try {
    accessSync(path, constants.W_OK)
    return statSync(path).dev === statSync(home).dev ? null : path
  } catch {
    return null
  }
}

t.test('lists every kind of entry', async (t) => {
  const dir = await createDir('kinds')
  await writeFile(join(dir, 'file'), 'text')
  await chmod(join(dir, 'file'), 0o4640)
  await utimes(join(dir, 'file'), 1_700_000_000.5, 1_700_000_000.5)
  await writeFile(join(dir, 'old'), '')
  execFileSync('touch', ['-d', '1960-01-01', join(dir, 'old')])
  await mkdir(join(dir, 'dir'))
  execFileSync('mkfifo', [join(dir, 'fifo')])
  const server = createServer().listen(join(dir, 'socket'))
  await new Promise((resolve) => server.once('listening', resolve))
  t.teardown(() => server.close())
  for (const [name, target] of [
    ['link', 'dir'],
    ['dangling', '/no/such'],
    ['loop', 'loop'],
    ['to-fifo', './fifo'],
  ] as const)
    await symlink(target, join(dir, name))
  const { path, entries, nextCursor } = await list('kinds')
  t.equal(path, dir)
  t.equal(nextCursor, null)
  const byName = Object.fromEntries(entries.map(({ name, ...entry }) => [name, entry]))
  t.same(
    entries.map(({ name }) => name),
    [...Object.keys(byName)].sort(),
    'sorted',
  )
  t.match(byName.file, {
    type: 'file',
    size: 4,
    mode: '4640',
    uid: process.getuid?.(),
    gid: process.getgid?.(),
    mtime: '2023-11-14T22:13:20.500Z',
  })
  if (process.getuid?.() === 0) t.match(byName.file, { owner: 'root', group: 'root' })
  t.match(byName.old, { mtime: null })
  t.match(byName.dir, { type: 'directory' })
  t.match(byName.fifo, { type: 'fifo' })
  t.match(byName.socket, { type: 'socket' })
  t.match(byName.link, { type: 'symlink', target: 'dir', targetType: 'directory' })
  t.match(byName.dangling, { target: '/no/such', targetType: null })
  t.match(byName.loop, { target: 'loop', targetType: null })
  t.match(byName['to-fifo'], { target: './fifo', targetType: 'fifo' })
  t.match(
    (await list('/dev')).entries.find(({ name }) => name === 'null'),
    { type: 'device' },
  )
  t.equal((await list('kinds/link')).path, join(dir, 'dir'), 'a link to a directory is followed')
  t.same((await list('kinds/dir')).entries, [], 'an empty directory')
  for (const [name = '', entry] of Object.entries(byName))
    t.same(await stat(`kinds/${name}`), {
      ...{ ok: true, type: 'file.stat', path: join(dir, name), entry: { name, ...entry } },
    })
  t.match(await stat('/'), { path: '/', entry: { name: '/', type: 'directory' } })
  t.match(await stat('~'), { path: home, entry: { type: 'directory' } })
  t.match(await stat('kinds/link/'), { path: join(dir, 'dir'), entry: { type: 'directory' } })
})

t.test('names of any bytes are listed in pages, and removed with their directory', async (t) => {
  const dir = await createDir('names')
  const names = [
    ...[
      'a',
      ' ',
      '-rf',
      '\\',
      '\n',
      'a\nb',
      '\x1b[31mred',
      '\u202egpj',
      '😀',
      '\u{fffd}',
      '%2e',
      'n'.repeat(255),
    ],
    'ä'.repeat(127),
  ].map((name) => Buffer.from(name))
  names.push(Buffer.from([0xff, 0xfe]), Buffer.alloc(255, 0x80), Buffer.from([0x61, 0xc3]))
  for (const name of names) writeFileSync(Buffer.concat([Buffer.from(`${dir}/`), name]), '')
  const sorted = names.sort(Buffer.compare)
  for (const limit of [1, 3, 1000]) {
    const found: Buffer[] = []
    let more = ''
    do {
      const page = await list('names', `&limit=${limit}${more}`)
      t.ok(page.entries.length <= limit)
      for (const { name, nameBase64 } of page.entries)
        found.push(nameBase64 === undefined ? Buffer.from(name) : Buffer.from(nameBase64, 'base64'))
      more = page.nextCursor === null ? '' : `&cursor=${page.nextCursor}`
    } while (more !== '')
    t.same(found, sorted, `pages of ${limit}`)
  }
  t.equal((await removeAll('names')).status, 200)
  t.ok(await isMissing(dir))
})

t.test('a directory of 100,000 entries is listed in pages and removed', async (t) => {
  const dir = createTempDir(t, 'many', getDatabaseDir())
  for (let index = 0; index < 100_000; index++)
    writeFileSync(`${dir}/${index.toString().padStart(6, '0')}`, '')
  const first = await list(dir)
  t.equal(first.entries.length, 1000)
  t.match([first.entries[0], first.entries[999]], [{ name: '000000' }, { name: '000999' }])
  const cursor = Buffer.from('098999').toString('base64url')
  const last = await list(dir, `&cursor=${cursor}`)
  t.match([last.entries[0], last.entries[999]], [{ name: '099000' }, { name: '099999' }])
  t.equal(last.nextCursor, null)
  t.equal((await removeAll(dir)).status, 200)
  t.ok(await isMissing(dir))
})

t.test('creates directories', async (t) => {
  const base = await createDir('created')
  await symlink('nowhere', join(base, 'dangling'))
  await writeFile(join(base, 'file'), '')
  const make = (path: string, parents?: boolean) => post('mkdir', { path, parents })
  t.match(await (await make('created/a')).json(), { ok: true, path: join(base, 'a'), created: true })
  t.match(await (await make('created/b/')).json(), { path: join(base, 'b') })
  t.match(await (await make('created/c/d/e', true)).json(), { path: join(base, 'c/d/e'), created: true })
  t.match(await (await make('created/c/./../c/d', true)).json(), { path: join(base, 'c/d'), created: false })
  t.same(
    new Set(
      (await Promise.all(Array.from({ length: 8 }, () => make('created/f/g/h', true)))).map((r) => r.status),
    ),
    new Set([200]),
    'at the same time',
  )
  for (const [path, parents, status, code] of [
    ['created/a', false, 409, 'path_exists'],
    ['created/file', false, 409, 'path_exists'],
    ['created/file', true, 409, 'path_exists'],
    ['created/dangling', false, 409, 'path_exists'],
    ['created/dangling', true, 409, 'path_exists'],
    ['/', false, 409, 'path_exists'],
    ['created/x/y', false, 404, 'not_found'],
    ['created/file/y', true, 404, 'not_found'],
    ['created/x/..', false, 400, 'invalid_path'],
    [`created/${'n'.repeat(256)}`, false, 400, 'invalid_path'],
    ['.state/x', false, 403, 'permission_denied'],
    ['.state/x/y', true, 403, 'permission_denied'],
    ['created/a\nb', true, 400, 'invalid_path'],
  ] as const)
    t.match(await readError(await make(path, parents)), { status, code }, `${path} ${parents}`)
  t.same(await listNames(stateDir), ['exec', 'token'])
})

t.test('moves entries', async (t) => {
  const base = await createDir('moved')
  const move = (from: string, to: string, overwrite?: boolean) =>
    post('move', { from: `moved/${from}`, to: `moved/${to}`, overwrite })
  for (const name of ['a', 'b', 'c']) await writeFile(join(base, name), name)
  await mkdir(join(base, 'dir/full'), { recursive: true })
  await mkdir(join(base, 'empty'))
  await symlink('dir', join(base, 'link'))
  t.match(await (await move('a', 'dir/x')).json(), { from: join(base, 'a'), path: join(base, 'dir/x') })
  t.equal(await readFile(join(base, 'dir/x'), 'utf8'), 'a')
  t.match(await (await move('b', 'link/y')).json(), { path: join(base, 'dir/y') })
  t.match(await readError(await move('c', 'dir/x')), { status: 409, code: 'path_exists' })
  t.equal((await move('c', 'dir/x', true)).status, 200)
  t.equal(await readFile(join(base, 'dir/x'), 'utf8'), 'c')
  t.equal((await move('link', 'link2')).status, 200)
  t.equal(await readlink(join(base, 'link2')), 'dir', 'the link is moved, not its target')
  for (const [from, to, status, code] of [
    ['dir/x', 'dir', 409, 'path_exists'],
    ['empty', 'dir/x', 409, 'path_exists'],
    ['empty', 'dir', 409, 'directory_not_empty'],
    ['dir', 'dir/full/sub', 400, 'invalid_path'],
    ['none', 'new', 404, 'not_found'],
    ['dir/x', 'none/new', 404, 'not_found'],
    ['dir/x/', 'new', 404, 'not_found'],
    ['dir/..', 'new', 400, 'invalid_path'],
  ] as const)
    t.match(await readError(await move(from, to, true)), { status, code }, `${from} to ${to}`)
  t.equal((await move('dir', 'empty', true)).status, 200, 'a directory replaces an empty one')
  await link(join(base, 'empty/x'), join(base, 'same'))
  t.equal((await move('same', 'empty/x', true)).status, 200)
  t.ok(await isMissing(join(base, 'same')), 'another name of the same file')
  t.match(await readError(await post('move', { from: '\n', to: 'a' })), { status: 400, code: 'invalid_path' })
  t.match(await readError(await post('move', { from: 'a' })), { status: 400, code: 'invalid_path' })
})

const other = findOtherFileSystem()
t.test(
  'refuses a move to another file system, and changes nothing',
  { skip: other === null && 'there is no other file system to write to' },
  async (t) => {
    const dir = createTempDir(t, 'other', other ?? '')
    await writeFile(join(home, 'stays'), 'text')
    t.match(await readError(await post('move', { from: 'stays', to: `${dir}/new` })), {
      ...{ status: 400, code: 'invalid_path', message: /different file systems/ },
    })
    t.same([await readFile(join(home, 'stays'), 'utf8'), await listNames(dir)], ['text', []])
  },
)

t.test('removes entries', async (t) => {
  const base = await createDir('removed')
  const outside = createTempDir(t, 'outside')
  await writeFile(join(outside, 'kept'), '')
  await mkdir(join(base, 'empty'))
  await mkdir(join(base, 'full/sub/sub'), { recursive: true })
  await writeFile(join(base, 'full/sub/file'), '')
  await symlink(outside, join(base, 'full/link'))
  await symlink(outside, join(base, 'link'))
  t.match(await (await remove('removed/empty')).json(), { ok: true, path: join(base, 'empty') })
  t.match(await readError(await remove('removed/full')), { status: 409, code: 'directory_not_empty' })
  t.match(await readError(await remove('removed/link/')), { status: 404, code: 'not_found' })
  t.equal((await removeAll('removed/full')).status, 200)
  t.equal((await removeAll('removed/link')).status, 200)
  t.match(await readError(await remove('removed/none')), { status: 404, code: 'not_found' })
  t.same(await listNames(base), [])
  t.same(await listNames(outside), ['kept'], 'links are not followed')
})

t.test('removes a tree that is deeper than a path can be long', async (t) => {
  const base = await createDir('deep')
  const script =
    'i=0; while [ $i -lt 300 ]; do mkdir dddddddddddddddddddd && cd dddddddddddddddddddd; i=$((i+1)); done'
  execFileSync('sh', ['-c', script], { cwd: base })
  t.equal((await removeAll('deep')).status, 200)
  t.ok(await isMissing(base))
})

t.test('does not move or remove the home, what contains it, and the files of the agent', async (t) => {
  await symlink(stateDir, join(home, 'to-state'))
  await symlink('/', join(home, 'to-root'))
  for (const path of [
    ...['/', '~', '.', home, `${home}/`, `${home}/../`, join(home, '..'), `to-root${home}`],
    ...['.state', '.state/', '.state/token', '.state/exec', 'to-state/token', 'to-state/', 'to-root/'],
    `/proc/${process.pid}/root${stateDir}/token`,
  ]) {
    t.match(await readError(await removeAll(path)), { status: 403, code: 'permission_denied' }, path)
    const moved = await post('move', { from: path, to: 'elsewhere' })
    t.match(await readError(moved), { status: 403, code: 'permission_denied' }, path)
  }
  await writeFile(join(home, 'new'), '')
  for (const to of ['.state/token', '.state/new', 'to-state/token'])
    t.match(await readError(await post('move', { from: 'new', to, overwrite: true })), { status: 403 }, to)
  for (const path of ['.state', '.state/exec', 'to-state'])
    t.match(await readError(await get('list', path)), { status: 403, code: 'permission_denied' }, path)
  t.match(await readError(await get('stat', '.state/token')), { status: 403, code: 'permission_denied' })
  t.equal(await readFile(join(stateDir, 'token'), 'utf8'), 'bxt_secret')
})

t.test('a removal stops at the files of the agent when they are moved into the tree', async (t) => {
  const { home, stateDir, url } = await serveFiles(t)
  await mkdir(stateDir)
  await writeFile(join(stateDir, 'token'), 'bxt_secret')
  await mkdir(join(home, 'tree'))
  // A bind mount or a rename during the removal looks like this: the directory has another path than at the start.
  await rename(stateDir, join(home, 'tree/moved'))
  await symlink(join(home, 'tree/moved'), stateDir)
  const response = await fetch(`${url}/files${query('tree')}&recursive=1`, { method: 'DELETE' })
  t.match(await readError(response), { status: 403, code: 'permission_denied' })
  t.equal(await readFile(join(home, 'tree/moved/token'), 'utf8'), 'bxt_secret')
})

t.test('rejects paths and queries that are not valid', async (t) => {
  await writeFile(join(home, 'plain'), '')
  for (const [route, path, more, status, code] of [
    ['list', 'plain', '', 400, 'invalid_path'],
    ['list', 'missing', '', 404, 'not_found'],
    ['list', 'plain/x', '', 404, 'not_found'],
    ['list', '', '', 400, 'invalid_path'],
    ['list', 'a\nb', '', 400, 'invalid_path'],
    ['list', '~', '&limit=0', 400, 'invalid_request'],
    ['list', '~', '&limit=1001', 400, 'invalid_request'],
    ['list', '~', '&cursor=a%2Fb', 400, 'invalid_request'],
    ['stat', 'missing', '', 404, 'not_found'],
    ['stat', 'plain/', '', 404, 'not_found'],
    ['stat', 'a\0b', '', 400, 'invalid_path'],
    ['stat', 'n'.repeat(256), '', 400, 'invalid_path'],
  ] as const)
    t.match(
      await readError(await get(route, path, more)),
      { status, code },
      `${route} ${encodeURI(path)}${more}`,
    )
  t.match(await readError(await remove('plain', '&recursive=yes')), { status: 400, code: 'invalid_request' })
})
