// A box that gets a machine which waits for it is like any other box, and nothing shows the machines that wait.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findWarmProblem } from '../../coordinator/providers/local/warm-machine.ts'
import type { BoxDetail } from '../../shared/api/boxes.ts'
import { DEFAULT_REGION } from '../../shared/tiers.ts'
import { isUuid } from '../../shared/uuid.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { findAgentPid, listBoxPids } from '../support/find-agent-process.ts'
import { stopDataDirectory } from '../support/stop-data-directory.ts'
import { waitUntil } from '../support/wait-until.ts'

const COMMAND = `hostname; echo $GREETING $OMP_NUM_THREADS; cat /etc/hostname; ls -A ~
ls /tmp | wc -l; env | grep -v ^BOXWOOD_PROCESS_ID | sort`

t.test('a box on a machine that waited is like one on a machine of its own', async (t) => {
  const coordinator = await startTestCoordinator(t, { machines: 'local', env: { BOXWOOD_WARM: '1' } })
  const { warmMachines, db } = coordinator.instance.context
  const { warm: pool } = coordinator.instance.context.providers.inRegion(DEFAULT_REGION)
  const problem = pool?.problem ?? null
  if (problem !== null) return void t.pass('machines can wait', { skip: problem })
  const waitForMachine = () =>
    waitUntil('a machine waits', async () => [...(await warmMachines.countReady()).values()].includes(1))
  const listIds = async () =>
    (await db.selectFrom('warm_machines').select('id').execute()).map(({ id }) => id)
  await waitForMachine()
  t.equal((await coordinator.api('GET', '/boxes')).json.boxes.length, 1, 'no list has the machine')

  async function createBox(name: string) {
    const body = { name, tier: 'micro', env: { GREETING: 'hello' } }
    const { status, json } = await coordinator.api('POST', '/boxes', body)
    t.equal(status, 202)
    const id: string = json.box.id
    return { id, stdout: (await runCommand(name)).replaceAll(id, 'ID').replaceAll(name, 'NAME') }
  }
  const runCommand = async (name: string): Promise<string> =>
    (await coordinator.edge(name, 'POST', '/exec', { command: COMMAND })).json.stdout

  const [waiting] = await listIds()
  const warm = await createBox('cherry')
  t.equal(warm.id, waiting)
  const cold = await createBox('plum')
  t.equal(warm.stdout.split('\n')[0], 'NAME')
  t.equal(warm.stdout, cold.stdout)
  process.kill(findAgentPid(warm.id) ?? 0, 'SIGKILL')
  await waitUntil('the agent has started again', async () => {
    const stdout = await runCommand('cherry').catch(() => '')
    return stdout?.replaceAll(warm.id, 'ID').replaceAll('cherry', 'NAME') === warm.stdout
  })

  const readEvents = async (id: string) => {
    const { json }: { json: BoxDetail } = await coordinator.api('GET', `/boxes/${id}`)
    return json.events.map(({ id: _id, at: _at, ...event }) => event)
  }
  t.same(await readEvents(warm.id), await readEvents(cold.id))
  const { json: audit } = await coordinator.api('GET', '/audit')
  const kinds = (id: string) => audit.events.filter((event: object) => JSON.stringify(event).includes(id))
  t.equal(kinds(warm.id).length, kinds(cold.id).length)

  await waitForMachine()
  const [next = ''] = await listIds()
  t.not(next, warm.id)
  t.equal((await coordinator.api('GET', `/boxes/${next}`)).status, 404)
  t.equal((await coordinator.edge(next, 'POST', '/exec', { command: 'id' })).status, 404)
  t.notMatch((await coordinator.api('GET', '/audit')).text, next)
  for (const name of ['cherry', 'plum']) await coordinator.api('DELETE', `/boxes/${name}`)
})

t.test('`box down` stops the machine that a killed coordinator has left', async (t) => {
  const coordinator = await startCoordinatorProcess(t, { BOXWOOD_WARM: '1', BOXWOOD_LOG: 'fatal' })
  const { id: firstId } = await coordinator.waitForFirstBox()
  const boxesDir = join(coordinator.dataDir, 'boxes')
  const findWaiting = () => readdirSync(boxesDir).find((id) => isUuid(id) && id !== firstId)
  const { isolation } = JSON.parse(readFileSync(join(boxesDir, firstId, 'machine.json'), 'utf8'))
  const problem = findWarmProblem(isolation)
  if (problem !== null) return void t.pass('machines can wait', { skip: problem })
  const id = await waitUntil('a machine waits', async () => {
    const waiting = findWaiting()
    return waiting !== undefined && findAgentPid(waiting) !== undefined && waiting
  })
  await coordinator.kill('SIGKILL')
  t.ok(listBoxPids(id).length > 0)
  await stopDataDirectory(coordinator.dataDir)
  t.same(listBoxPids(id), [])
})
