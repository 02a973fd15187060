// Compares the agent's native spawner with child_process: `POST /exec` of `true` on two boxes of one coordinator.
// `node bench/spawner.ts` runs only this benchmark.
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { SPAWNER_KINDS, type SpawnerKind } from '../agent/exec/spawner.ts'
import { NODE_FLAGS } from '../coordinator/agents/bundles/node-flags.ts'
import { HOST_PLATFORM, readProgramFiles } from '../coordinator/agents/bundles/program-files.ts'
import { type Fleet, type FleetBox, startFleet } from '../test/support/fleet.ts'
import { PROJECT_DIR } from '../test/support/project.ts'
import { waitUntil } from '../test/support/wait-until.ts'
import { RAISED_LIMITS } from './support/edge-limits.ts'
import { createFleetClient } from './support/fleet-client.ts'
import { getPid, readCpuSeconds, terminate } from './support/processes.ts'
import { formatNumber, measureRuns, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const NAMES: Record<SpawnerKind, string> = { native: 'native spawner', node: '`child_process`' }

const ROUNDS = 9
const WARM_UP_RUNS = 10
/** Runs per round, one after another. */
const SEQUENTIAL_RUNS = 60
/** Runs per round in each of CONCURRENCY parallel loops. */
const CONCURRENT_RUNS = 15
const CONCURRENCY = 8

type Candidate = {
  kind: SpawnerKind
  agentPid: number
  run(): Promise<void>
  /** These lists have one value per run. */
  sequentialMs: number[]
  concurrentMs: number[]
  /** This list has one value per round. */
  cpuMs: number[]
}

export async function benchSpawner(): Promise<Table> {
  await using cleanup = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-bench-'))
  cleanup.defer(() => rm(dir, { recursive: true, force: true }))
  const program = await writeProgram(join(dir, 'program'))
  const { fleet, stop } = await startFleet(SPAWNER_KINDS.length, { settings: RAISED_LIMITS })
  cleanup.defer(stop)
  const client = createFleetClient(fleet)
  cleanup.defer(() => client.close())
  const candidates: Candidate[] = []
  for (const [index, kind] of SPAWNER_KINDS.entries()) {
    const box = fleet.boxes[index] as FleetBox
    const agent = spawn(process.execPath, [...NODE_FLAGS, program], {
      env: await createAgentEnv(fleet, box, kind, join(dir, kind)),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    cleanup.defer(() => terminate(agent))
    await waitUntil('the box answers', async () => (await client.send('GET', box, '/exec')) === 200)
    const run = async () => {
      const status = await client.send('POST', box, '/exec', { command: 'true' })
      if (status !== 200) throw new Error(`POST /exec failed with status ${status}`)
    }
    candidates.push({ kind, agentPid: getPid(agent), run, sequentialMs: [], concurrentMs: [], cpuMs: [] })
  }
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let i = 0; i < ROUNDS; i++) for (const candidate of candidates) await runRound(candidate)
  return createTable(candidates)
}

/** Writes the agent as boxes run it. Returns the path of its main file. */
async function writeProgram(dir: string): Promise<string> {
  const files = await readProgramFiles({
    projectRoot: PROJECT_DIR,
    dataDir: dir,
    platform: HOST_PLATFORM,
    packagesDir: PROJECT_DIR,
  })
  for (const { name, bytes } of files) {
    const path = join(dir, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, bytes)
  }
  return join(dir, 'agent.mjs')
}

/** The agent has a home directory of its own in `dir`. */
async function createAgentEnv(
  { url }: Fleet,
  { boxId, token }: FleetBox,
  kind: SpawnerKind,
  dir: string,
): Promise<Record<string, string>> {
  const [home, state] = [join(dir, 'home'), join(dir, 'state')]
  await mkdir(home, { recursive: true })
  await mkdir(state)
  await writeFile(join(state, 'token'), token)
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    BOXWOOD_URL: url,
    BOXWOOD_BOX: boxId,
    BOXWOOD_STATE: state,
    BOXWOOD_HOME: home,
    BOXWOOD_SPAWNER: kind,
    BOXWOOD_LOG: 'warn',
  }
}

async function runRound({ agentPid, run, sequentialMs, concurrentMs, cpuMs }: Candidate): Promise<void> {
  await measureRuns(WARM_UP_RUNS, 1, run)
  const cpuBefore = await readCpuSeconds(agentPid)
  sequentialMs.push(...(await measureRuns(SEQUENTIAL_RUNS, 1, run)))
  concurrentMs.push(...(await measureRuns(CONCURRENT_RUNS, CONCURRENCY, run)))
  const cpuSeconds = (await readCpuSeconds(agentPid)) - cpuBefore
  cpuMs.push((cpuSeconds * 1000) / (SEQUENTIAL_RUNS + CONCURRENT_RUNS * CONCURRENCY))
}

function createTable(candidates: Candidate[]): Table {
  const [native] = candidates
  if (native === undefined) throw new Error('no candidates to compare')
  return {
    title: 'Exec of `true` with the native spawner and with `child_process`',
    columns: [
      '',
      'p50 (ms), sequential',
      `p50 (ms), ${CONCURRENCY} concurrent`,
      'CPU of the agent per exec (ms)',
      'p50 ÷ native, sequential',
      `p50 ÷ native, ${CONCURRENCY} concurrent`,
      'CPU ÷ native',
    ],
    rows: candidates.map(({ kind, sequentialMs, concurrentMs, cpuMs }) => [
      NAMES[kind],
      formatNumber(median(sequentialMs)),
      formatNumber(median(concurrentMs)),
      formatNumber(median(cpuMs)),
      formatNumber(median(sequentialMs) / median(native.sequentialMs)),
      formatNumber(median(concurrentMs) / median(native.concurrentMs)),
      formatNumber(median(cpuMs) / median(native.cpuMs)),
    ]),
  }
}

if (import.meta.main) console.log(formatMarkdown(await benchSpawner()))
