// One box with a large tree is suspended, snapshotted, forked, restored, moved, resized and put to deep sleep in random
// order, while the coordinator is killed. The tree must not change, and nothing of a deleted box may remain.
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Box, BoxDetail, ObservedState } from '../../../shared/api/boxes.ts'
import { REGIONS, TIER_NAMES } from '../../../shared/tiers.ts'
import { type CoordinatorProcess, startCoordinatorProcess } from '../coordinator-process.ts'
import { listBoxPids } from '../find-agent-process.ts'
import { createSeededRandom, shuffle } from '../random.ts'
import { createTempDir } from '../temp-dir.ts'
import { createRepeatingClient, type RepeatingClient } from './repeating-client.ts'

export type LifeOptions = {
  seed: number
  /** The size of the tree. */
  mebibytes: number
  /** Operations after each kind has run once. */
  randomOperations: number
}

type Life = {
  t: Test
  coordinator: CoordinatorProcess
  client: RepeatingClient
  random: () => number
  box: Box
  boxIds: Set<string>
}

const TREE_SCRIPTS = new URL('../tree/', import.meta.url)
const DEEP_SLEEP_MS = 15 * 24 * 60 * 60 * 1000
const NUMBER_OF_KINDS = 8

export async function runLifeRound(t: Test, { seed, mebibytes, randomOperations }: LifeOptions) {
  const temporaryDir = createTempDir(t, 'life-tmp')
  const coordinator = await startCoordinatorProcess(t, { TMPDIR: temporaryDir, BOXWOOD_LOG: 'fatal' })
  const random = createSeededRandom(seed)
  const first = await coordinator.waitForFirstBox()
  const client = createRepeatingClient(coordinator)
  const life: Life = { t, coordinator, client, random, box: first, boxIds: new Set([first.id]) }
  for (const name of ['create-tree.mjs', 'print-manifest.mjs'])
    await edge(life, 'PUT', '/files', {
      path: name,
      content: readFileSync(new URL(name, TREE_SCRIPTS), 'utf8'),
    })
  await runScript(life, `create-tree.mjs tree ${mebibytes} ${seed}`)
  const manifest = await readManifest(life)
  t.ok(manifest.length > 500, `the tree has ${manifest.length} entries`)

  const kinds = Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[]
  t.equal(kinds.length, NUMBER_OF_KINDS)
  const pick = () => kinds[Math.floor(random() * kinds.length)] as (typeof kinds)[number]
  const order = [...shuffle(kinds, random), ...Array.from({ length: randomOperations }, pick)]
  const killed: string[] = []
  for (const [number, kind] of order.entries()) {
    const killAfterMs = random() < 0.6 ? random() * 2_500 : null
    t.comment(
      `${number}: ${kind}${killAfterMs === null ? '' : `, kill -9 after ${Math.round(killAfterMs)} ms`}`,
    )
    const killer = killAfterMs === null ? Promise.resolve() : killLater(life, killAfterMs)
    if (killAfterMs !== null) killed.push(kind)
    // Both: a failure of one must not leave the other running.
    const [operation, kill] = await Promise.allSettled([OPERATIONS[kind](life), killer])
    if (operation.status === 'rejected') throw operation.reason
    if (kill.status === 'rejected') throw kill.reason
    const found = await readManifest(life)
    t.strictSame(findDifferences(manifest, found), [], `operation ${number}, ${kind}: the tree is unchanged`)
  }
  t.ok(listArchiveFiles(life).length > 0, 'the check below searches the directories of the archives')
  await client.deleteEverything()
  await coordinator.kill('SIGTERM')
  t.strictSame(findRemains(life, temporaryDir), [], 'nothing of the boxes remains')
  return { operations: order.length, killed: killed.length, boxes: life.boxIds.size }
}

/** Each resolves when the box that `life.box` names then is running. */
const OPERATIONS = {
  async suspend(life: Life) {
    await post(life, `/boxes/${life.box.id}/suspend`)
    await settle(life, 'suspended')
    await wake(life)
  },
  async resize(life: Life) {
    const { tier } = await readBox(life)
    const tiers = TIER_NAMES.filter((name) => name !== tier)
    const target_tier = tiers[Math.floor(life.random() * tiers.length)]
    await post(life, `/boxes/${life.box.id}/resize`, { target_tier })
    life.t.equal((await settle(life, 'running')).tier, target_tier)
  },
  async snapshot(life: Life) {
    const { snapshot } = await post(life, '/snapshots', { boxId: life.box.id, name: 'kept' })
    await waitForSnapshot(life, snapshot.id)
  },
  async restore(life: Life) {
    const { snapshot } = await post(life, '/snapshots', { boxId: life.box.id, name: 'restored' })
    await waitForSnapshot(life, snapshot.id)
    const { box } = await post(life, `/snapshots/${snapshot.id}/restore`, {})
    await replaceBox(life, box)
    await life.client.request('DELETE', `/snapshots/${snapshot.id}`)
  },
  async template(life: Life) {
    const { snapshot } = await post(life, `/boxes/${life.box.id}/template`, { name: 'life' })
    await waitForSnapshot(life, snapshot.id)
    const { box } = await post(life, '/boxes', { fromTemplate: 'life', name: boxName(life) })
    await replaceBox(life, box)
  },
  async fork(life: Life) {
    const { box } = await post(life, `/boxes/${life.box.id}/fork`, { name: boxName(life) })
    await replaceBox(life, box)
  },
  async move(life: Life) {
    // The next coordinator does not know of the earlier moves, whose number is limited per day.
    await changeDatabase(life, 'delete from box_moves')
    const { region } = await readBox(life)
    const regions = REGIONS.filter((name) => name !== region)
    const target = regions[Math.floor(life.random() * regions.length)]
    await post(life, `/boxes/${life.box.id}/region`, { region: target })
    const moved = await settle(life, 'running')
    life.t.match(moved, { region: target, desiredRegion: null })
  },
  async deepSleep(life: Life) {
    await post(life, `/boxes/${life.box.id}/suspend`)
    await settle(life, 'suspended')
    await changeDatabase(
      life,
      `update boxes set state_since = state_since - ${DEEP_SLEEP_MS} where observed_state = 'suspended'`,
    )
    await settle(life, 'deep_sleep')
    life.t.strictSame(
      findBoxDirs(life, life.box.id),
      [],
      'a box in deep sleep has no files outside of the archive',
    )
    await wake(life)
  },
}

async function wake(life: Life): Promise<void> {
  await post(life, `/boxes/${life.box.id}/wake`)
  await settle(life, 'running')
}

const boxName = (life: Life): string => `life-${life.boxIds.size}`

/** The new box replaces the current one, which is deleted. */
async function replaceBox(life: Life, box: Box): Promise<void> {
  const previous = life.box
  life.box = box
  life.boxIds.add(box.id)
  await settle(life, 'running')
  await life.client.request('DELETE', `/boxes/${previous.id}`)
}

const readDetail = (life: Life): Promise<BoxDetail> => life.client.readDetail(life.box.id)
const readBox = async (life: Life): Promise<Box> => (await readDetail(life)).box
const settle = (life: Life, state: ObservedState): Promise<Box> => life.client.settle(life.box.id, state)
const waitForSnapshot = (life: Life, id: string): Promise<void> => life.client.waitForSnapshot(id)
const post = (life: Life, path: string, body?: unknown) => life.client.post(path, body)
const edge = (life: Life, method: string, path: string, body?: unknown) =>
  life.client.request(method, path, body, `/v1/box/${life.box.id}`)

/** Runs a script of the home directory with the Node of the agent. */
async function runScript(life: Life, script: string): Promise<string> {
  const command = `/proc/$PPID/exe ${script} >script.out 2>&1; echo $?`
  const { stdout } = await edge(life, 'POST', '/exec', { command, timeoutSeconds: 300 })
  const response = await life.coordinator.send('GET', `/v1/box/${life.box.id}/download?path=script.out`)
  const output = Buffer.concat(await response.toArray()).toString('utf8')
  if (stdout !== '0\n') throw new Error(`${script}: ${output.slice(0, 2_000)}`)
  return output
}

const readManifest = async (life: Life): Promise<string[]> =>
  (await runScript(life, 'print-manifest.mjs tree')).trim().split('\n')

function findDifferences(expected: readonly string[], found: readonly string[]): string[] {
  const [before, after] = [new Set(expected), new Set(found)]
  return [
    ...expected.filter((line) => !after.has(line)).map((line) => `- ${line}`),
    ...found.filter((line) => !before.has(line)).map((line) => `+ ${line}`),
  ].slice(0, 20)
}

/** Restarts are one at a time: an operation may restart the coordinator too. */
let restarting: Promise<void> = Promise.resolve()
function restart(life: Life, change: () => void = () => undefined): Promise<void> {
  restarting = restarting.then(async () => {
    await life.coordinator.kill('SIGKILL')
    change()
    await life.coordinator.start()
  })
  return restarting
}

async function killLater(life: Life, ms: number): Promise<void> {
  await delay(ms)
  await restart(life)
}

/** Changes rows while no coordinator runs, and makes every schedule due. */
const changeDatabase = (life: Life, sql: string): Promise<void> =>
  restart(life, () => {
    const database = new DatabaseSync(join(life.coordinator.dataDir, 'boxwood.db'))
    database.exec(sql)
    database.exec('update schedules set due_at = 0')
    database.close()
  })

function findBoxDirs({ coordinator: { dataDir } }: Life, boxId: string): string[] {
  return globSync([`boxes/*${boxId}*`, `regions/*/boxes/*${boxId}*`], { cwd: dataDir })
}

function listArchiveFiles({ coordinator: { dataDir } }: Life): string[] {
  const entries = globSync(['archives/**', 'regions/*/archives/**'], { cwd: dataDir, withFileTypes: true })
  return entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
}

/** Files, processes, mounts and cgroups of the boxes. */
function findRemains(life: Life, temporaryDir: string): string[] {
  const ids = [...life.boxIds]
  const cgroups = globSync('/sys/fs/cgroup/**/boxwood-*')
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return [
    ...ids.flatMap((id) => findBoxDirs(life, id)),
    ...listArchiveFiles(life),
    ...ids.flatMap((id) => listBoxPids(id).map((pid) => `process ${pid} of ${id}`)),
    ...ids.flatMap((id) => [...mounts, ...cgroups].filter((line) => line.includes(id))),
    ...(existsSync(temporaryDir) ? readdirSync(temporaryDir) : []),
  ]
}
