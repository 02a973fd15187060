// A client that may not run commands reads no file with a credential, by whatever path, and no file of a process.
import { execFileSync, spawn } from 'node:child_process'
import { link, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { list } from 'tar'
import { READER_HEADER } from '../../../shared/protocol.ts'
import { query, readError, serveFiles } from './support.ts'

const { home, url, credentialFiles } = await serveFiles(t)
await mkdir(join(home, '.boxwood/aws'), { recursive: true })
await mkdir(join(home, 'app/config'), { recursive: true })
await writeFile(join(home, '.boxwood/aws/token'), 'secret-of-aws')
await writeFile(join(home, '.npmrc'), 'secret-of-npm')
await writeFile(join(home, 'app/.env'), 'secret-of-app')
await writeFile(join(home, 'app/other'), 'public')
await symlink(join(home, '.npmrc'), join(home, 'app/npmrc'))
await symlink(join(home, '.boxwood'), join(home, 'app/own'))
await link(join(home, '.npmrc'), join(home, 'app/config/copy'))
await link(join(home, '.boxwood/aws/token'), join(home, 'app/config/token'))
const child = spawn('sleep', ['1000'], { cwd: join(home, '.boxwood/aws'), env: { KEY: 'secret-of-process' } })
t.teardown(() => child.kill())

const READER = { [READER_HEADER]: '1' }
const get = (route: string, path: string, headers: Record<string, string> = READER, method = 'GET') =>
  fetch(`${url}${route}${query(path)}`, { method, headers })
async function readNames(path: string, headers: Record<string, string>): Promise<string[]> {
  const response = await get('/download', path, headers)
  const names: string[] = []
  const parser = list({ onReadEntry: (entry) => names.push(entry.path.replace(/^[^/]*\//, '')) })
  parser.end(Buffer.from(await response.arrayBuffer()))
  return names.sort()
}

const { pid = 0 } = child
const CREDENTIALS = [
  ...['.boxwood/aws/token', '.boxwood', '.boxwood/aws', '~/.boxwood/aws/token', 'app/../.boxwood/aws/token'],
  ...['.npmrc', 'app/.env', `${home}/app/.env`, 'app/npmrc', 'app/own/aws/token', 'app/own'],
  ...['app/config/copy', 'app/config/token'],
  ...[
    `/proc/self/root${home}/.npmrc`,
    `/proc/${pid}/cwd/token`,
    `/proc/${pid}/root${home}/.boxwood/aws/token`,
  ],
]
const PROCESSES = [
  ...['environ', 'maps', 'cmdline', 'auxv', 'status', 'task', '.'].map((name) => `/proc/${pid}/${name}`),
  ...[
    '/proc/self/environ',
    '/proc/thread-self/environ',
    `/proc/${pid}/task/${pid}/environ`,
    '/proc/kallsyms',
  ],
]

t.test('until the paths of the secret files are known, readers read nothing', async (t) => {
  t.match(await readError(await get('/files', 'app/other')), { status: 502, code: 'box_unreachable' })
  t.equal((await get('/files', 'app/other', {})).status, 200)
  credentialFiles.setSecretFiles(['~/.npmrc', `${home}/missing`])
  credentialFiles.addSecretFile(`${home}/app/.env`)
})

t.test('readers get no credential', async (t) => {
  for (const path of [...CREDENTIALS, ...PROCESSES]) {
    const inline = await get('/files', path)
    const expected = { status: 403, code: 'permission_denied' }
    t.match(await readError(inline), expected, `GET /files ${path}`)
    t.match(await readError(await get('/download', path)), expected, `GET /download ${path}`)
    t.equal((await get('/download', path, READER, 'HEAD')).status, 403, `HEAD /download ${path}`)
  }
  for (const path of ['.boxwood', 'app/own', '.boxwood/aws'])
    for (const route of ['/files/list', '/files/stat'])
      if (path !== 'app/own' || route === '/files/list')
        t.equal((await get(route, path)).status, 403, `${route} ${path}`)
})

t.test('readers read other files', async (t) => {
  for (const path of ['app/other', '/etc/passwd', `/proc/self/root${home}/app/other`])
    t.equal((await get('/files', path)).status, 200, path)
  t.equal(await (await get('/download', 'app/other')).text(), 'public')
  t.match(await (await get('/files/list', '~')).json(), {
    entries: [{ name: '.boxwood' }, { name: '.npmrc' }],
  })
  t.match(await (await get('/files/stat', '.npmrc')).json(), { entry: { type: 'file' } })
})

t.test('the archive of a reader omits them', async (t) => {
  const all = ['', '.boxwood/', '.boxwood/aws/', '.boxwood/aws/token', '.npmrc', 'app/', 'app/.env']
  const links = ['app/config/', 'app/config/copy', 'app/config/token', 'app/npmrc', 'app/other', 'app/own']
  t.same(await readNames(home, {}), [...all, ...links].sort())
  const rest = ['', 'app/', 'app/config/', 'app/npmrc', 'app/other', 'app/own']
  t.same(await readNames(home, READER), rest, 'symbolic links have only their target')
  const { headers } = await get('/download', home, READER, 'HEAD')
  t.equal(headers.get('x-service-skipped'), '5', 'the directory, and four files')
})

t.test('others read them', async (t) => {
  for (const path of CREDENTIALS) t.equal((await get('/download', path, {})).status, 200, path)
  const { content } = (await (await get('/files', `/proc/${pid}/environ`, {})).json()) as { content: string }
  t.match(content, 'secret-of-process')
})

t.test(
  'a mounted directory is the same directory',
  { skip: process.getuid?.() !== 0 && 'not root' },
  async (t) => {
    const alias = join(home, 'alias')
    await mkdir(alias)
    try {
      execFileSync('mount', ['--bind', join(home, '.boxwood'), alias], { stdio: 'pipe' })
    } catch {
      return t.pass('this machine permits no mounts')
    }
    t.teardown(() => execFileSync('umount', [alias]))
    t.equal((await get('/files', 'alias/aws/token')).status, 403)
  },
)
