// Verifies the hash chain of the audit log page by page, as GET /audit/chain returns it. Does no I/O.
import type { AuditChainEvent, AuditChainPage } from './api/audit.ts'
import { hasIntactDetail, isIntact, type SealedAuditEvent, START_HASH } from './audit-chain.ts'

/** An event and the hash that covers it and all events before it. */
export type ChainPosition = { id: number; hash: string }

/** `id`: the first event that is wrong. `message`: a sentence for people. */
export type ChainProblem = { id: number; message: string }

/** The verification so far. It is complete after the page with `next` null, or after a problem. */
export type ChainVerification = {
  isComplete: boolean
  problem: ChainProblem | null
  /** Intact events. */
  events: number
  /** Intact events whose detail has been erased, which cannot be verified. */
  erasedDetails: number
  /** The event before the first verified one: retention has deleted it and all before it. null before the first page. */
  start: ChainPosition | null
  /** The newest event when the last page was read. */
  head: ChainPosition | null
  /** The last intact event. */
  position: ChainPosition | null
  /** A head of an earlier verification, which must still be part of the chain. */
  noted: ChainPosition | null
  /** The last event that retention has deleted, as the newest verified event `audit.prune` states it; 0: none. */
  prunedThrough: number
  /** Retention has deleted the noted event, so that it cannot be compared. */
  isNotedPruned: boolean
}

export const startVerification = (noted: ChainPosition | null = null): ChainVerification => ({
  isComplete: false,
  problem: null,
  events: 0,
  erasedDetails: 0,
  start: null,
  head: null,
  position: null,
  noted,
  prunedThrough: 0,
  isNotedPruned: false,
})

/** Pass the pages in order, the first one with `after` 0. Returns the new state. */
export function verifyPage(state: ChainVerification, page: AuditChainPage): ChainVerification {
  if (state.isComplete) return state
  const { noted } = state
  const { id, hash } = page.head
  // Retention may also delete events between two pages.
  const isPastStart = state.position !== null && state.position.id >= page.start.id
  let position = isPastStart && state.position !== null ? state.position : page.start
  const next = { ...state, start: state.start ?? page.start, head: { id, hash } }
  next.isNotedPruned ||= !isPastStart && noted !== null && isBetween(noted.id, state.position, page.start)
  const fail = (problem: ChainProblem): ChainVerification => ({
    ...next,
    position,
    problem,
    isComplete: true,
  })
  const startProblem = isPastStart ? null : checkStart(page.start, noted)
  if (startProblem) return fail(startProblem)
  for (const event of page.events) {
    const problem = checkEvent(toSealed(page.workspaceId, event), position, noted)
    if (problem) return fail(problem)
    position = { id: event.id, hash: event.hash }
    next.events += 1
    if (event.kind === 'audit.prune') next.prunedThrough = parsePrunedThrough(event.detail)
    if (event.detail === null) next.erasedDetails += 1
  }
  // Without this check, a log whose newest events were removed would have pages without events forever.
  if (isPastStart && page.events.length === 0 && state.head !== null && position.id < state.head.id)
    return fail(createMissingProblem(position.id + 1, state.head.id))
  const endProblem =
    page.next === null
      ? (checkHead(position, { id, hash }, noted) ?? checkPruned(page.start, next.prunedThrough))
      : checkNext(position, page.next)
  return endProblem ? fail(endProblem) : { ...next, position, isComplete: page.next === null }
}

const isBetween = (id: number, from: ChainPosition | null, to: ChainPosition): boolean =>
  id > (from?.id ?? 0) && id < to.id

function checkStart(start: ChainPosition, noted: ChainPosition | null): ChainProblem | null {
  if (start.id === 0 && start.hash !== START_HASH)
    return { id: 0, message: 'The hash before event 1 is not the initial hash.' }
  return checkNoted(start, noted)
}

const checkNoted = ({ id, hash }: ChainPosition, noted: ChainPosition | null): ChainProblem | null =>
  noted !== null && noted.id === id && noted.hash !== hash
    ? { id, message: `Event ${id} does not have the hash that was noted: the log was replaced up to it.` }
    : null

function checkEvent(
  event: SealedAuditEvent,
  previous: ChainPosition,
  noted: ChainPosition | null,
): ChainProblem | null {
  const id = event.no
  const expected = previous.id + 1
  if (id > expected) return createMissingProblem(expected, id - 1)
  if (id < expected) return { id, message: `Event ${id} is after event ${previous.id}.` }
  if (event.detail === null && event.origin !== 'client')
    return { id, message: `The detail of event ${id} was erased. Only reports of clients may be erased.` }
  if (!hasIntactDetail(event)) return { id, message: `The detail of event ${id} was changed.` }
  if (!isIntact(event, previous.hash))
    return {
      id,
      message: `The hash of event ${id} is wrong: the event was changed or inserted, or it does not follow event ${previous.id}.`,
    }
  return checkNoted({ id, hash: event.hash }, noted)
}

const createMissingProblem = (first: number, last: number): ChainProblem => ({
  id: first,
  message: first === last ? `Event ${first} is missing.` : `Events ${first} to ${last} are missing.`,
})

function checkHead(
  position: ChainPosition,
  head: ChainPosition,
  noted: ChainPosition | null,
): ChainProblem | null {
  if (position.id < head.id) return createMissingProblem(position.id + 1, head.id)
  if (position.id > head.id)
    return { id: position.id, message: `Event ${position.id} is after the newest event ${head.id}.` }
  if (position.hash !== head.hash)
    return { id: head.id, message: `The hash of the newest event ${head.id} is not the recorded one.` }
  if (noted !== null && noted.id > head.id) return createMissingProblem(head.id + 1, noted.id)
  return null
}

/** The coordinator records each deletion in the transaction that moves the start. */
const checkPruned = (start: ChainPosition, prunedThrough: number): ChainProblem | null =>
  start.id === prunedThrough
    ? null
    : {
        id: start.id,
        message: `No event audit.prune records that the events up to ${start.id} were deleted.`,
      }

const parsePrunedThrough = (detail: string | null): number =>
  Number(/^\{"through":(\d+),/.exec(detail ?? '')?.[1] ?? 0)

const checkNext = (position: ChainPosition, next: number): ChainProblem | null =>
  next === position.id
    ? null
    : { id: next, message: `The page after event ${position.id} starts at ${next}.` }

const toSealed = (workspaceId: string, event: AuditChainEvent): SealedAuditEvent => ({
  workspace_id: workspaceId,
  no: event.id,
  at: Date.parse(event.at),
  kind: event.kind,
  origin: event.origin,
  actor_kind: event.actorKind,
  actor_user_id: event.actorUserId,
  actor_token_id: event.actorTokenId,
  box_id: event.boxId,
  detail: event.detail,
  salt: event.salt,
  detail_hash: event.detailHash,
  hash: event.hash,
})
