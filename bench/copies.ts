// Measures the fork and the snapshot of a local box with 100 MB beside `cp -a` of the same files. `node bench/copies.ts` runs only
// this benchmark.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Box } from '../shared/api/boxes.ts'
import type { Snapshot } from '../shared/api/snapshots.ts'
import { waitUntil } from '../test/support/wait-until.ts'
import { startBoxwood } from './support/boxwood.ts'
import { runProgram } from './support/processes.ts'
import { formatNumber, measureDuration, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const ROUNDS = 5
/** Random bytes, the same number of files for each run. */
const FILL = 'for i in $(seq 100); do head -c 1048576 /dev/urandom >big.$i; done; sync -f .'

const OPERATIONS = {
  node: '`node -e ""`',
  cp: '`cp -a` of the same files',
  create: 'create to first exec',
  fork: 'fork of 100 MB to first exec',
  forkPause: 'pause of the box by the fork',
  snapshot: 'snapshot of 100 MB until `available`',
  snapshotPause: 'pause of the box by the snapshot',
  restore: 'box from a snapshot, requested with the snapshot, to first exec',
} as const
type Operation = keyof typeof OPERATIONS

export async function benchCopies(): Promise<Table> {
  await using cleanup = new AsyncDisposableStack()
  const boxwood = await startBoxwood()
  cleanup.defer(boxwood.close)
  const { box, dataDir, sendJson: call } = boxwood
  const samples = Object.fromEntries(Object.keys(OPERATIONS).map((key) => [key, []])) as unknown as Record<
    Operation,
    number[]
  >
  const exec = ({ id }: Pick<Box, 'id'>, command = 'true') =>
    call('POST', `/v1/box/${id}/exec`, { command, timeoutSeconds: 60 })
  const findSnapshot = async (id: string): Promise<Snapshot | undefined> =>
    (await call('GET', '/api/v1/snapshots?transient=1')).snapshots.find((each: Snapshot) => each.id === id)
  const remove = async ({ id }: Box) => {
    await call('DELETE', `/api/v1/boxes/${id}`)
    await waitUntil(
      'the box is removed',
      async () => (await call('GET', `/api/v1/boxes/${id}`)).box.observedState === 'terminated',
    )
  }
  const measure = async (operation: Operation, work: () => Promise<unknown>) => {
    samples[operation].push(await measureDuration(work))
  }
  const create = async (path: string, measured: Operation): Promise<Box> => {
    let created: Box | undefined
    await measure(measured, async () => {
      created = (await call('POST', path, {})).box as Box
      await exec(created)
    })
    if (created === undefined) throw new Error('no box was created')
    return created
  }

  async function measureRound(): Promise<void> {
    await measure('node', () => runProgram('node', ['-e', ''], {}))
    await remove(await create('/api/v1/boxes', 'create'))
    await exec(box, FILL)
    const copies = await mkdtemp(join(dataDir, 'cp-'))
    const roots = ['home', 'tmp', 'var-tmp'].map((name) => join(dataDir, 'boxes', box.id, name))
    await measure('cp', () => runProgram('cp', ['-a', '--reflink=auto', ...roots, copies], {}))
    await rm(copies, { recursive: true })
    await remove(await create(`/api/v1/boxes/${box.id}/fork`, 'fork'))
    // Other content: the store must not have the files already.
    await exec(box, FILL)
    const { snapshot } = await call('POST', '/api/v1/snapshots', { boxId: box.id, name: 'bench' })
    await measure('snapshot', () =>
      waitUntil(
        'the snapshot is available',
        async () => (await findSnapshot(snapshot.id))?.status === 'available',
      ),
    )
    samples.snapshotPause.push((await findSnapshot(snapshot.id))?.pausedMs ?? Number.NaN)
    await call('DELETE', `/api/v1/snapshots/${snapshot.id}`)
    await exec(box, FILL)
    let early: Snapshot | undefined
    let restored: Box | undefined
    await measure('restore', async () => {
      early = (await call('POST', '/api/v1/snapshots', { boxId: box.id, name: 'bench' })).snapshot
      restored = (await call('POST', '/api/v1/boxes', { fromSnapshotId: early?.id })).box as Box
      await exec(restored)
    })
    if (early === undefined || restored === undefined) throw new Error('no box was created')
    await remove(restored)
    await call('DELETE', `/api/v1/snapshots/${early.id}`)
    await exec(box, FILL)
    const kept = await call('POST', `/api/v1/boxes/${box.id}/fork`, {})
    // The copy of a fork is removed when the new box has its files.
    await waitUntil('the files of the fork are read', async () => {
      const copy = await findSnapshot(kept.snapshot.id)
      if (copy?.pausedMs != null) samples.forkPause.push(copy.pausedMs)
      return copy === undefined || copy.pausedMs !== null
    })
    await exec(kept.box)
    await remove(kept.box)
  }

  await exec(box)
  for (let round = 0; round < ROUNDS; round++) await measureRound()
  const reference = median(samples.cp)
  const node = median(samples.node)
  return {
    title: 'Copies of a local box with 100 MB',
    columns: ['', 'p50 (ms)', '÷ `cp -a`', '× `node -e ""`'],
    rows: Object.entries(OPERATIONS).map(([key, title]) => {
      const p50 = median(samples[key as Operation])
      return [title, formatNumber(p50), formatNumber(p50 / reference), formatNumber(p50 / node)]
    }),
  }
}

if (import.meta.main) console.log(formatMarkdown(await benchCopies()))
