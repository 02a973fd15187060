// The machines that wait for a box: starts them, gives them to new boxes, and removes them.
import type { Logger } from 'pino'
import { newUuid } from '../../shared/ids.ts'
import type { Region } from '../../shared/tiers.ts'
import type { MemoryPressure } from '../base/memory-pressure.ts'
import type { Db } from '../db/open.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { ProviderWarmMachines } from '../providers/provider.ts'
import type { Providers } from '../providers/regions.ts'
import type { Replica } from '../replicas/replica.ts'
import {
  deleteWarmMachine,
  insertWarmMachine,
  listWarmMachines,
  setNoneReady,
  setReady,
  takeWarmMachine,
  type WarmMachineRow,
} from './store.ts'

export type WarmPoolOptions = {
  db: Db
  log: Pick<Logger, 'debug' | 'warn'>
  replica: Pick<Replica, 'host'>
  providers: Pick<Providers, 'byRegion' | 'defaultRegion'>
  memory: MemoryPressure
  /** The coordinator's URL for agents, without a path. */
  coordinatorUrl: string
  /** The pool is filled when no box was created for this time. Default: 1 s. */
  quietMs?: number
}

/** What a new box needs of the pool. */
export type WarmMachines = {
  /**
   * Takes a machine out of the pool: the caller inserts a box with its id in the same transaction. null: none is ready.
   * @param machine.image null: the provider has no images
   */
  take(trx: Trx, machine: { region: Region; image: string | null }): Promise<string | null>
}

export type WarmPool = WarmMachines & {
  /**
   * Nothing is taken before.
   * @param size the machines of each region in which boxes are created; 0: none
   */
  open(size: number): Promise<void>
  /** Fills the pool, in the background, or empties it when the memory is scarce. Never rejects: other schedules wait for it. */
  adjust(): Promise<void>
  /** By region. */
  countReady(): Promise<ReadonlyMap<string, number>>
  /** Removes the machines. Never rejects. */
  close(): Promise<void>
}

const DEFAULT_QUIET_MS = 1_000

export function createWarmPool(options: WarmPoolOptions): WarmPool {
  const { db, log, providers, memory, coordinatorUrl, quietMs = DEFAULT_QUIET_MS } = options
  const { host } = options.replica
  const regions = new Set([providers.defaultRegion])
  let size = 0
  let timer: NodeJS.Timeout | undefined
  let tasks = Promise.resolve()
  let isClosed = false
  /** Aborted when the machines are removed: nothing waits for one that is being started. */
  let starting = new AbortController()

  /** One task at a time starts and removes machines. Never rejects. */
  function runTask(task: () => Promise<void>): Promise<void> {
    tasks = tasks.then(task).catch((err: unknown) => {
      log.warn({ err }, 'failed to start or to remove a machine that waits for a box; will retry')
    })
    return tasks
  }

  function fillLater(): void {
    if (isClosed) return
    timer ??= setTimeout(() => {
      timer = undefined
      void runTask(fill)
    }, quietMs).unref()
  }

  function onCreate(region: Region): void {
    regions.add(region)
    clearTimeout(timer)
    timer = undefined
    fillLater()
  }

  async function fill(): Promise<void> {
    starting = new AbortController()
    const { signal } = starting
    const rows = await listWarmMachines(db, host)
    for (const row of rows) if (row.is_ready === 0) await remove(row)
    for (const region of regions) {
      const warm = providers.byRegion.get(region)?.warm
      if (warm === undefined || warm.problem !== null) continue
      let missing = size - rows.filter((row) => row.region === region && row.is_ready === 1).length
      // The timer runs when a box has been created meanwhile.
      for (; missing > 0 && timer === undefined && !isClosed; missing--) {
        if (signal.aborted || (await memory.isUnderMemoryPressure())) return
        await add(region, warm, signal)
      }
    }
  }

  /** A machine whose start has failed or was aborted is removed by the next task. */
  async function add(region: Region, warm: ProviderWarmMachines, signal: AbortSignal): Promise<void> {
    const id = newUuid()
    // The machine is known before it exists, so that it is removed after a crash.
    await insertWarmMachine(db, { id, region, host, is_ready: 0 })
    try {
      await warm.create(id, coordinatorUrl, signal)
    } catch (error) {
      if (signal.aborted) return
      throw error
    }
    await setReady(db, id, 1)
    log.debug({ region }, 'a machine waits for a box')
  }

  async function remove({ id, region }: WarmMachineRow): Promise<void> {
    const provider = providers.byRegion.get(region)
    // A later start may serve the region again.
    if (provider === undefined) return
    if (!(await setReady(db, id, 0))) return
    await provider.destroy(id)
    await deleteWarmMachine(db, id)
  }

  /** A failure does not keep the other machines. */
  async function removeAll(): Promise<void> {
    const removals = await Promise.allSettled((await listWarmMachines(db, host)).map(remove))
    for (const removal of removals) if (removal.status === 'rejected') throw removal.reason
  }

  function empty(): Promise<void> {
    starting.abort()
    return runTask(removeAll)
  }

  return {
    async open(newSize) {
      await setNoneReady(db, host)
      size = newSize
      fillLater()
    },
    take: (trx, { region, image }) =>
      transaction(trx, async (trx, onCommit) => {
        if (size === 0 || image !== null) return null
        onCommit(() => onCreate(region))
        return takeWarmMachine(trx, region, host)
      }),
    async adjust() {
      const isScarce = await memory.isUnderMemoryPressure().catch((err: unknown) => {
        log.warn({ err }, 'failed to read the memory usage of the machine; will retry')
        return null
      })
      if (isScarce) await empty()
      else if (isScarce === false) fillLater()
    },
    async countReady() {
      const ready = (await listWarmMachines(db, host)).filter((row) => row.is_ready === 1)
      return new Map(
        [...regions].map((region) => [region, ready.filter((row) => row.region === region).length]),
      )
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      await empty()
    },
  }
}
