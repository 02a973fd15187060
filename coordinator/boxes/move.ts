// Moves a box to another region (spec §4.3, §7.1, §8).
import type { Box } from '../../shared/api/boxes.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Region } from '../../shared/tiers.ts'
import type { Admit } from '../admission/admit.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import { lockWorkspace } from '../db/lock-workspace.ts'
import type { Db } from '../db/open.ts'
import type { BoxMoveRow, BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import type { Providers } from '../providers/regions.ts'
import { enqueueMove } from './lifecycle/enqueue-jobs.ts'
import { parseLeftovers } from './lifecycle/leftovers.ts'
import { presentBox } from './present.ts'
import { assertManaged } from './refuse-machines.ts'
import { assertCanChange } from './resize.ts'
import { insertMove, listMovesAfter } from './store/moves.ts'

export type MoveOptions = {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'lockLive'>
  regions: Pick<Providers, 'regions' | 'serves' | 'byRegion'>
  admit: Admit
  schedule(boxId: string): void
}

/** Throws move_rejected. No-op when the box is in the region, or on its way there. */
export type MoveBox = (actor: Actor, id: string, region: Region, trx?: Trx) => Promise<Box>

const WINDOW_MS = 24 * 60 * 60 * 1000

export function createMoveBox(options: MoveOptions): MoveBox {
  const { db, clock, boxes, regions, admit, schedule } = options

  return (actor, id, region, trx) =>
    transaction(trx ?? db, async (trx, onCommit) => {
      const box = await boxes.lockLive(trx, actor, id)
      if ((box.desired_region ?? box.region) === region) return presentBox(box)
      assertManaged(box, 'move')
      await assertCanChange(trx, box, 'move_rejected', 'moved')
      const { hostname } = box
      if (!regions.serves(region))
        throw new ApiError(
          'move_rejected',
          `Boxes cannot be moved to ${region} here. Use one of: ${regions.regions.join(', ')}.`,
        )
      assertCanHoldFiles(box, region, regions)
      if (parseLeftovers(box).some(({ machine }) => machine))
        throw new ApiError(
          'move_rejected',
          `Box ${hostname} still has files in another region, which are being removed. Try again in a minute.`,
        )
      const now = clock.now()
      assertBelowLimits(box, await listRecentMoves(trx, box.workspace_id, now))
      await admit(trx, actor, { action: 'move', box, region })
      await insertMove(trx, { box_id: id, workspace_id: box.workspace_id, at: now })
      const reason = `moved from ${box.region} to ${region}`
      const moving = await enqueueMove(trx, box, region, { reason, actor: formatActor(actor), now })
      recordBoxChange(trx, 'box.move', box, { actor, now }, { from: box.region, to: region })
      onCommit(() => schedule(id))
      return presentBox(moving)
    })
}

/**
 * Throws move_rejected when the files of the box cannot be copied to the provider of the region, which keeps them in another form:
 * a box with an image moves only to a region with images, and a box without one only to a region without.
 */
function assertCanHoldFiles(
  { hostname, region, image }: BoxRow,
  newRegion: Region,
  { regions, serves, byRegion }: MoveOptions['regions'],
): void {
  const source = byRegion.get(region)
  const format = source?.archiveFormat ?? 'files'
  const accepts = (candidate: Region): boolean => {
    const provider = byRegion.get(candidate)
    const hasImages = provider?.images !== undefined
    return hasImages === (image !== null) && (provider?.archiveFormat ?? 'files') === format
  }
  if (accepts(newRegion)) return
  const others = regions.filter(
    (candidate) => candidate !== region && serves(candidate) && accepts(candidate),
  )
  const advice =
    others.length > 0 ? `It can move to: ${others.join(', ')}.` : 'No other region here can take it.'
  const [from, to] = [source?.name, byRegion.get(newRegion)?.name]
  throw new ApiError(
    'move_rejected',
    `The files of box ${hostname} cannot be moved from the provider ${from} of ${region} to ${to} of ${newRegion}. ${advice}`,
  )
}

/** The moves of the workspace in the last 24 hours, oldest first. */
async function listRecentMoves(trx: Trx, workspaceId: string, now: number): Promise<BoxMoveRow[]> {
  // Two moves at once must not pass the limit together.
  await lockWorkspace(trx, workspaceId)
  return listMovesAfter(trx, workspaceId, now - WINDOW_MS)
}

function assertBelowLimits({ id, hostname }: BoxRow, moves: readonly BoxMoveRow[]): void {
  const { movesPerBox, movesPerWorkspace } = LIMITS
  const ofBox = moves.filter(({ box_id: boxId }) => boxId === id)
  const [oldestOfBox] = ofBox
  if (oldestOfBox && ofBox.length >= movesPerBox)
    throw new ApiError(
      'move_rejected',
      `Box ${hostname} has been moved in the last 24 hours. It can be moved again at ${formatEnd(oldestOfBox)}.`,
    )
  const oldest = moves.at(-movesPerWorkspace)
  if (oldest)
    throw new ApiError(
      'move_rejected',
      `${moves.length} boxes of the workspace have been moved in the last 24 hours. Another one can be moved at ${formatEnd(oldest)}.`,
    )
}

const formatEnd = ({ at }: BoxMoveRow): string => toTimestamp(at + WINDOW_MS)
