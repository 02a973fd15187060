// The first prompt of OpenCode or pi installs it with npm.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { waitUntil } from '../../../support/wait-until.ts'
import { createTestBox, type TestBox } from './support.ts'

const SIGNED_IN = { OPENCODE_KEY: 'k', PI_KEY: 'k' }

/** A fake npm with a global prefix. It appends its arguments to ~/npm.log, and `install` creates the program. */
function addNpm(box: TestBox, { prefix = '', before = '', ping = '' } = {}): void {
  box.program(
    'npm',
    `echo "$@" >>'${box.home}/npm.log'
if [ "$1" = prefix ]; then echo "${prefix}"; exit; fi
if [ "$1" = ping ]; then ${ping || 'exit'}; fi
${before}
target='${prefix}'
name=
while [ $# -gt 0 ]; do
  case $1 in --prefix) target=$2; shift ;; fake-*) name=\${1#fake-}; name=\${name%@*} ;; esac
  shift
done
mkdir -p "$target/bin"
printf '#!/bin/sh\\necho 1.2.3\\n' >"$target/bin/$name"
chmod +x "$target/bin/$name"`,
  )
}
const readLog = (box: TestBox) => readFileSync(join(box.home, 'npm.log'), 'utf8').trim().split('\n')
const listInstalls = (box: TestBox) => readLog(box).filter((line) => line.startsWith('install'))

t.test('installs into ~/.local when the global prefix is not writable', async (t) => {
  const box = createTestBox(t)
  addNpm(box, { prefix: '/proc' })
  const { resolve, waitForReadiness, setBoxVariables } = await box.detect()
  setBoxVariables(SIGNED_IN)
  t.match(await resolve('pi', SIGNED_IN), { path: join(box.home, '.local/bin/pi'), version: '1.2.3' })
  const [install = '', ...others] = listInstalls(box)
  t.match(install, /^install -g --prefix \S+\/\.local .* --allow-scripts=fake-pi fake-pi@1\.2\.3$/)
  t.same(others, [])
  await waitForReadiness('pi', 'ready')
})

t.test('installs into the global prefix when it is writable and on the PATH', async (t) => {
  const box = createTestBox(t)
  addNpm(box, { prefix: box.home })
  const { resolve } = await box.detect()
  t.match(await resolve('opencode', SIGNED_IN), { path: join(box.home, 'bin/opencode') })
  t.notMatch(listInstalls(box)[0], /--prefix/)
})

t.test('installs into ~/.local when the global prefix is not on the PATH', async (t) => {
  const box = createTestBox(t)
  mkdirSync(join(box.home, 'elsewhere'))
  addNpm(box, { prefix: join(box.home, 'elsewhere') })
  const { resolve } = await box.detect()
  t.match(await resolve('pi', SIGNED_IN), { path: join(box.home, '.local/bin/pi') })
})

t.test('concurrent prompts share an installation, and installations run one at a time', async (t) => {
  const box = createTestBox(t)
  const lock = `mkdir '${box.home}/lock' || exit 9; while ! [ -e '${box.home}/go' ]; do sleep 0.01; done; rmdir '${box.home}/lock'`
  addNpm(box, { before: lock })
  const { resolve } = await box.detect()
  const started = (['pi', 'pi', 'opencode', 'pi'] as const).map((name) => resolve(name, SIGNED_IN))
  await waitUntil('npm installs', () => existsSync(join(box.home, 'lock')))
  box.write('go', '')
  t.same(
    (await Promise.all(started)).map(({ version }) => version),
    Array(4).fill('1.2.3'),
  )
  t.equal(listInstalls(box).length, 2)
})

t.test('the error of a failed installation has what npm says first, and the name of its log', async (t) => {
  const box = createTestBox(t)
  const before =
    'seq 1 100000 >&2; printf "npm error code \\033[31mE404\\033[0m\\nnpm error 404 not found\\nnpm error A complete log of this run can be found in: /x/debug-0.log\\n\\n" >&2; exit 1'
  addNpm(box, { before })
  const { fail, resolve } = await box.detect()
  const { code, message } = await fail('pi', SIGNED_IN)
  t.equal(code, 'provider_not_installed')
  t.match(
    message,
    /`npm install -g fake-pi@1\.2\.3` failed: exit status 1: E404: 404 not found \(log on the box: \/x\/debug-0\.log\)\.$/,
  )
  addNpm(box)
  t.equal((await resolve('pi', SIGNED_IN)).version, '1.2.3', 'the next prompt tries again')
})

t.test('a registry with an unknown certificate fails at once, with what helps', async (t) => {
  const box = createTestBox(t)
  addNpm(box, { prefix: box.home, ping: 'echo "npm error code SELF_SIGNED_CERT_IN_CHAIN" >&2; exit 1' })
  const { fail, resolve } = await box.detect()
  const { code, message } = await fail('pi', SIGNED_IN)
  t.equal(code, 'provider_not_installed')
  t.match(message, /certificate of its registry \(SELF_SIGNED_CERT_IN_CHAIN\)\..* NODE_EXTRA_CA_CERTS /)
  t.same(listInstalls(box), [], 'npm does not repeat its requests')
  // A registry that does not know the request.
  addNpm(box, { prefix: box.home, ping: 'echo "npm error code E404" >&2; exit 1' })
  t.equal((await resolve('pi', SIGNED_IN)).version, '1.2.3')
})

t.test('an installation that takes too long is terminated', async (t) => {
  const box = createTestBox(t)
  addNpm(box, { before: 'sleep 1000' })
  const { fail } = await box.detect({ installTimeoutMs: 300 })
  t.match(await fail('pi', SIGNED_IN), { message: /it did not finish within 0\.3 s/ })
})

t.test('the time limit includes the installation of another coding agent', async (t) => {
  const box = createTestBox(t)
  addNpm(box, { before: 'sleep 1000' })
  const { fail } = await box.detect({ installTimeoutMs: 1000 })
  const errors = await Promise.all([fail('pi', SIGNED_IN), fail('opencode', SIGNED_IN)])
  // Either may be the first.
  const [first, second] = errors.sort((a, b) => a.message.length - b.message.length)
  t.match(first, { code: 'provider_not_installed', message: /within 1 s\.$/ })
  t.match(second, { code: 'provider_not_installed', message: /because another installation was in progress/ })
  t.equal(listInstalls(box).length, 1)
})

t.test('an installation without a program', async (t) => {
  const box = createTestBox(t)
  addNpm(box, { before: 'exit 0' })
  const { fail } = await box.detect()
  t.match(await fail('pi', SIGNED_IN), { code: 'provider_not_installed', message: /not on the PATH/ })
})

t.test('close() terminates an installation', async (t) => {
  const box = createTestBox(t)
  addNpm(box, { before: `touch '${box.home}/started'; sleep 1000` })
  const { fail, close } = await box.detect()
  const failed = fail('pi', SIGNED_IN)
  await waitUntil('npm installs', () => existsSync(join(box.home, 'started')))
  await close()
  t.equal((await failed).code, 'provider_not_installed')
})

t.test('without npm, the message says what is missing', async (t) => {
  const box = createTestBox(t)
  const { fail } = await box.detect()
  t.match(await fail('pi', { ...SIGNED_IN, PATH: '/nonexistent' }), {
    code: 'provider_not_installed',
    message: /npm, which installs it, is not on the PATH of a login shell\. Install Node\.js/,
  })
})

t.test('Claude Code and Codex are never installed', async (t) => {
  const box = createTestBox(t)
  addNpm(box)
  const { fail } = await box.detect()
  for (const name of ['claude', 'codex'] as const) t.equal((await fail(name)).code, 'provider_not_installed')
  t.equal(box.countStarts('npm'), 0)
})
