// Boxes are created in bursts, with machines that wait for them, while the coordinator is killed. No machine may get two boxes, none
// may have a trace of another box, and none may remain.
import { globSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { AuditList } from '../../../shared/api/audit.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import { isUuid } from '../../../shared/uuid.ts'
import { startCoordinatorProcess } from '../coordinator-process.ts'
import { listBoxPids } from '../find-agent-process.ts'
import { createSeededRandom } from '../random.ts'
import { createRepeatingClient } from './repeating-client.ts'

export type WarmRoundOptions = { seed: number; creates: number }

const MAX_BURST = 5

export async function runWarmRound(t: Test, { seed, creates }: WarmRoundOptions) {
  const coordinator = await startCoordinatorProcess(t, { BOXWOOD_WARM: '2', BOXWOOD_LOG: 'fatal' })
  const client = createRepeatingClient(coordinator)
  const random = createSeededRandom(seed)
  const { id: firstId } = await coordinator.waitForFirstBox()
  const [boxIds, machineIds] = [new Set([firstId]), new Set<string>()]
  const boxesDir = join(coordinator.dataDir, 'boxes')
  let [kills, warm] = [0, 0]

  async function killLater(ms: number): Promise<void> {
    await delay(ms)
    kills++
    await coordinator.kill('SIGKILL')
    await coordinator.start()
  }

  async function createBox(): Promise<Box> {
    const before = new Set(readdirSync(boxesDir))
    const { box }: { box: Box } = await client.post('/boxes', {})
    if (before.has(box.id)) warm++
    t.notOk(boxIds.has(box.id), 'no other box has had the machine')
    boxIds.add(box.id)
    // A command that the kill interrupts is repeated, so it may find its own file.
    const command = `hostname; ls -A ~ /tmp /var/tmp | grep -v '^/\\|^$'; cat ~/owner 2>/dev/null; echo ${box.id} >~/owner`
    const { stdout } = await client.request('POST', '/exec', { command }, `/v1/box/${box.id}`)
    const [hostname, ...found] = stdout.trim().split('\n')
    t.equal(hostname, box.hostname)
    const others = found.filter((line: string) => !['.profile', 'owner', box.id].includes(line))
    t.strictSame(others, [], 'the box has no file of another one')
    return box
  }

  while (boxIds.size <= creates) {
    const size = Math.min(1 + Math.floor(random() * MAX_BURST), creates + 1 - boxIds.size)
    const killing = random() < 0.5 ? killLater(random() * 1_500) : Promise.resolve()
    const burst = await Promise.allSettled([...Array.from({ length: size }, createBox), killing])
    for (const result of burst) if (result.status === 'rejected') throw result.reason
    for (const name of readdirSync(boxesDir)) if (isUuid(name)) machineIds.add(name)
    for (const { value } of burst.filter((result) => result.status === 'fulfilled'))
      if (value) await client.request('DELETE', `/boxes/${value.id}`)
    // Sometimes the next burst finds machines that wait, and sometimes one that is being started.
    await delay(random() * 3_000)
  }

  const { events }: AuditList = await client.request('GET', '/audit?kind=box.create&limit=500')
  t.equal(events.length, boxIds.size, 'one event for each box')
  await client.deleteEverything()
  await coordinator.kill('SIGTERM')
  t.strictSame(findOtherRows(coordinator.dataDir, boxIds, machineIds), [], 'only boxes have rows')
  t.strictSame(readdirSync(boxesDir).filter(isUuid), [])
  const remains = [...machineIds, ...boxIds].flatMap((id) => [
    ...listBoxPids(id).map((pid) => `process ${pid} of ${id}`),
    ...globSync(`/sys/fs/cgroup/**/boxwood-${id}`),
  ])
  t.strictSame(remains, [], 'nothing of a machine remains')
  return { boxes: boxIds.size, machines: machineIds.size, warm, kills }
}

/** The tables in which a machine without a box is named. */
function findOtherRows(
  dataDir: string,
  boxIds: ReadonlySet<string>,
  machineIds: ReadonlySet<string>,
): string[] {
  const ids = [...machineIds].filter((id) => !boxIds.has(id))
  const database = new DatabaseSync(join(dataDir, 'boxwood.db'), { readOnly: true })
  try {
    const tables = database.prepare("select name from sqlite_master where type = 'table'").all()
    return tables
      .map(({ name }) => String(name))
      .filter((name) => {
        const rows = JSON.stringify(database.prepare(`select * from "${name}"`).all())
        return ids.some((id) => rows.includes(id))
      })
  } finally {
    database.close()
  }
}
