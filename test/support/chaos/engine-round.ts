// Histories of boxes of one engine, while the coordinator and the engine are killed at random. No box may be lost or exist
// twice, no file of a box may change, and nothing of a deleted box may remain.
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Box, ObservedState } from '../../../shared/api/boxes.ts'
import { type CoordinatorProcess, startCoordinatorProcess } from '../coordinator-process.ts'
import type { StartedProvider } from '../engines/providers.ts'
import { createSeededRandom } from '../random.ts'
import { createTempDir } from '../temp-dir.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import { createRepeatingClient, type RepeatingClient } from './repeating-client.ts'

export type EngineRoundOptions = {
  /** Of the first history. Each following one has the next number. */
  seed: number
  histories: number
  /** Operations of one history, after the creation of its box. */
  operations: number
}

type History = {
  client: RepeatingClient
  random: () => number
  name: string
  box: Box
  /** The content of the file `journal` of the box. */
  journal: string
  boxes: number
}

const KILL_PROBABILITY = 0.7
const MAX_KILL_DELAY_MS = 2_000
const MAX_DOWN_MS = 500

/** Starts a coordinator that uses the engine. Both are stopped by the caller's test. */
export async function runEngineRound(
  t: Test,
  provider: StartedProvider,
  { seed, histories, operations }: EngineRoundOptions,
) {
  const dataDir = createTempDir(t, 'engine-chaos')
  provider.prepareData(dataDir)
  const coordinator = await startCoordinatorProcess(t, {
    ...provider.env,
    BOXWOOD_DATA: dataDir,
    BOXWOOD_LOG: 'fatal',
  })
  const client = createRepeatingClient(coordinator)
  const killer = createKiller(coordinator, provider)
  // The first box of a coordinator is local.
  await client.deleteEverything()
  let killed = 0
  for (let number = seed; number < seed + histories; number++)
    killed += await runEngineHistory(t, { provider, client, killer, seed: number, operations })
  await coordinator.kill('SIGTERM')
  await coordinator.start()
  return { histories, killed }
}

async function runEngineHistory(
  t: Test,
  options: {
    provider: StartedProvider
    client: RepeatingClient
    killer: Killer
    seed: number
    operations: number
  },
): Promise<number> {
  const { provider, client, killer, seed, operations } = options
  const random = createSeededRandom(seed)
  const name = `history-${seed}`
  let killed = 0
  /** Runs an operation while the coordinator or the engine may be killed. */
  async function disturb<T>(title: string, operation: () => Promise<T>): Promise<T> {
    const victim = random() < KILL_PROBABILITY ? killer.pick(random) : null
    const [afterMs, downMs] = [random() * MAX_KILL_DELAY_MS, random() * MAX_DOWN_MS]
    t.comment(
      `${name}: ${title}${victim === null ? '' : `, ${victim} killed after ${Math.round(afterMs)} ms`}`,
    )
    if (victim !== null) killed += 1
    // Both: a failure of one must not leave the other running.
    const [result, kill] = await Promise.allSettled([
      operation(),
      victim === null ? Promise.resolve() : killer.kill(victim, afterMs, downMs),
    ])
    if (result.status === 'rejected') throw result.reason
    if (kill.status === 'rejected') throw kill.reason
    return result.value
  }

  const body = {
    name,
    tier: 'nano',
    region: provider.region,
    ...(provider.smallImage !== null && { image: provider.smallImage }),
  }
  const box = await disturb('create', async () => {
    const created: { box: Box } = await client.post('/boxes', body)
    return client.settle(created.box.id, 'running')
  })
  const history: History = { client, random, name, box, journal: '', boxes: 1 }
  await write(history)
  const kinds = Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[]
  for (let number = 0; number < operations; number++) {
    const kind = kinds[Math.floor(random() * kinds.length)] as (typeof kinds)[number]
    await disturb(kind, () => OPERATIONS[kind](history))
    const { stdout } = await request(history, 'POST', '/exec', { command: 'cat journal' })
    t.equal(stdout, history.journal, `${name}, operation ${number}, ${kind}: the files are unchanged`)
    await write(history)
  }
  // A box that was replaced may still be in deletion.
  const { boxes }: { boxes: Box[] } = await client.request('GET', '/boxes?live=1')
  const machines = (await provider.listMachines()).map(removeHyphens)
  const count = ({ id }: Box) => machines.filter((name) => name.includes(removeHyphens(id))).length
  t.strictSame(
    machines.filter((name) => !boxes.some(({ id }) => name.includes(removeHyphens(id)))),
    [],
    `${name}: each machine belongs to a box`,
  )
  t.notOk(
    boxes.some((box) => count(box) > 1),
    `${name}: no box has two machines`,
  )
  if (provider.engine !== null) t.equal(count(history.box), 1, `${name}: the box has a machine`)
  await disturb('delete', () => client.deleteEverything())
  await waitUntil(
    'nothing of the boxes remains',
    async () => (await provider.listRemains()).length === 0,
    // At the latest, the next attempt of a job removes it.
    LONG_DEADLINE_MS,
  ).catch(() => undefined)
  t.strictSame(await provider.listRemains(), [], `${name}: nothing of the boxes remains`)
  return killed
}

/** Each resolves when the box that `history.box` names then is running. */
const OPERATIONS = {
  async suspend(history: History) {
    await change(history, '/suspend', 'suspended')
    await change(history, '/wake', 'running')
  },
  async stop(history: History) {
    await change(history, '/suspend?stop=1', 'suspended')
    await change(history, '/wake', 'running')
  },
  async resize(history: History) {
    const { client, box } = history
    const target_tier = (await client.readDetail(box.id)).box.tier === 'nano' ? 'micro' : 'nano'
    await client.post(`/boxes/${box.id}/resize`, { target_tier })
    await client.settle(box.id, 'running')
  },
  async restore(history: History) {
    const { client, box } = history
    const { snapshot } = await client.post('/snapshots', { boxId: box.id, name: 'restored' })
    await client.waitForSnapshot(snapshot.id)
    await replace(
      history,
      await client.post(`/snapshots/${snapshot.id}/restore`, { name: nextName(history) }),
    )
    await client.request('DELETE', `/snapshots/${snapshot.id}`)
  },
  async fork(history: History) {
    const { client, box } = history
    await replace(history, await client.post(`/boxes/${box.id}/fork`, { name: nextName(history) }))
  },
}

async function change({ client, box }: History, action: string, state: ObservedState): Promise<void> {
  await client.post(`/boxes/${box.id}${action}`)
  await client.settle(box.id, state)
}

const nextName = (history: History): string => `${history.name}-${history.boxes++}`

/** The new box replaces the current one, which is deleted. */
async function replace(history: History, { box }: { box: Box }): Promise<void> {
  const { client } = history
  const previous = history.box
  history.box = await client.settle(box.id, 'running')
  await client.request('DELETE', `/boxes/${previous.id}`)
}

const request = ({ client, box }: History, method: string, path: string, body: unknown) =>
  client.request(method, path, body, `/v1/box/${box.id}`)

/** A repeated upload has the same effect. */
async function write(history: History): Promise<void> {
  history.journal += `${history.random()}\n`
  await request(history, 'PUT', '/files', { path: 'journal', content: history.journal })
}

/** Names of Incus have no hyphens in the id. */
const removeHyphens = (name: string): string => name.replaceAll('-', '')

type Victim = 'coordinator' | 'engine' | 'both'
type Killer = ReturnType<typeof createKiller>

function createKiller(coordinator: CoordinatorProcess, { engine }: StartedProvider) {
  const victims: Victim[] = engine === null ? ['coordinator'] : ['coordinator', 'engine', 'both']
  return {
    pick: (random: () => number): Victim => victims[Math.floor(random() * victims.length)] ?? 'coordinator',
    /** @param downMs how long the victim is down */
    async kill(victim: Victim, afterMs: number, downMs: number): Promise<void> {
      await delay(afterMs)
      if (victim !== 'engine') await coordinator.kill('SIGKILL')
      if (victim !== 'coordinator') await engine?.kill()
      await delay(downMs)
      if (victim !== 'coordinator') await engine?.start()
      if (victim !== 'engine') await coordinator.start()
    },
  }
}
