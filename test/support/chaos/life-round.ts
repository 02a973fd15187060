// One box with a large tree is suspended, snapshotted, forked, restored, moved, resized and put to deep sleep in random
// order, while the coordinator is killed. The tree must not change, and nothing of a deleted box may remain.
import { randomUUID } from 'node:crypto'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Box, BoxDetail, ObservedState } from '../../../shared/api/boxes.ts'
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import { REGIONS, TIER_NAMES } from '../../../shared/tiers.ts'
import { type CoordinatorProcess, startCoordinatorProcess } from '../coordinator-process.ts'
import { listBoxPids } from '../find-agent-process.ts'
import { createSeededRandom, shuffle } from '../random.ts'
import { createTempDir } from '../temp-dir.ts'
import { waitUntil } from '../wait-until.ts'

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
  random: () => number
  box: Box
  boxIds: Set<string>
}

const TREE_SCRIPTS = new URL('../tree/', import.meta.url)
const SETTLE_SECONDS = 120
const DEEP_SLEEP_MS = 15 * 24 * 60 * 60 * 1000
const NUMBER_OF_KINDS = 8

export async function runLifeRound(t: Test, { seed, mebibytes, randomOperations }: LifeOptions) {
  const temporaryDir = createTempDir(t, 'life-tmp')
  const coordinator = await startCoordinatorProcess(t, { TMPDIR: temporaryDir, BOXWOOD_LOG: 'fatal' })
  const random = createSeededRandom(seed)
  const first = await coordinator.waitForFirstBox()
  const life: Life = { t, coordinator, random, box: first, boxIds: new Set([first.id]) }
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
  await removeEverything(life)
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
    await request(life, 'DELETE', `/snapshots/${snapshot.id}`)
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
  await request(life, 'DELETE', `/boxes/${previous.id}`)
}

const readDetail = (life: Life): Promise<BoxDetail> => request(life, 'GET', `/boxes/${life.box.id}`)
const readBox = async (life: Life): Promise<Box> => (await readDetail(life)).box

/** Waits until the box is in this state without a job. */
async function settle(life: Life, state: ObservedState): Promise<Box> {
  let last: unknown
  const deadline = performance.now() + SETTLE_SECONDS * 1000
  while (performance.now() < deadline) {
    const { box, job, events } = await readDetail(life)
    if (box.observedState === state && job === null) return box
    if (box.observedState === 'provision_failed') throw new Error(`provision_failed: ${events[0]?.reason}`)
    last = { state: box.observedState, job, events: events.slice(0, 3) }
    await delay(50)
  }
  throw new Error(`the box did not become ${state}: ${JSON.stringify(last)}`)
}

async function waitForSnapshot(life: Life, id: string): Promise<void> {
  await waitUntil(
    `snapshot ${id} is available`,
    async () => {
      const { snapshots }: { snapshots: Snapshot[] } = await request(life, 'GET', '/snapshots')
      const found = snapshots.find((snapshot) => snapshot.id === id)
      if (found?.status === 'failed') throw new Error(`the snapshot failed: ${found.error}`)
      return found?.status === 'available'
    },
    SETTLE_SECONDS * 1000,
  )
}

/** Repeats the request while the coordinator is being restarted: with the same key, it takes effect once. */
async function request(
  life: Life,
  method: string,
  path: string,
  body?: unknown,
  base = '/api/v1',
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
): Promise<any> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID() }
  const deadline = performance.now() + SETTLE_SECONDS * 1000
  for (;;) {
    try {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const response = await life.coordinator.send(
        method,
        base + path,
        text,
        body === undefined ? { 'idempotency-key': headers['idempotency-key'] } : headers,
      )
      const content = Buffer.concat(await response.toArray()).toString('utf8')
      const status = response.statusCode ?? 0
      if (status < 300) return JSON.parse(content)
      // 409: the first attempt is still running, or 502 and 503: the coordinator or the agent is starting.
      const isTemporary = [502, 503].includes(status) || content.includes('idempotency_in_progress')
      if (!isTemporary) throw new FinalError(`${method} ${path}: ${status} ${content}`)
    } catch (error) {
      if (error instanceof FinalError || performance.now() > deadline) throw error
    }
    await delay(50)
  }
}

class FinalError extends Error {}

const post = (life: Life, path: string, body?: unknown) => request(life, 'POST', path, body)
const edge = (life: Life, method: string, path: string, body?: unknown) =>
  request(life, method, path, body, `/v1/box/${life.box.id}`)

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

async function removeEverything(life: Life): Promise<void> {
  const { boxes }: { boxes: Box[] } = await request(life, 'GET', '/boxes?live=1')
  for (const { id } of boxes) await request(life, 'DELETE', `/boxes/${id}`)
  const { snapshots }: { snapshots: Snapshot[] } = await request(life, 'GET', '/snapshots?transient=1')
  for (const { id } of snapshots) await request(life, 'DELETE', `/snapshots/${id}`)
  await waitUntil(
    'everything is deleted',
    async () => {
      const live: { boxes: Box[] } = await request(life, 'GET', '/boxes?live=1')
      const kept: { snapshots: Snapshot[] } = await request(life, 'GET', '/snapshots?transient=1')
      return live.boxes.length === 0 && kept.snapshots.length === 0
    },
    SETTLE_SECONDS * 1000,
  )
}

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
