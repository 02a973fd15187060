// Invalid paths are rejected with the same error code on every file route.
import { execFileSync } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { listNames, query, readError, serveFiles } from './support.ts'

const { home, url } = await serveFiles(t)
await writeFile(join(home, 'file'), 'x')
await mkdir(join(home, 'dir'))
await symlink('loop', join(home, 'loop'))
await symlink('dir', join(home, 'link-to-dir'))
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
const allRoutes = ['read', 'download', 'upload', 'write']
const readRoutes = ['read', 'download']
const writeRoutes = ['upload', 'write']

const CASES: [kind: string, path: string, routes: string[], status: number, code: string][] = [
  ['an empty path', '', allRoutes, 400, 'invalid_path'],
  ['a NUL', 'a\0b', allRoutes, 400, 'invalid_path'],
  ['a newline', 'a\nb', allRoutes, 400, 'invalid_path'],
  ['a name that is too long', 'n'.repeat(300), allRoutes, 400, 'invalid_path'],
  ['a link to itself', 'loop', allRoutes, 400, 'invalid_path'],
  ['a FIFO', 'fifo', allRoutes, 400, 'invalid_path'],
  ['a socket', 'socket', allRoutes, 400, 'invalid_path'],
  ['a device', '/dev/null', allRoutes, 400, 'invalid_path'],
  ['a directory', 'dir', ['read', ...writeRoutes], 400, 'invalid_path'],
  ['a link to a directory', 'link-to-dir', ['read', ...writeRoutes], 400, 'invalid_path'],
  ['the home', '~', ['read', ...writeRoutes], 400, 'invalid_path'],
  ['a directory with a trailing slash', 'dir/', ['read', ...writeRoutes], 400, 'invalid_path'],
  ['a new name with a trailing slash', 'new/', writeRoutes, 400, 'invalid_path'],
  ['a trailing ..', 'dir/..', ['read', ...writeRoutes], 400, 'invalid_path'],
  ['a missing file', 'missing', readRoutes, 404, 'not_found'],
  ['a file with a trailing slash', 'file/', readRoutes, 404, 'not_found'],
  ['a missing parent', 'missing/file', allRoutes, 404, 'not_found'],
  ['a file as parent', 'file/child', allRoutes, 404, 'not_found'],
  ['~nobody, which is not expanded', '~nobody/x', allRoutes, 404, 'not_found'],
]

for (const [kind, path, routes, status, code] of CASES) {
  for (const name of routes) {
    t.test(`${name} rejects ${kind}`, async (t) => {
      const response = await ROUTES[name]?.(path)
      if (response === undefined) return t.fail('no such route')
      const error = await readError(response)
      t.match(error, { status, code })
      t.not(error.message, '')
    })
  }
}

t.test('rejects a request without a path or with two', async (t) => {
  for (const [method, path] of [
    ['GET', '/files'],
    ['GET', '/download'],
    ['PUT', '/upload'],
    ['GET', '/files?path=a&path=b'],
  ] as const) {
    t.match(await readError(await fetch(url + path, { method })), { status: 400, code: 'invalid_path' })
  }
  const headers = { 'content-type': 'application/json' }
  for (const body of ['{"content":"x"}', '{"path":7,"content":"x"}']) {
    const response = await fetch(`${url}/files`, { method: 'PUT', headers, body })
    t.match(await readError(response), { status: 400, code: 'invalid_path' })
  }
})

t.test('rejected requests leave no files behind', async (t) => {
  t.same(await listNames(home), ['dir', 'fifo', 'file', 'link-to-dir', 'loop', 'socket'])
  t.same(await listNames(join(home, 'dir')), [])
})

t.test('the message of a rejected write names the directory', async (t) => {
  for (const name of writeRoutes) {
    const expectMessage = async (path: string, message: string) => {
      const response = await ROUTES[name]?.(path)
      if (response === undefined) return t.fail('no such route')
      t.equal((await readError(response)).message, message)
    }
    const missing = join(home, 'missing/deep')
    await expectMessage(
      'missing/deep/file',
      `The directory ${missing} does not exist on the box. Create it first.`,
    )
    const directory = `${home}/new/`
    await expectMessage('new/', `${directory} is the path of a directory. Add the name of the file.`)
  }
})
