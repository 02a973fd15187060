// Refuses requests that need the files of a host without a coordinator.
import { ApiError } from '../../shared/errors.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { isUnavailable } from '../replicas/hosts.ts'

/** Without a query where `ownHost` has the files. */
export async function assertBoxAvailable(
  db: Db | Trx,
  box: Pick<BoxRow, 'hostname' | 'host'>,
  ownHost: string,
  code: 'box_unreachable' | 'no_volume',
): Promise<void> {
  if (await isUnavailable(db, box, ownHost))
    throw new ApiError(
      code,
      `The machine that runs box ${box.hostname} is not available. The box continues when it is: try again later.`,
    )
}

/** Throws snapshot_unavailable. Without a query where `ownHost` has the files. */
export async function assertSnapshotAvailable(
  trx: Trx,
  snapshot: Pick<SnapshotRow, 'name' | 'host'>,
  ownHost: string,
): Promise<void> {
  if (await isUnavailable(trx, snapshot, ownHost))
    throw new ApiError(
      'snapshot_unavailable',
      `The machine that has the files of snapshot ${snapshot.name} is not available. Try again when it is, or use another snapshot.`,
    )
}
