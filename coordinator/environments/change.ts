// Changes one environment: locks it, and writes its new columns, and a version when its configuration has changed.

import type { Environment } from '../../shared/api/environments.ts'
import type { ServerAuditKind } from '../../shared/audit-kinds.ts'
import type { Clock } from '../../shared/clock.ts'
import { isId } from '../../shared/ids.ts'
import { type AuditDetail, recordAuditEvent } from '../audit/service.ts'
import { countBoxesByEnvironment } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import type { EnvironmentRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { assertOpen } from '../identity/workspaces/service.ts'
import { requireEnvironment } from './box-environments.ts'
import { assertValid, describeDifference, type EnvironmentConfig, parseConfig } from './config.ts'
import { presentEnvironment } from './present.ts'
import { lockDefaultEnvironment, lockEnvironment, updateEnvironment } from './store/environments.ts'
import { findVersion, insertVersion } from './store/versions.ts'

/** The environment that a request changes, which is locked. */
export type Current = { trx: Trx; row: EnvironmentRow; config: EnvironmentConfig; now: number }
/** What the request changes. Absent: nothing. */
export type Changes = {
  columns?: Partial<Pick<EnvironmentRow, 'name' | 'description'>>
  config?: EnvironmentConfig
  isDefault?: boolean | undefined
}

/**
 * Writes what `fn` returns, and a version when the configuration changes. Throws not_found, workspace_closing, and like
 * assertValid().
 * @param options.isRemoval a closing workspace allows it
 */
export type ChangeEnvironment = (
  actor: Actor,
  id: string,
  fn: (current: Current) => Promise<Changes>,
  options?: { isRemoval: boolean },
) => Promise<Environment>

export function createChange(options: {
  db: Db
  clock: Clock
  confirmActor: ConfirmActor
}): ChangeEnvironment {
  const { db, clock, confirmActor } = options
  return (actor, id, fn, { isRemoval } = { isRemoval: false }) =>
    transaction(db, async (trx) => {
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const row = await lockLive(trx, actor, id)
      if (!isRemoval) await assertOpen(trx, actor.workspaceId)
      const before = await loadLatest(trx, row)
      const current: Current = { trx, row, config: before, now }
      const { columns = {}, config = before, isDefault = row.is_default === 1 } = await fn(current)
      const names = describeDifference(before, config)
      const fields = Object.keys(columns)
      let written = row
      if (names !== null || fields.length > 0) {
        assertValid(config)
        const versionNo = row.latest_version_no + (names === null ? 0 : 1)
        const changes = { ...columns, latest_version_no: versionNo, updated_at: now }
        written = await updateEnvironment(trx, id, changes)
        if (names !== null) await writeVersion(trx, actor, written, config, now)
        record(trx, 'environment.update', actor, written, now, {
          ...(fields.length > 0 && { fields: fields.join(',') }),
          ...(columns.name !== undefined && { previousName: row.name }),
          ...(names !== null && { versionNo, ...names }),
        })
      }
      return present(trx, await setDefault(trx, actor, written, isDefault, now), config)
    })
}

export async function present(
  db: Db | Trx,
  row: EnvironmentRow,
  config: EnvironmentConfig,
): Promise<Environment> {
  const counts = await countBoxesByEnvironment(db, [row.id])
  return presentEnvironment(row, config, counts.get(row.id) ?? 0)
}

/** Throws not_found. The caller has locked the workspace, and boxes before it. */
export const lockLive = async (trx: Trx, { workspaceId }: Actor, id: string): Promise<EnvironmentRow> =>
  requireEnvironment(isId('environment', id) ? await lockEnvironment(trx, id) : undefined, workspaceId)

export async function loadLatest(trx: Trx, row: EnvironmentRow): Promise<EnvironmentConfig> {
  const version = await findVersion(trx, row.id, row.latest_version_no)
  if (!version) throw new Error(`Environment ${row.id} has no version ${row.latest_version_no}.`)
  return parseConfig(version.config)
}

export const writeVersion = (
  trx: Trx,
  actor: Actor,
  { id, workspace_id, latest_version_no }: EnvironmentRow,
  config: EnvironmentConfig,
  now: number,
) =>
  insertVersion(trx, {
    environment_id: id,
    version_no: latest_version_no,
    workspace_id,
    config: JSON.stringify(config),
    created_by: formatActor(actor),
    created_at: now,
  })

/** A workspace has at most one default environment. The caller has locked the workspace. */
export async function setDefault(
  trx: Trx,
  actor: Actor,
  row: EnvironmentRow,
  isDefault: boolean,
  now: number,
): Promise<EnvironmentRow> {
  if (isDefault === (row.is_default === 1)) return row
  const previous = isDefault ? await lockDefaultEnvironment(trx, row.workspace_id) : undefined
  if (previous) await updateEnvironment(trx, previous.id, { is_default: 0 })
  record(trx, 'environment.default', actor, row, now, {
    isDefault,
    ...(previous && { previousEnvironmentId: previous.id }),
  })
  return updateEnvironment(trx, row.id, { is_default: isDefault ? 1 : 0, updated_at: now })
}

export function record(
  trx: Trx,
  kind: Extract<ServerAuditKind, `environment.${string}`>,
  actor: Actor,
  { id, name }: EnvironmentRow,
  now: number,
  detail: AuditDetail = {},
): void {
  recordAuditEvent(trx, {
    kind,
    actor,
    boxId: null,
    detail: { environmentId: id, name, ...detail },
    at: now,
  })
}
