// How the box command finds its coordinator, and the sentence when it does not.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { locate } from '../../cli/locate.ts'
import { CLI_VERSION } from '../../cli/version.ts'
import { KEY, startFakeCoordinator } from './fake-coordinator.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)

async function dataFolder(path: string, url = fake.url): Promise<string> {
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'owner.key'), `${KEY}\n`, { mode: 0o600 })
  await writeFile(join(path, 'coordinator.json'), JSON.stringify({ url, pid: 1 }))
  return path
}

t.test('in the data folder: BOXWOOD_DATA, here, or the project', async (t) => {
  const root = t.testdir({ empty: {}, project: {}, here: {} })
  const data = await dataFolder(join(root, 'data'))
  t.match(await runBox(null, ['me'], { env: { BOXWOOD_DATA: data } }), { code: 0 })
  await dataFolder(join(root, 'project', '.boxwood'), 'http://project.example')
  t.match(locate({}, join(root, 'empty'), join(root, 'project')), {
    baseUrl: 'http://project.example/api/v1',
    key: KEY,
  })
  await dataFolder(join(root, 'here', '.boxwood'))
  t.match(locate({}, join(root, 'here'), join(root, 'project')), { baseUrl: `${fake.url}/api/v1` })
  t.throws(() => locate({ BOXWOOD_DATA: join(root, 'empty') }, join(root, 'here'), root), {
    message: /BOXWOOD_DATA.*npm start/,
  })
})

t.test('by BOXWOOD_URL, as a bare origin too', async (t) => {
  const env = { BOXWOOD_API_KEY: KEY }
  for (const url of [fake.url, `${fake.url}/`, `${fake.url}/api/v1/`])
    t.match(await runBox(null, ['me'], { env: { ...env, BOXWOOD_URL: url } }), { code: 0 })
  t.match(await runBox(null, ['me'], { env: { ...env, BOXWOOD_URL: 'fig' } }), {
    code: 2,
    stderr: /BOXWOOD_URL/,
  })
})

t.test('the owner’s key goes to no other coordinator', async (t) => {
  const data = await dataFolder(join(t.testdir({}), 'data'), 'http://127.0.0.1:1')
  const seen = await runBox(null, ['me'], { env: { BOXWOOD_DATA: data, BOXWOOD_URL: fake.url } })
  t.match(seen, { code: 4, stderr: /no API key for .*Set BOXWOOD_API_KEY/ })
})

t.test('nothing found, nothing there, wrong key, something else there', async (t) => {
  const cwd = t.testdir({})
  t.throws(() => locate({}, cwd, cwd), { message: /npm start.*BOXWOOD_URL/ })
  t.match(await runBox('http://127.0.0.1:1', ['ls']), {
    code: 3,
    stderr: /nothing listens there.*BOXWOOD_URL/,
  })
  const data = await dataFolder(join(cwd, 'data'), 'http://127.0.0.1:1')
  t.match(await runBox(null, ['ls'], { env: { BOXWOOD_DATA: data } }), { code: 3, stderr: /npm start/ })
  t.match(await runBox(fake.url, ['ls'], { env: { BOXWOOD_API_KEY: 'dcp_wrong' } }), {
    code: 4,
    stderr: /BOXWOOD_API_KEY is not accepted/,
  })
  fake.answerNext('GET /api/v1/boxes', (response) => response.end('<html>'))
  t.match(await runBox(fake.url, ['ls']), { code: 1, stderr: /not as a coordinator.*BOXWOOD_URL/ })
})

t.test(
  'a key that another user owns',
  { skip: process.getuid?.() === 0 && 'root reads every file' },
  async (t) => {
    const data = await dataFolder(join(t.testdir({}), 'data'))
    await chmod(join(data, 'owner.key'), 0o000)
    t.match(await runBox(null, ['ls'], { env: { BOXWOOD_DATA: data } }), { code: 4, stderr: /another user/ })
  },
)

t.test('the version it sends is that of the package', async (t) => {
  const { default: manifest } = await import('../../cli/package.json', { with: { type: 'json' } })
  t.equal(manifest.version, CLI_VERSION)
  t.match(await runBox(null, ['--version']), { code: 0, stdout: `${CLI_VERSION}\n` })
})
