// The coordinator of a host stops for a while: its frozen boxes, boxes in deep sleep and snapshots must be as before.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Box } from '../../../shared/api/boxes.ts'
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import { ASK_FOR_VALUE, HOLD_VALUE } from '../chaos/suspend-round.ts'
import type { CoordinatorProcess } from '../coordinator-process.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import type { NamespaceFleet, NamespaceReplica } from './fleet.ts'

const DEEP_SLEEP_MS = 15 * 24 * 60 * 60 * 1000

/** How the coordinator of a host stops, and returns with the same data directory. */
const STOPS = {
  SIGKILL: {
    stop: (process: CoordinatorProcess) => process.kill('SIGKILL'),
    resume: (process: CoordinatorProcess) => process.start(),
  },
  SIGSTOP: {
    stop: async ({ pid }: CoordinatorProcess) => void process.kill(pid, 'SIGSTOP'),
    resume: async ({ pid }: CoordinatorProcess) => void process.kill(pid, 'SIGCONT'),
  },
}

/** Boxes of a host, and what they hold. */
type Host = {
  replica: NamespaceReplica
  frozen: Box
  /** In the memory of a process of the frozen box; null: this machine has no freezer. */
  value: string | null
  sleeping: Box
  running: Box
  snapshot: Snapshot
  /** In a file of the others, and of the snapshot. */
  text: string
}

export async function runHostRound(t: Test, fleet: NamespaceFleet, { seconds }: { seconds: number }) {
  const [first, second] = fleet.replicas
  if (first === undefined || second === undefined) throw new Error('there are no two hosts')
  const figures: object[] = []
  for (const [signal, replica, other] of [
    ['SIGKILL', first, second],
    ['SIGSTOP', second, first],
  ] as const)
    await t.test(`it gets ${signal}`, async (t) => {
      const host = await prepareHost(fleet, replica, signal.toLowerCase())
      figures.push({ signal, ...(await stopHost(t, fleet, { host, other, signal, seconds })) })
      await checkContents(t, host)
      await removeAll(host)
    })
  return figures
}

async function prepareHost(fleet: NamespaceFleet, replica: NamespaceReplica, name: string): Promise<Host> {
  const { sendJson, waitForState, exec } = replica.process
  const text = randomBytes(16).toString('hex')
  const write = (box: Box) => exec(box.id, `printf %s ${text} >kept`)
  const suspend = async (box: Box): Promise<Box> => {
    await sendJson('POST', `/api/v1/boxes/${box.id}/suspend`)
    return waitForState(box.id, 'suspended')
  }
  const [held, sleeping, running] = await Promise.all(
    ['held', 'sleeping', 'running'].map(async (suffix): Promise<Box> => {
      const { box } = await sendJson('POST', '/api/v1/boxes', { name: `${name}-${suffix}`, tier: 'nano' })
      return waitForState(box.id, 'running')
    }),
  )
  if (held === undefined || sleeping === undefined || running === undefined) throw new Error('no boxes')
  await exec(held.id, HOLD_VALUE, { detached: true })
  const value = await waitUntil('the process holds a value', async () => {
    const { stdout } = await exec(held.id, 'cat held')
    return stdout?.length === 16 && stdout
  })
  const frozen = await suspend(held)
  await write(sleeping)
  await write(running)
  await suspend(sleeping)
  await fleet.database.query('update boxes set state_since = state_since - $2 where id = $1', [
    sleeping.id,
    DEEP_SLEEP_MS,
  ])
  const { snapshot } = await sendJson('POST', '/api/v1/snapshots', { boxId: running.id, name })
  await waitUntil(
    'the box sleeps and the snapshot is available',
    async () => {
      const view = await readView(replica.process, [sleeping.id], snapshot.id)
      return view.includes('deep_sleep') && view.includes('available')
    },
    LONG_DEADLINE_MS,
  )
  const isFrozen = frozen.suspendedAs === 'frozen'
  return { replica, frozen, value: isFrozen ? value : null, sleeping, running, snapshot, text }
}

/** The states of the boxes and of the snapshot, as this coordinator has them. */
async function readView(
  { sendJson }: CoordinatorProcess,
  boxIds: readonly string[],
  snapshotId: string,
): Promise<string[]> {
  const view: string[] = []
  for (const id of boxIds) {
    const { box } = await sendJson('GET', `/api/v1/boxes/${id}`)
    view.push(box.suspendedAs ?? box.observedState)
  }
  const { snapshots } = await sendJson('GET', '/api/v1/snapshots')
  view.push(snapshots.find(({ id }: Snapshot) => id === snapshotId)?.status ?? 'lost')
  return view
}

type Stop = { host: Host; other: NamespaceReplica; signal: keyof typeof STOPS; seconds: number }

async function stopHost(t: Test, fleet: NamespaceFleet, { host, other, signal, seconds }: Stop) {
  const { replica, frozen, sleeping, running, snapshot } = host
  const asleep = [frozen.id, sleeping.id]
  const before = await readView(other.process, asleep, snapshot.id)
  const id = await fleet.findId(replica)
  const known = [...fleet.boxes.map((box) => box.id), ...fleet.simulated.boxIds]
  const startedAt = performance.now()
  await STOPS[signal].stop(replica.process)
  await fleet.waitUntilMoved(known, id)
  const lastAgentBackMs = Math.round(performance.now() - startedAt)
  await delay(Math.max(0, seconds * 1_000 - lastAgentBackMs))

  t.same(await readView(other.process, asleep, snapshot.id), before, 'while it is down: as before')
  const [state = ''] = await readView(other.process, [running.id], snapshot.id)
  t.ok(['running', 'degraded'].includes(state), `the running box is ${state}`)
  const refusals: Record<string, string> = {}
  // A wake would be accepted, and run after the return.
  for (const [name, path, body] of [
    ['exec', `/v1/box/${frozen.id}/exec`, { command: 'true' }],
    ['execInDeepSleep', `/v1/box/${sleeping.id}/exec`, { command: 'true' }],
    ['restore', `/api/v1/snapshots/${snapshot.id}/restore`, {}],
  ] as const) {
    const { status, error } = await other.process.sendJson('POST', path, body)
    t.ok(status >= 400, `${name} is refused`)
    refusals[name] = `${status} ${error.code ?? error}`
  }
  t.same(await readView(other.process, asleep, snapshot.id), before, 'after refused requests: as before')
  const downMs = Math.round(performance.now() - startedAt)

  const resumedAt = performance.now()
  await STOPS[signal].resume(replica.process)
  await waitUntil('it is ready', async () => (await fleet.readStatus(replica, '/readyz')) === 200)
  const readyMs = Math.round(performance.now() - resumedAt)
  await replica.process.waitForState(running.id, 'running')
  t.same(await readView(replica.process, asleep, snapshot.id), before, 'after its return: as before')
  return { downMs, lastAgentBackMs, readyMs, refusals, runningBox: state, view: before }
}

async function checkContents(t: Test, host: Host): Promise<void> {
  const { sendJson, waitForState, exec } = host.replica.process
  const wake = async (box: Box) => {
    await sendJson('POST', `/api/v1/boxes/${box.id}/wake`)
    await waitForState(box.id, 'running')
  }
  const read = async (id: string) => (await exec(id, 'cat kept')).stdout
  await wake(host.frozen)
  if (host.value !== null) {
    const { stdout } = await exec(host.frozen.id, ASK_FOR_VALUE, { timeoutSeconds: 20 })
    t.equal(stdout, host.value, 'the process of the frozen box has its memory')
  }
  t.equal(await read(host.running.id), host.text, 'the running box has its file')
  await wake(host.sleeping)
  t.equal(await read(host.sleeping.id), host.text, 'the box in deep sleep has its file')
  const { box } = await sendJson('POST', `/api/v1/snapshots/${host.snapshot.id}/restore`, {})
  await waitForState(box.id, 'running')
  t.equal(await read(box.id), host.text, 'the snapshot has the file')
  await sendJson('DELETE', `/api/v1/boxes/${box.id}`)
}

async function removeAll({ replica, frozen, sleeping, running, snapshot }: Host): Promise<void> {
  const { sendJson } = replica.process
  for (const { id } of [frozen, sleeping, running]) await sendJson('DELETE', `/api/v1/boxes/${id}`)
  await sendJson('DELETE', `/api/v1/snapshots/${snapshot.id}`)
}
