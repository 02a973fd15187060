// Measures the life of a box of each provider beside the commands of its engine. `node bench/providers.ts` runs only this
// benchmark, and `node bench/providers.ts docker incus` only these providers. It needs root; install/test-engines.sh.
import type { Box } from '../shared/api/boxes.ts'
import {
  type StartedProvider,
  TEST_PROVIDERS,
  type TestProviderName,
} from '../test/support/engines/providers.ts'
import { waitUntil } from '../test/support/wait-until.ts'
import { startBoxwood } from './support/boxwood.ts'
import { createEngineCommands, type EngineCommands } from './support/engine-commands.ts'
import { formatNumber, measureDuration, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const ROUNDS = 3
const FILL = 'for i in $(seq 100); do head -c 1048576 /dev/urandom >big.$i; done'

const OPERATIONS = {
  create: 'create to first exec',
  thaw: 'wake of a frozen box to first exec',
  snapshot: 'snapshot of 100 MB',
  fork: 'fork of 100 MB to first exec',
} as const
type Operation = keyof typeof OPERATIONS
type Samples = Record<Operation, number[]>

const createSamples = (): Samples => ({ create: [], thaw: [], snapshot: [], fork: [] })

export async function benchProviders(
  names: readonly TestProviderName[] = Object.keys(TEST_PROVIDERS) as TestProviderName[],
): Promise<Table> {
  const rows: string[][] = []
  for (const name of names) {
    const provider = await TEST_PROVIDERS[name].start()
    if ('skip' in provider) console.error(`${name} is not measured: ${provider.skip}`)
    else rows.push(...(await benchProvider(name, provider)))
  }
  return {
    title: 'The life of a box of each provider',
    columns: ['', 'provider', 'Boxwood, p50 (ms)', 'engine, p50 (ms)', 'command of the engine', 'ratio'],
    rows: rows.sort(([first = ''], [second = '']) => {
      const order: string[] = Object.values(OPERATIONS)
      return order.indexOf(first) - order.indexOf(second)
    }),
  }
}

async function benchProvider(name: string, provider: StartedProvider): Promise<string[][]> {
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(provider.close)
  const boxwood = await startBoxwood(provider.env)
  const { sendJson: call } = boxwood
  cleanup.defer(boxwood.close)
  const [samples, engineSamples] = [createSamples(), createSamples()]
  const engine = createEngineCommands(provider)

  const exec = ({ id }: Pick<Box, 'id'>, command = 'true') =>
    call('POST', `/v1/box/${id}/exec`, { command, timeoutSeconds: 60 })
  const waitForBox = (id: string, state: Box['observedState']): Promise<Box> =>
    waitUntil(`the box is ${state}`, async () => {
      const { box }: { box: Box } = await call('GET', `/api/v1/boxes/${id}`)
      return box.observedState === state && box
    })
  const createBox = async (): Promise<Box> => {
    const image = provider.smallImage === null ? {} : { image: provider.smallImage }
    const { box } = await call('POST', '/api/v1/boxes', { region: provider.region, ...image })
    await exec(box)
    return box
  }

  async function measureBox(): Promise<void> {
    let box: Box | undefined
    samples.create.push(
      await measureDuration(async () => {
        box = await createBox()
      }),
    )
    if (box === undefined) throw new Error('no box was created')
    const { id } = box
    await call('POST', `/api/v1/boxes/${id}/suspend`)
    const { suspendedAs } = await waitForBox(id, 'suspended')
    const wakeMs = await measureDuration(() => exec({ id }))
    if (suspendedAs === 'frozen') samples.thaw.push(wakeMs)
    await exec({ id }, FILL)
    samples.snapshot.push(
      await measureDuration(async () => {
        const { snapshot } = await call('POST', '/api/v1/snapshots', { boxId: id, name: 'bench' })
        await waitUntil('the snapshot is available', async () => {
          const { snapshots } = await call('GET', '/api/v1/snapshots')
          return snapshots.find((each: { id: string }) => each.id === snapshot.id)?.status === 'available'
        })
      }),
    )
    // Other content: the snapshot has stored the first one.
    await exec({ id }, FILL)
    let fork: Box | undefined
    samples.fork.push(
      await measureDuration(async () => {
        fork = (await call('POST', `/api/v1/boxes/${id}/fork`, {})).box as Box
        await exec(fork)
      }),
    )
    for (const each of [id, fork?.id]) {
      await call('DELETE', `/api/v1/boxes/${each}`)
      await waitForBox(each ?? '', 'terminated')
    }
  }

  /** Does not count the first box, whose engine gets the image and the files of the agent. */
  const { id } = await createBox()
  await call('DELETE', `/api/v1/boxes/${id}`)
  await engine?.prepare()
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let round = 0; round < ROUNDS; round++) {
    await measureBox()
    if (engine !== null) await measureEngine(engine, engineSamples, round)
  }
  return Object.entries(OPERATIONS).flatMap(([key, title]) => {
    const [ours, theirs] = [samples[key as Operation], engineSamples[key as Operation]]
    if (ours.length === 0) return []
    const [p50, engineP50] = [median(ours), median(theirs)]
    const compared = theirs.length > 0 && engine !== null
    return [
      [
        title,
        name,
        formatNumber(p50),
        compared ? formatNumber(engineP50) : '–',
        compared ? engine.names[key as Operation] : '–',
        compared ? formatNumber(p50 / engineP50) : '–',
      ],
    ]
  })
}

async function measureEngine(engine: EngineCommands, samples: Samples, round: number): Promise<void> {
  const name = `bench-${round}`
  samples.create.push(await measureDuration(() => engine.create(name)))
  if (await engine.freeze(name)) samples.thaw.push(await measureDuration(() => engine.thaw(name)))
  await engine.exec(name, FILL)
  samples.snapshot.push(await measureDuration(() => engine.snapshot(name)))
  await engine.exec(name, FILL)
  samples.fork.push(await measureDuration(() => engine.fork(name, `${name}-fork`)))
  await engine.remove([name, `${name}-fork`])
}

if (import.meta.main) {
  const names = process.argv.slice(2) as TestProviderName[]
  console.log(formatMarkdown(await benchProviders(names.length === 0 ? undefined : names)))
}
