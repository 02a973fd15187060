// Deltas between process snapshots: applying them reproduces the snapshots.
import t from 'tap'
import {
  type DeltaProcess,
  type ListeningTuple,
  type ProcessDelta,
  processDeltaSchema,
} from '../../shared/api/process-snapshots.ts'
import {
  applyDelta,
  applyDeltas,
  createDelta,
  EMPTY_SNAPSHOT,
  type ProcessSnapshot,
} from '../../shared/process-delta.ts'
import { MAX_SNAPSHOT_PROCESSES } from '../../shared/report-limits.ts'
import { createSeededRandom } from '../support/random.ts'

const entry = (process: DeltaProcess, cpuTenths = 0, rssKiB = 100) => ({ process, cpuTenths, rssKiB })
const snapshot = (entries: ReturnType<typeof entry>[], ports: ListeningTuple[] = []): ProcessSnapshot => ({
  processes: new Map(entries.map((item) => [item.process[0], item])),
  ports,
  total: entries.length,
})
const init: DeltaProcess = [1, 0, 1000, 'root', 'init', '/sbin/init']

/** A process table in which some processes start, exit, change, and reuse a pid. */
function evolve(previous: ProcessSnapshot, random: () => number): ProcessSnapshot {
  const int = (max: number) => Math.floor(random() * max)
  const processes = new Map([...previous.processes].filter(() => random() > 0.2))
  for (let i = int(20); i > 0; i--) {
    const pid = 1 + int(60)
    const command = random() < 0.1 ? null : `run "${int(3)}"\\`
    processes.set(pid, entry([pid, int(3), int(5), 'box', 'run', command], int(3), int(3)))
  }
  for (const [pid, { process }] of processes)
    if (random() < 0.3) processes.set(pid, entry(process, int(3), int(3)))
  const ports: ListeningTuple[] =
    random() < 0.7 ? [...previous.ports] : [[1 + int(9), random() < 0.3 ? null : int(60), 'run']]
  return { processes, ports, total: processes.size + int(3) }
}

t.test('random process tables are the same after transport as deltas', async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 20_261_122)
  const random = createSeededRandom(seed)
  let previous = EMPTY_SNAPSHOT
  let received = EMPTY_SNAPSHOT
  const deltas: ProcessDelta[] = []
  for (let round = 0; round < 2000; round++) {
    const current = evolve(previous, random)
    const delta = processDeltaSchema.parse(JSON.parse(JSON.stringify(createDelta(previous, current))))
    received = applyDelta(received, delta)
    deltas.push(delta)
    // The order of processes may differ after a pid is reused.
    t.strictSame(new Map([...received.processes].sort()), new Map([...current.processes].sort()))
    t.strictSame({ ...received, processes: null }, { ...current, processes: null })
    if (!t.passing()) return t.comment(`seed ${seed}, round ${round}`)
    previous = current
  }
  t.strictSame(applyDeltas(EMPTY_SNAPSHOT, deltas), received, 'all deltas at once')
})

t.test('an unchanged snapshot costs nothing but the total', async (t) => {
  const current = snapshot([entry(init, 5)], [[22, 1, 'sshd']])
  t.strictSame(createDelta(current, current), { added: [], removed: [], usage: [], total: 1 })
})

t.test('a change of the usage does not repeat the process', async (t) => {
  const delta = createDelta(snapshot([entry(init, 5)]), snapshot([entry(init, 6)]))
  t.strictSame(delta, { added: [], removed: [], usage: [[1, 6]], total: 1 })
})

t.test('a process with the pid of an exited one replaces it', async (t) => {
  const previous = snapshot([entry([7, 1, 1000, 'box', 'sh', 'sh -c true'], 30, 100)])
  const current = snapshot([entry([7, 1, 2000, 'box', 'node', 'node server.js'], 0, 100)])
  t.strictSame(applyDelta(previous, createDelta(previous, current)), current)
})

t.test('closing the last port is a change', async (t) => {
  const delta = createDelta(snapshot([], [[80, 7, 'node']]), EMPTY_SNAPSHOT)
  t.strictSame(delta.ports, [])
})

t.test('changes to unknown processes, and too many processes, are ignored', async (t) => {
  const { processes } = applyDelta(EMPTY_SNAPSHOT, { added: [], removed: [5], usage: [[6, 1, 1]], total: 0 })
  t.equal(processes.size, 0)
  let state = EMPTY_SNAPSHOT
  for (const base of [0, 500, 1500]) {
    const added = Array.from({ length: 1000 }, (_, i): DeltaProcess => [base + i, 0, 0, 'u', 'n', null])
    state = applyDelta(state, { added, removed: [], usage: [], total: 0 })
  }
  t.equal(state.processes.size, MAX_SNAPSHOT_PROCESSES)
})
