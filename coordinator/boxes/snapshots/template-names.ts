// The names of templates: a name belongs to at most one snapshot of a workspace (spec §4.8).
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { type ChangedBy, recordSnapshotChange } from '../../audit/record-change.ts'
import { lockWorkspace } from '../../db/lock-workspace.ts'
import type { Db } from '../../db/open.ts'
import type { SnapshotRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import { assertOpen } from '../../identity/workspaces/service.ts'
import { scheduleExpiry } from '../sources/enqueue.ts'
import { assertTaken, assertUsable, canSeeSnapshot, requireSnapshot } from '../sources/sources.ts'
import { lockTemplate, updateSnapshot } from '../store/snapshots.ts'
import { presentSnapshot } from './present.ts'

/** Takes the template's name from the snapshot that has it. Returns that snapshot. */
export async function freeTemplateName(
  trx: Trx,
  actor: Actor,
  name: string,
  now: number,
): Promise<SnapshotRow | null> {
  await lockWorkspace(trx, actor.workspaceId)
  const previous = await lockTemplate(trx, actor.workspaceId, name)
  if (!previous) return null
  if (!canSeeSnapshot(actor, previous))
    throw new ApiError('not_allowed', `This API key may not change template ${name}. Choose another name.`)
  return updateSnapshot(trx, previous.id, { kind: 'manual', template_name: null, updated_at: now })
}

export const recordTemplate = (trx: Trx, row: SnapshotRow, previous: SnapshotRow | null, by: ChangedBy) =>
  recordSnapshotChange(trx, 'template.create', row, by, {
    template: row.template_name,
    ...(previous && { previousSnapshotId: previous.id }),
  })

export function createTemplateNames({ db, clock }: { db: Db; clock: Clock }) {
  function nameTemplate(actor: Actor, id: string, name: string) {
    return transaction(db, async (trx) => {
      await lockWorkspace(trx, actor.workspaceId)
      const row = await requireSnapshot(trx, actor, id)
      assertUsable(row)
      assertTaken(row)
      if (row.template_name === name) return { snapshot: presentSnapshot(row), previous: null }
      await assertOpen(trx, actor.workspaceId)
      const now = clock.now()
      const previous = await freeTemplateName(trx, actor, name, now)
      // A template does not expire.
      await scheduleExpiry(trx, id, null)
      const changes = { kind: 'template' as const, template_name: name, expires_at: null, updated_at: now }
      const written = await updateSnapshot(trx, id, changes)
      recordTemplate(trx, written, previous, { actor, now })
      const snapshot = presentSnapshot(written)
      return { snapshot, previous: previous && presentSnapshot(previous) }
    })
  }

  function removeTemplateName(actor: Actor, id: string): Promise<Snapshot> {
    return transaction(db, async (trx) => {
      const row = await requireSnapshot(trx, actor, id)
      if (row.template_name === null) return presentSnapshot(row)
      const now = clock.now()
      const changes = { kind: 'manual' as const, template_name: null, updated_at: now }
      recordSnapshotChange(trx, 'template.delete', row, { actor, now }, { template: row.template_name })
      return presentSnapshot(await updateSnapshot(trx, id, changes))
    })
  }

  return { nameTemplate, removeTemplateName }
}
