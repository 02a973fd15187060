// Reads the copy of the database for a backup, and changes the rows of local boxes in it.
import { type RawBuilder, sql } from 'kysely'
import type { Region } from '../../../shared/tiers.ts'
import { createJobRow } from '../../boxes/sources/enqueue.ts'
import type { Db } from '../../db/open.ts'

export type StoredArchive = {
  region: Region
  provider: string
  host: string | null
  workspaceId: string
  archiveId: string
}
/** A box with a machine. `provider` is the name of its provider. */
export type BackedUpBox = {
  id: string
  hostname: string
  workspaceId: string
  region: Region
  provider: string
  host: string | null
}

/** The column host. A backup without a coordinator may be of a database of an earlier version, which has none. */
const selectHost = (hasHosts: boolean): RawBuilder<string | null> =>
  hasHosts ? sql<string | null>`host` : sql<string | null>`null`

/** Lists the archives that a restored coordinator needs: those of snapshots, and those of boxes without a machine. */
export async function listArchives(copy: Db, hasHosts: boolean): Promise<StoredArchive[]> {
  const snapshots = await copy
    .selectFrom('snapshots')
    .select(['region', 'provider', 'workspace_id as workspaceId', 'id as archiveId'])
    .select(selectHost(hasHosts).as('host'))
    .where('status', '=', 'available')
    .orderBy('id')
    .execute()
  const boxes = await copy
    .selectFrom('boxes')
    .select(['region', 'provider', 'workspace_id as workspaceId', 'archive_id as archiveId'])
    .select(selectHost(hasHosts).as('host'))
    .where('terminated_at', 'is', null)
    .where('observed_state', '=', 'deep_sleep')
    .orderBy('id')
    .execute()
  return [
    ...snapshots,
    ...boxes.flatMap(({ archiveId, ...box }) => (archiveId === null ? [] : { ...box, archiveId })),
  ]
}

/** The boxes with files in a machine of a provider. */
export const listBoxesWithFiles = (db: Db, hasHosts: boolean): Promise<BackedUpBox[]> =>
  db
    .selectFrom('boxes')
    .select(['id', 'hostname', 'workspace_id as workspaceId', 'region', 'provider'])
    .select(selectHost(hasHosts).as('host'))
    // An enrolled machine keeps its files.
    .where('kind', '=', 'managed')
    .where('terminated_at', 'is', null)
    .where('desired_state', '!=', 'terminated')
    .where('observed_state', 'in', [
      'running',
      'suspending',
      'suspended',
      'waking',
      'resizing',
      'migrating',
      'degraded',
    ])
    .orderBy('id')
    .execute()

/** The complete archive of a box in deep sleep; undefined: the box has a machine. */
export const findSleepArchive = (db: Db, boxId: string) =>
  db
    .selectFrom('boxes')
    .select(['archive_id as archiveId', 'archive_bytes as archiveBytes'])
    .where('id', '=', boxId)
    .where('observed_state', '=', 'deep_sleep')
    .executeTakeFirst()

/** The box is in deep sleep in the copy: its files are in the archive. The next start wakes it if it should run. */
export async function setSleeping(
  copy: Db,
  boxId: string,
  { archiveId, archiveBytes }: { archiveId: string; archiveBytes: number },
): Promise<void> {
  await copy
    .updateTable('boxes')
    .set({
      observed_state: 'deep_sleep',
      suspended_as: null,
      archive_id: archiveId,
      archive_bytes: archiveBytes,
      desired_region: null,
      leftovers: null,
    })
    .where('id', '=', boxId)
    .execute()
  await copy.deleteFrom('jobs').where('box_id', '=', boxId).execute()
}

/**
 * The forks of local boxes whose new box does not have its files yet copy them again, and so do snapshots that are being stored:
 * the copies are not in the store of archives.
 */
export async function restartCopies(copy: Db, now: number): Promise<void> {
  await copy
    .updateTable('snapshots')
    .set({ content_bytes: null, paused_ms: null })
    .where('status', '=', 'creating')
    .execute()
  const copies = await copy
    .selectFrom('snapshots')
    .select(['id'])
    .where('transient', '=', 1)
    .where('status', '=', 'available')
    .where('provider', '=', 'local')
    .execute()
  for (const { id } of copies) {
    await copy
      .updateTable('snapshots')
      .set({ status: 'creating', content_bytes: null, stored_bytes: null, paused_ms: null })
      .where('id', '=', id)
      .execute()
    await copy.deleteFrom('snapshot_jobs').where('snapshot_id', '=', id).execute()
    await copy
      .insertInto('snapshot_jobs')
      .values(createJobRow(id, 'create', 'system', now))
      .execute()
  }
}

/** Boxes that are being created start again: their machines are not in the copy. */
export async function restartCreations(copy: Db): Promise<void> {
  const creating = copy
    .selectFrom('boxes')
    .select('id')
    .where('observed_state', 'in', ['provisioning', 'bootstrapping'])
    .where('desired_state', '!=', 'terminated')
  await copy
    .updateTable('jobs')
    .set({ step: 'provision', attempt: 0, next_retry_at: null })
    .where('op', '=', 'create')
    .where('box_id', 'in', creating)
    .execute()
}
