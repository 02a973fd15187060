// Queries on the images that the coordinator has downloaded.
import type { Db } from '../db/open.ts'
import type { ImageDownloadRow } from '../db/schema.ts'

export type DownloadKey = Pick<ImageDownloadRow, 'region' | 'image'>

/** Those that were unused for the longest time first. */
export const listDownloads = (db: Db): Promise<ImageDownloadRow[]> =>
  db.selectFrom('image_downloads').selectAll().orderBy('used_at').orderBy('image').execute()

export async function upsertDownload(db: Db, row: ImageDownloadRow): Promise<void> {
  const { size_bytes, used_at } = row
  await db
    .insertInto('image_downloads')
    .values(row)
    .onConflict((conflict) => conflict.columns(['region', 'image']).doUpdateSet({ size_bytes, used_at }))
    .execute()
}

export async function setUsedAt(db: Db, { region, image }: DownloadKey, usedAt: number): Promise<void> {
  await db
    .updateTable('image_downloads')
    .set({ used_at: usedAt })
    .where('region', '=', region)
    .where('image', '=', image)
    .execute()
}

export async function deleteDownload(db: Db, { region, image }: DownloadKey): Promise<void> {
  await db.deleteFrom('image_downloads').where('region', '=', region).where('image', '=', image).execute()
}
