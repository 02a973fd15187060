// The names of copies, and messages about arguments that are not what they look like.
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'], { machines: 'local' })
const { id } = await coordinator.findBox('fig')
const localDir = t.testdir({ 'a:b': 'colon' })
const cp = (...args: string[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })

t.test('a copy of the home directory gets the name of the box', async (t) => {
  await writeFile(join(coordinator.getHome('fig'), 'of-fig'), 'x')
  for (const source of ['fig:', 'plum:~']) t.match(await cp(source, '.'), { code: 0, stderr: '' })
  t.same((await readdir(localDir)).sort(), ['a:b', 'fig', 'plum'])
  t.same(await readdir(join(localDir, 'fig')), ['of-fig'])
  await mkdir(join(localDir, 'by-id'))
  t.match(await cp(`${id}:`, 'by-id'), { code: 0 })
  t.same(await readdir(join(localDir, 'by-id')), ['fig'], 'also if the box is given by its id')
})

t.test('the path that a box reports has no effect on the name', async (t) => {
  coordinator.failNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(200, { 'content-length': 1, 'x-service-path': '/a/../..' }).end('x')
  })
  await mkdir(join(localDir, 'safe'))
  t.match(await cp('fig:/', 'safe'), { code: 0 })
  t.same(await readdir(join(localDir, 'safe')), ['fig'])
})

t.test('a local file with a colon is suggested when there is no such box', async (t) => {
  t.match(await cp('a:b', 'fig:'), {
    code: 5,
    stderr: /^box: No such box: 'a'\..* For the file on this machine, write \.\/a:b\.\n$/,
  })
  t.match(await cp('./a:b', 'fig:'), { code: 0 })
  t.notMatch((await cp('a:c', 'fig:')).stderr, /this machine/)
})

t.test('URLs and Windows paths are not boxes', async (t) => {
  t.match(await cp('https://example.com/file', 'fig:'), { code: 2, stderr: /is a URL.*curl/ })
  t.match(await cp('fig:file', 's3://bucket/file'), { code: 2, stderr: /is a URL/ })
  t.match(await cp('C:\\notes.md', 'fig:'), { code: 2, stderr: /is a Windows path/ })
})

t.test('at least one side is on a box', async (t) => {
  t.match(await cp('here', 'there'), { code: 2, stderr: /must be on a box: BOX:PATH/ })
})

t.test(
  'errors do not show the names of temporary files',
  { skip: process.getuid?.() === 0 && 'root can write to every directory' },
  async (t) => {
    for (const dir of [join(coordinator.getHome('fig'), 'ro'), join(localDir, 'ro')]) {
      await mkdir(dir)
      await chmod(dir, 0o555)
    }
    for (const args of [
      ['fig', 'fig:ro/'],
      ['fig/of-fig', 'a:b', 'fig:ro'],
      ['fig:of-fig', 'ro'],
      ['fig:', 'ro'],
    ]) {
      const { code, stderr } = await cp(...args.map((arg) => (arg === 'a:b' ? './a:b' : arg)))
      t.not(code, 0, args.join(' '))
      t.match(stderr, /ro.*permission denied/i, args.join(' '))
      t.notMatch(stderr, /\.box-cp/, args.join(' '))
    }
  },
)
