// What the end of a move writes: the box is in the new region, or stays in its region after a failure.
import type { Updateable } from 'kysely'
import type { BoxRow, JobRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { deleteMove } from '../store/moves.ts'
import { addLeftover } from './leftovers.ts'

export type MoveParams = {
  /** The box is in deep sleep: only its archive is moved. */
  isPacked: boolean
}

export const parseMoveParams = ({ params }: Pick<JobRow, 'params'>): MoveParams =>
  params === null ? { isPacked: false } : (JSON.parse(params) as MoveParams)

/**
 * Completes a move. The leftovers are the machine and the archive in the old region, and the archive that the new machine was
 * created from. A packed box has no machine, and keeps its archive in the new region.
 */
export function completeMove(box: BoxRow, { isPacked }: MoveParams, provider: string): Updateable<BoxRow> {
  const { region, desired_region: newRegion, archive_id: archiveId } = box
  if (newRegion === null) return {}
  const left = { region, machine: !isPacked, archiveId }
  if (isPacked)
    return { region: newRegion, provider, desired_region: null, leftovers: addLeftover(box.leftovers, left) }
  const copied = { region: newRegion, machine: false, archiveId }
  const leftovers = addLeftover(box.leftovers, left, copied)
  return { region: newRegion, provider, desired_region: null, archive_id: null, leftovers }
}

/** The box is in the new region as soon as its machine is. The files were never in the archive. */
export function completeRelocation(
  { desired_region: newRegion }: BoxRow,
  provider: string,
): Updateable<BoxRow> {
  return newRegion === null ? {} : { region: newRegion, provider, desired_region: null, archive_id: null }
}

/**
 * Ends a failed move. The leftovers are the incomplete machine and the archive in the new region, and the archive in the region
 * of the box. A packed box has no machine, and keeps its archive.
 */
export function rollBackMove(box: BoxRow, { isPacked }: MoveParams): Updateable<BoxRow> {
  const { region, desired_region: newRegion, archive_id: archiveId } = box
  if (newRegion === null) return {}
  const failed = { region: newRegion, machine: !isPacked, archiveId }
  if (isPacked) return { desired_region: null, leftovers: addLeftover(box.leftovers, failed) }
  const leftovers = addLeftover(box.leftovers, failed, { region, machine: false, archiveId })
  return { desired_region: null, archive_id: null, leftovers }
}

/** A failed move does not count against the limits. */
export const deleteMoveRecord = (trx: Trx, { box_id: boxId, created_at: at }: JobRow) =>
  deleteMove(trx, boxId, at)
