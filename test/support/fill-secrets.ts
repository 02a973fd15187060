// Fills a workspace with secrets, for tests of the limit.
import type { Db } from '../../coordinator/db/open.ts'

const BATCH_SIZE = 50

/** Inserts copies of a secret with other ids, names and placeholders. */
export async function fillSecrets(db: Db, secretId: string, count: number): Promise<void> {
  const row = await db.selectFrom('secrets').selectAll().where('id', '=', secretId).executeTakeFirstOrThrow()
  const others = Array.from({ length: count }, (_, n) => ({
    ...row,
    ...{ id: `sec_${n}`, name: `N${n}`, placeholder: `p${n}` },
  }))
  for (let n = 0; n < others.length; n += BATCH_SIZE)
    await db
      .insertInto('secrets')
      .values(others.slice(n, n + BATCH_SIZE))
      .execute()
}
