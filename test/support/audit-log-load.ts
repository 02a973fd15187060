// Checks a large audit log: the queries of pages use indexes, and a CSV download needs little memory.
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { createEventReader, type EventFilter } from '../../coordinator/audit/read-events.ts'
import {
  deleteEventsThrough,
  findNewestEventBefore,
  listChain,
  listOldestEvents,
} from '../../coordinator/audit/store.ts'
import { type Db, openDatabase } from '../../coordinator/db/open.ts'
import type { Trx } from '../../coordinator/db/transaction.ts'
import type { Actor } from '../../coordinator/http/actor.ts'
import { AUDIT_KINDS, type AuditKind } from '../../shared/audit-kinds.ts'
import { LIMITS } from '../../shared/limits.ts'
import { startTestCoordinator, type TestCoordinator } from './coordinator.ts'
import { createPostgresConfig } from './db.ts'
import { EVENT_INTERVAL_MS, EVENTS_START, fillAuditLog, toBoxId } from './fill-audit-log.ts'
import { measureHeapBytes } from './heap.ts'
import { startPostgres } from './postgres.ts'
import { capturePlans } from './query-plan.ts'
import { createOwner, findActorByKey } from './workspace.ts'

export const OTHER_USER_ID = 'usr_000000000000000000000001'

type Case = {
  filter: Omit<EventFilter, 'workspaceId'>
  indexes: string[]
  /** Some events that the index finds do not match. Default: the filter is a range of the index. */
  hasConditions?: boolean
}

function listCases(userId: string, count: number): Record<string, Case> {
  const boxId = toBoxId(3)
  const rare: AuditKind[] = ['member.remove']
  const time = {
    since: EVENTS_START + 0.1 * count * EVENT_INTERVAL_MS,
    until: EVENTS_START + 0.9 * count * EVENT_INTERVAL_MS,
  }
  const merged = ['audit_log_by_kind', 'audit_log_pk']
  return {
    all: { filter: {}, indexes: ['audit_log_pk'] },
    time: { filter: time, indexes: ['audit_log_by_time', 'audit_log_pk'] },
    'time and kind': {
      filter: { ...time, kinds: rare },
      indexes: ['audit_log_by_kind', 'audit_log_by_time'],
    },
    'common kind': { filter: { kinds: ['exec'] }, indexes: ['audit_log_by_kind'] },
    'rare kind': { filter: { kinds: rare }, indexes: ['audit_log_by_kind'] },
    kinds: { filter: { kinds: ['member.remove', 'key.create', 'box.wake'] }, indexes: merged },
    'all kinds': { filter: { kinds: AUDIT_KINDS }, indexes: merged },
    box: { filter: { boxId }, indexes: ['audit_log_by_box'] },
    actor: { filter: { actorUserId: userId }, indexes: ['audit_log_by_actor'] },
    'rare actor': { filter: { actorUserId: OTHER_USER_ID }, indexes: ['audit_log_by_actor'] },
    origin: { filter: { origin: 'server' }, indexes: ['audit_log_by_origin'] },
    'kind and origin': {
      filter: { kinds: ['key.create'], origin: 'server' },
      indexes: ['audit_log_by_kind'],
    },
    'box and rare kind': {
      filter: { boxId, kinds: rare },
      indexes: ['audit_log_by_box'],
      hasConditions: true,
    },
    'box, actor and origin': {
      filter: { boxId, actorUserId: userId, origin: 'client' },
      indexes: ['audit_log_by_box'],
      hasConditions: true,
    },
    'actor and rare kind': {
      filter: { actorUserId: userId, kinds: rare },
      indexes: ['audit_log_by_actor'],
      hasConditions: true,
    },
  }
}

/** Checks the plans of the first page and of a later one, for each filter, and of retention and the hash chain. */
export async function checkAuditLogPlans(t: Test, openDb: Db, actor: Actor, count: number): Promise<void> {
  const { db, readPlans } = capturePlans(openDb)
  const { workspaceId, userId } = actor
  for (const [name, { filter, indexes, hasConditions }] of Object.entries(listCases(userId ?? '', count)))
    for (const before of [undefined, Math.floor(count / 2)]) {
      const readPage = await createEventReader(db, { workspaceId, ...filter })
      const page = await readPage(before, 100)
      const plans = await readPlans()
      const message = before === undefined ? name : `${name}, before`
      t.same(listIndexes(plans), indexes, `${message}: ${page.rows.length} events`)
      if (!hasConditions) t.notMatch(plans.join('\n'), /^Filter:/m, message)
    }

  await findNewestEventBefore(db, workspaceId, EVENTS_START + count)
  t.same(listIndexes(await readPlans()), ['audit_log_by_time'], 'finding expired events')
  await listOldestEvents(db as Trx, workspaceId, 10, 10)
  await deleteEventsThrough(db as Trx, workspaceId, 0)
  await listChain(db, workspaceId, Math.floor(count / 2), 10)
  t.same(listIndexes(await readPlans()), ['audit_log_pk'], 'deleting expired events, and reading the chain')
}

/** The names of the indexes. `scan`: a query reads the whole table, or a whole index. */
function listIndexes(plans: readonly string[]): string[] {
  const indexes = plans.flatMap((line) => {
    if (/^SCAN audit_log|^Seq Scan|^Bitmap/.test(line)) return ['scan']
    const search = /^SEARCH audit_log USING (?:COVERING )?INDEX (\w+) \(workspace_id=\? AND /.exec(line)
    const scan = /^Index (?:Only )?Scan (?:Backward )?using (\w+) on audit_log/.exec(line)
    const [, index] = search ?? scan ?? []
    return index === undefined ? [] : [index.replace('sqlite_autoindex_audit_log_1', 'audit_log_pk')]
  })
  return [...new Set(indexes)].sort()
}

const MAX_GROWTH_BYTES = 8 * 1024 * 1024

async function measureBytes(): Promise<number> {
  const heap = await measureHeapBytes()
  return heap + process.memoryUsage().external
}

/** The log has more events than a download. */
export async function checkCsvDownload(t: Test, { url, key, instance }: TestCoordinator): Promise<void> {
  const { audit } = instance.context
  const { exportCsv } = audit
  let pages = 0
  let ended = Promise.withResolvers<void>()
  t.teardown(() => {
    audit.exportCsv = exportCsv
  })
  audit.exportCsv = async (...args) => {
    const text = await exportCsv(...args)
    async function* count() {
      try {
        for await (const page of text) {
          pages += 1
          yield page
        }
      } finally {
        ended.resolve()
      }
    }
    return count()
  }
  async function download(): Promise<IncomingMessage> {
    const headers = { authorization: `Bearer ${key}` }
    const [response] = await once(get(`${url}/api/v1/audit?format=csv`, { headers }), 'response')
    return response
  }

  const before = await measureBytes()
  const response = await download()
  t.equal(response.statusCode, 200)
  let [lines, bytes, growth] = [0, 0, 0]
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
    // Meanwhile the coordinator can only fill the buffers of the connection.
    if (growth === 0 && bytes > MAX_GROWTH_BYTES) growth = (await measureBytes()) - before
  }
  t.equal(lines, 1 + LIMITS.auditCsvRows)
  t.ok(bytes > 2 * MAX_GROWTH_BYTES, `the file is much larger than the limit: ${bytes} bytes`)
  t.ok(growth !== 0 && growth < MAX_GROWTH_BYTES, `the memory grew by ${growth} bytes`)
  const allPages = pages

  pages = 0
  ended = Promise.withResolvers()
  const aborted = await download()
  await once(aborted, 'readable')
  aborted.destroy()
  await ended.promise
  t.ok(pages < allPages, `a client that disconnects stops the reading: ${pages} of ${allPages} pages`)
}

/** Runs all checks on SQLite, and those of the queries on Postgres where it is installed. */
export async function checkLargeAuditLog(
  t: Test,
  counts: { sqlite: number; postgres: number },
): Promise<void> {
  await t.test(`${counts.sqlite} events on SQLite`, async (t) => {
    const coordinator = await startTestCoordinator(t, { env: { BOXWOOD_DATABASE_URL: '' } })
    const { db } = coordinator.instance.context
    const owner = await findActorByKey(db, coordinator.key)
    await fill(db, owner, counts.sqlite)
    await checkAuditLogPlans(t, db, owner, counts.sqlite)
    await checkCsvDownload(t, coordinator)
  })
  const postgres = await startPostgres()
  const skip = 'skipReason' in postgres ? postgres.skipReason : false
  await t.test(`${counts.postgres} events on Postgres`, { skip }, async (t) => {
    if ('skipReason' in postgres) return
    t.teardown(() => postgres.stop())
    const db = await openDatabase(createPostgresConfig(await postgres.newDatabase()))
    t.teardown(() => db.destroy())
    const owner = await createOwner(db)
    await fill(db, owner, counts.postgres)
    await checkAuditLogPlans(t, db, owner, counts.postgres)
  })
}

const fill = (db: Db, { workspaceId, userId }: Actor, count: number): Promise<void> =>
  fillAuditLog(db, { workspaceId, userId: userId ?? '', otherUserId: OTHER_USER_ID, count })
