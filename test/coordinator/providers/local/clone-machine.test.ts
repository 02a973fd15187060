// The clone of a running machine on file systems with reflinks: the archive and the copy made from it have all files.
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
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
import { createMachineSpec, startBox } from './support.ts'

const CLONING = ['btrfs', 'xfs'] as const

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
      ['snp_2', () => provider.copyMachine?.(spec.boxId, { workspaceId: 'ws_1', archiveId: 'snp_2' })],
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
