// Random operations on local boxes, while the coordinator of root is killed, on a machine whose mounts are shared: no operation
// changes the machine, and when the boxes are deleted and the coordinator has exited, nothing of them remains.
import { chmodSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Level, Network } from '../../../coordinator/providers/local/levels/choose-level.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import { type CoordinatorProcess, startCoordinatorProcess } from '../coordinator-process.ts'
import { availableLevels, findLevelProblem } from '../isolation-levels.ts'
import { compareStates, type MachineState, pickParts, readMachineState } from '../machine-state.ts'
import { PROJECT_DIR } from '../project.ts'
import { createSeededRandom } from '../random.ts'
import { createTempDir } from '../temp-dir.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import { createRepeatingClient, type RepeatingClient } from './repeating-client.ts'

export type MachineRoundOptions = { seed: number; operations: number }

/** The parts that a coordinator and its boxes change while they run. */
const OF_RUNNING = ['cgroups', 'processes']
const KILL_PROBABILITY = 0.5
const MAX_KILL_DELAY_MS = 3000
const MAX_BOXES = 3

type Round = {
  client: RepeatingClient
  random: () => number
  boxes: Map<string, 'running' | 'suspended'>
  snapshots: number
}

/** Call prepareOwnMachine() before the first round. */
export async function runMachineRound(t: Test, { seed, operations }: MachineRoundOptions) {
  const random = createSeededRandom(seed)
  const dataDir = createTempDir(t, 'machine')
  chmodSync(dataDir, 0o711)
  const isolation = await chooseIsolation(random)
  const env = {
    BOXWOOD_DATA: dataDir,
    BOXWOOD_LOG: 'fatal',
    BOXWOOD_LOCAL_ISOLATION: isolation.level,
    BOXWOOD_LOCAL_NETWORK: isolation.network,
  }
  const before = readMachineState()
  const options = { startMs: LONG_DEADLINE_MS }
  const coordinator = await startCoordinatorProcess(t, env, PROJECT_DIR, options)
  const client = createRepeatingClient(coordinator)
  await client.deleteEverything()
  const round: Round = { client, random, boxes: new Map(), snapshots: 0 }
  let killed = 0
  for (let number = 1; number <= operations; number++) {
    const kind = pick(Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[], random)
    const isKilled = random() < KILL_PROBABILITY
    killed += isKilled ? 1 : 0
    const title = `seed ${seed}, operation ${number}: ${kind}${isKilled ? ', the coordinator is killed' : ''}`
    const [result, restart] = await Promise.allSettled([
      OPERATIONS[kind](round),
      isKilled ? killAndRestart(coordinator, random) : Promise.resolve(),
    ])
    for (const outcome of [result, restart]) if (outcome.status === 'rejected') throw outcome.reason
    const changes = compareStates(before, { ...readMachineState(), ...pickParts(before, OF_RUNNING) })
    t.same(changes, {}, title)
  }
  await client.deleteEverything()
  await coordinator.kill('SIGTERM')
  await waitUntil('nothing remains', () => isUnchanged(before)).catch(() => undefined)
  t.same(compareStates(before, readMachineState()), {}, `seed ${seed}: nothing remains`)
  return { seed, operations, killed, ...isolation }
}

const isUnchanged = (before: MachineState): boolean =>
  Object.keys(compareStates(before, readMachineState())).length === 0

const pick = <T>(from: readonly T[], random: () => number): T => from[Math.floor(random() * from.length)] as T

/** A level and a network that work on this machine. */
async function chooseIsolation(random: () => number) {
  const choices: { level: Level; network: Network }[] = []
  for (const { level, skip } of await availableLevels()) {
    if (skip === false) choices.push({ level, network: 'host' })
    if (level !== 'process' && (await findLevelProblem(level, 'own')) === false)
      choices.push({ level, network: 'own' })
  }
  return pick(choices, random)
}

/** Also kills it while it starts, which is when its probes run. */
async function killAndRestart(coordinator: CoordinatorProcess, random: () => number): Promise<void> {
  await delay(random() * MAX_KILL_DELAY_MS)
  await coordinator.kill('SIGKILL')
  if (random() < 0.5) {
    const start = coordinator.start().catch((error: Error) => {
      if (!error.message.includes('SIGKILL')) throw error
    })
    await delay(random() * MAX_KILL_DELAY_MS)
    await coordinator.kill('SIGKILL')
    await start
  }
  await coordinator.start()
}

/** Each resolves when the coordinator has done it. */
const OPERATIONS = {
  async create({ client, boxes }: Round) {
    if (boxes.size === MAX_BOXES) return
    const { box }: { box: Box } = await client.post('/boxes', { tier: 'nano' })
    await client.settle(box.id, 'running')
    boxes.set(box.id, 'running')
  },
  suspend: (round: Round) => change(round, 'running', 'suspended', '/suspend'),
  stop: (round: Round) => change(round, 'running', 'suspended', '/suspend?stop=1'),
  wake: (round: Round) => change(round, 'suspended', 'running', '/wake'),
  async snapshot(round: Round) {
    const [id] = [...round.boxes.keys()]
    if (id === undefined) return
    round.snapshots += 1
    const name = `snapshot-${round.snapshots}`
    const { snapshot } = await round.client.post('/snapshots', { boxId: id, name })
    await round.client.waitForSnapshot(snapshot.id)
  },
  async delete({ client, boxes, random }: Round) {
    if (boxes.size === 0) return
    const id = pick([...boxes.keys()], random)
    await client.request('DELETE', `/boxes/${id}`)
    await client.settle(id, 'terminated')
    boxes.delete(id)
  },
}

async function change(
  { client, boxes }: Round,
  from: 'running' | 'suspended',
  to: 'running' | 'suspended',
  path: string,
): Promise<void> {
  const id = [...boxes].find(([, state]) => state === from)?.[0]
  if (id === undefined) return
  await client.post(`/boxes/${id}${path}`)
  await client.settle(id, to)
  boxes.set(id, to)
}
