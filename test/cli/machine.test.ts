// box machine: creates, lists and revokes tokens; machines in box ls, show, stop and rm.
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { enrollMachine } from '../support/enroll.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { runBox } from './run-box.ts'

const coordinator = await startTestCoordinator(t)
const { url, key, infra, api, dataDir } = coordinator
const env = { XDG_CONFIG_HOME: createTempDir(t, 'config'), BOXWOOD_DATA: dataDir }
const box = (...args: string[]) => runBox(null, args, { env })

t.test('box machine add needs a sign-in', async (t) => {
  const byKey = await runBox(url, ['machine', 'add'], { env: { BOXWOOD_API_KEY: key } })
  t.match(byKey, { code: 4, stdout: '', stderr: /No API key may do this.*`box login`/ })
  t.match(await box('machine', 'add'), { code: 4, stdout: '', stderr: /needs a sign-in/ })
  t.equal((await box('login')).code, 0)
})

t.test('box machine add prints the line for the machine', async (t) => {
  const added = await box('machine', 'add', 'fig', '-e', 'A=b', '--region', 'eu-central-1')
  t.match(added, { code: 0, stdout: /^curl -fsSL http:\S+\/install\.sh \| sh -s -- --token bxe_\w+\n$/ })
  t.match(added.stderr, /Run this line on the machine.*works once, for 1h/)
  t.match(added.stderr, /only this machine can reach the URL.*BOXWOOD_PUBLIC_URL/)
  const quiet = await box('machine', 'add', '-q')
  t.match(quiet, { code: 0, stdout: /^curl/, stderr: '' })
  const json = JSON.parse((await box('machine', 'add', 'plum', '--json')).stdout)
  t.match(json, { enrollment: { name: 'plum' }, token: /^bxe_/, command: /^curl/ })
  t.match(await box('machine', 'add', 'Fig'), { code: 2, stderr: /name must be/ })
})

t.test('box machine ls and rm list and revoke unused tokens', async (t) => {
  const listed = await box('machine', 'ls')
  t.match(listed.stdout, /^ID +NAME +REGION +CREATED BY +EXPIRES$/m)
  t.match(listed.stdout, /^enr_\w+ +fig +eu-central-1 +\S*Owner +in (1h|59m|\d+m)$/m)
  t.match(await box('machine', 'rm', 'fig'), { code: 0, stderr: 'fig: revoked\n' })
  const [id = ''] = (await box('machine', 'ls', '-q', '--filter', 'name=plum')).stdout.split('\n')
  t.match((await box('__complete', '--', 'machine', 'rm', '')).stdout, new RegExp(`^${id}\\tplum$`, 'm'))
  t.match(await box('machine', 'rm', id.slice(0, 12), '--json'), { code: 0, stdout: /"revoked": true/ })
  t.match(await box('machine', 'rm', 'fig'), { code: 5, stderr: /No such unused token: 'fig'/ })
  await coordinator.instance.context.db.deleteFrom('enrollments').execute()
  t.match((await box('machine', 'ls')).stderr, /No unused tokens.*box ls --filter kind=machine/)
})

t.test('an enrolled machine is a box', async (t) => {
  const machine = await enrollMachine(coordinator, { name: 'fig' })
  infra.connectAgent(machine.boxId)
  await coordinator.waitForState(machine.boxId, 'running')
  t.match((await box('ls', '--filter', 'kind=machine')).stdout, /^fig +running +flow +machine +- +\d+s$/m)
  t.match((await box('show', 'fig')).stdout, /^isolation +none: an enrolled machine$/m)
  for (const command of ['stop', 'restart'])
    t.match(await box(command, 'fig'), {
      code: 1,
      stderr: /fig is an enrolled machine: it cannot be suspended/,
    })
  const other = await api('POST', '/boxes', { name: 'plum' })
  await coordinator.waitForState(other.json.box.id, 'running')
  t.match(await box('stop', '--all'), { code: 0 }, 'machines are left out')
  t.match((await api('GET', `/boxes/${other.json.box.id}`)).json.box, { observedState: 'suspended' })
  t.same(await box('rm', '-y', 'fig'), { code: 0, stdout: '', stderr: 'fig: deleted\n' })
})

t.test('box rm says what is lost when the agent of a machine is not connected', async (t) => {
  await enrollMachine(coordinator, { name: 'fig' })
  t.match(await box('rm', '-y', 'fig'), {
    code: 0,
    stderr: /^fig: its agent is not connected\. Records and output .* are lost\..*\nfig: deleted\n$/,
  })
})
