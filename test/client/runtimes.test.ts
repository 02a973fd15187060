// The package of the client, as a program installs it: the example of docs/client.md in each runtime, and its types.
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { packClient } from '../../install/package-client.ts'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { NO_BROWSER, startBrowser } from '../support/browser.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { installRuntimes } from '../support/runtimes/install-runtimes.ts'
import { createTempDir } from '../support/temp-dir.ts'

/** Without NODE_OPTIONS, in which tap adds a hook to each child process. */
const run = (file: string, args: string[], options: { cwd: string; env?: NodeJS.ProcessEnv }) =>
  promisify(execFile)('env', ['-u', 'NODE_OPTIONS', file, ...args], { ...options, encoding: 'utf8' })

const [example = '', attachExample = ''] = [
  ...readFileSync(join(PROJECT_DIR, 'docs/client.md'), 'utf8').matchAll(/```js\n(import [\s\S]*?)```/g),
].map(([, code = '']) => code)
const OUTPUT = /^3 Hello from \S+\n\n[\s\S]*notes\.md 8\n$/

const coordinator = await startCoordinatorWithBox(t)
const dir = createTempDir(t, 'client-package')
const packageDir = join(dir, 'node_modules/boxwood-client')
mkdirSync(packageDir, { recursive: true })
const tarball = await packClient(dir)
await run('tar', ['-xzf', join(dir, tarball), '-C', packageDir, '--strip-components=1'], { cwd: dir })
writeFileSync(join(dir, 'package.json'), '{"type":"module"}')
writeFileSync(join(dir, 'first.mjs'), example)
writeFileSync(join(dir, 'attach.mjs'), attachExample)
writeFileSync(
  join(dir, 'attach-with-ws.mjs'),
  "import { WebSocket } from 'ws'\nglobalThis.WebSocket = WebSocket\nawait import('./attach.mjs')\n",
)
symlinkSync(join(PROJECT_DIR, 'node_modules/ws'), join(dir, 'node_modules/ws'))
const env = { ...process.env, BOXWOOD_URL: coordinator.url, BOXWOOD_API_KEY: coordinator.key, NO_COLOR: '1' }

const { runtimes, skip } = await installRuntimes()
if (skip !== false) t.pass('other runtimes', { skip })
for (const { name, command } of runtimes)
  t.test(`the examples run in ${name}`, async (t) => {
    const [file = '', ...args] = command
    const { stdout, stderr } = await run(file, [...args, 'first.mjs'], { cwd: dir, env })
    t.match(stdout, OUTPUT)
    t.equal(stderr, '')
    const program = name === 'node-20' ? 'attach-with-ws.mjs' : 'attach.mjs'
    const attached = await run(file, [...args, program], { cwd: dir, env })
    t.match(attached.stdout.replaceAll(/[\r\n]+/g, ' '), /^fig pear .*Hello, Ada $/)
    // Node 20 and 22 warn of their WebSocket.
    t.notMatch(attached.stderr, /Error/)
  })

t.test(
  'the first example runs in Chromium, whose WebSocket sends no API key',
  { skip: NO_BROWSER },
  async (t) => {
    const browser = await startBrowser(t)
    const page = await browser.newPage({ bypassCSP: true })
    await page.goto(`${coordinator.url}/docs`)
    const lines: string[] = []
    page.on('console', (message) => lines.push(message.text()))
    const code = readFileSync(join(packageDir, 'index.js'), 'utf8')
    const runInPage = (source: string) =>
      page.evaluate(
        async ({ code, program, options }) => {
          const url = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }))
          const { Boxwood } = await import(url)
          const AsyncFunction = (async () => undefined).constructor as FunctionConstructor
          return new AsyncFunction('Boxwood', 'options', program)(Boxwood, options).then(() => null, String)
        },
        {
          code,
          program: source.replace(/^import .*$/m, '').replace('new Boxwood()', 'new Boxwood(options)'),
          options: { url: coordinator.url, apiKey: coordinator.key },
        },
      )
    t.equal(await runInPage(example), null)
    t.match(`${lines.join('\n')}\n`, OUTPUT)
    t.match(
      await runInPage(attachExample),
      /InvalidRequestError: The WebSocket of this runtime sends no API key/,
    )
  },
)

t.test('a program in TypeScript is checked with the types of the package', async (t) => {
  const source = `${example}
const status: 'exited' | 'killed' | 'lost' = (await box.exec('true')).status
const { key } = await boxwood.routes.keys.create({ name: 'ci', expiresInDays: 1 })
export const used: [string, string] = [status, key.name]
`
  const compile = async (name: string, text: string) => {
    writeFileSync(join(dir, name), text)
    const options = [
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--lib',
      'es2023,dom',
      '--strict',
      '--noEmit',
    ]
    return run(join(PROJECT_DIR, 'node_modules/.bin/tsc'), [...options, '--types', '', name], { cwd: dir })
  }
  await compile('valid.ts', source)
  const wrong = `${source}\nconst size: number = (await box.exec('true')).stdout\n`
  t.match(await compile('invalid.ts', wrong).catch(({ stdout }) => stdout), /TS2322/)
})
