// The bundle of the agent is cached, and is built again after every change of what it consists of.
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { getAgentBundle } from '../../../../coordinator/agents/bundles/agent-bundle.ts'
import { readBundleCache, writeBundleCache } from '../../../../coordinator/base/bundle-cache.ts'
import { PROJECT_DIR as projectRoot } from '../../../support/project.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const PROJECT = {
  'package.json': '{"type":"module"}',
  'package-lock.json': '{}',
  'agent/start.ts':
    "import { value } from '../shared/value.ts'\nimport dep from 'dep'\nconsole.log(value, dep)\n",
  'agent/vitals/machine-info.ts': "console.log('machine-info')\n",
  'agent/setup/main.ts': "console.log('setup')\n",
  'shared/value.ts': "export const value: string = 'value-1'\n",
  'node_modules/dep/package.json': '{"main":"first.js"}',
  'node_modules/dep/first.js': "import inner from 'inner'\nexport default 'dep-1' + inner\n",
  'node_modules/dep/second.js': "export default 'dep-2'\n",
  'node_modules/inner/package.json': '{"main":"index.js"}',
  'node_modules/inner/index.js': "export default 'inner-1'\n",
}

function createProject(test: Test) {
  const dir = createTempDir(test, 'bundle')
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  for (const [path, text] of Object.entries(PROJECT)) write(path, text)
  const cacheFile = join(dir, 'cache/bundle')
  /** The text of all bundled files, without the compile cache. */
  const bundle = async (cacheFiles = [cacheFile]) =>
    (await getAgentBundle(dir, cacheFiles))
      .filter(({ name }) => name.endsWith('.mjs'))
      .map(({ bytes }) => Buffer.from(bytes).toString())
      .join()
  /** A bundle whose inputs have just changed is not cached. */
  const bundleUntilCached = (file = cacheFile, cacheFiles = [file]) =>
    waitUntil('the bundle is cached', async () => {
      const text = await bundle(cacheFiles)
      return existsSync(file) && text
    })
  return { dir, write, cacheFile, bundle, bundleUntilCached }
}

/** Replaces the files in the cache, as evidence of its use. */
function replaceCachedFiles(cacheFile: string): void {
  const cached = readBundleCache(cacheFile)
  if (cached === null) throw new Error('the cache is not valid')
  writeBundleCache(cacheFile, { ...cached, files: [{ name: 'agent.mjs', bytes: Buffer.from(FROM_CACHE) }] })
}
const FROM_CACHE = 'from the cache'

t.test('uses the cached bundle while nothing has changed', async (test) => {
  const { cacheFile, bundle, bundleUntilCached } = createProject(test)
  test.match(await bundleUntilCached(), /value-1/)
  replaceCachedFiles(cacheFile)
  test.equal(await bundle(), FROM_CACHE)
})

t.test('builds the bundle again after a change of how it is built', async (test) => {
  const { dir, cacheFile, bundleUntilCached } = createProject(test)
  await bundleUntilCached()
  replaceCachedFiles(cacheFile)
  const builderDir = createTempDir(test, 'builder')
  symlinkSync(join(projectRoot, 'node_modules'), join(builderDir, 'node_modules'))
  const builder = 'coordinator/agents/bundles/agent-bundle.ts'
  for (const path of [
    builder,
    ...['compile-cache.ts', 'node-flags.ts'].map((name) => `coordinator/agents/bundles/${name}`),
    ...['bundle-cache.ts', 'cached-bundle.ts'].map((name) => `coordinator/base/${name}`),
  ])
    cpSync(join(projectRoot, path), join(builderDir, path))
  appendFileSync(join(builderDir, builder), '// The next version.\n')
  const next: { getAgentBundle: typeof getAgentBundle } = await import(join(builderDir, builder))
  const files = await next.getAgentBundle(dir, [cacheFile])
  test.match(files.map(({ bytes }) => Buffer.from(bytes).toString()).join(), /value-1/)
})

const CHANGES: { name: string; files: Record<string, string>; expected: RegExp }[] = [
  { name: 'a source', files: { 'shared/value.ts': "export const value = 'value-2'" }, expected: /value-2/ },
  {
    name: 'a source, with the same length',
    files: { 'shared/value.ts': PROJECT['shared/value.ts'].replace('value-1', 'value-3') },
    expected: /value-3/,
  },
  {
    name: 'a file of a package',
    files: { 'node_modules/inner/index.js': "export default 'inner-2'" },
    expected: /inner-2/,
  },
  {
    name: 'the entry point of a package',
    files: { 'node_modules/dep/package.json': '{"main":"second.js"}' },
    expected: /dep-2/,
  },
  {
    name: 'the installed packages',
    files: {
      'node_modules/dep/node_modules/inner/index.js': "export default 'nested-inner'",
      'node_modules/.package-lock.json': '{}',
    },
    expected: /nested-inner/,
  },
]
for (const { name, files, expected } of CHANGES)
  t.test(`builds the bundle again after a change of ${name}`, async (test) => {
    const { write, bundle, bundleUntilCached } = createProject(test)
    test.notMatch(await bundleUntilCached(), expected)
    for (const [path, text] of Object.entries(files)) write(path, text)
    test.match(await bundle(), expected)
  })

t.test('builds a damaged cached bundle again', async (test) => {
  const { cacheFile, bundle, bundleUntilCached } = createProject(test)
  const text = await bundleUntilCached()
  const valid = readFileSync(cacheFile)
  const flipped = Buffer.from(valid)
  flipped.write('VALUE', valid.indexOf('value-1'))
  for (const [name, damaged] of Object.entries({ flipped, truncated: valid.subarray(0, -1), empty: '' })) {
    writeFileSync(cacheFile, damaged)
    test.equal(await bundle(), text, name)
    test.ok(readBundleCache(cacheFile), `the cache is replaced: ${name}`)
  }
})

t.test('does not cache a bundle whose inputs change during the build', async (test) => {
  const { write, cacheFile, bundle, bundleUntilCached } = createProject(test)
  await bundleUntilCached()
  rmSync(cacheFile)
  const building = bundle()
  write('shared/value.ts', "export const value = 'value-2'")
  await building
  test.notOk(existsSync(cacheFile))
  test.match(await bundle(), /value-2/)
})

t.test('uses the second cache when the first cannot be written', async (test) => {
  const { dir, write, bundleUntilCached } = createProject(test)
  write('file', '')
  const second = join(dir, 'second/bundle')
  test.match(await bundleUntilCached(second, [join(dir, 'file/bundle'), second]), /value-1/)
})

// An `import { z } from 'zod'`, and zod's namespace `core`, would bundle 0.4 MB of messages in 50 languages.
t.test('the agent has no translations of zod', async (test) => {
  const files = await getAgentBundle(projectRoot, [])
  const text = files.map(({ bytes }) => Buffer.from(bytes).toString('latin1')).join()
  test.match(text, /Invalid input/)
  test.notMatch(text, /Ongeldige/)
})
