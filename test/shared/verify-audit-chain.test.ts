// The verification of the audit log's hash chain: every kind of tampering is detected.
import t from 'tap'
import type { AuditChainEvent, AuditChainPage } from '../../shared/api/audit.ts'
import { START_HASH, sealAuditEvent } from '../../shared/audit-chain.ts'
import { type ChainPosition, startVerification, verifyPage } from '../../shared/verify-audit-chain.ts'

const WORKSPACE = 'ws_1'
const START: ChainPosition = { id: 0, hash: START_HASH }

/** Seals events like the coordinator. */
function createEvents(
  count: number,
  previous = START,
  fields: { origin?: AuditChainEvent['origin']; kind?: string; detail?: string } = {},
): AuditChainEvent[] {
  const { origin = 'server', kind = 'box.wake', detail } = fields
  const events: AuditChainEvent[] = []
  for (let i = 1; i <= count; i++) {
    const { id, hash } = events.at(-1) ?? previous
    const at = Date.UTC(2030, 0, 1) + i * 1000
    const event = { no: id + 1, at, kind, origin, actor_kind: 'user' }
    const sealed = sealAuditEvent(
      {
        ...{ ...event, workspace_id: WORKSPACE, actor_user_id: 'usr_1', actor_token_id: null, box_id: null },
        detail: detail ?? JSON.stringify({ i }),
      },
      hash,
    )
    events.push({
      ...{ id: sealed.no, kind: sealed.kind, origin, actorKind: 'user', boxId: null },
      at: new Date(at).toISOString(),
      actorUserId: sealed.actor_user_id,
      actorTokenId: null,
      detail: sealed.detail,
      salt: sealed.salt,
      detailHash: sealed.detail_hash,
      hash: sealed.hash,
    })
  }
  return events
}

type Log = { start?: ChainPosition; head?: ChainPosition; events: AuditChainEvent[] }

const toPosition = ({ id, hash }: ChainPosition): ChainPosition => ({ id, hash })

/** Splits the log into pages and verifies them. */
function verify({ start = START, head, events }: Log, noted?: ChainPosition, pageSize = 3) {
  const newest = head ?? toPosition(events.at(-1) ?? start)
  let state = startVerification(noted)
  for (let from = 0; !state.isComplete; from += pageSize) {
    const page = events.slice(from, from + pageSize)
    const isLast = from + pageSize >= events.length
    state = verifyPage(state, {
      ...{ workspaceId: WORKSPACE, start, events: page, head: { ...newest, at: null } },
      next: isLast ? null : (page.at(-1)?.id ?? null),
    })
  }
  return state
}

const events = createEvents(10)
const at = (id: number): AuditChainEvent => {
  const event = events[id - 1]
  if (event === undefined) throw new Error(`there is no event ${id}`)
  return event
}
const edit = (id: number, changes: Partial<AuditChainEvent>) =>
  events.map((event) => (event.id === id ? { ...event, ...changes } : event))
const without = (...ids: number[]) => events.filter(({ id }) => !ids.includes(id))

t.test('an unchanged log is intact', async (t) => {
  for (const pageSize of [1, 3, 10, 100])
    t.match(verify({ events }, undefined, pageSize), {
      ...{ isComplete: true, problem: null, events: 10, erasedDetails: 0 },
      ...{ start: START, head: toPosition(at(10)), isNotedPruned: false },
    })
  t.match(verify({ events: [] }), { isComplete: true, problem: null, events: 0, head: START })
  t.match(verify({ events }, toPosition(at(4))), { problem: null }, 'with a head noted before')
  t.match(verify({ events }, toPosition(at(10))), { problem: null }, 'with the newest event noted')
})

t.test('each changed field is detected', async (t) => {
  const changes: Partial<AuditChainEvent>[] = [
    { at: '2030-01-01T00:00:05.001Z' },
    { kind: 'box.delete' },
    { origin: 'client' },
    { actorKind: 'system' },
    { actorUserId: 'usr_2' },
    { actorUserId: null },
    { actorTokenId: 'key_1' },
    { boxId: 'b' },
    { detail: '{"i":6}' },
    { detail: '{"i": 5}' },
    { salt: '00' },
    { detailHash: at(6).detailHash },
    { hash: at(6).hash },
    // Erased details have no salt either.
    { detail: null },
    { salt: null, detail: '{"i":6}' },
  ]
  for (const change of changes) {
    const { problem, events } = verify({ events: edit(5, change) })
    t.match(problem, { id: 5, message: /^The (detail|hash) of event 5 / }, JSON.stringify(change))
    t.equal(events, 4)
  }
})

t.test('removed events are detected', async (t) => {
  t.match(verify({ events: without(1) }).problem, { id: 1, message: 'Event 1 is missing.' })
  t.match(verify({ events: without(4, 5, 6) }).problem, { id: 4, message: 'Events 4 to 6 are missing.' })
  t.match(verify({ events: without(10), head: toPosition(at(10)) }).problem, { id: 10, message: /missing/ })
  t.match(verify({ events: [], head: toPosition(at(10)) }).problem, {
    message: 'Events 1 to 10 are missing.',
  })
  const renumbered = without(4).map((event, index) => ({ ...event, id: index + 1 }))
  t.match(verify({ events: renumbered }).problem, { id: 4, message: /^The hash of event 4 is wrong/ })
})

t.test('events removed from the end are detected by a page without events', async (t) => {
  const page = (events: AuditChainEvent[], next: number): AuditChainPage => ({
    ...{ workspaceId: WORKSPACE, start: START, head: { ...toPosition(at(10)), at: null } },
    ...{ events, next },
  })
  const first = verifyPage(startVerification(), page(events.slice(0, 4), 4))
  t.equal(first.isComplete, false)
  t.match(verifyPage(first, page([], 4)), {
    isComplete: true,
    problem: { id: 5, message: 'Events 5 to 10 are missing.' },
  })
  const none = verifyPage(startVerification(), page([], 0))
  t.match(verifyPage(none, page([], 0)).problem, { message: 'Events 1 to 10 are missing.' })
})

t.test('events removed from the end together with the head are detected by a noted head', async (t) => {
  t.match(verify({ events: without(9, 10) }).problem, null, 'not without it')
  t.match(verify({ events: without(9, 10) }, toPosition(at(10))).problem, {
    id: 9,
    message: 'Events 9 to 10 are missing.',
  })
})

t.test('a log that was replaced by another intact one is detected by a noted head', async (t) => {
  const other = createEvents(10)
  t.match(verify({ events: other }).problem, null, 'not without it')
  for (const id of [1, 3, 4, 10])
    t.match(verify({ events: other }, toPosition(at(id))).problem, { id, message: /was noted/ })
})

t.test('inserted events are detected', async (t) => {
  const [forged] = createEvents(1, toPosition(at(4)))
  if (forged === undefined) throw new Error('no event')
  const shifted = events.slice(4).map((event) => ({ ...event, id: event.id + 1 }))
  t.match(verify({ events: [...events.slice(0, 4), forged, ...shifted] }).problem, {
    id: 6,
    message: /hash of event 6/,
  })
  t.match(verify({ events: [...events.slice(0, 4), forged, ...events.slice(4)] }).problem, {
    id: 5,
    message: 'Event 5 is after event 5.',
  })
  const [appended] = createEvents(1, toPosition(at(10)))
  t.match(
    verify({ events: [...events, ...(appended ? [appended] : [])], head: toPosition(at(10)) }).problem,
    {
      id: 11,
      message: /after the newest event 10/,
    },
  )
})

t.test('reordered events are detected', async (t) => {
  const swapped = [...events.slice(0, 3), at(5), at(4), ...events.slice(5)]
  t.match(verify({ events: swapped }).problem, { id: 4 })
  const renumbered = swapped.map((event, index) => ({ ...event, id: index + 1 }))
  t.match(verify({ events: renumbered }).problem, { id: 4, message: /hash of event 4/ })
})

t.test('swapped details are detected', async (t) => {
  const { detail, salt, detailHash } = at(7)
  t.match(verify({ events: edit(6, { detail }) }).problem, { id: 6, message: /^The detail/ })
  t.match(verify({ events: edit(6, { detail, salt }) }).problem, { id: 6, message: /^The detail/ })
  t.match(verify({ events: edit(6, { detail, salt, detailHash }) }).problem, { id: 6, message: /^The hash/ })
})

t.test('another head is detected', async (t) => {
  const head = { id: 10, hash: at(9).hash }
  t.match(verify({ events, head }).problem, { id: 10, message: /newest event 10/ })
})

t.test('erased details of reports are counted, not an error', async (t) => {
  const erased = createEvents(10, START, { origin: 'client' }).map((event) =>
    [3, 8].includes(event.id) ? { ...event, detail: null, salt: null } : event,
  )
  t.match(verify({ events: erased }), { problem: null, events: 10, erasedDetails: 2 })
})

t.test('an erased detail of the coordinator is detected', async (t) => {
  const { problem, events } = verify({ events: edit(5, { detail: null, salt: null }) })
  t.match(problem, { id: 5, message: /^The detail of event 5 was erased/ })
  t.equal(events, 4)
})

const createPruneRecord = (through: number, previous: ChainPosition): AuditChainEvent[] =>
  createEvents(1, previous, { kind: 'audit.prune', detail: JSON.stringify({ through, deleted: 1 }) })

t.test('the log starts after the events that retention has deleted', async (t) => {
  const start = toPosition(at(4))
  const kept = [...events.slice(4), ...createPruneRecord(2, at(10))]
  kept.push(...createPruneRecord(4, toPosition(kept.at(-1) ?? START)))
  t.match(verify({ start, events: kept }), { problem: null, events: 8, start, isNotedPruned: false })
  t.match(verify({ start, events: kept }, toPosition(at(2))), { problem: null, isNotedPruned: true })
  t.match(verify({ start, events: kept }, start), { problem: null, isNotedPruned: false })
  t.match(verify({ start, events: kept }, { id: 4, hash: 'x' }).problem, { id: 4, message: /noted/ })
  t.match(verify({ start: toPosition(at(3)), events: kept }).problem, {
    id: 4,
    message: 'Event 4 is missing.',
  })
  t.match(verify({ start: { id: 4, hash: at(3).hash }, events: kept }).problem, { id: 5 })
  t.match(verify({ start: { id: 0, hash: at(3).hash }, events }).problem, { id: 0, message: /initial hash/ })
})

t.test('events removed from the start without a record of retention are detected', async (t) => {
  const start = toPosition(at(4))
  const problem = { id: 4, message: 'No event audit.prune records that the events up to 4 were deleted.' }
  t.match(verify({ start, events: events.slice(4) }).problem, problem)
  t.match(verify({ start, events: events.slice(4) }, toPosition(at(10))).problem, problem)
  const recorded = [...events.slice(4), ...createPruneRecord(2, at(10))]
  t.match(verify({ start, events: recorded }).problem, problem, 'with the record of an earlier deletion')
})

t.test('retention may delete events between two pages', async (t) => {
  const all = [...events, ...createPruneRecord(6, at(10))]
  const newest = toPosition(all.at(-1) ?? START)
  const page = (changes: Partial<AuditChainPage>): AuditChainPage => ({
    ...{ workspaceId: WORKSPACE, start: START, head: { ...newest, at: null } },
    ...{ events: [], next: null },
    ...changes,
  })
  const first = verifyPage(
    startVerification(toPosition(at(3))),
    page({ events: events.slice(0, 2), next: 2 }),
  )
  const start = toPosition(at(6))
  t.match(verifyPage(first, page({ start, events: all.slice(6) })), {
    ...{ isComplete: true, problem: null, events: 7, start: START, isNotedPruned: true },
  })
  const empty = verifyPage(first, page({ start, next: 6 }))
  t.match(empty, { isComplete: false, problem: null })
  t.match(verifyPage(empty, page({ start, events: all.slice(6) })), { problem: null, events: 7 })
  t.match(verifyPage(first, page({ events: events.slice(2, 4), next: 9 })).problem, { id: 9 })
})
