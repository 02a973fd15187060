// Captures and restores machines. Each engine runs these tests.
import { Readable } from 'node:stream'
import type { Test } from 'tap'
import { encodeFile, TAR_TRAILER } from '../../../../../coordinator/providers/container/tar-entries.ts'
import { createEngineDisk } from '../../../../../coordinator/providers/docker/disk.ts'
import type { EngineKind } from '../../../../../coordinator/providers/docker/engine.ts'
import { readEngineInfo } from '../../../../../coordinator/providers/docker/engine-info.ts'
import { removeHelper, withHelper } from '../../../../../coordinator/providers/docker/helper-container.ts'
import { removeLeftovers } from '../../../../../coordinator/providers/docker/leftovers.ts'
import { createLabels } from '../../../../../coordinator/providers/docker/names.ts'
import { readEngineSpool } from '../../../../../coordinator/providers/docker/read-spool.ts'
import { ArchiveError } from '../../../../../coordinator/providers/provider.ts'
import { formatSegmentName } from '../../../../../shared/report-spool.ts'
import type { ImageEngine } from '../../../../support/engines/engine.ts'
import { DEADLINE_MS } from '../../../../support/wait-until.ts'
import { openEngineTest } from './support.ts'

const WORKSPACE = 'ws1'
const key = (archiveId: string) => ({ workspaceId: WORKSPACE, archiveId })

const FILES = [
  'echo home > /root/file && chmod 4750 /root/file && ln /root/file /root/hard',
  'echo other > /root/other && chown 1234:4321 /root/other && chmod 600 /root/other',
  'ln -s ../etc/passwd /root/relative && ln -s /etc/passwd /root/absolute && mkfifo /root/fifo',
  'mkdir -p /root/sub/empty && chmod 1777 /root/sub && mknod /root/device c 1 3; touch "/root/é ä"',
  'echo layer > /etc/layer && rm /etc/group && echo state > /var/lib/boxwood/spool ',
]
const DESCRIBE = `cd / && ls -ln /root | sed 's/.* \\([drwxpsStl-]\\{10\\}\\)/\\1/' | awk '{print $1, $2, $3, $4, $9, $10, $11}' && cat /root/hard /root/other /etc/layer && ls /etc/group 2>&1 | wc -l && ls /var/lib/boxwood`

export async function testArchives(t: Test, kind: EngineKind, imageEngine: ImageEngine): Promise<void> {
  const test = await openEngineTest(kind, imageEngine)
  t.teardown(() => test.close())
  const { archives, archiveImages, store, storeDir, pauses } = await test.openArchives()
  t.teardown(() => store.close())
  const { id } = await test.images.ensure('busybox')
  t.match(id, /^sha256:/)
  const before = await test.listObjects()
  const boxId = await test.startMachine(test.normalize('busybox'))
  for (const script of FILES) test.exec(boxId, script)

  await t.test('all files of a running machine return, on an engine without its image', async (t) => {
    const info = await archives.capture(boxId, key('one'), 'all')
    // An engine of an ordinary user cannot pause with version 1 of control groups.
    const { canFreeze } = await readEngineInfo(test.engine, true)
    t.equal(info.pausedMs !== null, canFreeze, `${info.pausedMs} ms`)
    t.ok(info.contentBytes > 0 && info.storedBytes > 0)
    t.equal(test.exec(boxId, 'echo runs'), 'runs\n', 'the processes continue')
    t.same(await archives.capture(boxId, key('one'), 'all'), info, 'a repeated capture finds the archive')
    t.equal(await archiveImages.remove('one'), true)
    const restored = await test.restoreMachine(archives, key('one'))
    t.equal(
      test.exec(restored, DESCRIBE).replace(/.*device.*\n/, ''),
      test.exec(boxId, DESCRIBE).replace(/.*device.*\n/, ''),
    )
    t.match(test.exec(restored, 'ls /var/lib/boxwood'), 'spool')
    await test.destroyMachine(restored)
  })

  await t.test('equal layers are stored once, and the state of the agent is not in files', async (t) => {
    test.exec(boxId, 'echo more > /root/more')
    const info = await archives.capture(boxId, key('two'), 'files')
    t.ok(info.storedBytes < 300_000, `${info.storedBytes} bytes`)
    const restored = await test.restoreMachine(archives, key('two'))
    t.equal(test.exec(restored, 'cat /root/more; ls /var/lib/boxwood'), 'more\n')
    t.equal(await archiveImages.remove('two'), false, 'the image of a machine remains')
    await test.destroyMachine(restored)
    await archives.copyFiles(key('one'), key('copy'))
    const copy = await test.restoreMachine(archives, key('copy'))
    t.equal(test.exec(copy, 'cat /etc/layer; ls /var/lib/boxwood'), 'layer\n')
    await test.destroyMachine(copy)
  })

  await t.test('another store and engine restores the stream of an archive', async (t) => {
    const other = await test.openArchives()
    t.teardown(() => other.store.close())
    await other.archives.write(key('moved'), archives.read(key('one')))
    const restored = await test.restoreMachine(other.archives, key('moved'))
    t.match(test.exec(restored, 'cat /etc/layer /root/file /var/lib/boxwood/spool'), 'layer\nhome\nstate\n')
    await test.destroyMachine(restored)
    await other.archives.remove(key('moved'))
  })

  await t.test('layers are merged before the limit of the engine', async (t) => {
    const other = await test.openArchives(undefined, 2)
    t.teardown(() => other.store.close())
    await other.archives.capture(boxId, key('merged'), 'files')
    const merged = await other.archiveImages.find('merged')
    t.equal(merged?.layerCount, 1)
    // Podman adds variables of its own, in any order.
    t.ok(merged?.environment.some((variable) => variable.startsWith('PATH=')))
    const restored = await test.restoreMachine(other.archives, key('merged'))
    t.equal(
      test.exec(restored, 'cat /etc/layer && ls /etc/group 2>&1 | wc -l && cat /root/more'),
      'layer\n1\nmore\n',
    )
    await test.destroyMachine(restored)
    await other.archives.remove(key('merged'))
  })

  await t.test('the copies of a machine whose image has no history can be captured', async (t) => {
    await archives.capture(boxId, key('first'), 'files')
    const copy = await test.restoreMachine(archives, key('first'))
    test.exec(copy, 'echo copy > /etc/copy && rm /etc/layer')
    await archives.capture(copy, key('second'), 'files')
    const { environment = [] } = (await archiveImages.find('second')) ?? {}
    t.ok(
      environment.some((variable) => variable.startsWith('PATH=')),
      'the variables remain',
    )
    const copyOfCopy = await test.restoreMachine(archives, key('second'))
    t.equal(
      test.exec(copyOfCopy, 'cat /etc/copy /root/more && ls /etc/layer /etc/group 2>&1 | wc -l'),
      'copy\nmore\n2\n',
    )
    await archives.capture(copyOfCopy, key('third'), 'files')
    for (const boxId of [copy, copyOfCopy]) await test.destroyMachine(boxId)
    for (const name of ['first', 'second', 'third']) await archives.remove(key(name))
  })

  await t.test('a capture that is interrupted leaves nothing', async (t) => {
    for (const point of ['while the files are read', 'while the image is saved']) {
      const stopping = new AbortController()
      const save = archiveImages.save.bind(archiveImages)
      if (point.includes('image'))
        archiveImages.save = (id, signal) => {
          stopping.abort(new Error('stop'))
          return save(id, signal)
        }
      else queueMicrotask(() => stopping.abort(new Error('stop')))
      await t.rejects(archives.capture(boxId, key('stopped'), 'files', stopping.signal), /stop/, point)
      archiveImages.save = save
      t.equal(test.exec(boxId, 'echo runs'), 'runs\n', 'the processes run')
      t.notOk((await archiveImages.list()).includes('stopped'))
    }
    t.notOk((await store.list()).includes('stopped'))
  })

  await t.test(
    'a killed coordinator leaves a paused machine and an image, which the next start repairs',
    async (t) => {
      const pause = pauses.begin(boxId, (_, work) => work())
      await pause.start()
      await archiveImages.commit(boxId, 'killed')
      const next = await test.openArchives(storeDir)
      t.teardown(() => next.store.close())
      await next.pauses.continueAll()
      await next.archives.removeUnusedImages()
      t.equal(test.exec(boxId, 'echo runs'), 'runs\n')
      t.notOk((await archiveImages.list()).includes('killed'))
      await pause.end()
    },
  )

  await t.test('the next start removes containers of killed calls, and nothing of others', async (t) => {
    const { http, deploymentId } = test.engine
    const create = (name: string, labels: Record<string, string>) =>
      http.json({
        method: 'POST',
        path: '/containers/create',
        query: { name },
        json: { Image: test.normalize('busybox'), Cmd: ['/none'], Labels: labels },
      })
    await create('boxwood-helper-of-killed', createLabels(deploymentId, 'helper'))
    await create('other-coordinator', createLabels('fedcba9876543210', 'helper'))
    await create('without-labels', {})
    await withHelper(test.engine, [], async (name) => {
      await removeLeftovers(test.engine, archives)
      const names = (await test.listObjects()).join(' ')
      t.notMatch(names, 'boxwood-helper-of-killed')
      for (const expected of [name, 'other-coordinator', 'without-labels', `boxwood-${boxId}`])
        t.match(names, expected)
    })
    for (const name of ['other-coordinator', 'without-labels']) await removeHelper(test.engine, name)
  })

  await t.test('the disk of a box has its layer and its volumes', async (t) => {
    const disk = createEngineDisk(test.engine, () => imageEngine.dir)
    const signal = AbortSignal.timeout(DEADLINE_MS)
    const measure = async () => (await disk.measure(boxId, signal)) ?? { bytes: -1, inodes: -1 }
    const before = await measure()
    for (const path of ['/root/data', '/etc/data', '/var/lib/boxwood/data'])
      test.exec(boxId, `dd if=/dev/zero of=${path} bs=1M count=3 && sync`)
    const { bytes, inodes } = await measure()
    t.ok(bytes - before.bytes >= 9 * 1024 ** 2 && bytes - before.bytes < 10 * 1024 ** 2, `${bytes}`)
    t.equal(inodes - before.inodes, 3)
    t.ok((await disk.readSpace()).bytes.total > 0)
    t.strictSame(await disk.measure('00000000-0000-4000-8000-000000000000', signal), { bytes: 0, inodes: 0 })
    t.equal((await createEngineDisk(test.engine, () => null).readSpace()).inodes, null)
  })

  await t.test('the spool is read within its limits', async (t) => {
    const write = (name: string, bytes: number) =>
      test.exec(boxId, `cd /var/lib/boxwood/reports && head -c ${bytes} /dev/zero | tr '\\0' x > ${name}`)
    const read = async () => {
      const skipped: string[] = []
      const segments: Buffer[] = []
      for await (const segment of readEngineSpool(test.engine, boxId, (name) => skipped.push(name)))
        segments.push(segment)
      return { sizes: segments.map(({ length }) => length), skipped }
    }
    t.strictSame(await read(), { sizes: [], skipped: [] }, 'there is no spool')
    test.exec(boxId, 'mkdir /var/lib/boxwood/reports')
    write(formatSegmentName(1), 10)
    write(formatSegmentName(2), 3)
    write('other', 10)
    test.exec(boxId, `ln -s /etc/passwd /var/lib/boxwood/reports/${formatSegmentName(3)}`)
    t.strictSame(await read(), { sizes: [10, 3], skipped: [] })
    test.exec(boxId, `truncate -s 3M /var/lib/boxwood/reports/${formatSegmentName(0)}`)
    t.strictSame(await read(), { sizes: [10, 3], skipped: [formatSegmentName(0)] })
    test.exec(boxId, `truncate -s 20G /var/lib/boxwood/reports/${formatSegmentName(2)}`)
    t.strictSame(await read(), { sizes: [10], skipped: [formatSegmentName(0), formatSegmentName(2)] })
    test.exec(boxId, 'rm -r /var/lib/boxwood/reports && ln -s /etc /var/lib/boxwood/reports')
    t.strictSame((await read()).sizes, [])
  })

  await t.test('hostile archives are refused', async (t) => {
    const file = encodeFile
    const cases: Record<string, Buffer[]> = {
      'a file outside': [file('home/../../etc/x', Buffer.from('x'))],
      'another directory': [file('other/x', Buffer.from('x'))],
      'no image': [file('home/x', Buffer.from('x'))],
      'two homes': [
        file('home/x', Buffer.from('x')),
        file('image/x', Buffer.from('x')),
        file('home/y', Buffer.from('x')),
      ],
      'several images': [
        file('image/manifest.json', Buffer.from('[{"Config":"a","Layers":[]},{"Config":"b","Layers":[]}]')),
      ],
      'no layers': [file('image/manifest.json', Buffer.from('[{"Config":"a","RepoTags":["debian:12"]}]'))],
      'a damaged manifest': [file('image/manifest.json', Buffer.from('{'))],
    }
    let number = 0
    for (const [name, entries] of Object.entries(cases)) {
      const archive = key(`hostile${number++}`)
      await archives.write(archive, Readable.from([Buffer.concat([...entries, TAR_TRAILER])]))
      const boxId = await test.startMachine(test.normalize('busybox'))
      await t.rejects(archives.restore(archive, boxId), ArchiveError, name)
      await test.destroyMachine(boxId)
      await archives.remove(archive)
    }
  })

  await t.test('nothing remains', async (t) => {
    await test.destroyMachine(boxId)
    await archives.removeAll(WORKSPACE)
    t.strictSame(await test.listObjects(), before)
  })
}
