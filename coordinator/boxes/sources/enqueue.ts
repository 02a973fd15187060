// Writes a new or deleted snapshot together with the job that captures or removes its files.
import { newId } from '../../../shared/ids.ts'
import type { BoxRow, SnapshotJobRow, SnapshotRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { setSchedule } from '../../jobs/schedules.ts'
import type { BoxSecrets } from '../box-hooks.ts'
import { recordSnapshotJob } from '../job-changes.ts'
import { listBoxIdsBySource } from '../store/boxes.ts'
import {
  findSnapshotJob,
  insertSnapshot,
  updateSnapshot,
  updateSnapshotJob,
  upsertSnapshotJob,
} from '../store/snapshots.ts'

export type NewSnapshot = {
  name: string
  kind: SnapshotRow['kind']
  description?: string | null | undefined
  templateName?: string
  transient?: boolean
  expiresAt?: number | null
  /** user:<id>, key:<id> or system. */
  actor: string
  now: number
}

/** The snapshot passes on the labels, the environment and the mounted secrets of the box. */
export async function enqueueSnapshot(
  trx: Trx,
  box: BoxRow,
  input: NewSnapshot,
  boxSecrets: Pick<BoxSecrets, 'listCarried'>,
): Promise<SnapshotRow> {
  const { name, kind, description = null, templateName = null, transient = false, actor, now } = input
  const row: SnapshotRow = {
    id: newId('snapshot'),
    workspace_id: box.workspace_id,
    owner_user_id: box.owner_user_id,
    name,
    description,
    status: 'creating',
    kind,
    transient: transient ? 1 : 0,
    template_name: templateName,
    expires_at: input.expiresAt ?? null,
    box_id: box.id,
    source_hostname: box.hostname,
    tier: box.tier,
    region: box.region,
    provider: box.provider,
    host: box.host,
    image: box.image,
    image_digest: box.image_digest,
    restricted: box.restricted,
    env_vars: box.env_vars,
    labels: box.labels,
    environment_id: box.environment_id,
    environment_version_no: box.environment_version_no,
    mounts: JSON.stringify(await boxSecrets.listCarried(trx, box.id)),
    content_bytes: null,
    stored_bytes: null,
    paused_ms: null,
    error: null,
    created_at: now,
    updated_at: now,
    deleted_at: null,
  }
  await insertSnapshot(trx, row)
  await upsertSnapshotJob(trx, createJobRow(row.id, 'create', actor, now))
  recordSnapshotJob(trx, row.id)
  if (row.expires_at !== null) await scheduleExpiry(trx, row.id, row.expires_at)
  return row
}

/** Schedules the expiry of a snapshot; null: the snapshot does not expire. */
export const scheduleExpiry = (trx: Trx, snapshotId: string, expiresAt: number | null): Promise<unknown> =>
  setSchedule(trx, { kind: 'expire_snapshot', target_id: snapshotId }, expiresAt)

type Deletion = { actor: string; now: number; operationId?: string }

/**
 * Deletes a snapshot that the caller has locked. The capture of its files is cancelled, unless a box is being created from
 * them: then the deletion follows.
 */
export async function enqueueDeletion(
  trx: Trx,
  row: SnapshotRow,
  { actor, now, operationId }: Deletion,
): Promise<SnapshotRow> {
  await scheduleExpiry(trx, row.id, null)
  const job = await findSnapshotJob(trx, row.id)
  const isNeeded = job?.op === 'create' && (await listBoxIdsBySource(trx, row.id)).length > 0
  if (isNeeded) await updateSnapshotJob(trx, row.id, { actor, operation_id: operationId ?? null })
  else {
    const deletion = createJobRow(row.id, 'delete', actor, now)
    await upsertSnapshotJob(trx, { ...deletion, operation_id: operationId ?? job?.operation_id ?? null })
    recordSnapshotJob(trx, row.id)
  }
  return updateSnapshot(trx, row.id, { status: 'deleting', updated_at: now })
}

export const createJobRow = (
  snapshotId: string,
  op: SnapshotJobRow['op'],
  actor: string,
  now: number,
): SnapshotJobRow => ({
  snapshot_id: snapshotId,
  op,
  attempt: 0,
  last_error: null,
  next_retry_at: null,
  lease_owner: null,
  actor,
  operation_id: null,
  created_at: now,
})
