// The archives of the agent: built once, signed, repaired, and served without a key.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { formatPublicKey, verifyAgentBuild } from '../../../../shared/agent-bundle.ts'
import { NATIVE_PARTS } from '../../../../shared/native-file-names.ts'
import {
  createDataDir,
  createSmallBundles,
  createTestBundles,
  startBundleServer,
} from '../../../support/bundle-server.ts'

const dataDir = createDataDir(t)
const bundles = createSmallBundles(t, { dataDir })

async function getBundle(from = bundles) {
  const bundle = await from.get('linux-x64')
  if (bundle === null) throw new Error('this test needs linux-x64')
  return bundle
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

t.test('simultaneous requests share one build, which is signed', async (test) => {
  const [first, second] = await Promise.all([getBundle(), getBundle()])
  test.equal(first, second)
  const bytes = readFileSync(first.path)
  test.match(first, { size: bytes.length, sha256: sha256(bytes), buildId: /^[0-9a-f]{16}$/ })
  const publicKey = formatPublicKey(await bundles.publicKey())
  test.ok(verifyAgentBuild(first, publicKey))
  for (const change of [{ size: 1 }, { version: '9.9.9' }, { buildId: '0'.repeat(16) }])
    test.notOk(verifyAgentBuild({ ...first, ...change }, publicKey))
})

t.test('the archive contains the program, its Node and no compile cache', async (test) => {
  // The Node of this machine, and the archive that the project caches.
  const { path, unpackedSize } = await getBundle(createTestBundles(test))
  const { stdout } = spawnSync('tar', ['-tvzf', path], { encoding: 'utf8' })
  const entries = stdout.trim().split('\n')
  for (const pattern of [
    /^-rwxr-xr-x 0\/0 .* node$/m,
    /^-rwxr-xr-x 0\/0 .* supervise\.sh$/m,
    /^-rw-r--r-- .* agent\.mjs$/m,
    /^-rw-r--r-- .* setup\.mjs$/m,
    /^-rw-r--r-- .* build-id$/m,
    /prebuilds\/linux-x64\//,
  ])
    test.match(stdout, pattern)
  test.notMatch(stdout, /compile-cache|prebuilds\/(darwin|win32)/)
  const { runner, terminalHost } = NATIVE_PARTS
  for (const { bundledFileName } of [runner, terminalHost])
    test.notMatch(stdout, new RegExp(`^-rw-.* ${bundledFileName}$`, 'm'), 'native programs are executable')
  const sizes = entries.map((line) => Number(line.trim().split(/\s+/)[2]))
  // The file build-id has 16 bytes.
  test.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    unpackedSize + 16,
  )
})

t.test('the next coordinator uses the archive, and replaces a damaged one', async (test) => {
  const { path, sha256: expected } = await getBundle()
  const before = statSync(path).mtimeMs
  const next = createSmallBundles(test, { dataDir })
  test.match(await next.get('linux-x64'), { path, sha256: expected })
  test.equal(statSync(path).mtimeMs, before)
  writeFileSync(path, 'damaged')
  const repaired = createSmallBundles(test, { dataDir })
  test.match(await repaired.get('linux-x64'), { path, sha256: expected })
  test.equal(sha256(readFileSync(path)), expected)
})

t.test('another version is another build, and the archive of the first is removed', async (test) => {
  const dir = createDataDir(test)
  const first = await createSmallBundles(test, { dataDir: dir }).get('linux-x64')
  const second = await createSmallBundles(test, { dataDir: dir, version: '9.9.9' }).get('linux-x64')
  test.match(second, { version: '9.9.9' })
  test.not(second?.buildId, first?.buildId)
  test.same(
    readdirSync(join(dir, 'agent-bundles')).filter((name) => name.endsWith('.gz')),
    [`linux-x64-${second?.buildId}.tar.gz`],
  )
})

t.test('the routes: a range, HEAD, unknown archives, and an archive that was removed', async (test) => {
  const { path, sha256: expected, size } = await getBundle()
  const { url } = await startBundleServer(test, bundles)
  const archiveUrl = `${url}/agent/bundles/${path.split('/').at(-1)}`
  const range = await fetch(archiveUrl, { headers: { range: 'bytes=0-1' } })
  test.equal(range.status, 206)
  test.same(Buffer.from(await range.arrayBuffer()), Buffer.from([0x1f, 0x8b]))
  const head = await fetch(archiveUrl, { method: 'HEAD' })
  test.match(head.headers.get('content-length'), String(size))
  for (const name of [`linux-x64-${'0'.repeat(16)}.tar.gz`, '..%2fowner.key', 'x'])
    test.equal((await fetch(`${url}/agent/bundles/${name}`)).status >= 400, true, name)
  rmSync(path)
  const response = await fetch(archiveUrl)
  test.equal(sha256(new Uint8Array(await response.arrayBuffer())), expected)
})

t.test('the script has the URL that the client used, but not a malformed one', async (test) => {
  const { app } = await startBundleServer(test, bundles)
  const getUrl = async (host: string) =>
    /^ {2}coordinator_url='(.*)'$/m.exec(
      (await app.inject({ url: '/install.sh', headers: { host } })).body,
    )?.[1]
  test.equal(await getUrl('boxes.example.com:8080'), 'http://boxes.example.com:8080')
  test.equal(await getUrl('[::1]:8080'), 'http://[::1]:8080')
  for (const host of ["a'b", 'a b', '$(id)', '`id`', 'a/b']) test.equal(await getUrl(host), '', host)
})
