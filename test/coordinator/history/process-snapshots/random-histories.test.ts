// Random days of a box: every answer is that of a plain search among the snapshots that the coordinator has to store.
import t from 'tap'
import type { ProcessSnapshotReport } from '../../../../shared/api/process-snapshots.ts'
import { EMPTY_SNAPSHOT, type ProcessSnapshot } from '../../../../shared/process-delta.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createSeededRandom } from '../../../support/random.ts'
import { DAY, HOUR, MINUTE, presentPlainly, reportOf, setUp } from './support.ts'

const SEED = Number(process.env.TEST_SEED ?? 20_261_122)
const hourOf = (ms: number) => Math.floor(ms / HOUR)
/** The coordinator stores the snapshots of four hours together. */
const periodOf = (ms: number) => Math.floor(ms / (4 * HOUR))

type Sent = { report: ProcessSnapshotReport; snapshot: ProcessSnapshot }

/** The rules of storing, for snapshots as a whole. */
class PlainStore {
  readonly periods = new Map<number, { at: number; snapshot: ProcessSnapshot }[]>()

  add({ report: { at, previousAt }, snapshot }: Sent, now: number): void {
    if (at > now + MINUTE || at < now - 30 * DAY) return
    const stored = this.periods.get(periodOf(at)) ?? []
    if (stored.some((other) => other.at === at)) return
    // The coordinator cannot apply a delta without the snapshot before it.
    if (previousAt !== null && stored.at(-1)?.at !== previousAt) return
    stored.push({ at, snapshot })
    this.periods.set(periodOf(at), stored)
  }

  findNearest(t: number) {
    const all = [...this.periods.values()].flat().filter(({ at }) => Math.abs(at - t) <= 5 * MINUTE)
    return all.sort((a, b) => Math.abs(a.at - t) - Math.abs(b.at - t) || a.at - b.at)[0]
  }
}

function evolve(previous: ProcessSnapshot, random: () => number): ProcessSnapshot {
  const int = (max: number) => Math.floor(random() * max)
  const processes = new Map([...previous.processes].filter(() => random() > 0.1))
  for (let i = int(4); i > 0; i--) {
    const pid = 1 + int(40)
    const command = random() < 0.1 ? null : `run "${int(3)}" é`
    processes.set(pid, {
      process: [pid, int(3), int(2e12), 'box', 'run', command],
      cpuTenths: int(3),
      rssKiB: int(1e6),
    })
  }
  for (const [pid, entry] of processes)
    if (random() < 0.2) processes.set(pid, { ...entry, cpuTenths: int(1000) })
  const ports: ProcessSnapshot['ports'] = random() < 0.8 ? previous.ports : [[1 + int(9), int(60), 'run']]
  return { processes, ports, total: processes.size + int(2) }
}

onEachDatabase(t, async (t, newDb) => {
  t.test('the answer for any time is the nearest stored snapshot', async (t) => {
    const random = createSeededRandom(SEED)
    const chance = (probability: number) => random() < probability
    const { clock, owner, boxId, snapshots, report } = await setUp(await newDb(t))
    const store = new PlainStore()
    const start = clock.now()

    let snapshot = EMPTY_SNAPSHOT
    let last: { at: number; snapshot: ProcessSnapshot; isNewest: boolean } | undefined
    let newestAt = 0
    /** How much the clock of the box is ahead. */
    let skewMs = 0
    /** Reports that the coordinator has not received yet. */
    let spool: Sent[] = []
    let delivered: Sent[] = []

    async function deliver(batch: Sent[]): Promise<void> {
      // Agents and the network deliver at most some hours of snapshots at once.
      for (let rest = batch; rest.length > 0; ) {
        const periods = new Set<number>()
        const end = rest.findIndex(({ report: { at } }) => periods.add(periodOf(at)).size > 3)
        const part = end === -1 ? rest : rest.slice(0, end)
        for (const sent of part) store.add(sent, clock.now())
        await report(part.map((sent) => sent.report))
        rest = rest.slice(part.length)
      }
      delivered = [...delivered, ...batch].slice(-200)
    }

    function take(): void {
      snapshot = evolve(snapshot, random)
      const at = clock.now() + skewMs + Math.floor(random() * 1000)
      const base = last?.isNewest && last.at < at && hourOf(last.at) === hourOf(at) ? last : undefined
      spool.push({ report: reportOf(at, snapshot, base), snapshot })
      last = { at, snapshot, isNewest: at > newestAt }
      newestAt = Math.max(newestAt, at)
    }

    while (clock.now() < start + 2 * DAY) {
      clock.advance(MINUTE)
      if (chance(0.003)) clock.advance(Math.floor(random() * 3 * HOUR)) // A gap: the box is suspended.
      if (chance(0.005)) skewMs = chance(0.5) ? 0 : Math.floor((random() - 0.7) * HOUR)
      take()
      // The agent restarts.
      if (chance(0.02)) {
        last = undefined
        newestAt = 0
        clock.advance(Math.floor(random() * 10_000))
        take()
      }
      if (chance(0.005)) spool.splice(Math.floor(random() * spool.length), 1) // A lost report.
      if (chance(0.01)) spool.push(...delivered.slice(-Math.floor(random() * 100)))
      if (chance(0.01)) spool.reverse()
      // Sometimes the coordinator is away for hours.
      if (!chance(spool.length > 1 ? 0.95 : 0.1)) {
        await deliver(spool)
        spool = []
      }
    }
    await deliver(spool)

    const stored = [...store.periods.values()].flat().map(({ at }) => at)
    t.ok(stored.length > 500, `${stored.length} snapshots are stored`)
    const times: number[] = []
    for (let i = 0; i < 150; i++) {
      const at = stored[Math.floor(random() * stored.length)] ?? 0
      const next = stored[stored.indexOf(at) + 1] ?? at
      times.push(start - HOUR + Math.floor(random() * (2 * DAY + 2 * HOUR)))
      times.push(at, Math.floor((at + next) / 2), at + 5 * MINUTE, at - 5 * MINUTE - 1)
    }
    let found = 0
    for (const time of times) {
      const expected = store.findNearest(time)
      const answer = await snapshots.procsAt.get(owner, boxId, time).catch((error) => error)
      if (expected === undefined) t.match(answer, { code: 'not_found' })
      else t.strictSame(answer, presentPlainly(expected.at, expected.snapshot))
      if (expected !== undefined) found += 1
      if (!t.passing()) return t.comment(`seed ${SEED}, t ${time}`)
    }
    t.ok(found > 100 && found < times.length, `${found} of ${times.length} times have a snapshot`)
  })
})
