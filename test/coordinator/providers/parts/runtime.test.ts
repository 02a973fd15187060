// The runtime directory, which contains the agent: rebuilt when it was removed, and removed when no box uses it.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { chmod, cp, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { linkCompileCache } from '../../../../coordinator/agents/bundles/compile-cache.ts'
import { NODE_FLAGS } from '../../../../coordinator/agents/bundles/node-flags.ts'
import { FIRST_BOX_UID as BOX_UID } from '../../../../coordinator/providers/local/machine-file.ts'
import {
  buildRuntime,
  createRuntime,
  listUnusedRuntimes,
} from '../../../../coordinator/providers/parts/runtime.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from '../local/each-level.ts'
import {
  createDataDir,
  createMachineSpec,
  isRoot,
  openProvider,
  projectRoot,
  startBox,
} from '../local/support.ts'

testEachLevel('starts boxes after the runtime directory was removed', async (test, level) => {
  const { provider, dataDir } = await startBox(test, { level })
  const runtimeDir = await buildRuntime(projectRoot, dataDir)
  await rm(join(dataDir, 'runtime'), { recursive: true })
  const specs = [createMachineSpec(), createMachineSpec()]
  test.teardown(() => Promise.all(specs.map(({ boxId }) => provider.destroy(boxId))))
  for (const spec of specs) await provider.create(spec)
  await Promise.all(specs.map((spec) => provider.start({ ...spec, agentToken: 'bxt_test' })))
  for (const { boxId } of specs) test.equal(await provider.inspect(boxId), 'running')
  test.ok(existsSync(join(runtimeDir, 'agent.mjs')))
})

t.test('completes a runtime directory with missing files', async (test) => {
  const dataDir = await createDataDir(test)
  const runtimeDir = await buildRuntime(projectRoot, dataDir)
  const names = ['init.sh', 'node_modules']
  for (const name of names) await rm(join(runtimeDir, name), { recursive: true })
  test.equal(await buildRuntime(projectRoot, dataDir), runtimeDir)
  for (const name of names) test.ok(existsSync(join(runtimeDir, name)), name)
})

t.test('replaces a damaged file of the runtime directory', async (test) => {
  const dataDir = await createDataDir(test)
  const runtimeDir = await buildRuntime(projectRoot, dataDir)
  const file = join(runtimeDir, 'node_modules/bufferutil/index.js')
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace('try', 'tri'))
  test.equal(await buildRuntime(projectRoot, dataDir), runtimeDir)
  test.equal(readFileSync(file, 'utf8'), text)
})

t.test('a box reads the compile cache of the agent, and does not write to it', async (test) => {
  if (!isRoot) return test.pass('the agent runs as another user', { skip: 'needs root' })
  const dataDir = await createDataDir(test)
  const runtimeDir = await buildRuntime(projectRoot, dataDir)
  await linkCompileCache(runtimeDir, BOX_UID)
  const listCache = () => readdirSync(join(runtimeDir, 'compile-cache'), { recursive: true }).sort()
  const before = listCache()
  // Other users may be unable to enter the directory of the project.
  const node = join(dataDir, 'node')
  await cp(process.execPath, node)
  await chmod(node, 0o755)
  const { status, stderr } = spawnSync(node, [...NODE_FLAGS, join(runtimeDir, 'agent.mjs')], {
    ...{ uid: BOX_UID, gid: BOX_UID, cwd: '/', encoding: 'utf8' },
    env: { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
  })
  test.equal(status, 1, 'the agent has no configuration')
  test.match(stderr, /V8 code cache for ESM \S+main-\w+\.mjs was accepted/)
  test.same(listCache(), before)
})

t.test('the agent does not use a compile cache that its user can write to', async (test) => {
  const dataDir = await createDataDir(test)
  const runtimeDir = await buildRuntime(projectRoot, dataDir)
  const { stderr } = spawnSync(process.execPath, [...NODE_FLAGS, join(runtimeDir, 'agent.mjs')], {
    ...{ cwd: '/', encoding: 'utf8' },
    env: { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
  })
  test.match(stderr, /BOXWOOD_URL/, 'the agent has been loaded')
  test.notMatch(stderr, /reading cache/)
})

t.test('keeps the current and the previous version', async (test) => {
  const dataDir = await createDataDir(test)
  const getRuntimeDir = await createRuntime(projectRoot, dataDir, process.execPath)
  const runtimeDir = await getRuntimeDir()
  const parentDir = dirname(runtimeDir)
  test.equal(readlinkSync(join(parentDir, 'current')), basename(runtimeDir))
  const link = (name: string) => {
    mkdirSync(join(parentDir, name))
    rmSync(join(parentDir, 'current'))
    symlinkSync(name, join(parentDir, 'current'))
  }
  link('1'.repeat(16))
  await createRuntime(projectRoot, dataDir, process.execPath)
  link('2'.repeat(16))
  await createRuntime(projectRoot, dataDir, '/other/node')
  test.equal(readlinkSync(join(parentDir, 'current')), basename(runtimeDir))
  test.equal(readlinkSync(join(parentDir, 'previous')), '2'.repeat(16))
  test.equal(readlinkSync(join(parentDir, 'node')), '/other/node')
  test.same(await listUnusedRuntimes(runtimeDir), [join(parentDir, '1'.repeat(16))])
})

t.test('removes the runtime directories of other versions that no process uses', async (test) => {
  const dataDir = await createDataDir(test)
  const [used, unused, staging] = ['used', 'unused', 'staging'].map((name) =>
    join(dataDir, 'runtime', `${name}-${newUuid()}`),
  ) as [string, string, string]
  for (const dir of [used, unused, staging]) mkdirSync(dir, { recursive: true })
  // At level process the program of the init and of a detached command's runner is in the runtime directory.
  const child = spawn('sleep', ['600'], { argv0: join(used, 'run') })
  test.teardown(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const provider = await openProvider(dataDir, { level: 'process' })
  await waitUntil('unused directories are removed', () => !existsSync(unused) && !existsSync(staging))
  await provider.close()
  test.ok(existsSync(used))
})
