// File requests cannot access the agent's state, which contains the box's token. Output logs can be read.
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { list } from 'tar'
import { query, readError, serveFiles } from './support.ts'

const { home, stateDir, url } = await serveFiles(t)
const logPath = join(stateDir, 'exec/p_1/stdout')
await mkdir(join(stateDir, 'exec/p_1'), { recursive: true })
await writeFile(join(stateDir, 'token'), 'bxt_secret')
await writeFile(join(stateDir, 'exec/p_1/meta.json'), '{}')
await writeFile(logPath, 'output\n')
await mkdir(join(home, 'links'))
await symlink(stateDir, join(home, 'links/state'))
await symlink(join(stateDir, 'token'), join(stateDir, 'exec/p_1/stderr'))

const readFileRoute = (path: string) => fetch(`${url}/files${query(path)}`)
const download = (path: string) => fetch(`${url}/download${query(path)}`)
const upload = (path: string) => fetch(`${url}/upload${query(path)}`, { method: 'PUT', body: 'x' })
const put = (path: string) =>
  fetch(`${url}/files`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ path, content: 'x' }),
  })

t.test('refuses to read files and directories of the state', async (t) => {
  const paths = [
    ...['.state/token', `${stateDir}/token`, 'links/state/token', '.state/../.state/token'],
    ...['.state/exec/p_1/meta.json', '.state/exec/p_1/stderr', '.state/exec/p_1', '.state', 'links/state'],
    `/proc/${process.pid}/root${stateDir}/token`,
  ]
  for (const path of paths) {
    for (const request of [readFileRoute, download])
      t.match(await readError(await request(path)), { status: 403, code: 'permission_denied' }, path)
  }
})

t.test('refuses to write files of the state', async (t) => {
  for (const path of [
    '.state/token',
    'links/state/url',
    '.state/exec/p_1/stdout',
    '.state/exec/p_1/stderr',
  ]) {
    for (const request of [put, upload])
      t.match(await readError(await request(path)), { status: 403, code: 'permission_denied' }, path)
  }
  t.equal(await readFile(join(stateDir, 'token'), 'utf8'), 'bxt_secret')
})

t.test('serves output logs', async (t) => {
  t.equal(await (await download(logPath)).text(), 'output\n')
  t.match(await (await readFileRoute(logPath)).json(), { content: 'output\n' })
})

t.test('omits the state from the archive of a directory that contains it', async (t) => {
  await writeFile(join(home, 'links/file'), '')
  const names: string[] = []
  const parser = list({ onReadEntry: (entry) => names.push(entry.path.replace(/^[^/]*\//, '')) })
  parser.end(Buffer.from(await (await download(home)).arrayBuffer()))
  t.same(names.sort(), ['', 'links/', 'links/file', 'links/state'])
})
