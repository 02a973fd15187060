// File requests respect the file permissions of the box user. Root bypasses permissions, so when root runs this test, the
// file server runs as the user `nobody`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { firstOutput } from '../../support/first-output.ts'
import { listNames, query, readError } from './support.ts'

const serverScript = fileURLToPath(new URL('fixtures/unprivileged-file-server.ts', import.meta.url))
const server = spawn(process.execPath, [serverScript], { stdio: ['pipe', 'pipe', 'inherit'] })
const serverInfo = await firstOutput(server)
const { home, url, uid }: { home: string; url: string; uid: number } = JSON.parse(serverInfo.toString())
const inHome = (name: string) => join(home, name)

for (const name of ['no-access', 'read-only-dir', 'writable']) await mkdir(inHome(name))
await writeFile(inHome('no-access/file'), 'hidden')
await writeFile(inHome('read-only-dir/file'), 'old')
await chmod(inHome('read-only-dir/file'), 0o640)
await writeFile(inHome('writable/unreadable'), 'hidden')
await writeFile(inHome('writable/read-only'), 'old')
await chmod(inHome('writable/unreadable'), 0o200)
await chmod(inHome('writable/read-only'), 0o444)
await chmod(inHome('no-access'), 0)
await chmod(inHome('read-only-dir'), 0o555)
if (process.getuid?.() !== uid) {
  for (const name of [
    'no-access',
    'read-only-dir',
    'writable',
    'no-access/file',
    'read-only-dir/file',
    'writable/unreadable',
    'writable/read-only',
  ]) {
    await chown(inHome(name), uid, uid)
  }
}
t.teardown(async () => {
  for (const name of ['no-access', 'read-only-dir']) await chmod(inHome(name), 0o755)
  for (const name of ['no-access', 'read-only-dir', 'writable']) await rm(inHome(name), { recursive: true })
  server.stdin.end()
  await once(server, 'close')
})

const upload = (path: string) => fetch(`${url}/upload${query(path)}`, { method: 'PUT', body: 'new' })
const get = (route: string) => (path: string) => fetch(`${url}/${route}${query(path)}`)
const remove = (path: string) => fetch(`${url}/files${query(path)}&recursive=1`, { method: 'DELETE' })
const post = (route: string, body: object) =>
  fetch(`${url}/files/${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const makeDirectory = (path: string) => post('mkdir', { path })
const moveHere = (path: string) => post('move', { from: path, to: 'moved' })
const moveThere = (path: string) => post('move', { from: 'writable/read-only', to: path })

for (const [action, request, path] of [
  ['reading an unreadable file', get('files'), 'writable/unreadable'],
  ['downloading an unreadable file', get('download'), 'writable/unreadable'],
  ['downloading a directory with an unreadable file', get('download'), 'writable'],
  ['reading a file in a directory without permissions', get('files'), 'no-access/file'],
  ['downloading a directory without permissions', get('download'), 'no-access'],
  ['downloading a directory with an unreadable subdirectory', get('download'), '.'],
  ['overwriting a read-only file in a writable directory', upload, 'writable/read-only'],
  ['creating a file in a read-only directory', upload, 'read-only-dir/new'],
  ['uploading to a directory without permissions', upload, 'no-access/file'],
  ['listing a directory without permissions', get('files/list'), 'no-access'],
  ['inspecting a file in a directory without permissions', get('files/stat'), 'no-access/file'],
  ['removing a file in a read-only directory', remove, 'read-only-dir/file'],
  ['removing a read-only directory with a file', remove, 'read-only-dir'],
  ['removing a directory without permissions', remove, 'no-access'],
  ['creating a directory in a read-only directory', makeDirectory, 'read-only-dir/new'],
  ['moving a file from a read-only directory', moveHere, 'read-only-dir/file'],
  ['moving a file to a read-only directory', moveThere, 'read-only-dir/new'],
  ['moving a file to a directory without permissions', moveThere, 'no-access/new'],
] as const) {
  t.test(`denies ${action}`, async (t) => {
    t.match(await readError(await request(path)), { status: 403, code: 'permission_denied' })
  })
}

t.test('names the entry that cannot be removed', async (t) => {
  t.match((await readError(await remove('read-only-dir'))).message, /read-only-dir\/file: permission denied/)
})

t.test('names the unreadable file when a directory download is denied', async (t) => {
  t.match((await readError(await get('download')('writable'))).message, /writable\/unreadable/)
})

t.test('overwrites a writable file in a read-only directory in place', async (t) => {
  const { ino } = await stat(inHome('read-only-dir/file'))
  t.equal((await upload('read-only-dir/file')).status, 200)
  t.equal(await readFile(inHome('read-only-dir/file'), 'utf8'), 'new')
  t.match(await stat(inHome('read-only-dir/file')), { ino })
  t.equal((await stat(inHome('read-only-dir/file'))).mode & 0o777, 0o640)
})

t.test('denied requests change nothing and leave no files behind', async (t) => {
  t.equal(await readFile(inHome('writable/read-only'), 'utf8'), 'old')
  t.same(await listNames(inHome('writable')), ['read-only', 'unreadable'])
  t.same(await listNames(inHome('read-only-dir')), ['file'])
  t.same(await listNames(home), ['no-access', 'read-only-dir', 'writable'])
})
