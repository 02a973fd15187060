// Enforces the disk sizes of the tiers where boxes share a disk: measures the boxes and suspends those that are too large.

import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { type Region, TIERS } from '../../../shared/tiers.ts'
import { recordBoxChange } from '../../audit/record-change.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { transaction } from '../../db/transaction.ts'
import type { Provider, SharedDisk } from '../../providers/provider.ts'
import { listBoxesByObservedState } from '../store/box-lists.ts'
import { setDesiredState } from './set-desired-state.ts'

export type DiskMonitorOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
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

const GB = 1000 ** 3
const CHECK_INTERVAL_MS = 5_000
/** Reading the free space takes microseconds. Measuring reads every directory of a box, so it is done rarely. */
const MEASURE_INTERVAL_MS = 10 * 60_000
/** The boxes are also measured when the disk has filled by this part of its size, and by at most this many bytes. */
const GROWTH = { fraction: 1 / 64, maxBytes: GB }
/** Below this free space the box that grew most is suspended, whatever its size. */
const LOW_SPACE = { fraction: 1 / 20, maxBytes: 2 * GB }
/** How long a woken box may stay above its size, so that its files can be deleted. It may not grow in this time. */
const CLEANUP_MS = 10 * 60_000

/** A new box without files of its user is smaller. */
const MIN_GROWTH_BYTES = 1024 * 1024

type MeasuredBox = { box: BoxRow; size: number }

const limitOf = ({ fraction, maxBytes }: { fraction: number; maxBytes: number }, totalBytes: number) =>
  Math.min(totalBytes * fraction, maxBytes)

const formatGb = (bytes: number): string => `${(bytes / GB).toFixed(1)} GB`

export function createDiskMonitor(options: DiskMonitorOptions): DiskMonitor {
  const { db, clock, log, disks, schedule } = options
  /** The sizes from which the growth of the boxes counts. A box that is missing here is new. */
  let baseline: Map<string, number> | undefined
  /** The size at which each box was last suspended. */
  const suspendedSizes = new Map<string, number>()
  let measuredAt = Number.NEGATIVE_INFINITY
  let measuredFreeBytes = 0
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  const closing = new AbortController()

  async function check(): Promise<void> {
    const [disk] = disks.values()
    if (disk === undefined) return
    const { freeBytes, totalBytes } = await disk.readSpace()
    const growthLimit = limitOf(GROWTH, totalBytes)
    const isLow = freeBytes < limitOf(LOW_SPACE, totalBytes)
    const hasFilled = measuredFreeBytes - freeBytes >= growthLimit
    if (!isLow && !hasFilled && clock.now() - measuredAt < MEASURE_INTERVAL_MS) return
    measuredAt = clock.now()
    measuredFreeBytes = freeBytes
    const boxes = await measureRunningBoxes()
    for (const { box, size } of boxes)
      if (isTooLarge(box, size, growthLimit)) await suspend(box, size, describeTooLarge(box, size))
    // While the free space is low, growth counts from the last measurement before.
    if (!isLow || baseline === undefined) {
      baseline = new Map(boxes.map(({ box, size }) => [box.id, size]))
      return
    }
    const growthOf = ({ box, size }: MeasuredBox) => size - (baseline?.get(box.id) ?? 0)
    const fastest = boxes.toSorted((a, b) => growthOf(b) - growthOf(a))[0]
    if (fastest === undefined || growthOf(fastest) < Math.max(growthLimit / 16, MIN_GROWTH_BYTES)) return
    await suspend(fastest.box, fastest.size, describeLowSpace(growthOf(fastest), freeBytes))
    // After it is woken, the box is suspended again only if it grows further.
    baseline.set(fastest.box.id, fastest.size)
  }

  async function measureRunningBoxes(): Promise<MeasuredBox[]> {
    const boxes: MeasuredBox[] = []
    for (const box of await listBoxesByObservedState(db, ['running'])) {
      const disk = box.kind === 'managed' ? disks.get(box.region) : undefined
      if (disk !== undefined) boxes.push({ box, size: await disk.measure(box.id, closing.signal) })
    }
    return boxes
  }

  function isTooLarge(box: BoxRow, size: number, toleranceBytes: number): boolean {
    if (size <= TIERS[box.tier].diskGb * GB) {
      suspendedSizes.delete(box.id)
      return false
    }
    const allowedSize = (suspendedSizes.get(box.id) ?? 0) + toleranceBytes
    return size > allowedSize || clock.now() - box.state_since > CLEANUP_MS
  }

  const describeTooLarge = (box: BoxRow, size: number): string =>
    `uses ${formatGb(size)} of its ${TIERS[box.tier].diskGb} GB of disk: wake the box and delete files within ${CLEANUP_MS / 60_000} minutes`

  const describeLowSpace = (growth: number, freeBytes: number): string =>
    `the disk of the machine has only ${formatGb(freeBytes)} free, and this box grew by ${formatGb(growth)}: free space on the machine, then wake the box`

  async function suspend({ id }: BoxRow, size: number, reason: string): Promise<void> {
    const isSuspended = await transaction(db, async (trx) => {
      const box = await lockBox(trx, id)
      if (box?.desired_state !== 'running' || box.observed_state !== 'running') return false
      const [actor, now] = ['system', clock.now()] as const
      await setDesiredState(trx, box, { state: 'suspended', actor, now, reason })
      recordBoxChange(trx, 'box.suspend', box, { actor, now }, { stop: false, reason })
      return true
    })
    if (!isSuspended) return
    suspendedSizes.set(id, size)
    log.warn({ boxId: id, reason }, 'suspending a box because of its disk usage')
    schedule(id)
  }

  function runCheck(): void {
    running = check()
      .catch((err: unknown) => {
        if (!closing.signal.aborted)
          log.error({ err }, 'failed to check the disk usage of the boxes; will retry')
      })
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
