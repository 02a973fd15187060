// Converts rows of snapshots to API objects (spec §2.4).
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import { toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import type { SnapshotRow } from '../../db/schema.ts'

const BYTES_PER_GB = 1000 ** 3

export const presentSnapshot = (row: SnapshotRow): Snapshot => ({
  id: row.id,
  name: row.name,
  description: row.description,
  status: row.status,
  kind: row.kind,
  templateName: row.template_name,
  expiresAt: toTimestampOrNull(row.expires_at),
  boxId: row.box_id,
  sourceBoxHostname: row.source_hostname,
  tier: row.tier,
  region: row.region,
  image: row.image,
  sizeGb: row.content_bytes === null ? null : row.content_bytes / BYTES_PER_GB,
  pausedMs: row.paused_ms,
  error: row.error,
  createdAt: toTimestamp(row.created_at),
})
