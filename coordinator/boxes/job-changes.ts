// Notifies other coordinators of new and changed jobs: one of them may have the lease of the job, whose step it then plans again.
// The coordinator of the change schedules its own runner after the commit.
import { defineTopic, notify, type SubscribeOptions, subscribe } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'

const BOX_JOBS = defineTopic<{ boxId: string }>('box jobs')
const SNAPSHOT_JOBS = defineTopic<{ snapshotId: string }>('snapshot jobs')

/** Call it after writing the desired state or the job of the box. */
export const recordBoxJob = (trx: Trx, boxId: string): void => notify(trx, BOX_JOBS, { boxId })

/** Call it after writing the job of the snapshot. */
export const recordSnapshotJob = (trx: Trx, snapshotId: string): void =>
  notify(trx, SNAPSHOT_JOBS, { snapshotId })

/** See subscribe(). @param listener gets the boxes whose jobs other coordinators have changed */
export const subscribeToBoxJobs = (
  db: Db,
  listener: (boxId: string) => void,
  options: SubscribeOptions,
): (() => void) =>
  subscribe(db, BOX_JOBS, ({ boxId }, origin) => origin === 'elsewhere' && listener(boxId), options)

/** See subscribe(). @param listener gets the snapshots whose jobs other coordinators have changed */
export const subscribeToSnapshotJobs = (
  db: Db,
  listener: (snapshotId: string) => void,
  options: SubscribeOptions,
): (() => void) =>
  subscribe(
    db,
    SNAPSHOT_JOBS,
    ({ snapshotId }, origin) => origin === 'elsewhere' && listener(snapshotId),
    options,
  )
