// Each kind of bad path gets its own code, on every route.
import { execFileSync } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { errorOf, namesIn, query, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
await writeFile(join(home, 'file'), 'x')
await mkdir(join(home, 'folder'))
await symlink('loop', join(home, 'loop'))
await symlink('folder', join(home, 'to-folder'))
execFileSync('mkfifo', [join(home, 'fifo')])
const server = createServer().listen(join(home, 'socket'))
await new Promise((resolve) => server.once('listening', resolve))
t.teardown(() => server.close())

const ROUTES: Record<string, (path: string) => Promise<Response>> = {
  read: (path) => fetch(`${url}/files${query(path)}`),
  download: (path) => fetch(`${url}/download${query(path)}`),
  upload: (path) => fetch(`${url}/upload${query(path)}`, { method: 'PUT', body: 'new' }),
  write: (path) =>
    fetch(`${url}/files`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ path, content: 'new' }),
    }),
}
const all = ['read', 'download', 'upload', 'write']
const reads = ['read', 'download']
const writes = ['upload', 'write']

const CASES: [what: string, path: string, routes: string[], status: number, code: string][] = [
  ['an empty path', '', all, 400, 'invalid_path'],
  ['a NUL', 'a\0b', all, 400, 'invalid_path'],
  ['a newline', 'a\nb', all, 400, 'invalid_path'],
  ['a name that is too long', 'n'.repeat(300), all, 400, 'invalid_path'],
  ['a link to itself', 'loop', all, 400, 'invalid_path'],
  ['a FIFO', 'fifo', all, 400, 'invalid_path'],
  ['a socket', 'socket', all, 400, 'invalid_path'],
  ['a device', '/dev/null', all, 400, 'invalid_path'],
  ['a directory', 'folder', ['read', ...writes], 400, 'invalid_path'],
  ['a link to a directory', 'to-folder', ['read', ...writes], 400, 'invalid_path'],
  ['the home', '~', ['read', ...writes], 400, 'invalid_path'],
  ['a directory with a slash', 'folder/', ['read', ...writes], 400, 'invalid_path'],
  ['a new name with a slash', 'new/', writes, 400, 'invalid_path'],
  ['dots at the end', 'folder/..', ['read', ...writes], 400, 'invalid_path'],
  ['nothing there', 'nothing', reads, 404, 'not_found'],
  ['a file with a slash', 'file/', reads, 404, 'not_found'],
  ['a missing parent', 'nowhere/file', all, 404, 'not_found'],
  ['a file as parent', 'file/child', all, 404, 'not_found'],
  ['another user’s home, which is only a name', '~nobody/x', all, 404, 'not_found'],
]

for (const [what, path, routes, status, code] of CASES) {
  for (const name of routes) {
    t.test(`${name}: ${what}`, async (t) => {
      const response = await ROUTES[name]?.(path)
      if (response === undefined) return t.fail('no such route')
      const error = await errorOf(response)
      t.match(error, { status, code })
      t.not(error.message, '')
    })
  }
}

t.test('no path at all, or two', async (t) => {
  for (const [method, path] of [
    ['GET', '/files'],
    ['GET', '/download'],
    ['PUT', '/upload'],
    ['GET', '/files?path=a&path=b'],
  ] as const) {
    t.match(await errorOf(await fetch(url + path, { method })), { status: 400, code: 'invalid_path' })
  }
  const headers = { 'content-type': 'application/json' }
  for (const body of ['{"content":"x"}', '{"path":7,"content":"x"}']) {
    const response = await fetch(`${url}/files`, { method: 'PUT', headers, body })
    t.match(await errorOf(response), { status: 400, code: 'invalid_path' })
  }
})

t.test('none of them left anything behind', async (t) => {
  t.same(await namesIn(home), ['fifo', 'file', 'folder', 'loop', 'socket', 'to-folder'])
  t.same(await namesIn(join(home, 'folder')), [])
})
