// Converts rows of shared ports to API objects (spec §2.7).
import type { PortShare } from '../../shared/api/port-shares.ts'
import { toTimestamp, toTimestampOrNull } from '../../shared/clock.ts'
import type { BoxRow, PortShareRow } from '../db/schema.ts'
import { SECRET_PARAMETER, type ShareBase } from './types.ts'

export type SharePresentation = {
  base: Pick<ShareBase, 'getOrigin'>
  /** The secret of a new link for anyone, which is not stored. */
  secret?: string | undefined
}

export function presentShare(
  row: PortShareRow,
  { hostname }: Pick<BoxRow, 'hostname'>,
  { base, secret }: SharePresentation,
): PortShare {
  const origin = base.getOrigin(row.slug)
  const link = `${origin}/${secret === undefined ? '' : `?${SECRET_PARAMETER}=${secret}`}`
  return {
    id: row.id,
    boxId: row.box_id,
    hostname,
    port: row.port,
    slug: row.slug,
    access: row.access,
    url: row.access === 'anyone' && secret === undefined ? null : link,
    origin,
    rewriteHost: row.rewrites_host === 1,
    expiresAt: toTimestampOrNull(row.expires_at),
    createdBy: row.created_by,
    createdAt: toTimestamp(row.created_at),
    openCount: row.open_count,
    lastOpenedAt: toTimestampOrNull(row.last_opened_at),
  }
}
