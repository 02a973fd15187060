// The install script: installs into a directory of this machine, removes everything, and explains each failure.
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createSigningKey } from '../../coordinator/agents/bundles/signing-key.ts'
import { createSmallBundles, createTestBundles, startBundleServer, TOKEN } from '../support/bundle-server.ts'
import { downloadScript, listTree, runInstaller } from '../support/run-installer.ts'
import { createTempDir } from '../support/temp-dir.ts'

const bundles = createSmallBundles(t)

/** A home directory, and a prefix in it that does not exist. */
function createHome(test: Test) {
  const home = createTempDir(test, 'home')
  return { home, prefix: join(home, 'opt/boxwood') }
}

/** The processes whose first argument starts with the text. */
const findProcesses = (text: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1]?.startsWith(text)
      } catch {
        return false
      }
    })

t.test('installs, and removes everything', async (test) => {
  const bundles = createTestBundles(test)
  const server = await startBundleServer(test, bundles)
  const { home, prefix } = createHome(test)
  const result = await runInstaller(server.url, home, {
    args: ['--token', TOKEN, '--prefix', prefix, '--no-service'],
  })
  test.match(result, {
    status: 0,
    stdout: /This machine is the box fig\. Start its agent with: /,
    stderr: '',
  })
  const bundle = await bundles.get('linux-x64')
  test.equal(readlinkSync(join(prefix, 'current')), `versions/${bundle?.buildId}`)
  test.match(readFileSync(join(prefix, 'coordinator.pub'), 'utf8'), `\n${await bundles.publicKey()}\n`)
  test.match(readFileSync(join(prefix, 'agent.env'), 'utf8'), `BOXWOOD_BOX='${server.boxId}'`)
  for (const path of ['agent.env', 'state/token', 'install.json'])
    test.equal(statSync(join(prefix, path)).mode & 0o777, 0o600, path)
  test.equal(statSync(join(prefix, 'state')).mode & 0o777, 0o700)
  test.match(server.exchanges, [
    { token: TOKEN, platform: 'linux-x64', agentVersion: RegExp(`\\+${bundle?.buildId}$`) },
  ])
  test.same(
    listTree(prefix).filter((path) => path.includes('staging')),
    [],
  )

  const removal = await runInstaller(server.url, home, { args: ['--prefix', prefix, '--uninstall'] })
  test.match(removal, { status: 0, stdout: /removed/, stderr: '' })
  test.same(listTree(home), [])
})

t.test('an archive with another content is refused, and nothing is installed', async (test) => {
  const server = await startBundleServer(test, bundles)
  const { home, prefix } = createHome(test)
  const script = (await downloadScript(server.url)).replace(/ [0-9a-f]{64} /, ` ${'0'.repeat(64)} `)
  const result = await runInstaller(server.url, home, {
    script,
    args: ['--token', TOKEN, '--prefix', prefix],
  })
  test.match(result, { status: 1, stderr: /does not have the SHA-256/ })
  test.same(listTree(home), [])
  test.same(server.exchanges, [])
})

t.test('a refused token leaves nothing, and its sentence is printed', async (test) => {
  const server = await startBundleServer(test, bundles)
  server.rejectWith({ status: 401, message: 'The token has expired. Create a new one.' })
  const { home, prefix } = createHome(test)
  const result = await runInstaller(server.url, home, { args: ['--token', TOKEN, '--prefix', prefix] })
  test.match(result, { status: 1, stderr: 'boxwood: The token has expired. Create a new one.\n' })
  test.same(listTree(home), [])
})

t.test('a directory with other files is not used', async (test) => {
  const server = await startBundleServer(test, bundles)
  const { home, prefix } = createHome(test)
  mkdirSync(prefix, { recursive: true })
  writeFileSync(join(prefix, 'letter.txt'), '')
  const before = listTree(home)
  const result = await runInstaller(server.url, home, { args: ['--token', TOKEN, '--prefix', prefix] })
  test.match(result, { status: 1, stderr: /contains other files, such as .*letter\.txt/ })
  test.same(listTree(home), before)
})

t.test('a script that was cut off in the middle of its download does nothing', async (test) => {
  const server = await startBundleServer(test, bundles)
  const { home, prefix } = createHome(test)
  const complete = await downloadScript(server.url)
  for (const share of [0.2, 0.5, 0.9, 0.999]) {
    const script = complete.slice(0, Math.floor(complete.length * share))
    const result = await runInstaller(server.url, home, {
      script,
      args: ['--token', TOKEN, '--prefix', prefix],
    })
    test.equal(result.stdout, '', `${share}`)
    test.same(listTree(home), [], `${share}`)
  }
})

t.test('a bundle with the signature of another key is refused, and nothing is installed', async (test) => {
  const server = await startBundleServer(test, bundles)
  const { home, prefix } = createHome(test)
  const { publicKey } = generateKeyPairSync('ed25519')
  const otherKey = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
  const script = (await downloadScript(server.url)).replace(await bundles.publicKey(), otherKey)
  const result = await runInstaller(server.url, home, {
    script,
    args: ['--token', TOKEN, '--prefix', prefix],
  })
  test.match(result, { status: 1, stderr: /The signature of the agent bundle does not match the key/ })
  test.same(listTree(home), [])
  test.same(server.exchanges, [])
})

t.test('a coordinator with another key does not get an installed machine', async (test) => {
  const server = await startBundleServer(test, bundles)
  const { home, prefix } = createHome(test)
  const args = ['--token', TOKEN, '--prefix', prefix, '--no-service']
  await runInstaller(server.url, home, { args })
  const before = listTree(home)
  writeFileSync(
    join(prefix, 'coordinator.pub'),
    '-----BEGIN PUBLIC KEY-----\nother\n-----END PUBLIC KEY-----\n',
  )
  const result = await runInstaller(server.url, home, { args })
  test.match(result, { status: 1, stderr: /belongs to a coordinator with another key.*--uninstall first/ })
  test.same(listTree(home), before)
  test.equal(server.exchanges.length, 1)
})

t.test('a clock that is ahead, and no token', async (test) => {
  let offset = -3_600_000
  const server = await startBundleServer(test, bundles, (app) => {
    app.addHook('onSend', async (_request, reply) => {
      reply.header('date', new Date(Date.now() + offset).toUTCString())
    })
  })
  const { home, prefix } = createHome(test)
  const ahead = await runInstaller(server.url, home, { args: ['--token', TOKEN, '--prefix', prefix] })
  test.match(ahead, { status: 1, stderr: /clock of this machine is wrong: it is 60 minutes ahead of/ })
  offset = 0
  const noToken = await runInstaller(server.url, home, { args: ['--prefix', prefix] })
  test.match(noToken, { status: 1, stderr: /A token is required. Create one with `box machine add`/ })
  test.same(listTree(home), [])
})

t.test('a signal during the exchange removes everything', async (test) => {
  const pending = Promise.withResolvers<void>()
  const server = await startBundleServer(test, bundles, (app) => {
    app.addHook('preHandler', async (request) => {
      if (request.url !== '/agent/enroll') return
      pending.resolve()
      await new Promise(() => undefined)
    })
  })
  const { home, prefix } = createHome(test)
  const running = runInstaller(server.url, home, { args: ['--token', TOKEN, '--prefix', prefix] })
  await pending.promise
  const setups = findProcesses(`${prefix}/staging`)
  test.equal(setups.length, 1)
  for (const pid of setups) process.kill(pid, 'SIGTERM')
  test.match(await running, { status: 1, stderr: 'boxwood: Interrupted by SIGTERM.\n' })
  test.same(listTree(home), [])
})

t.test('a token in the environment', async (test) => {
  const server = await startBundleServer(test, bundles)
  const { home, prefix } = createHome(test)
  const args = ['--prefix', prefix, '--no-service']
  test.match(await runInstaller(server.url, home, { args, env: { BOXWOOD_TOKEN: TOKEN } }), { status: 0 })
  test.match(server.exchanges, [{ token: TOKEN }])
})

t.test('a second run installs another version, and keeps the one before', async (test) => {
  const key = createSigningKey()
  const { home, prefix } = createHome(test)
  const builds: (string | undefined)[] = []
  for (const version of ['1.0.0', '2.0.0']) {
    const versionBundles = createSmallBundles(test, { key, version })
    const server = await startBundleServer(test, versionBundles)
    const args = ['--token', TOKEN, '--prefix', prefix, '--no-service']
    test.match(await runInstaller(server.url, home, { args }), {
      status: 0,
      stdout: /This machine is the box fig/,
    })
    test.match(readFileSync(join(prefix, 'agent.env'), 'utf8'), `BOXWOOD_URL='${server.url}'`)
    builds.push((await versionBundles.get('linux-x64'))?.buildId)
  }
  test.equal(readlinkSync(join(prefix, 'previous')), `versions/${builds[0]}`)
  test.equal(readlinkSync(join(prefix, 'current')), `versions/${builds[1]}`)
  test.same(readdirSync(join(prefix, 'versions')).sort(), builds.sort())
})
