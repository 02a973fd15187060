// Deletes the versions of environments that nothing uses, and the contents of their files.

import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../shared/clock.ts'
import { LIMITS } from '../../shared/limits.ts'
import { listUsedVersions } from '../boxes/lookups.ts'
import type { Db } from '../db/open.ts'
import type { EnvironmentRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { parseConfig } from './config.ts'
import { deleteEnvironment, listEnvironmentsAfter, lockEnvironment } from './store/environments.ts'
import { deleteOtherFiles, deleteVersions, hasMoreVersions, listVersions } from './store/versions.ts'

/** A repeated deletion of the environment has no effect for this time. */
const DELETED_RETENTION_MS = 30 * 24 * 60 * 60_000
const ENVIRONMENTS_PER_QUERY = 100

/**
 * Keeps the latest versions of a live environment, and those that boxes and snapshots use. The caller has locked the environment:
 * a box that is being created locks it too, so no version is deleted meanwhile.
 * @returns the number of the versions that are left
 */
export async function pruneVersions(
  trx: Trx,
  { id, latest_version_no: latest, deleted_at: deletedAt }: EnvironmentRow,
): Promise<number> {
  const used = await listUsedVersions(trx, id)
  const firstKept = deletedAt === null ? latest - LIMITS.environmentVersions + 1 : Number.POSITIVE_INFINITY
  const versions = await listVersions(trx, id)
  const isKept = ({ version_no: no }: { version_no: number }) => no >= firstKept || used.has(no)
  const kept = versions.filter(isKept)
  if (kept.length === versions.length) return kept.length
  await deleteVersions(
    trx,
    id,
    versions.filter((version) => !isKept(version)).map(({ version_no: no }) => no),
  )
  const fileIds = kept.flatMap(({ config }) => parseConfig(config).files.map(({ fileId }) => fileId))
  await deleteOtherFiles(trx, id, new Set(fileIds))
  return kept.length
}

/**
 * Prunes the versions of all environments, and deletes environments that were deleted 30 days ago and are not used.
 * @param signal aborts between two transactions
 */
export async function pruneEnvironments(
  { db, clock }: { db: Db; clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  for (let after = ''; ; ) {
    const environments = await listEnvironmentsAfter(db, after, ENVIRONMENTS_PER_QUERY)
    for (const environment of environments) {
      if (signal.aborted) return
      if (await isPrunable(db, environment)) await pruneEnvironment({ db, clock }, environment.id)
    }
    if (environments.length < ENVIRONMENTS_PER_QUERY) return
    after = environments.at(-1)?.id ?? ''
    await setImmediate()
  }
}

/** The number of the latest version is at least the number of versions. */
async function isPrunable(
  db: Db,
  { id, latest_version_no, deleted_at }: Pick<EnvironmentRow, 'id' | 'latest_version_no' | 'deleted_at'>,
): Promise<boolean> {
  const { environmentVersions: kept } = LIMITS
  return deleted_at !== null || (latest_version_no > kept && (await hasMoreVersions(db, id, kept)))
}

async function pruneEnvironment({ db, clock }: { db: Db; clock: Clock }, id: string): Promise<void> {
  await transaction(db, async (trx) => {
    const row = await lockEnvironment(trx, id)
    if (!row) return
    const left = await pruneVersions(trx, row)
    const isForgotten = row.deleted_at !== null && row.deleted_at < clock.now() - DELETED_RETENTION_MS
    if (left === 0 && isForgotten) await deleteEnvironment(trx, id)
  })
  await setImmediate()
}
