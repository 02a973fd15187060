// Measures how long boxes and the coordinator take to start, beside Docker. `node bench/lifecycle.ts` runs only this benchmark.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Box } from '../shared/api/boxes.ts'
import { PROJECT_DIR, START_SCRIPT } from '../test/support/project.ts'
import { waitUntil } from '../test/support/wait-until.ts'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { type Docker, IMAGE, startDocker } from './support/docker.ts'
import { terminate } from './support/processes.ts'
import { formatNumber, measureDuration, median, quantile } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const ROUNDS = 20
const STARTS = 7
const BUNDLE_CACHE = join(PROJECT_DIR, 'node_modules/.cache/boxwood/agent-bundle')

const NAMES = {
  create: 'create to first exec',
  thaw: 'wake of a frozen box to first exec',
  wake: 'wake of a stopped box to first exec',
  fork: 'fork of a small box to first exec',
  remove: 'delete',
  dockerRun: '`docker run` of `true`',
  dockerStart: '`docker start --attach` of `true`',
  firstStart: 'coordinator start to ready, without caches and data',
  laterStart: 'coordinator start to ready',
} as const
type Samples = Record<keyof typeof NAMES, number[]>

export async function benchLifecycle(): Promise<Table> {
  await using cleanup = new AsyncDisposableStack()
  const samples = Object.fromEntries(Object.keys(NAMES).map((name) => [name, [] as number[]])) as Samples
  await measureStarts(samples)
  const freezing = await startBoxwood()
  cleanup.defer(freezing.close)
  const stopping = await startBoxwood({ BOXWOOD_FREEZE_MINUTES: '0' })
  cleanup.defer(stopping.close)
  const docker = await startDocker()
  if (typeof docker === 'string') console.error(`Docker is not measured: ${docker}.`)
  else cleanup.defer(docker.close)
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let i = 0; i < ROUNDS; i++) {
    await measureBox(freezing, samples, 'thaw')
    await measureBox(stopping, samples, 'wake')
    if (typeof docker !== 'string') await measureContainer(docker, samples)
  }
  const createMs = median(samples.create)
  return {
    title: 'The life of a box',
    columns: ['', 'n', 'p50 (ms)', 'p95 (ms)', 'p50 ÷ create'],
    rows: Object.entries(NAMES).flatMap(([key, name]) => {
      const values = samples[key as keyof Samples]
      if (values.length === 0) return []
      const [p50, p95] = [median(values), quantile(values, 0.95)]
      return [
        [name, String(values.length), formatNumber(p50), formatNumber(p95), formatNumber(p50 / createMs)],
      ]
    }),
  }
}

async function measureBox(boxwood: Boxwood, samples: Samples, resume: 'thaw' | 'wake'): Promise<void> {
  const { call, exec, waitForState, remove } = createClient(boxwood)
  let box: Box | undefined
  samples.create.push(
    await measureDuration(async () => {
      box = (await call('POST', '/api/v1/boxes', {})).box as Box
      await exec(box)
    }),
  )
  if (box === undefined) throw new Error('no box was created')
  const { id } = box
  await call('POST', `/api/v1/boxes/${id}/suspend`)
  const { suspendedAs } = await waitForState(id, 'suspended')
  // Where boxes cannot be frozen, both coordinators stop them.
  samples[suspendedAs === 'frozen' ? 'thaw' : 'wake'].push(await measureDuration(() => exec({ id })))
  if (resume === 'thaw') {
    let fork: Box | undefined
    samples.fork.push(
      await measureDuration(async () => {
        fork = (await call('POST', `/api/v1/boxes/${id}/fork`, {})).box as Box
        await exec(fork)
      }),
    )
    if (fork !== undefined) await remove(fork.id)
  }
  samples.remove.push(await measureDuration(() => remove(id)))
}

function createClient({ sendJson: call }: Boxwood) {
  const waitForState = (id: string, state: Box['observedState']): Promise<Box> =>
    waitUntil(`the box is ${state}`, async () => {
      const { box } = (await call('GET', `/api/v1/boxes/${id}`)) as { box: Box }
      return box.observedState === state && box
    })
  return {
    call,
    waitForState,
    /** Waits until the box runs. */
    exec: ({ id }: Pick<Box, 'id'>) => call('POST', `/v1/box/${id}/exec`, { command: 'true' }),
    async remove(id: string) {
      await call('DELETE', `/api/v1/boxes/${id}`)
      await waitForState(id, 'terminated')
    },
  }
}

async function measureContainer({ run }: Docker, samples: Samples): Promise<void> {
  const name = `bench-${samples.dockerRun.length}`
  const command = ['--network', 'none', '--name', name, IMAGE, '/bin/true']
  samples.dockerRun.push(await measureDuration(() => run('run', ...command)))
  samples.dockerStart.push(await measureDuration(() => run('start', '--attach', name)))
  await run('rm', name)
}

async function measureStarts(samples: Samples): Promise<void> {
  for (let i = 0; i < STARTS; i++) {
    await using cleanup = new AsyncDisposableStack()
    const dir = await mkdtemp(join(tmpdir(), 'boxwood-bench-'))
    cleanup.defer(() => rm(dir, { recursive: true, force: true }))
    const env = {
      BOXWOOD_DATA: join(dir, 'data'),
      BOXWOOD_LISTEN: '127.0.0.1:0',
      BOXWOOD_LOG: 'error',
      NODE_COMPILE_CACHE: join(dir, 'compile-cache'),
    }
    await rm(BUNDLE_CACHE, { force: true })
    samples.firstStart.push(await measureStart(env))
    samples.laterStart.push(await measureStart(env))
  }
}

/** Starts the coordinator until it is ready, and stops it with its boxes. */
async function measureStart(env: Record<string, string>): Promise<number> {
  const startedAt = performance.now()
  const child = spawn(join(PROJECT_DIR, START_SCRIPT), {
    cwd: PROJECT_DIR,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, ...env },
  })
  try {
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => Promise.reject(new Error('the coordinator did not start'))),
    ])
    return performance.now() - startedAt
  } finally {
    await terminate(child, 'SIGINT')
  }
}

if (import.meta.main) console.log(formatMarkdown(await benchLifecycle()))
