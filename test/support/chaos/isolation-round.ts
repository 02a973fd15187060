// Starts a coordinator many times while all CPUs are busy. Each start has the isolation of the first one, on the quiet machine,
// or is refused with the reason: a probe that takes long, or is killed, does not make it weaker.
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Level } from '../../../coordinator/providers/local/levels/choose-level.ts'
import type { LocalIsolation } from '../../../coordinator/providers/local/machine-file.ts'
import type { Box, Isolation } from '../../../shared/api/boxes.ts'
import { type CoordinatorProcess, startCoordinatorProcess } from '../coordinator-process.ts'
import type { StartedProvider } from '../engines/providers.ts'
import { PROJECT_DIR } from '../project.ts'
import { createSeededRandom } from '../random.ts'
import { findProgram } from '../requires.ts'
import { createTempDir } from '../temp-dir.ts'
import { LONG_DEADLINE_MS } from '../wait-until.ts'
import { startBusyLoops } from './busy-loops.ts'
import { type KillMode, killProbes } from './kill-probes.ts'
import { createRepeatingClient, type RepeatingClient } from './repeating-client.ts'

export type IsolationRoundOptions = {
  seed: number
  /** Of one data directory. A fifth as many starts have a new data directory each. */
  starts: number
  /** Busy processes for each CPU. */
  loopsPerCpu: number
  /** `auto`: the level that a coordinator selects. */
  level: 'auto' | Level
  /** An engine, which runs a box in its region. Absent: local boxes only. */
  provider?: StartedProvider
}

type Ready<T> = { result: T; isolation: LocalIsolation; killed: number }
/** The final line of the log. */
type Refused = { refusal: string; killed: number }

/** Of the starts while the machine is busy. */
type Report = { starts: number; killed: number; refusals: Record<string, number>; seconds: number }

/** Every tenth start also starts a new box, and a box of the engine. */
const BOX_INTERVAL = 10
const KILL_MODES: readonly KillMode[] = ['none', 'none', 'some', 'all']
/** What a refused start prints. */
const REASON = /was killed|could not (be started|run)|isolated less than before/

export async function runIsolationRound(t: Test, options: IsolationRoundOptions): Promise<Report> {
  const { seed, starts, level, provider } = options
  const random = createSeededRandom(seed)
  const setup = chooseSetup(t, options)
  const first = await startLogged(t, setup)
  if ('refusal' in first) throw new Error(`the first start was refused: ${first.refusal}`)
  const { coordinator, start, isolation } = first
  if (level !== 'auto') t.equal(isolation.level, level)
  t.comment(`on the quiet machine: ${JSON.stringify(isolation)}`)
  const client = createRepeatingClient(coordinator)
  const boxes = [await readFirstBox(client)]
  if (provider !== undefined) boxes.push(await createBox(coordinator, provider))
  for (const box of boxes)
    t.match(box.isolation, box === boxes[0] ? isolation : { level: 'container' }, box.hostname)

  const loops = startBusyLoops(options.loopsPerCpu)
  t.teardown(() => loops.stop())
  const startedAt = performance.now()
  const report: Report = { starts: 0, killed: 0, refusals: {}, seconds: 0 }
  const record = (outcome: Ready<unknown> | Refused) => {
    report.starts += 1
    report.killed += outcome.killed
    if ('isolation' in outcome) {
      t.strictSame(outcome.isolation, isolation, `start ${report.starts}`)
      return
    }
    t.match(outcome.refusal, REASON, `start ${report.starts}`)
    report.refusals[outcome.refusal] = (report.refusals[outcome.refusal] ?? 0) + 1
  }
  const pickMode = () => KILL_MODES[Math.floor(random() * KILL_MODES.length)] ?? 'none'
  for (let number = 1; number <= starts; number++) {
    await coordinator.kill(random() < 0.5 ? 'SIGTERM' : 'SIGKILL')
    const outcome = await start({ mode: pickMode(), random })
    record(outcome)
    if ('refusal' in outcome || number % BOX_INTERVAL !== 0) continue
    for (const box of boxes) {
      // A start of a box measures its isolation again.
      await client.post(`/boxes/${box.id}/suspend?stop=1`)
      await client.settle(box.id, 'suspended')
      await client.post(`/boxes/${box.id}/wake`)
      await checkBox(t, coordinator, await client.settle(box.id, 'running'), box.isolation)
    }
    const created = await createBox(coordinator, provider)
    await checkBox(t, coordinator, created, boxes.at(-1)?.isolation ?? null)
    await client.request('DELETE', `/boxes/${created.id}`)
  }
  for (let number = 1; number <= Math.ceil(starts / 5); number++)
    await t.test(`a new data directory, ${number}`, async (t) => {
      const outcome = await startLogged(t, setup, { mode: pickMode(), random })
      record(outcome)
      if ('coordinator' in outcome && number % 2 === 0)
        t.match((await readFirstBox(createRepeatingClient(outcome.coordinator))).isolation, isolation)
    })
  await loops.stop()
  return { ...report, seconds: Math.round((performance.now() - startedAt) / 1000) }
}

type Setup = { env: Record<string, string>; prefix: readonly string[] }

async function readFirstBox(client: RepeatingClient): Promise<Box> {
  const { boxes }: { boxes: Box[] } = await client.request('GET', '/boxes?live=1')
  return client.settle(boxes[0]?.id ?? '', 'running')
}

/** `auto` selects `namespaces` where bubblewrap is not installed: it is hidden from the coordinator. */
function chooseSetup(t: Test, { level, provider }: IsolationRoundOptions): Setup {
  const env = { BOXWOOD_LOG: 'info', ...provider?.env }
  const bwrap = findProgram('bwrap')
  // The strongest level: `auto` selects it.
  if (level === 'auto' || level === 'bubblewrap') return { env, prefix: [] }
  if (level !== 'namespaces' || bwrap === undefined || process.getuid?.() !== 0)
    return { env: { ...env, BOXWOOD_LOCAL_ISOLATION: level }, prefix: [] }
  t.comment('bubblewrap is hidden from the coordinator')
  const script = 'mount --bind /dev/null "$1" && shift && exec "$@"'
  return { env, prefix: ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', bwrap] }
}

/** Starts a coordinator with a new data directory, while its probes may be killed. */
async function startLogged(t: Test, { env, prefix }: Setup, kills: Kills = NO_KILLS) {
  const dir = createTempDir(t, 'isolation')
  // At level process the users of boxes enter it.
  chmodSync(dir, 0o711)
  const logFile = join(dir, 'log')
  const log = openSync(logFile, 'a')
  t.teardown(() => closeSync(log))
  const dataDir = join(dir, 'data')
  mkdirSync(dataDir, { mode: 0o711 })
  let onSpawn: (pid: number) => void = () => {}
  /** Returns what the coordinator has logged while the start runs. */
  async function observe<T>(run: () => Promise<T>, { mode, random }: Kills): Promise<Ready<T> | Refused> {
    const offset = readFileSync(logFile).length
    const abort = new AbortController()
    let killing: Promise<number> = Promise.resolve(0)
    onSpawn = (pid) => {
      killing = killProbes(pid, { mode, random, signal: abort.signal })
    }
    const [result] = await Promise.allSettled([run()])
    abort.abort()
    const killed = await killing
    const lines = readFileSync(logFile).subarray(offset).toString('utf8').trim().split('\n')
    if (result.status === 'fulfilled')
      return { result: result.value, killed, isolation: findIsolation(lines) }
    // Also with a signal, which nothing of the round sends during a start.
    if (!/the coordinator exited with \d/.test(String(result.reason))) throw result.reason
    return { killed, refusal: lines.at(-1) ?? '' }
  }
  const options = { log, prefix, startMs: LONG_DEADLINE_MS, onSpawn: (pid: number) => onSpawn(pid) }
  const started = await observe(
    () => startCoordinatorProcess(t, { ...env, BOXWOOD_DATA: dataDir }, PROJECT_DIR, options),
    kills,
  )
  if ('refusal' in started) return started
  const coordinator = started.result
  return { ...started, coordinator, start: (kills: Kills) => observe(() => coordinator.start(), kills) }
}

type Kills = { mode: KillMode; random: () => number }
const NO_KILLS: Kills = { mode: 'none', random: () => 0 }

/** Reads what the start has logged. */
function findIsolation(lines: readonly string[]): LocalIsolation {
  const line = lines.find((line) => line.includes('"local provider ready"'))
  if (line === undefined) throw new Error(`the start has not logged its isolation: ${lines.join('\n')}`)
  const { isolationLevel, network, limits } = JSON.parse(line)
  return { level: isolationLevel, network, limits }
}

async function createBox(coordinator: CoordinatorProcess, provider?: StartedProvider): Promise<Box> {
  const body = {
    tier: 'nano',
    ...(provider !== undefined && { region: provider.region }),
    ...(provider?.smallImage && { image: provider.smallImage }),
  }
  const client = createRepeatingClient(coordinator)
  const { box } = await client.post('/boxes', body)
  return client.settle(box.id, 'running')
}

async function checkBox(t: Test, coordinator: CoordinatorProcess, box: Box, expected: Isolation | null) {
  t.strictSame(box.isolation, expected, `the isolation of box ${box.hostname}`)
  t.match(await coordinator.exec(box.hostname, 'echo works'), { stdout: 'works\n' })
}
