// Enforces the limits of the tiers for bytes and inodes where boxes share a disk: measures the boxes and suspends those that
// are too large.

import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import type { Region } from '../../../shared/tiers.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { transaction } from '../../db/transaction.ts'
import {
  type DiskSpace,
  type DiskUsage,
  MeasurementTimeoutError,
  type Provider,
  type SharedDisk,
} from '../../providers/provider.ts'
import type { Replica } from '../../replicas/replica.ts'
import { listBoxesByObservedState } from '../store/box-lists.ts'
import { BYTES, DiskLimits, type Excess, INODES } from './disk-limits.ts'
import { suspendBySystem } from './suspend-by-system.ts'

export type DiskMonitorOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  replica: Pick<Replica, 'host'>
  /** The disks of the regions on one file system. */
  disks: ReadonlyMap<Region, SharedDisk>
  /** Triggers a reconciliation of the box. */
  schedule(boxId: string): void
}

export type DiskMonitor = {
  start(): void
  /** One check: reads the free space and, if needed, measures the running boxes. Runs at intervals after `start`. */
  check(): Promise<void>
  /** Aborts the running check. */
  close(): Promise<void>
}

const CHECK_INTERVAL_MS = 5_000
/** Reading the free space takes microseconds. Measuring reads every directory of a box, so it is done rarely. */
const MEASURE_INTERVAL_MS = 10 * 60_000

const UNCOUNTED =
  'the disk of the machine is almost full, and the files of this box could not be counted in time: free space on the machine, then wake the box'

type Space = { bytes: DiskSpace; inodes: DiskSpace }

/** The inodes of a file system that creates them as needed. */
const UNLIMITED = { free: Number.POSITIVE_INFINITY, total: Number.POSITIVE_INFINITY }

export function createDiskMonitor(options: DiskMonitorOptions): DiskMonitor {
  const { db, clock, log, replica, disks, schedule } = options
  const limits = { bytes: new DiskLimits(BYTES), inodes: new DiskLimits(INODES) }
  let measuredAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  /** The message of the last check; null: it succeeded. */
  let lastFailure: string | null = null
  let running: Promise<void> = Promise.resolve()
  const closing = new AbortController()

  async function check(): Promise<void> {
    const [disk] = disks.values()
    if (disk === undefined) return
    const { bytes, inodes } = await disk.readSpace()
    const space = { bytes, inodes: inodes ?? UNLIMITED }
    const isDue = limits.bytes.needsMeasurement(space.bytes) || limits.inodes.needsMeasurement(space.inodes)
    if (isDue || clock.now() - measuredAt >= MEASURE_INTERVAL_MS) await enforceLimits(disk, space)
    if (inodes !== null && !limits.inodes.isLow(inodes)) await disk.inodeReserve?.restore(inodes.total)
  }

  async function enforceLimits({ inodeReserve }: SharedDisk, space: Space): Promise<void> {
    measuredAt = clock.now()
    const { boxes, uncounted } = await measureRunningBoxes()
    let isSuspending = boxes.some(({ box }) => box.desired_state !== 'running')
    for (const resource of ['bytes', 'inodes'] as const) {
      // A box whose files cannot be counted may fill the disk.
      for (const box of limits[resource].isLow(space[resource]) ? uncounted : []) {
        isSuspending = true
        await suspend({ box, reason: UNCOUNTED })
      }
      const measured = boxes.map(({ box, usage }) => ({ box, size: usage[resource] }))
      for (const excess of limits[resource].findExcesses(measured, space[resource], clock.now())) {
        isSuspending = true
        if (await suspend(excess)) limits[resource].recordSuspension(excess)
      }
    }
    // A box that still runs would use the inodes at once.
    if (!isSuspending && space.inodes.free < INODES.minGrowth) await inodeReserve?.release()
  }

  async function measureRunningBoxes() {
    const boxes: { box: BoxRow; usage: DiskUsage }[] = []
    const uncounted: BoxRow[] = []
    for (const box of await listBoxesByObservedState(db, ['running'], replica.host)) {
      const disk = box.kind === 'managed' ? disks.get(box.region) : undefined
      const usage = disk && (await measure(disk, box.id))
      if (usage === 'timeout') uncounted.push(box)
      else if (usage) boxes.push({ box, usage })
    }
    return { boxes, uncounted }
  }

  /** null: an engine does not answer. The limits of the other boxes are enforced. */
  async function measure(disk: SharedDisk, boxId: string): Promise<DiskUsage | 'timeout' | null> {
    try {
      return await disk.measure(boxId, closing.signal)
    } catch (err) {
      closing.signal.throwIfAborted()
      log.warn({ err, boxId }, 'failed to measure the disk usage of a box; will retry')
      return err instanceof MeasurementTimeoutError ? 'timeout' : null
    }
  }

  /** False when the box is not running any more. */
  async function suspend({ box: { id }, reason }: Pick<Excess, 'box' | 'reason'>): Promise<boolean> {
    const isSuspended = await transaction(db, async (trx) => {
      const box = await lockBox(trx, id)
      if (box?.desired_state !== 'running' || box.observed_state !== 'running') return false
      await suspendBySystem(trx, box, { reason, now: clock.now() })
      return true
    })
    if (!isSuspended) return false
    log.warn({ boxId: id, reason }, 'suspending a box because of its disk usage')
    schedule(id)
    return true
  }

  function runCheck(): void {
    running = check()
      .then(
        () => {
          lastFailure = null
        },
        (err: unknown) => {
          if (closing.signal.aborted) return
          const failure = err instanceof Error ? err.message : String(err)
          // The engine of the disk may be down for long.
          if (failure !== lastFailure)
            log.error({ err }, 'failed to check the disk usage of the boxes; will retry')
          lastFailure = failure
        },
      )
      .then(() => {
        if (!closing.signal.aborted) timer = setTimeout(runCheck, CHECK_INTERVAL_MS).unref()
      })
  }

  return {
    start: runCheck,
    check,
    async close() {
      closing.abort()
      clearTimeout(timer)
      await running
    },
  }
}

/** The shared disks of the providers, those on the same file system together. */
export function groupByFileSystem(
  providers: ReadonlyMap<Region, Provider>,
): ReadonlyMap<Region, SharedDisk>[] {
  const groups = new Map<string, Map<Region, SharedDisk>>()
  for (const [region, { sharedDisk }] of providers) {
    if (sharedDisk === undefined) continue
    const group = groups.get(sharedDisk.fileSystem) ?? new Map<Region, SharedDisk>()
    groups.set(sharedDisk.fileSystem, group.set(region, sharedDisk))
  }
  return [...groups.values()]
}
