// The agent installs a build completely or not at all, and only a signed one.
import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { unpack } from '../../../agent/upgrade/unpack.ts'
import type { AgentBuild } from '../../../shared/agent-build.ts'
import { mountSmallDisk, SKIP_MOUNT } from '../../support/small-disk.ts'
import {
  createArchive,
  createEntries,
  createPrefix,
  describeArchive,
  type Entry,
  NEW_BUILD,
  OLD_BUILD,
  openBuilds,
  otherKeys,
  splitBuffer,
} from './archives.ts'

const listVersions = (prefix: string) => readdirSync(join(prefix, 'versions')).sort()
const archive = createArchive(createEntries(NEW_BUILD))

/** Nothing has changed, and no file was written outside the prefix. */
function checkUnchanged(t: Test, prefix: string): void {
  t.same(listVersions(prefix), [OLD_BUILD])
  t.equal(readlinkSync(join(prefix, 'current')), `versions/${OLD_BUILD}`)
  t.same(readdirSync(prefix).sort(), ['coordinator.pub', 'current', 'versions'])
}

t.test('installs and activates a build', async (t) => {
  const prefix = createPrefix(t)
  const builds = openBuilds(t, prefix, archive)
  await builds.install(describeArchive(archive))
  checkLinks(OLD_BUILD, null)
  const dir = join(prefix, 'versions', NEW_BUILD)
  t.equal(readFileSync(join(dir, 'node_modules/a.js'), 'utf8'), 'a')
  t.equal(statSync(join(dir, 'node')).mode & 0o777, 0o755)
  t.equal(statSync(join(dir, 'node')).uid, process.getuid?.(), 'the owner in the archive is ignored')
  await builds.activate(NEW_BUILD)
  checkLinks(NEW_BUILD, OLD_BUILD)
  await builds.activate(NEW_BUILD)
  checkLinks(NEW_BUILD, OLD_BUILD)

  function checkLinks(current: string, previous: string | null): void {
    t.equal(readlinkSync(join(prefix, 'current')), `versions/${current}`)
    if (previous === null) t.notOk(existsSync(join(prefix, 'previous')))
    else t.equal(readlinkSync(join(prefix, 'previous')), `versions/${previous}`)
  }
})

t.test('downloads a build once', async (t) => {
  let requests = 0
  const builds = openBuilds(t, createPrefix(t), () => {
    requests += 1
    return Readable.from(splitBuffer(archive))
  })
  const build = describeArchive(archive)
  await Promise.all([builds.install(build), builds.install(build)])
  await builds.install(build)
  t.equal(requests, 1)
})

t.test('does not activate a build that is not installed', async (t) => {
  const prefix = createPrefix(t)
  await t.rejects(openBuilds(t, prefix, archive).activate(NEW_BUILD), { code: 'not_found' })
  checkUnchanged(t, prefix)
})

t.test('refuses a build that is not signed by the coordinator, before the download', async (t) => {
  const signed = describeArchive(archive)
  const cases: [string, AgentBuild][] = [
    ['another key', describeArchive(archive, {}, otherKeys.privateKey)],
    ['another size', { ...signed, size: signed.size + 1 }],
    ['another hash', { ...signed, sha256: randomBytes(32).toString('hex') }],
    ['another build', { ...signed, buildId: '2222222222222222' }],
    ['another version', { ...signed, version: '0.0.9' }],
    ['another platform', describeArchive(archive, { platform: 'linux-arm64' })],
    ['a random signature', { ...signed, signature: randomBytes(64).toString('base64') }],
  ]
  for (const [name, build] of cases) {
    const prefix = createPrefix(t)
    const builds = openBuilds(t, prefix, () => {
      throw new Error('the archive was requested')
    })
    await t.rejects(builds.install(build), { code: 'bad_request' }, name)
    checkUnchanged(t, prefix)
  }
})

t.test('refuses an archive that differs from the announced one', async (t) => {
  const damaged = Buffer.from(archive)
  damaged[200] = (damaged[200] ?? 0) ^ 1
  const cases: [string, Buffer | (() => Readable), RegExp][] = [
    ['a changed byte', damaged, /SHA-256/],
    ['a truncated archive', archive.subarray(0, -1), /bytes instead of/],
    ['a longer archive', Buffer.concat([archive, Buffer.alloc(1)]), /more than the announced/],
    ['an endless archive', () => Readable.from(endless()), /more than the announced/],
    ['a connection that breaks', () => Readable.from(broken()), /connection lost/],
  ]
  for (const [name, content, message] of cases) {
    const prefix = createPrefix(t)
    const result = openBuilds(t, prefix, content).install(describeArchive(archive))
    await t.rejects(result, { code: 'exec_failed', message }, name)
    checkUnchanged(t, prefix)
  }

  function* endless() {
    for (;;) yield Buffer.alloc(1000)
  }
  async function* broken() {
    yield archive.subarray(0, 300)
    throw new Error('connection lost')
  }
})

t.test('refuses a hostile archive, although it is signed', async (t) => {
  const entries = createEntries(NEW_BUILD)
  const withEntry = (entry: Entry) => createArchive([entry, ...entries])
  const cases: [string, Buffer, RegExp][] = [
    ['a path above the directory', withEntry({ path: '../escaped', text: 'x' }), /outside/],
    ['a path through the directory', withEntry({ path: 'a/../../../escaped', text: 'x' }), /outside/],
    ['an absolute path', withEntry({ path: '/tmp/boxwood-escaped', text: 'x' }), /outside/],
    ['a symlink', withEntry({ path: 'link', type: 'symlink', target: Buffer.from('/etc') }), /SymbolicLink/],
    ['a hard link', withEntry({ path: 'link', type: 'link', target: Buffer.from('/etc/passwd') }), / Link/],
    [
      'a file through a symlink',
      createArchive([
        { path: 'out', type: 'symlink', target: Buffer.from('..') },
        { path: 'out/escaped', text: 'x' },
        ...entries,
      ]),
      /SymbolicLink/,
    ],
    ['too many entries', createArchive([...entries, ...manyEntries()]), /more than 10000 entries/],
    ['no entries', createArchive([]), /./],
    ['another build', createArchive(createEntries(OLD_BUILD)), /another build/],
    ['no agent', createArchive(entries.filter(({ path }) => path !== 'agent.mjs')), /has no agent.mjs/],
    [
      'a Node that does not run',
      createArchive(
        entries.map((entry) => (entry.path === 'node' ? { ...entry, text: 'no program' } : entry)),
      ),
      /does not run on this machine/,
    ],
    ['no gzip', randomBytes(1000), /./],
    ['half a tar archive', createArchive(entries).subarray(0, 250), /./],
  ]
  for (const [name, content, message] of cases) {
    const prefix = createPrefix(t)
    const result = openBuilds(t, prefix, content).install(describeArchive(content))
    await t.rejects(result, { code: 'exec_failed', message }, name)
    checkUnchanged(t, prefix)
  }
  t.notOk(existsSync('/tmp/boxwood-escaped'))

  function* manyEntries(): Generator<Entry> {
    for (let i = 0; i < 10_000; i++) yield { path: `file-${i}` }
  }
})

t.test('a file of the build has no special permissions', async (t) => {
  const prefix = createPrefix(t)
  const content = createArchive([...createEntries(NEW_BUILD), { path: 'tool', text: 'x', mode: 0o6777 }])
  await openBuilds(t, prefix, content).install(describeArchive(content))
  t.equal(statSync(join(prefix, 'versions', NEW_BUILD, 'tool')).mode & 0o7777, 0o755)
})

t.test('the bound of the content holds for a small archive', async (t) => {
  const prefix = createPrefix(t)
  const content = createArchive([{ path: 'zeros', text: '\0'.repeat(2_000_000) }])
  const path = join(prefix, 'archive')
  writeFileSync(path, content)
  mkdirSync(join(prefix, 'content'))
  const result = unpack(path, join(prefix, 'content'), { contentBytes: 1_000_000, entries: 10 })
  await t.rejects(result, /more than 1000000 bytes/)
  t.same(readdirSync(join(prefix, 'content')), [])
})

t.test('removes what a killed agent has left, and builds that are not in use', async (t) => {
  const prefix = createPrefix(t)
  const inVersions = (name: string) => join(prefix, 'versions', name)
  for (const name of ['.staging-3333333333333333', 'aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb'])
    mkdirSync(join(inVersions(name), 'content'), { recursive: true })
  const listCommandLines = async () => [`sh\0${inVersions('bbbbbbbbbbbbbbbb')}/run.sh\0`]
  const builds = openBuilds(t, prefix, archive, { listCommandLines })
  await builds.install(describeArchive(archive))
  await builds.activate(NEW_BUILD)
  await builds.prune()
  t.same(listVersions(prefix), [OLD_BUILD, NEW_BUILD, 'bbbbbbbbbbbbbbbb'])
})

t.test('a full disk leaves nothing', async (t) => {
  const disk = mountSmallDisk(t, 4)
  if (disk === undefined) return t.pass('', { skip: SKIP_MOUNT })
  const prefix = createPrefix(t, disk.dir)
  const install = async (text: string) => {
    const content = createArchive([...createEntries(NEW_BUILD), { path: 'data', text }])
    return openBuilds(t, prefix, content).install(describeArchive(content))
  }
  // Random digits have half their size in the archive, so the check of the free space refuses the first one.
  await t.rejects(install(randomBytes(1_000_000).toString('hex')), {
    code: 'exec_failed',
    message: /free bytes/,
  })
  await t.rejects(install('0'.repeat(8_000_000)), { code: 'exec_failed', message: /ENOSPC/ })
  checkUnchanged(t, prefix)
  await install('0'.repeat(1000))
  t.same(listVersions(prefix), [OLD_BUILD, NEW_BUILD])
})
