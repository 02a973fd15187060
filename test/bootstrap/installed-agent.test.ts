// A machine joins a real coordinator by the install script, without a service manager.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startTestCoordinator, type TestCoordinator } from '../support/coordinator.ts'
import { requestToken } from '../support/enroll.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { listTree, runInstaller } from '../support/run-installer.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

/** The coordinator's own boxes are in memory; machines have real tunnels. */
const startCoordinator = (test: Test, env: Record<string, string> = {}) =>
  startTestCoordinator(test, { machines: 'local', provider: new FakeInfrastructure().provider, env })

async function createToken(coordinator: TestCoordinator, name: string): Promise<string> {
  const { json } = await requestToken(coordinator, { name })
  return json.token
}

function createHome(test: Test) {
  const home = createTempDir(test, 'home')
  const prefix = join(home, '.local/share/boxwood')
  test.teardown(() => runInstaller('', home, { script: removeScript(prefix), args: [] }))
  return { home, prefix }
}

/** No service manager of this machine gets a unit. */
const createArgs = (token: string, prefix: string): string[] => [
  ...['--token', token, '--prefix', prefix, '--service', 'none'],
]

/** Stops the agent when a test has failed before the uninstallation. */
const removeScript = (prefix: string) =>
  `[ ! -e ${prefix}/install.json ] || ${prefix}/current/node ${prefix}/current/setup.mjs uninstall`

/** The same file may run at the same time, without optional programs. */
const SLEEP = `sleep ${1_000_000 + process.pid}`

const listCommandLines = (): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')]
      } catch {
        return []
      }
    })

t.test('joins, runs a command, says so again, and leaves nothing', async (test) => {
  const coordinator = await startCoordinator(test)
  const { home, prefix } = createHome(test)
  const token = await createToken(coordinator, 'fig')
  const args = createArgs(token, prefix)
  const joined = await runInstaller(coordinator.url, home, { args })
  test.match(joined, { status: 0, stdout: /This machine is the box fig[\s\S]*box exec fig -- uname -a/ })
  const { json } = await coordinator.edge('fig', 'POST', '/exec', { command: 'echo $HOME; umask' })
  test.equal(json.stdout, `${home}\n0022\n`)

  const agents = listCommandLines().filter((line) => line.includes(`${prefix}/versions`))
  test.equal(agents.length, 1)
  test.notMatch(listCommandLines().join('\n'), token)
  test.notMatch(readFileSync(join(prefix, 'agent.log'), 'utf8'), token)

  const again = await runInstaller(coordinator.url, home, { args: ['--prefix', prefix] })
  test.match(again, { status: 0, stdout: 'This machine is the box fig already, and is connected.\n' })
  test.same(
    listCommandLines().filter((line) => line.includes(`${prefix}/versions`)),
    agents,
  )

  const { json: started } = await coordinator.edge('fig', 'POST', '/exec', {
    command: SLEEP,
    detached: true,
  })
  test.ok(started.ok)
  const removed = await runInstaller(coordinator.url, home, { args: ['--uninstall', '--prefix', prefix] })
  test.match(removed, { status: 0, stdout: /removed from this machine/ })
  test.same(listTree(home), [])
  test.same(
    listCommandLines().filter((line) => line.includes(prefix) || line.includes(SLEEP)),
    [],
  )
})

t.test('a box that is deleted removes its agent', async (test) => {
  const coordinator = await startCoordinator(test)
  const { home, prefix } = createHome(test)
  const token = await createToken(coordinator, 'fig')
  await runInstaller(coordinator.url, home, { args: createArgs(token, prefix) })
  const { json } = await coordinator.api('GET', '/boxes')
  await coordinator.api('DELETE', `/boxes/${json.boxes[0].id}`)
  // The directories above the prefix are removed last.
  await waitUntil('the agent has removed everything', () => readdirSync(home).length === 0)
})
