// Pages of the audit log: every combination of filters returns exactly the matching events, newest first.
import t from 'tap'
import { createEventReader, type EventFilter } from '../../../coordinator/audit/read-events.ts'
import type { AuditKind } from '../../../shared/audit-kinds.ts'
import { onEachDatabase } from '../../support/db.ts'
import { addUser, createOwner } from '../../support/workspace.ts'
import { record } from './support.ts'

const KINDS: AuditKind[] = ['box.wake', 'exec', 'box.create', 'prompt', 'box.wake', 'key.create']
const BOXES = [null, crypto.randomUUID(), crypto.randomUUID()]
const START = Date.UTC(2030, 0, 1)

/** Each combination of the other filters is read without a range and with one of these. */
const RANGES: { since?: number; until?: number; before?: number }[] = [
  { since: START + 5000, until: START + 15_000 },
  { since: START + 5500 },
  { until: START + 7000, before: 31 },
  { since: START + 99_000 },
  { before: 31 },
]

/** Small windows, so that most pages need several of them. */
const WINDOW = { rows: 4, perPage: 3 }

onEachDatabase(t, async (t, newDb) => {
  t.test('every combination of filters, page sizes and windows', async (t) => {
    const db = await newDb(t)
    const owner = await createOwner(db)
    const { workspaceId } = owner
    const member = await addUser(db, owner, { role: 'member' })
    for (let i = 0; i < 60; i++) {
      const kind = KINDS[i % KINDS.length] ?? 'exec'
      await record(db, {
        kind,
        actor: i % 4 === 0 ? member : owner,
        boxId: BOXES[i % BOXES.length] ?? null,
        origin: ['exec', 'prompt'].includes(kind) ? 'client' : 'server',
        // Several events have the same time.
        at: START + Math.floor(i / 3) * 1000,
      })
    }
    const all = await db.selectFrom('audit_log').selectAll().orderBy('no', 'desc').execute()
    const choose = <T>(...values: T[]): (T | undefined)[] => [undefined, ...values]
    let combinations = 0
    for (const kinds of choose<AuditKind[]>(
      ['box.wake'],
      ['box.wake', 'exec', 'exec'],
      ['member.invite', 'prompt'],
    ))
      for (const boxId of choose(BOXES[1] ?? '', crypto.randomUUID()))
        for (const actorUserId of choose(member.userId ?? '', 'usr_unknown'))
          for (const origin of choose('client' as const, 'server' as const))
            for (const { since, until, before } of [{}, RANGES[combinations % RANGES.length] ?? {}]) {
              const filter = { kinds, boxId, actorUserId, origin, since, until }
              const expected = all
                .filter(
                  (row) =>
                    (kinds?.includes(row.kind as AuditKind) ?? true) &&
                    (boxId ?? row.box_id) === row.box_id &&
                    (actorUserId ?? row.actor_user_id) === row.actor_user_id &&
                    (origin ?? row.origin) === row.origin &&
                    row.at >= (since ?? 0) &&
                    row.at < (until ?? Number.POSITIVE_INFINITY) &&
                    row.no < (before ?? Number.POSITIVE_INFINITY),
                )
                .map(({ no }) => no)
              const read = await readAll(filter, before, 7)
              if (JSON.stringify(read) !== JSON.stringify(expected))
                t.same(read, expected, JSON.stringify({ ...filter, before }))
              combinations += 1
            }
    t.equal(combinations, 4 * 3 * 3 * 3 * 2)

    async function readAll(
      filter: Omit<EventFilter, 'workspaceId'>,
      before: number | undefined,
      limit: number,
    ) {
      const readPage = await createEventReader(db, { workspaceId, ...filter }, WINDOW)
      const numbers: number[] = []
      for (let next = before; ; ) {
        const { rows, nextBefore } = await readPage(next, limit)
        if (rows.length > limit) t.fail('the page is too long')
        numbers.push(...rows.map(({ no }) => no))
        if (nextBefore === null) return numbers
        next = nextBefore
      }
    }

    t.same(
      await readAll({}, undefined, 60),
      all.map(({ no }) => no),
      'a full last page has no cursor',
    )
    const other = await createEventReader(db, { workspaceId: 'ws_other', boxId: BOXES[1] ?? '' })
    t.same(await other(undefined, 10), { rows: [], nextBefore: null })
  })
})
