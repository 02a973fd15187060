// Environments on each database: versions, the contents of files, what is pruned, and concurrent requests.
import { sql } from 'kysely'
import t from 'tap'
import { newMasterKey } from '../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../coordinator/base/sealing/master-keyring.ts'
import { enqueueSnapshot } from '../../../coordinator/boxes/sources/enqueue.ts'
import { dialectTraits } from '../../../coordinator/db/dialects.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { createEnvironments } from '../../../coordinator/environments/box-environments.ts'
import { createEnvironmentFiles } from '../../../coordinator/environments/files.ts'
import { pruneEnvironments } from '../../../coordinator/environments/prune.ts'
import { createEnvironmentService } from '../../../coordinator/environments/service.ts'
import { createUpgrade } from '../../../coordinator/environments/upgrade.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { confirmActor } from '../../../coordinator/identity/confirm-actor.ts'
import type { Environment } from '../../../shared/api/environments.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { NO_BOX_SECRETS } from '../../support/box-hooks.ts'
import { onEachDatabase } from '../../support/db.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

const DAY_MS = 24 * 60 * 60_000
const { signal } = new AbortController()

async function start(db: Db) {
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const keyring = createKeyring([newMasterKey()])
  const files = createEnvironmentFiles(keyring)
  const service = createEnvironmentService({ db, clock, files, confirmActor })
  const environments = createEnvironments({ db, clock, files })
  const boxes = createTestBoxService(db, { clock, boxEnvironments: environments })
  const upgrade = createUpgrade({
    ...{ db, clock, confirmActor, boxSecrets: NO_BOX_SECRETS },
    modules: { restrictBox: async () => undefined },
  })
  const listVersions = async () =>
    (await db.selectFrom('environment_versions').select('version_no').orderBy('version_no').execute()).map(
      (row) => row.version_no,
    )
  async function listPages(actor: Actor): Promise<Environment[][]> {
    const pages: Environment[][] = []
    for await (const page of service.listPages(actor)) pages.push(page)
    return pages
  }
  const list = async (actor: Actor): Promise<Environment[]> => (await listPages(actor)).flat()
  const countFiles = async () => (await db.selectFrom('environment_files').select('id').execute()).length
  const prune = () => pruneEnvironments({ db, clock }, signal)
  /** Creates versions until the environment has this one. */
  async function addVersions(id: string, last: number, from: number): Promise<void> {
    for (let no = from + 1; no <= last; no++)
      await service.setVar(owner, id, { name: 'NO', value: String(no) })
  }
  return {
    db,
    clock,
    owner,
    service,
    environments,
    boxes,
    upgrade,
    list,
    listPages,
    listVersions,
    countFiles,
    prune,
    addVersions,
  }
}

const isFulfilled = ({ status }: PromiseSettledResult<unknown>) => status === 'fulfilled'

onEachDatabase(t, async (t, newDb) => {
  t.test('the content of a file is stored encrypted, once for all versions that have it', async (t) => {
    const { db, owner, service, environments, countFiles } = await start(await newDb(t))
    const content = 'the secret content of a file'
    const { id } = await service.create(owner, {
      name: 'web',
      files: [
        { path: '~/a', content },
        { path: '~/b', content, mode: '0755' },
      ],
    })
    await service.setFile(owner, id, { path: '~/a', content, mode: '0644' })
    await service.setVar(owner, id, { name: 'A', value: '1' })
    t.equal(await countFiles(), 2)
    await service.setFile(owner, id, { path: '~/a', contentBase64: 'AAEC' })
    t.equal(await countFiles(), 3)
    const stored = JSON.stringify(
      await Promise.all(
        (['environments', 'environment_versions', 'environment_files', 'audit_log'] as const).map((table) =>
          db.selectFrom(table).selectAll().execute(),
        ),
      ),
    )
    for (const text of [content, Buffer.from(content).toString('base64'), 'AAEC'])
      t.notOk(stored.includes(text), `no table has ${text}`)
    const open = async (no: number) => {
      const version = await environments.loadVersion(id, no)
      const opened = version ? await environments.openFiles(version) : []
      return opened.map((file) => [
        file.path,
        file.mode,
        Buffer.from(file.content.reveal(), 'base64').toString(),
      ])
    }
    t.same(await open(1), [
      ['~/a', '0600', content],
      ['~/b', '0755', content],
    ])
    t.same((await open(2))[0], ['~/a', '0644', content])
    t.same((await open(4))[0], ['~/a', '0600', '\0\x01\x02'])
    t.same(await open(5), [])
    // The content of another row is refused.
    const [first, second] = await db.selectFrom('environment_files').selectAll().orderBy('id').execute()
    await db
      .updateTable('environment_files')
      .set({ content: second?.content ?? '' })
      .where('id', '=', first?.id ?? '')
      .execute()
    const versions = await Promise.allSettled([open(1), open(4)])
    t.notOk(versions.every(isFulfilled))
    // A damaged content can be replaced.
    await db.updateTable('environment_files').set({ content: 'damaged' }).execute()
    await service.setFile(owner, id, { path: '~/a', content: 'another' })
    const latest = await db.selectFrom('environments').selectAll().executeTakeFirstOrThrow()
    await service.removeFile(owner, id, '~/b')
    t.same(await open(latest.latest_version_no + 1), [['~/a', '0600', 'another']])
  })

  t.test('the latest versions and those that are used are kept', async (t) => {
    const context = await start(await newDb(t))
    const { db, clock, owner, service, boxes, upgrade, listVersions, countFiles, prune, addVersions } =
      context
    const { id } = await service.create(owner, { name: 'web', files: [{ path: '~/a', content: '1' }] })
    const ofBox = await boxes.create(owner, { environment: 'web' })
    await service.setFile(owner, id, { path: '~/a', content: '2' })
    const ofSnapshot = await boxes.create(owner, { environment: 'web' })
    const row = await boxes.find(owner, ofSnapshot.id)
    const input = { name: 'a', kind: 'manual' as const, actor: 'system', now: clock.now() }
    const snapshot = await transaction(db, (trx) => enqueueSnapshot(trx, row, input, NO_BOX_SECRETS))
    await db
      .updateTable('boxes')
      .set({ terminated_at: clock.now() })
      .where('id', '=', ofSnapshot.id)
      .execute()
    await addVersions(id, 3, 2)
    const applied = await boxes.create(owner, { environment: 'web' })
    await db.updateTable('boxes').set({ applied_version_no: 3 }).where('id', '=', applied.id).execute()
    const last = LIMITS.environmentVersions + 5
    await addVersions(id, last, 3)
    await upgrade(owner, id)
    await db.updateTable('boxes').set({ environment_version_no: 1 }).where('id', '=', ofBox.id).execute()
    await prune()
    const latest = Array.from({ length: LIMITS.environmentVersions }, (_, n) => n + 6)
    t.same(await listVersions(), [1, 2, 3, ...latest])
    t.equal(await countFiles(), 2)

    await db.updateTable('snapshots').set({ deleted_at: clock.now() }).where('id', '=', snapshot.id).execute()
    await db.updateTable('boxes').set({ applied_version_no: last }).where('id', '=', applied.id).execute()
    await prune()
    t.same(await listVersions(), [1, ...latest])

    await service.remove(owner, id)
    t.same(await listVersions(), [1, last], 'the others are deleted with the environment')
    t.match((await boxes.get(owner, ofBox.id)).environment, {
      name: 'web',
      versionNo: 1,
      latestVersionNo: last,
    })
    t.match(await boxes.create(owner, { fromSnapshotId: undefined }), { environmentId: null })
    await t.rejects(service.patch(owner, id, { name: 'other' }), { code: 'not_found' })
    await db.updateTable('boxes').set({ terminated_at: clock.now() }).execute()
    await prune()
    t.same(await listVersions(), [])
    t.equal(await countFiles(), 0)
    await service.remove(owner, id)
    clock.advance(31 * DAY_MS)
    await prune()
    await t.rejects(service.remove(owner, id), { code: 'not_found' })
    t.same(await db.selectFrom('environments').select('id').execute(), [])
  })

  t.test('concurrent requests', async (t) => {
    const { db, owner, service, boxes, upgrade, prune, listVersions, list } = await start(await newDb(t))
    const names = Array.from({ length: 8 }, (_, n) => `e${n % 4}`)
    const created = await Promise.allSettled(
      names.map((name) => service.create(owner, { name, isDefault: true })),
    )
    t.equal(created.filter(isFulfilled).length, 4)
    for (const result of created)
      if (result.status === 'rejected') t.match(result.reason, { code: 'name_taken' })
    const all = await list(owner)
    t.equal(all.filter(({ isDefault }) => isDefault).length, 1)
    await Promise.all(all.map(({ id }) => service.setDefault(owner, id)))
    t.equal((await list(owner)).filter(({ isDefault }) => isDefault).length, 1)
    const renamed = await Promise.allSettled(all.map(({ id }) => service.patch(owner, id, { name: 'one' })))
    t.equal(renamed.filter(isFulfilled).length, 1)

    const id = all[0]?.id ?? ''
    await Promise.all(
      Array.from({ length: 10 }, (_, n) => service.setVar(owner, id, { name: `V${n}`, value: '1' })),
    )
    const environment = (await list(owner)).find((other) => other.id === id)
    t.match(environment, { latestVersionNo: 11, vars: { length: 10 } }, 'no change is lost')

    // Boxes are created and upgraded while the environment is changed, deleted and pruned.
    await Promise.allSettled([
      ...Array.from({ length: 6 }, () => boxes.create(owner, { environment: id })),
      ...Array.from({ length: 4 }, (_, n) => service.setVar(owner, id, { name: 'W', value: String(n) })),
      ...Array.from({ length: 3 }, () => upgrade(owner, id)),
      service.remove(owner, id),
      ...Array.from({ length: 3 }, () => prune()),
      ...Array.from({ length: 3 }, () => boxes.create(owner, { environment: id })),
    ])
    await prune()
    const used = await db
      .selectFrom('boxes')
      .select('environment_version_no')
      .where('environment_id', '=', id)
      .execute()
    const left = new Set(await listVersions())
    for (const { environment_version_no: no } of used) t.ok(left.has(no ?? 0), `version ${no} exists`)
  })

  t.test('an upgrade while boxes are forked and deleted does not deadlock', async (t) => {
    const { db, clock, owner, service, boxes, upgrade } = await start(await newDb(t))
    const { id } = await service.create(owner, { name: 'web', vars: { A: '1' } })
    const ids = await Promise.all(
      [1, 2, 3, 4].map(async () => (await boxes.create(owner, { environment: id })).id),
    )
    const results = await Promise.allSettled([
      ...ids.map((boxId) =>
        transaction(db, async (trx) => {
          const box = await boxes.lockLive(trx, owner, boxId)
          const input = { name: 'f', kind: 'fork' as const, actor: 'system', now: clock.now() }
          const snapshot = await enqueueSnapshot(trx, box, input, NO_BOX_SECRETS)
          return boxes.createFromSnapshot(
            trx,
            owner,
            { name: undefined, tier: 'nano' },
            snapshot,
            'box.create',
          )
        }),
      ),
      service.setVar(owner, id, { name: 'A', value: '2' }),
      upgrade(owner, id),
      upgrade(owner, id),
      ...ids.slice(2).map((boxId) => boxes.remove(owner, boxId)),
    ])
    for (const result of results)
      if (result.status === 'rejected') t.match(result.reason, { code: 'not_found' }, result.reason)
    t.match(await upgrade(owner, id), { latestVersionNo: 2 })
  })

  t.test('a version is not deleted while a box with it is being created', async (t) => {
    const db = await newDb(t)
    // Transactions of SQLite run one at a time.
    if (!dialectTraits(db).locksRows) return
    const { owner, service, boxes, listVersions } = await start(db)
    const { id } = await service.create(owner, { name: 'web' })
    const [inserted, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const creating = transaction(db, async (trx) => {
      await boxes.create(owner, { environment: id }, trx)
      inserted.resolve()
      await released.promise
    })
    await inserted.promise
    let isRemoved = false
    const removing = service.remove(owner, id).then(() => {
      isRemoved = true
    })
    await waitUntil('the deletion waits for the lock', async () => {
      const waiting = await sql`select 1 from pg_locks where not granted`.execute(db)
      return isRemoved || waiting.rows.length > 0
    })
    released.resolve()
    await Promise.all([creating, removing])
    t.same(await listVersions(), [1])
  })

  t.test('an environment of another workspace is not found', async (t) => {
    const { db, owner, service, environments, list } = await start(await newDb(t))
    const { id } = await service.create(owner, { name: 'web', isDefault: true })
    const foreign = { ...owner, workspaceId: 'ws_other' }
    t.same(await list(foreign), [])
    const choose = (environment?: string) =>
      transaction(db, (trx) => environments.choose(trx, foreign, { environment, source: null }))
    for (const environment of [id, 'web']) await t.rejects(choose(environment), { code: 'not_found' })
    t.equal(await choose(), null)
  })

  t.test('the prune reads the environments page by page, by their ids', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const { owner, service, prune, addVersions, listVersions } = await start(db)
    const { id } = await service.create(owner, { name: 'web' })
    await addVersions(id, LIMITS.environmentVersions + 2, 1)
    const row = await db.selectFrom('environments').selectAll().executeTakeFirstOrThrow()
    // Deleted long ago, so the prune deletes them.
    const rows = Array.from({ length: 101 }, (_, n) => ({
      ...row,
      id: `env_${n}`,
      name: `e${n}`,
      deleted_at: 0,
    }))
    await db.insertInto('environments').values(rows).execute()
    await readPlans()
    await prune()
    const plans = await readPlans()
    t.same(await db.selectFrom('environments').select('id').execute(), [{ id }])
    t.equal((await listVersions()).length, LIMITS.environmentVersions)
    t.match(plans.join('\n'), /environment_versions_pk|sqlite_autoindex_environment_versions/)
    t.same(
      plans.filter((plan) => /^SCAN (?!CONSTANT)|Seq Scan|GroupAggregate/.test(plan)),
      [],
    )
  })

  t.test('a list has all environments, in the order of their names', async (t) => {
    const { owner, service, boxes, list, listPages } = await start(await newDb(t))
    const names = Array.from({ length: 25 }, (_, n) => `e${String(n).padStart(2, '0')}`)
    for (const name of names.toReversed()) await service.create(owner, { name })
    await boxes.create(owner, { environment: 'e24' })
    const all = await list(owner)
    t.same(
      all.map(({ name }) => name),
      names,
    )
    t.equal(all.at(-1)?.boxCount, 1)
    t.same(
      (await listPages(owner)).map(({ length }) => length),
      [10, 10, 5],
    )
  })

  t.test('lists read few rows', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const { owner, service, boxes, list } = await start(db)
    await addUser(db, owner, { role: 'member' })
    await service.create(owner, { name: 'web', isDefault: true })
    await boxes.create(owner, {})
    await readPlans()
    await list(owner)
    await boxes.create(owner, { environment: 'web' })
    const plans = (await readPlans()).filter((plan) => /environment/.test(plan))
    t.notOk(
      plans.some((plan) => /^SCAN|Seq Scan/.test(plan)),
      plans.join('\n'),
    )
  })
})
