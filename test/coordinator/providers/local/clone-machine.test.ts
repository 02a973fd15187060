// The clone of a running machine on file systems with reflinks: the archive and the copy made from it have all files.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cloneMachine, hasReflinks } from '../../../../coordinator/providers/local/clone-machine.ts'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import { mountFileSystem } from '../../../support/file-systems.ts'
import { describeTree } from '../../../support/tree-manifest.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createOddTree } from '../parts/archives/odd-tree.ts'
import { BOX_UIDS, createBoxFiles, openArchives, ROOTS } from '../parts/archives/support.ts'
import { testEachLevel } from './each-level.ts'
import { createMachineSpec, openProvider, startBox } from './support.ts'

const CLONING = ['btrfs', 'xfs'] as const
const CAPTURE = new URL('fixtures/start-and-capture.ts', import.meta.url).pathname

const describeBox = ({ dir, uid }: { dir: string; uid: number | null }) =>
  ROOTS.flatMap((root) => describeTree(join(dir, root), uid === null ? {} : { uid }))

const listHidden = (boxesDir: string) => readdirSync(boxesDir).filter((name) => name.startsWith('.'))

for (const name of CLONING)
  t.test(`a clone has every kind of entry, on ${name}`, async (t) => {
    const disk = mountFileSystem(t, name)
    if ('skip' in disk) return t.pass(disk.skip, { skip: disk.skip })
    t.ok(await hasReflinks(disk.dir))
    const { archives } = openArchives(t)
    mkdirSync(join(disk.dir, 'box'))
    const source = createBoxFiles(t, BOX_UIDS[0], join(disk.dir, 'box'))
    createOddTree(source)
    const expected = describeBox(source)
    const events: string[] = []
    const pause = async () => {
      events.push('paused')
      return () => events.push('continued')
    }
    const verify = () => events.push('verified')
    const clone = await cloneMachine(archives, source, { pause, verify }, (error) => t.error(error))
    t.same(events, ['paused', 'continued', 'verified'])
    if (clone === null) return t.fail('the files were not cloned')
    t.type(clone.pausedMs, 'number')
    t.strictSame(describeBox(clone.files), expected)
    t.strictSame(describeBox(source), expected, 'a clone changes nothing')
    await clone.remove()
    t.same(listHidden(disk.dir), [])

    const failing = () => {
      throw new Error('the files have changed')
    }
    const reasons: unknown[] = []
    const failed = await cloneMachine(archives, source, { pause, verify: failing }, (reason) =>
      reasons.push(reason),
    )
    t.equal(failed, null)
    t.match(reasons, [{ message: 'the files have changed' }])
    const signal = AbortSignal.abort(new Error('the reason'))
    await t.rejects(cloneMachine(archives, source, { pause, signal }, t.error), { message: 'the reason' })
    t.same(listHidden(disk.dir), [])
  })

t.test('a file system without reflinks', async (t) => {
  const disk = mountFileSystem(t, 'ext4')
  if ('skip' in disk) return t.pass(disk.skip, { skip: disk.skip })
  t.notOk(await hasReflinks(disk.dir))
  const { archives } = openArchives(t)
  mkdirSync(join(disk.dir, 'box'))
  const source = createBoxFiles(t, BOX_UIDS[0], join(disk.dir, 'box'))
  createOddTree(source)
  const events: string[] = []
  const pause = async () => () => events.push('continued')
  const failures: unknown[] = []
  t.equal(await cloneMachine(archives, source, { pause }, (error) => failures.push(error)), null)
  t.match(failures, [{ message: /failed to clone|Operation not supported/ }])
  t.same(events, ['continued'])
  t.same(
    listHidden(disk.dir).filter((name) => name !== 'lost+found'),
    [],
  )
})

const CREATE_FILES =
  'mkdir -p tree/dir && echo text >tree/file && ln tree/file tree/dir/link && mkfifo tree/fifo && chmod 6711 tree/file && mv tree ready'
const COUNT = 'while :; do i=$((i+1)); echo $i >count.new; mv count.new count; done'

for (const name of CLONING)
  testEachLevel(`snapshots and forks of a running box on ${name}`, async (t, level) => {
    const disk = mountFileSystem(t, name)
    if ('skip' in disk) return void t.pass(disk.skip, { skip: disk.skip })
    const failures: unknown[] = []
    const log = {
      debug: (fields: object, message: string) => {
        if (message.includes('without a clone')) failures.push(fields)
      },
      info: () => {},
      warn: () => {},
    }
    const script = `${CREATE_FILES}\n${COUNT}`
    const { provider, spec, paths, inHome } = await startBox(t, { level, script, log, dataDir: disk.dir })
    await waitUntil('the box counts', () => existsSync(inHome('count')))
    const describe = (home: string) => describeTree(join(home, 'ready'), { uid: lstatSync(home).uid })
    const expected = describe(paths.home)
    const boxesDir = join(disk.dir, 'boxes')
    for (const [archiveId, read] of [
      ['snp_1', () => provider.capture(spec.boxId, { workspaceId: 'ws_1', archiveId: 'snp_1' }, 'files')],
      ['snp_2', () => provider.copyMachine?.(spec.boxId, { workspaceId: 'ws_1', archiveId: 'snp_2' }, null)],
    ] as const) {
      const info = await read()
      t.type(info?.pausedMs, 'number')
      const countedAt = statSync(inHome('count')).mtimeMs
      await waitUntil('the box continues', () => statSync(inHome('count')).mtimeMs > countedAt)
      const created = { ...createMachineSpec(), source: { workspaceId: 'ws_1', archiveId } }
      await provider.create(created)
      t.same(describe(boxPaths(boxesDir, created.boxId).home), expected)
      await provider.destroy(created.boxId)
      t.same(listHidden(boxesDir), [])
    }
    t.same(failures, [])
    rmSync(join(disk.dir, 'archives'), { recursive: true, force: true })
  })

const KEY = { workspaceId: 'ws_1', archiveId: 'snp_1' }

testEachLevel(
  'a new box gets its files from the clone while the snapshot is being stored',
  async (t, level) => {
    const disk = mountFileSystem(t, 'xfs')
    if ('skip' in disk) return void t.pass(disk.skip, { skip: disk.skip })
    const { provider, spec, paths, inHome } = await startBox(t, {
      level,
      script: CREATE_FILES,
      dataDir: disk.dir,
    })
    await waitUntil('the box has the files', () => existsSync(inHome('ready')))
    const boxesDir = join(disk.dir, 'boxes')
    const describe = (home: string) => describeTree(join(home, 'ready'), { uid: lstatSync(home).uid })
    const expected = describe(paths.home)
    const createFrom = async (source: typeof KEY) => {
      const created = { ...createMachineSpec(), source }
      await provider.create(created)
      t.same(describe(boxPaths(boxesDir, created.boxId).home), expected)
      await provider.destroy(created.boxId)
    }
    const copied: number[] = []
    const info = await provider.capture(spec.boxId, KEY, 'files', undefined, async ({ contentBytes }) => {
      copied.push(contentBytes)
      t.notOk(existsSync(join(disk.dir, 'archives/ws_1')), 'nothing is stored')
      await Promise.all([createFrom(KEY), createFrom(KEY)])
      t.same(listHidden(boxesDir), ['.copy-ws_1-snp_1'])
    })
    t.same(copied, [info.contentBytes])
    t.same(listHidden(boxesDir), [], 'the clone is removed when the archive is complete')
    await createFrom(KEY)

    const failing = { ...KEY, archiveId: 'snp_2' }
    const failure = new Error('the database is closed')
    const fail = () => Promise.reject(failure)
    await t.rejects(provider.capture(spec.boxId, failing, 'files', undefined, fail), failure)
    t.same(listHidden(boxesDir), ['.copy-ws_1-snp_2'], 'a repeated capture stores this clone')
    await createFrom(failing)
    await provider.removeArchive(failing)
    t.same(listHidden(boxesDir), [])

    await provider.destroy(spec.boxId)
    const repeated = await provider.capture(spec.boxId, KEY, 'files', undefined, async () => {
      t.fail('nothing is copied')
    })
    t.same(repeated, info, 'a repeated capture needs no machine when the archive is complete')
  },
  ['bubblewrap', 'namespaces'],
)

testEachLevel(
  'a coordinator that is killed after the clone loses no clone and leaves none',
  async (t, level) => {
    const disk = mountFileSystem(t, 'xfs')
    if ('skip' in disk) return void t.pass(disk.skip, { skip: disk.skip })
    const source = createMachineSpec()
    const child = spawn(process.execPath, [CAPTURE, disk.dir, source.boxId, level], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [printed] = await once(child.stdout, 'data')
    t.equal(String(printed), 'copied\n')
    child.kill('SIGKILL')
    await once(child, 'exit')

    const provider = await openProvider(disk.dir, { level })
    t.teardown(() => provider.close())
    const boxesDir = join(disk.dir, 'boxes')
    const read = (boxId: string) => readFileSync(join(boxPaths(boxesDir, boxId).home, 'count'), 'utf8')
    const createCopy = async () => {
      const created = { ...createMachineSpec(), source: KEY }
      await provider.create(created)
      t.equal(read(created.boxId), 'first\n')
      await provider.destroy(created.boxId)
    }
    writeFileSync(join(boxPaths(boxesDir, source.boxId).home, 'count'), 'second\n')
    await createCopy()
    const copied: unknown[] = []
    const info = await provider.capture(source.boxId, KEY, 'files', undefined, async (info) => {
      copied.push(info)
    })
    t.match(copied, [{ contentBytes: info.contentBytes, pausedMs: info.pausedMs }])
    await createCopy()
    await waitUntil('nothing is left', () => listHidden(boxesDir).length === 0)
    await provider.destroy(source.boxId)
  },
  ['bubblewrap', 'namespaces'],
)
