// The local providers of several regions on one machine: their directories, uids, and boxes of earlier versions.
import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import { createLocalProvider } from '../../../../coordinator/providers/local/provider.ts'
import { relocateBoxes } from '../../../../coordinator/providers/local/relocate-boxes.ts'
import { isAlive } from '../../../../coordinator/providers/parts/proc.ts'
import { DEFAULT_REGION } from '../../../../shared/tiers.ts'
import { testEachLevel } from './each-level.ts'
import {
  createDataDir,
  createMachineSpec,
  isRoot,
  openHost,
  startBox,
  type TestProviderOptions,
  waitForFileText,
} from './support.ts'

const REGION = 'eu-central-1'
const boxDirs = (dataDir: string, boxId: string) => ({
  default: boxPaths(join(dataDir, 'boxes'), boxId).dir,
  region: boxPaths(join(dataDir, 'regions', REGION, 'boxes'), boxId).dir,
})

async function openRegions(test: Test, dataDir: string, options: TestProviderOptions) {
  const host = await openHost(dataDir, { graceMs: 500, ...options })
  const providers = {
    default: await createLocalProvider(host, DEFAULT_REGION),
    region: await createLocalProvider(host, REGION),
  }
  test.teardown(async () => {
    await Promise.all([providers.default.close(), providers.region.close()])
    await host.close()
  })
  return { host, ...providers }
}

testEachLevel('a box is in the directory of its region', async (test, level) => {
  const dataDir = await createDataDir(test)
  const regions = await openRegions(test, dataDir, { level })
  const spec = createMachineSpec()
  const dirs = boxDirs(dataDir, spec.boxId)
  test.teardown(() => regions.region.destroy(spec.boxId))
  await regions.region.create(spec)
  await regions.region.start(spec)
  test.equal(await regions.region.inspect(spec.boxId), 'running')
  test.equal(await regions.default.inspect(spec.boxId), 'absent')
  test.same([existsSync(dirs.region), existsSync(dirs.default)], [true, false])

  await regions.default.destroy(spec.boxId)
  test.equal(await regions.region.inspect(spec.boxId), 'running', 'the other region has no such machine')
  await regions.region.destroy(spec.boxId)
  test.equal(await regions.region.inspect(spec.boxId), 'absent')
  test.notOk(existsSync(dirs.region))
})

testEachLevel(
  'removing what a move has left in the old region keeps the moved box running',
  async (test, level) => {
    const dataDir = await createDataDir(test)
    const regions = await openRegions(test, dataDir, { level })
    const spec = createMachineSpec()
    const dirs = boxDirs(dataDir, spec.boxId)
    test.teardown(() => regions.region.destroy(spec.boxId))
    await regions.default.create(spec)
    await regions.default.start(spec)
    await regions.default.stop(spec.boxId)
    await regions.region.create(spec)
    await regions.region.start(spec)
    const readInit = async () => JSON.parse(await readFile(join(dirs.region, 'machine.json'), 'utf8')).init
    const init = await readInit()
    await regions.default.destroy(spec.boxId)
    test.same([existsSync(dirs.region), existsSync(dirs.default)], [true, false])
    test.ok(isAlive(init))
    test.equal(await regions.region.inspect(spec.boxId), 'running')

    // A move that is rolled back: the new machine runs, and the one in the old region has stopped.
    await regions.default.create(spec)
    await regions.region.destroy(spec.boxId)
    test.notOk(isAlive(init))
    test.equal(await regions.default.inspect(spec.boxId), 'stopped')
    await regions.default.destroy(spec.boxId)
  },
)

t.test('a uid is used once in all regions', { skip: isRoot ? false : 'needs root' }, async (test) => {
  const dataDir = await createDataDir(test)
  const { host, ...regions } = await openRegions(test, dataDir, { level: 'process' })
  const specs = { default: createMachineSpec(), region: createMachineSpec() }
  await regions.default.create(specs.default)
  await regions.region.create(specs.region)
  const uids = [
    boxDirs(dataDir, specs.default.boxId).default,
    boxDirs(dataDir, specs.region.boxId).region,
  ].map(async (dir) => JSON.parse(await readFile(join(dir, 'machine.json'), 'utf8')).uid)
  test.same(await host.listUsedUids(), new Set(await Promise.all(uids)))
})

testEachLevel('a box of an earlier version moves to the directory of its region', async (test, level) => {
  const script = 'echo kept >"$HOME/new"; mv "$HOME/new" "$HOME/file"'
  const { provider, spec, dataDir, inHome } = await startBox(test, { level, script })
  await waitForFileText(inHome('file'))
  const dirs = boxDirs(dataDir, spec.boxId)
  const other = createMachineSpec()
  await provider.create(other)
  test.teardown(() => provider.destroy(other.boxId))
  const initBefore = JSON.parse(await readFile(join(dirs.default, 'machine.json'), 'utf8')).init

  const boxes = [
    { id: spec.boxId, region: REGION },
    { id: other.boxId, region: DEFAULT_REGION },
  ] as const
  const log = { debug: () => undefined, warn: () => undefined }
  await relocateBoxes(boxes, { dataDir, log, graceMs: 500 })
  test.same([existsSync(dirs.region), existsSync(dirs.default)], [true, false])
  test.ok(existsSync(boxDirs(dataDir, other.boxId).default), 'a box of the default region stays')

  const copy = 'cat "$HOME/file" >"$HOME/new"; mv "$HOME/new" "$HOME/copy"'
  const { region } = await openRegions(test, dataDir, { level, script: copy })
  test.teardown(() => region.destroy(spec.boxId))
  const isProcess = level === 'process'
  test.equal(await region.inspect(spec.boxId), isProcess ? 'stopped' : 'running')
  if (!isProcess) {
    const { init } = JSON.parse(await readFile(join(dirs.region, 'machine.json'), 'utf8'))
    test.same(init, initBefore, 'the processes continue')
    await region.stop(spec.boxId)
  }
  await region.start(spec)
  test.equal(await waitForFileText(join(dirs.region, 'home/copy')), 'kept\n')

  await relocateBoxes(boxes, { dataDir, log, graceMs: 500 })
  test.equal(await region.inspect(spec.boxId), 'running', 'a box in its directory is not touched')
})

t.test('a stopped machine is taken over without a copy, unless both regions have one', async (test) => {
  const dataDir = await createDataDir(test)
  const { default: first, region } = await openRegions(test, dataDir, { level: 'process' })
  const spec = createMachineSpec()
  const { boxId } = spec
  const dirs = boxDirs(dataDir, boxId)
  const source = { provider: first, region: DEFAULT_REGION }
  test.equal(await region.takeOver?.(boxId, source), false, 'there is no machine')
  await first.create(spec)
  const { ino } = statSync(join(dirs.default, 'home'))
  for (const call of ['first', 'repeated'])
    test.equal(await region.takeOver?.(boxId, source), true, `the ${call} call`)
  test.same([await first.inspect(boxId), await region.inspect(boxId)], ['absent', 'stopped'])
  test.equal(statSync(join(dirs.region, 'home')).ino, ino, 'the same directory')
  await first.create(spec)
  test.equal(await region.takeOver?.(boxId, source), false, 'both have a machine')
  test.same([await first.inspect(boxId), await region.inspect(boxId)], ['stopped', 'stopped'])
  const other = { provider: { ...first, name: 'other' }, region: DEFAULT_REGION }
  test.equal(await region.takeOver?.(boxId, other), false, 'a provider of another kind')
  await Promise.all([first.destroy(boxId), region.destroy(boxId)])
})
