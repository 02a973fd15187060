// What the box user may not read or write is permission_denied, and what it may write it can. Root may do anything, so
// as root this test asks an agent that is nobody.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { errorOf, namesIn, query } from './support.ts'

const fixture = fileURLToPath(new URL('fixtures/ordinary-agent.ts', import.meta.url))
const agent = spawn(process.execPath, [fixture], { stdio: ['pipe', 'pipe', 'inherit'] })
const [said] = (await once(agent.stdout, 'data')) as [Buffer]
const { home, url, uid }: { home: string; url: string; uid: number } = JSON.parse(said.toString())
const at = (name: string) => join(home, name)

for (const name of ['closed', 'fixed', 'open']) await mkdir(at(name))
await writeFile(at('closed/file'), 'hidden')
await writeFile(at('fixed/file'), 'old')
await chmod(at('fixed/file'), 0o640)
await writeFile(at('open/unreadable'), 'hidden')
await writeFile(at('open/readonly'), 'old')
await chmod(at('open/unreadable'), 0o200)
await chmod(at('open/readonly'), 0o444)
await chmod(at('closed'), 0)
await chmod(at('fixed'), 0o555)
if (process.getuid?.() !== uid) {
  for (const name of [
    'closed',
    'fixed',
    'open',
    'closed/file',
    'fixed/file',
    'open/unreadable',
    'open/readonly',
  ]) {
    await chown(at(name), uid, uid)
  }
}
t.teardown(async () => {
  for (const name of ['closed', 'fixed']) await chmod(at(name), 0o755)
  for (const name of ['closed', 'fixed', 'open']) await rm(at(name), { recursive: true })
  agent.stdin.end()
  await once(agent, 'close')
})

const upload = (path: string) => fetch(`${url}/upload${query(path)}`, { method: 'PUT', body: 'new' })
const get = (route: string) => (path: string) => fetch(`${url}/${route}${query(path)}`)

for (const [what, ask, path] of [
  ['a file that may not be read', get('files'), 'open/unreadable'],
  ['its download', get('download'), 'open/unreadable'],
  ['a folder that holds one', get('download'), 'open'],
  ['a file in a closed folder', get('files'), 'closed/file'],
  ['a closed folder', get('download'), 'closed'],
  ['a folder that holds one', get('download'), '.'],
  ['a read-only file, though its folder could be changed', upload, 'open/readonly'],
  ['a new file in a read-only folder', upload, 'fixed/new'],
  ['a file in a closed folder', upload, 'closed/file'],
] as const) {
  t.test(`${what}: ${path}`, async (t) => {
    t.match(await errorOf(await ask(path)), { status: 403, code: 'permission_denied' })
  })
}

t.test('a folder names what stands in the way', async (t) => {
  t.match((await errorOf(await get('download')('open'))).message, /open\/unreadable/)
})

t.test('a writable file in a read-only folder is written in place', async (t) => {
  const { ino } = await stat(at('fixed/file'))
  t.equal((await upload('fixed/file')).status, 200)
  t.equal(await readFile(at('fixed/file'), 'utf8'), 'new')
  t.match(await stat(at('fixed/file')), { ino })
  t.equal((await stat(at('fixed/file'))).mode & 0o777, 0o640)
})

t.test('nothing is left behind', async (t) => {
  t.equal(await readFile(at('open/readonly'), 'utf8'), 'old')
  t.same(await namesIn(at('open')), ['readonly', 'unreadable'])
  t.same(await namesIn(at('fixed')), ['file'])
  t.same(await namesIn(home), ['closed', 'fixed', 'open'])
})
