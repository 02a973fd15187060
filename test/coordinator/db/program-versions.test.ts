// A version of Boxwood that is older than the last user of the database says which one is needed, and changes nothing.

import { sql } from 'kysely'
import t from 'tap'
import { recordVersion } from '../../../coordinator/db/executed-migrations.ts'
import { migrate } from '../../../coordinator/db/open.ts'
import { VERSION } from '../../../shared/version.ts'
import { onEachDatabase } from '../../support/db.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('the last version that has used the database is known', async (t) => {
    const db = await newDb(t)
    const listVersions = async () =>
      (await db.selectFrom('program_versions').select('version').orderBy('version').execute()).map(
        ({ version }) => version,
      )
    await migrate(db)
    await migrate(db)
    t.same(await listVersions(), [VERSION], 'each once')

    const future = '9999-of-a-newer-version'
    await sql`insert into kysely_migration (name, timestamp) values (${future}, ${'2030'})`.execute(db)
    await t.rejects(migrate(db), {
      message: new RegExp(`newer build of Boxwood ${VERSION}.*migration ${future}`),
    })
    await recordVersion(db, Date.now() + 1000, '7.1.0')
    await recordVersion(db, Date.now() - 1000, '6.0.0')
    await t.rejects(migrate(db), {
      message: new RegExp(
        `^The database was last used by Boxwood 7.1.0. This is Boxwood ${VERSION}, .*${future}, and nothing was changed. Start Boxwood 7.1.0 or a newer one`,
      ),
    })
    t.same((await listVersions()).includes('7.1.0'), true, 'the refused version leaves the record')
    await sql`delete from kysely_migration where name = ${future}`.execute(db)
    await migrate(db)
  })
})
