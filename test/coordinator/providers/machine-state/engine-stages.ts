// The life of a box of one engine: the coordinator changes nothing on its own machine, and when the box is deleted, nothing of it
// remains in the namespaces of the engine. While boxes exist, the engine has networks, mounts and rules of a firewall for them.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createRepeatingClient } from '../../../support/chaos/repeating-client.ts'
import { startCoordinatorProcess } from '../../../support/coordinator-process.ts'
import type { Engine } from '../../../support/engines/engine.ts'
import { buildEngineImages } from '../../../support/engines/images.ts'
import { TEST_PROVIDERS, type TestProviderName } from '../../../support/engines/providers.ts'
import {
  compareStates,
  type MachineState,
  pickParts,
  readMachineState,
} from '../../../support/machine-state.ts'
import {
  findOwnMachineProblem,
  isOnOwnMachine,
  prepareOwnMachine,
  runOnOwnMachine,
} from '../../../support/own-machine.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

/** The parts that a box changes while it exists. */
const OF_BOXES = ['cgroups', 'processes']
const PRINT_STATE = join(import.meta.dirname, '../../../support/print-machine-state.ts')

/** @param file the test file, which calls this function */
export function testEngineStages(name: Exclude<TestProviderName, 'local'>, file: string): void {
  const title = `boxes of ${name} do not change the machine of the coordinator`
  if (isOnOwnMachine()) return void t.test(title, (t) => testStages(t, name))
  t.test(title, { skip: findOwnMachineProblem() }, async (t) => {
    // The namespaces have no network.
    const images = await buildEngineImages()
    if ('skip' in images) return void t.pass('', { skip: images.skip })
    await runOnOwnMachine(t, file)
  })
}

async function testStages(t: Test, name: TestProviderName): Promise<void> {
  prepareOwnMachine()
  const provider = await TEST_PROVIDERS[name].start()
  if ('skip' in provider) return void t.pass('', { skip: provider.skip })
  t.teardown(provider.close)
  const { engine } = provider
  if (engine === null) throw new Error(`${name} has no engine`)
  const dataDir = createTempDir(t, 'machine-state')
  provider.prepareData(dataDir)
  const coordinator = await startCoordinatorProcess(t, { ...provider.env, BOXWOOD_DATA: dataDir })
  const client = createRepeatingClient(coordinator)
  const createBox = async () => {
    const body = { tier: 'nano', region: provider.region, image: provider.smallImage }
    const { box } = await client.post('/boxes', body)
    return client.settle(box.id, 'running')
  }
  // An engine keeps what it has created for its first box, such as the network of Incus and the cgroup `docker`.
  await createBox()
  await client.deleteEverything()
  const before = { machine: readMachineState(), engine: readInside(engine) }
  const check = (stage: string) => {
    const { machine } = before
    t.same(compareStates(machine, { ...readMachineState(), ...pickParts(machine, OF_BOXES) }), {}, stage)
  }

  const box = await createBox()
  check('while a box runs')
  await client.post(`/boxes/${box.id}/suspend`)
  await client.settle(box.id, 'suspended')
  check('while it is suspended')
  await client.post(`/boxes/${box.id}/wake`)
  await client.settle(box.id, 'running')
  const { snapshot } = await client.post('/snapshots', { boxId: box.id, name: 'copied' })
  await client.waitForSnapshot(snapshot.id)
  check('while it has a snapshot')
  await client.deleteEverything()
  const compare = () => ({
    machine: compareStates(before.machine, readMachineState()),
    engine: compareStates(before.engine, readInside(engine)),
  })
  // An engine may remove networks and cgroups after its answer.
  const isUnchanged = () => Object.values(compare()).every((parts) => Object.keys(parts).length === 0)
  await waitUntil('nothing of the box remains', isUnchanged).catch(() => undefined)
  t.same(compare(), { machine: {}, engine: {} }, 'after everything was deleted')
}

const readInside = (engine: Engine): MachineState =>
  JSON.parse(engine.runInside([process.execPath, PRINT_STATE]))
