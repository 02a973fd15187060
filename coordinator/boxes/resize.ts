// Changes the tier of a box (spec §4.3, §7.1).
import type { Box } from '../../shared/api/boxes.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { TIERS, type Tier, tierInodes } from '../../shared/tiers.ts'
import type { Admit } from '../admission/admit.ts'
import { recordBoxChange } from '../audit/record-change.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import type { BoxFinder } from '../http/find-box.ts'
import type { Providers } from '../providers/regions.ts'
import { isElsewhere } from '../replicas/hosts.ts'
import { enqueueResize, isSettled } from './lifecycle/enqueue-jobs.ts'
import { presentBox } from './present.ts'
import { assertManaged } from './refuse-machines.ts'

export type ResizeOptions = {
  db: Db
  clock: Clock
  /** Of this coordinator. */
  host: string
  boxes: Pick<BoxFinder, 'find' | 'lockLive'>
  providers: Pick<Providers, 'for'>
  admit: Admit
  schedule(boxId: string): void
}

/** What the files of a box use. inodes: null for an archive. */
type Usage = { bytes: number; inodes: number | null }

export type Resizes = {
  /** null: not known. Slow: reads the whole tree. */
  measure(actor: Actor, id: string): Promise<Usage | null>
  /** @param usage what `measure` has returned. Throws resize_rejected. No-op when the box has the tier. */
  resize(actor: Actor, id: string, tier: Tier, usage: Usage | null, trx?: Trx): Promise<Box>
}

const GB = 1000 ** 3
/** A measurement that takes longer is ignored: the disk monitor enforces the limit later. */
const MEASURE_TIMEOUT_MS = 10_000

export function createResizes(options: ResizeOptions): Resizes {
  const { db, clock, host, boxes, providers, admit, schedule } = options

  async function measure(actor: Actor, id: string): Promise<Usage | null> {
    const box = await boxes.find(actor, id)
    const { observed_state: state, archive_bytes: archiveBytes } = box
    if (state === 'deep_sleep') return archiveBytes === null ? null : { bytes: archiveBytes, inodes: null }
    if (state !== 'running' && state !== 'suspended') return null
    // The disk monitor of its host enforces the limit.
    if (isElsewhere(box, host)) return null
    const signal = AbortSignal.timeout(MEASURE_TIMEOUT_MS)
    const measuring = providers.for(box).sharedDisk?.measure(id, signal)
    return (await measuring?.catch(() => null)) ?? null
  }

  function resize(actor: Actor, id: string, tier: Tier, usage: Usage | null, trx?: Trx): Promise<Box> {
    return transaction(trx ?? db, async (trx, onCommit) => {
      const box = await boxes.lockLive(trx, actor, id)
      if (box.tier === tier) return presentBox(box)
      assertManaged(box, 'resize')
      await assertCanChange(trx, box, 'resize_rejected', 'resized')
      assertFits(box, tier, usage)
      await admit(trx, actor, { action: 'resize', box, tier })
      const reason = `resized from ${box.tier} to ${tier}`
      const now = clock.now()
      const resized = await enqueueResize(trx, box, tier, { reason, actor: formatActor(actor), now })
      recordBoxChange(trx, 'box.resize', box, { actor, now }, { from: box.tier, to: tier })
      onCommit(() => schedule(id))
      return presentBox(resized)
    })
  }

  return { measure, resize }
}

/** Throws the error when the box is between two states. */
export async function assertCanChange(
  trx: Trx,
  box: BoxRow,
  code: 'resize_rejected' | 'move_rejected',
  change: string,
): Promise<void> {
  const { hostname, observed_state: state } = box
  if (state === 'provision_failed')
    throw new ApiError(code, `Box ${hostname} could not be created. Delete it and create another.`)
  if (await isSettled(trx, box)) return
  throw new ApiError(
    code,
    `Box ${hostname} is ${state} and changes now. It can be ${change} when it is running or suspended: wait with \`box wait ${hostname}\`, then try again.`,
  )
}

function assertFits({ hostname }: BoxRow, tier: Tier, usage: Usage | null): void {
  const { diskGb } = TIERS[tier]
  if (usage === null) return
  if (usage.inodes !== null && usage.inodes > tierInodes(tier))
    throw new ApiError(
      'resize_rejected',
      `Box ${hostname} has ${usage.inodes} files and directories, and tier ${tier} allows ${tierInodes(tier)}. Delete files, or choose a larger tier.`,
    )
  if (usage.bytes <= diskGb * GB) return
  throw new ApiError(
    'resize_rejected',
    `The files of box ${hostname} use ${(usage.bytes / GB).toFixed(1)} GB, and the disk of tier ${tier} has ${diskGb} GB. Delete files, or choose a larger tier.`,
  )
}
