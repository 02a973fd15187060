// Verifies the hash chain of the audit log (docs/audit.md), with the SHA-256 of the browser.
import type { AuditChainEvent, AuditChainPage } from '../../shared/api/audit.ts'

export type Verification = {
  /** Intact events. */
  events: number
  /** The newest event, with its hash, for a comparison later. */
  head: { id: number; hash: string }
  /** A sentence; null: the chain is intact. */
  problem: string | null
}

/** @param sha256 in hexadecimal digits, of the text as UTF-8 */
export type Sha256 = (text: string) => Promise<string>

const START_HASH = '0'.repeat(64)

/** Null: the browser computes hashes only for pages over HTTPS or from this machine. */
export function createSha256(subtle: SubtleCrypto | undefined): Sha256 | null {
  if (subtle === undefined) return null
  return async (text) => {
    const digest = await subtle.digest('SHA-256', new TextEncoder().encode(text))
    return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  }
}

/** @param loadPage the events with greater ids than `after` @param onProgress is called with the number of intact events */
export async function verifyChain(
  loadPage: (after: number) => Promise<AuditChainPage>,
  sha256: Sha256,
  onProgress: (events: number) => void = () => undefined,
): Promise<Verification> {
  let page = await loadPage(0)
  let position = { id: page.start.id, hash: page.start.hash }
  let events = 0
  let prunedThrough = 0
  const fail = (problem: string): Verification => ({ events, head: page.head, problem })
  if (position.id === 0 && position.hash !== START_HASH)
    return fail('The hash before event 1 is not the initial hash.')
  for (;;) {
    // Retention may delete events between two pages.
    if (page.start.id > position.id) position = { id: page.start.id, hash: page.start.hash }
    for (const event of page.events) {
      const problem = await checkEvent(event, page.workspaceId, position, sha256)
      if (problem !== null) return fail(problem)
      position = { id: event.id, hash: event.hash }
      events += 1
      if (event.kind === 'audit.prune')
        prunedThrough = Number(/^\{"through":(\d+),/.exec(event.detail ?? '')?.[1] ?? 0)
    }
    onProgress(events)
    if (page.next === null) break
    if (page.next !== position.id || page.events.length === 0)
      return fail(`The page after event ${position.id} starts at ${page.next}.`)
    page = await loadPage(page.next)
  }
  if (position.id < page.head.id) return fail(`Events after ${position.id} are missing.`)
  if (position.id > page.head.id || position.hash !== page.head.hash)
    return fail(`The hash of the newest event ${page.head.id} is not the recorded one.`)
  if (page.start.id !== prunedThrough)
    return fail(`No event audit.prune records that the events up to ${page.start.id} were deleted.`)
  return { events, head: page.head, problem: null }
}

async function checkEvent(
  event: AuditChainEvent,
  workspaceId: string,
  previous: { id: number; hash: string },
  sha256: Sha256,
): Promise<string | null> {
  const { id, detail, salt, detailHash } = event
  if (id !== previous.id + 1)
    return `Event ${previous.id + 1} is missing: event ${id} follows event ${previous.id}.`
  if ((detail === null) !== (salt === null)) return `The detail of event ${id} was changed.`
  if (detail === null && event.origin !== 'client')
    return `The detail of event ${id} was erased. Only reports of clients may be erased.`
  if (detail !== null && (await sha256(`${salt}\n${detail}`)) !== detailHash)
    return `The detail of event ${id} was changed.`
  // The order of the fields is that of the coordinator.
  const hash = await sha256(
    JSON.stringify([
      previous.hash,
      workspaceId,
      id,
      Date.parse(event.at),
      event.kind,
      event.origin,
      event.actorKind,
      event.actorUserId,
      event.actorTokenId,
      event.boxId,
      detailHash,
    ]),
  )
  return hash === event.hash
    ? null
    : `The hash of event ${id} is wrong: the event was changed or inserted, or it does not follow event ${previous.id}.`
}
