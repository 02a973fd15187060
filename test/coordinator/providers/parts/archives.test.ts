// Archives of boxes: capture, create from an archive, and removal, at each isolation level.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t from 'tap'
import { listLeftovers, removeTree } from '../../../../coordinator/providers/local/directories.ts'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import { restoreMachine } from '../../../../coordinator/providers/local/restore-machine.ts'
import type { BoxFiles } from '../../../../coordinator/providers/parts/archives/tar.ts'
import { listPids, readArgv } from '../../../../coordinator/providers/parts/proc.ts'
import { ArchiveError } from '../../../../coordinator/providers/provider.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { testEachLevel } from '../local/each-level.ts'
import {
  createDataDir,
  createMachineSpec,
  isRoot,
  openProvider,
  startBox,
  waitForFileText,
} from '../local/support.ts'

const key = { workspaceId: 'ws_1', archiveId: 'snp_1' }

testEachLevel('creates a box from the files of a running box', async (t, level) => {
  const script = `if [ ! -e "$HOME/first" ]; then
    mkdir "$HOME/locked" && echo secret >"$HOME/locked/file" && chmod 0 "$HOME/locked/file" "$HOME/locked"
    echo temporary >/\${TMPDIR:-tmp}/file
    echo state >"$BOXWOOD_STATE/file"
    echo first >"$HOME/.first" && mv "$HOME/.first" "$HOME/first"
  else
    cp /\${TMPDIR:-tmp}/file "$HOME/copy"
    chmod 700 "$HOME/locked" && chmod 600 "$HOME/locked/file" && cat "$HOME/locked/file" >>"$HOME/copy"
    mv "$HOME/copy" "$HOME/second"
  fi`
  const { provider, spec, dataDir, inHome } = await startBox(t, { level, script })
  await waitForFileText(inHome('first'))
  const info = await provider.capture(spec.boxId, key, 'files')
  t.type(info.pausedMs, 'number', 'the time of the pause')
  t.equal(await provider.inspect(spec.boxId), 'running')

  const copy = createMachineSpec()
  t.teardown(() => provider.destroy(copy.boxId))
  await provider.create({ ...copy, source: key })
  t.equal(await provider.inspect(copy.boxId), 'stopped')
  await provider.start(copy)
  const paths = boxPaths(join(dataDir, 'boxes'), copy.boxId)
  t.equal(await waitForFileText(join(paths.home, 'second')), 'temporary\nsecret\n')
  t.notOk(existsSync(join(paths.state, 'file')), 'the state belongs to the other box')
  if (isRoot) {
    const owners = await Promise.all([inHome('first'), join(paths.home, 'first')].map((path) => stat(path)))
    t.not(owners[0]?.uid, owners[1]?.uid, 'each box has its own user')
  }

  await provider.removeArchive(key)
  t.same(readdirSync(join(dataDir, 'archives')), [])
})

testEachLevel('restores the same box with its state', async (t, level) => {
  const { provider, spec, paths } = await startBox(t, { level })
  await provider.stop(spec.boxId)
  writeFileSync(join(paths.state, 'file'), 'state')
  const info = await provider.capture(spec.boxId, key, 'all')
  t.equal(info.pausedMs, null)
  await provider.destroy(spec.boxId)
  t.equal(await provider.inspect(spec.boxId), 'absent')
  await provider.create({ ...spec, source: key })
  t.equal(readFileSync(join(paths.state, 'file'), 'utf8'), 'state')
  await provider.create({ ...spec, source: { ...key, archiveId: 'snp_missing' } })
  t.equal(readFileSync(join(paths.state, 'file'), 'utf8'), 'state', 'an existing machine is not changed')
})

for (const method of ['copyFiles', 'copyArchive'] as const)
  testEachLevel(
    `creates a box from the archive of another box, without the state of its agent: ${method}`,
    async (t, level) => {
      const { provider, spec, dataDir, paths, inHome } = await startBox(t, { level })
      await provider.stop(spec.boxId)
      writeFileSync(join(paths.state, 'file'), 'state')
      writeFileSync(inHome('file'), 'content')
      await provider.capture(spec.boxId, key, 'all')
      await provider.destroy(spec.boxId)
      const files = { ...key, archiveId: 'snp_2' }
      if (method === 'copyFiles') await provider.copyFiles(key, files)
      else await provider.copyArchive?.(key, files, null)
      await provider.removeArchive(key)
      const copy = createMachineSpec()
      t.teardown(() => provider.destroy(copy.boxId))
      await provider.create({ ...copy, source: files })
      const created = boxPaths(join(dataDir, 'boxes'), copy.boxId)
      t.equal(readFileSync(join(created.home, 'file'), 'utf8'), 'content')
      t.notOk(existsSync(join(created.state, 'file')))
      await provider.removeArchive(files)
      t.same(await listLeftovers(join(dataDir, 'boxes')), [])
      t.same(readdirSync(join(dataDir, 'archives')), [])
    },
  )

t.test('does not create a box from a damaged archive', async (t) => {
  const { provider, spec, dataDir } = await startBox(t, { level: 'process' })
  await provider.capture(spec.boxId, key, 'files')
  const chunks = join(dataDir, 'archives/ws_1/chunks')
  rmSync(join(chunks, readdirSync(chunks)[0] ?? ''), { recursive: true })
  const copy = createMachineSpec()
  const error = await provider.create({ ...copy, source: key }).catch((error: unknown) => error)
  t.ok(error instanceof ArchiveError)
  t.match(String(error), 'snp_1')
  t.equal(await provider.inspect(copy.boxId), 'absent')
  t.same(readdirSync(join(dataDir, 'boxes')), [spec.boxId], 'nothing is left')
})

t.test('rejects a stream that is not an archive of a box', async (t) => {
  const { provider, dataDir } = await startBox(t, { level: 'process' })
  const source = join(dataDir, 'source')
  for (const dir of ['home', 'outside']) mkdirSync(join(source, dir), { recursive: true })
  const streams: Record<string, [Buffer, RegExp]> = {
    'a truncated stream': [
      execFileSync('tar', ['-c', 'home'], { cwd: source }).subarray(0, 512),
      /incomplete/,
    ],
    'another directory': [
      execFileSync('tar', ['-c', 'home', 'outside'], { cwd: source }),
      /outside|not an archive/,
    ],
  }
  for (const [name, [bytes, message]] of Object.entries(streams)) {
    const archive = { ...key, archiveId: `snp_${name.replaceAll(' ', '_')}` }
    const copy = createMachineSpec()
    const work = async () => {
      await provider.writeArchive(archive, Readable.from([bytes]))
      await provider.create({ ...copy, source: archive })
    }
    await t.rejects(work(), { message }, name)
    t.equal(await provider.inspect(copy.boxId), 'absent')
  }
})

t.test('removes what an interrupted restore left', async (t) => {
  const dataDir = await createDataDir(t)
  mkdirSync(join(dataDir, 'boxes/.restore-1/home'), { recursive: true })
  const provider = await openProvider(dataDir, { level: 'process' })
  t.teardown(() => provider.close())
  await waitUntil('the directory is removed', () => readdirSync(join(dataDir, 'boxes')).length === 0)
})

t.test('the removal of an interrupted restore does not remove files of the next one', async (t) => {
  const boxesDir = await createDataDir(t)
  const { boxId } = createMachineSpec()
  const machine = { boxId, uid: null, level: null, isolation: null, init: null, cgroups: [] }
  const restoreWith = (write: (files: BoxFiles) => Promise<void>) =>
    restoreMachine(boxesDir, machine, { key, writeFiles: write })
  const interruption = Promise.withResolvers<void>()
  const interrupted = restoreWith(() => interruption.promise)
  await waitUntil('the restore runs', () => readdirSync(boxesDir).length > 0)
  const leftovers = await listLeftovers(boxesDir)
  t.equal(leftovers.length, 1)
  // The coordinator that starts next removes them in the background.
  await restoreWith(async ({ dir }) => {
    writeFileSync(join(dir, 'home/file'), 'content')
    for (const leftover of leftovers) await removeTree(leftover)
  })
  t.equal(readFileSync(join(boxPaths(boxesDir, boxId).home, 'file'), 'utf8'), 'content')
  interruption.reject(new Error('killed'))
  await t.rejects(interrupted)
  t.same(readdirSync(boxesDir), [boxId])
})

t.test('the start of a stopped box ends a capture, also one whose tar the box has stopped', async (t) => {
  const { provider, spec, paths, inHome } = await startBox(t, { level: 'process' })
  await provider.stop(spec.boxId)
  for (let i = 0; i < 6; i++) writeFileSync(inHome(`file-${i}`), randomBytes(8 * 1024 ** 2), { mode: 0o644 })
  const findTar = () =>
    listPids().find((pid) => {
      try {
        return readArgv(pid)[0] === 'tar' && readlinkSync(`/proc/${pid}/cwd`) === paths.dir
      } catch {
        return false
      }
    })
  const capture = provider.capture(spec.boxId, key, 'files')
  const rejected = t.rejects(capture, { message: /started or stopped while its files were read/ })
  let tar: number | undefined
  await waitUntil('tar runs', () => {
    tar = findTar()
    return tar !== undefined
  })
  if (tar !== undefined) process.kill(tar, 'SIGSTOP')
  await provider.start(spec)
  await rejected
  t.equal(findTar(), undefined)
  await provider.capture(spec.boxId, key, 'files')
})
