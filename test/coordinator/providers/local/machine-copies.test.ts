// The copy of a machine for a fork: the new machine takes it over, and no copy is lost or left behind.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, existsSync, lstatSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import type { ArchiveKey, Provider } from '../../../../coordinator/providers/provider.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { describeTree } from '../../../support/tree-manifest.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from './each-level.ts'
import { createDataDir, createMachineSpec, isRoot, openProvider, startBox } from './support.ts'

const MIB = 1024 ** 2
const FIXTURE = new URL('fixtures/copy-and-create.ts', import.meta.url).pathname

const keyOf = (archiveId: string, workspaceId = 'ws_1') => ({ workspaceId, archiveId })

const copyMachine = (provider: Provider, boxId: string, key: ArchiveKey, signal?: AbortSignal) => {
  if (provider.copyMachine === undefined) throw new Error('the provider does not copy machines')
  return provider.copyMachine(boxId, key, null, signal)
}

/** The entries of the boxes directory that are not boxes. */
const listHidden = (dataDir: string) =>
  readdirSync(join(dataDir, 'boxes')).filter((name) => name.startsWith('.'))

const describeHome = (dataDir: string, boxId: string) => {
  const { home } = boxPaths(join(dataDir, 'boxes'), boxId)
  return describeTree(home, { uid: lstatSync(home).uid })
}

const CREATE_FILES = `mkdir -p tree/dir && echo text >tree/file && ln tree/file tree/dir/link && ln -s /etc tree/outside
mkfifo tree/fifo && chmod 6711 tree/file && truncate -s 10M tree/sparse && touch -d @1.5 tree/dir && mv tree ready`

testEachLevel('the new machine has the files, and the processes of the source continue', async (t, level) => {
  const script = `${CREATE_FILES}\nwhile :; do i=$((i+1)); echo $i >count.new; mv count.new count; done`
  const { provider, spec, dataDir, paths, inHome } = await startBox(t, { level, script })
  await waitUntil('the box counts', () => existsSync(inHome('count')))
  const source = keyOf('snp_1')
  const info = await copyMachine(provider, spec.boxId, source)
  t.type(info.pausedMs, 'number')
  t.equal(info.storedBytes, 0)
  t.ok(info.contentBytes > 0)
  t.notOk(existsSync(join(dataDir, 'archives/ws_1')), 'nothing is stored')
  const countedAt = statSync(inHome('count')).mtimeMs
  await waitUntil('the box continues', () => statSync(inHome('count')).mtimeMs > countedAt)
  t.same(await copyMachine(provider, spec.boxId, source), info, 'a repeated copy is the first one')

  const fork = { ...createMachineSpec(), source }
  t.teardown(() => provider.destroy(fork.boxId))
  await provider.create(fork)
  t.equal(await provider.inspect(fork.boxId), 'stopped')
  const forkPaths = boxPaths(join(dataDir, 'boxes'), fork.boxId)
  const describe = (home: string) => describeTree(join(home, 'ready'), { uid: lstatSync(home).uid })
  t.same(describe(forkPaths.home), describe(paths.home))
  if (isRoot) t.not(lstatSync(forkPaths.home).uid, lstatSync(paths.home).uid, 'another user')
  t.notOk(existsSync(join(forkPaths.dir, 'copy.json')))
  t.same(listHidden(dataDir), [])
  await provider.create(fork)
  await provider.start(fork)
  t.equal(await provider.inspect(fork.boxId), 'running')
  await provider.removeArchive(source)
  t.equal(await provider.inspect(fork.boxId), 'running', 'the machine is no longer the copy')
})

async function startSource(t: Test) {
  const dataDir = await createDataDir(t)
  const provider = await openProvider(dataDir, { level: 'process' })
  const spec = createMachineSpec()
  await provider.create(spec)
  const { home } = boxPaths(join(dataDir, 'boxes'), spec.boxId)
  const { uid, gid } = lstatSync(home)
  for (let number = 0; number < 4; number++) {
    writeFileSync(join(home, `file-${number}`), randomBytes(8 * MIB))
    chownSync(join(home, `file-${number}`), uid, gid)
  }
  return { dataDir, provider, spec }
}

t.test('a copy that is not used is removed, with all of its workspace or alone', async (t) => {
  const { dataDir, provider, spec } = await startSource(t)
  for (const key of [keyOf('snp_1'), keyOf('snp_2'), keyOf('snp_3', 'ws_2')])
    await copyMachine(provider, spec.boxId, key)
  t.same(listHidden(dataDir).sort(), ['.copy-ws_1-snp_1', '.copy-ws_1-snp_2', '.copy-ws_2-snp_3'])
  await provider.removeArchive(keyOf('snp_1'))
  await provider.removeArchive(keyOf('snp_1'))
  t.same(listHidden(dataDir).sort(), ['.copy-ws_1-snp_2', '.copy-ws_2-snp_3'])
  await provider.removeArchives('ws_1')
  t.same(listHidden(dataDir), ['.copy-ws_2-snp_3'])
  await provider.removeArchives('ws_2')
  t.same(listHidden(dataDir), [])
  await t.rejects(provider.create({ ...createMachineSpec(), source: keyOf('snp_1') }), {
    name: 'ArchiveError',
  })
  await t.rejects(copyMachine(provider, newUuid(), keyOf('snp_4')), { message: /does not exist/ })
  await provider.close()
})

t.test('an aborted copy, and one that ends with the coordinator, leave nothing', async (t) => {
  const { dataDir, provider, spec } = await startSource(t)
  const aborting = new AbortController()
  const aborted = copyMachine(provider, spec.boxId, keyOf('snp_1'), aborting.signal)
  const rejected = t.rejects(aborted, { message: 'the reason' })
  await waitUntil('the copy has begun', () => listHidden(dataDir).length > 0)
  aborting.abort(new Error('the reason'))
  await rejected
  t.same(listHidden(dataDir), [])
  const closed = t.rejects(copyMachine(provider, spec.boxId, keyOf('snp_1')))
  await waitUntil('the copy has begun', () => listHidden(dataDir).length > 0)
  await provider.close()
  await closed
  t.same(listHidden(dataDir), [])
})

t.test('a damaged record of a copy is replaced', async (t) => {
  const { dataDir, provider, spec } = await startSource(t)
  const source = keyOf('snp_1')
  await copyMachine(provider, spec.boxId, source)
  writeFileSync(join(dataDir, 'boxes/.copy-ws_1-snp_1/copy.json'), '{')
  await copyMachine(provider, spec.boxId, source)
  const fork = { ...createMachineSpec(), source }
  await provider.create(fork)
  t.same(describeHome(dataDir, fork.boxId), describeHome(dataDir, spec.boxId))
  await provider.close()
})

/** The names in the boxes directory at which the coordinator is killed. */
const STEPS: Record<string, (dataDir: string, newBoxId: string) => boolean> = {
  'while the files are copied': (dataDir) => listHidden(dataDir).some((name) => name.startsWith('.copying-')),
  'when the copy is complete': (dataDir) => existsSync(join(dataDir, 'boxes/.copy-ws_1-snp_1')),
  'while the new machine takes the copy over': (dataDir) =>
    existsSync(join(dataDir, 'boxes/.copy-ws_1-snp_1/machine.json')),
  'when the new machine exists': (dataDir, newBoxId) => existsSync(join(dataDir, 'boxes', newBoxId)),
}

for (const [step, hasBegun] of Object.entries(STEPS))
  t.test(`a coordinator that is killed ${step} loses no copy and leaves none`, async (t) => {
    const { dataDir, provider, spec } = await startSource(t)
    await provider.close()
    const fork = { ...createMachineSpec(), source: keyOf('snp_1') }
    const child = spawn(process.execPath, [FIXTURE, dataDir, spec.boxId, fork.boxId, 'snp_1'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let isDone = false
    child.stdout.on('data', () => {
      isDone = true
    })
    while (!isDone && !hasBegun(dataDir, fork.boxId)) await nextTurn()
    child.kill('SIGKILL')
    await once(child, 'exit')

    const next = await openProvider(dataDir, { level: 'process' })
    // As the jobs of the snapshot and of the new box do. A complete machine needs no copy.
    if ((await next.inspect(fork.boxId)) === 'absent') await copyMachine(next, spec.boxId, fork.source)
    await next.create(fork)
    await next.removeArchive(fork.source)
    t.same(describeHome(dataDir, fork.boxId), describeHome(dataDir, spec.boxId))
    await waitUntil('nothing is left', () => listHidden(dataDir).length === 0)
    await next.close()
  })

t.test('twenty copies at once', async (t) => {
  const { dataDir, provider, spec } = await startSource(t)
  const forks = Array.from({ length: 20 }, (_, number) => ({
    ...createMachineSpec(),
    source: keyOf(`snp_${number}`),
  }))
  await Promise.all(
    forks.map(async (fork) => {
      await copyMachine(provider, spec.boxId, fork.source)
      await provider.create(fork)
    }),
  )
  const expected = describeHome(dataDir, spec.boxId)
  for (const { boxId } of forks) t.same(describeHome(dataDir, boxId), expected)
  t.same(listHidden(dataDir), [])
  if (isRoot) {
    const uids = forks.map(({ boxId }) => lstatSync(boxPaths(join(dataDir, 'boxes'), boxId).home).uid)
    t.equal(new Set(uids).size, 20)
  }
  await provider.close()
})
