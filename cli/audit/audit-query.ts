// The filters of box audit, and the requests that read events page by page.
import type { AuditEvent, AuditList } from '../../shared/api/audit.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { AUDIT_ACTOR_KINDS } from '../../shared/field-values.ts'
import { LIMITS } from '../../shared/limits.ts'
import { isUuid } from '../../shared/uuid.ts'
import { parseTime } from '../arguments/parse-time.ts'
import type { Client } from '../connection/client.ts'
import { findBoxWithRecords } from '../connection/find-box-with-records.ts'
import { findMember } from '../members/change-members.ts'
import { loadKnownUsers } from '../members/member-names.ts'
import { CliError } from '../output/exit-codes.ts'

/** The start of an id, which is enough to distinguish credentials. */
const SHORT_ID_LENGTH = 12

export type FilterOptions = {
  since?: string
  until?: string
  kind?: string[]
  box?: string
  actor?: string
  origin?: 'server' | 'client'
}

export type AuditFilter = {
  /** The parameters of GET /audit. */
  query: URLSearchParams
  /** What the coordinator cannot filter: the credential or the kind of an actor without a user, and the start of an id. */
  matches: ((event: AuditEvent) => boolean) | null
}

/** The text of the column ACTOR for an event of no user. */
export const formatOtherActor = ({ actorTokenId, actorKind }: AuditEvent): string =>
  actorTokenId?.slice(0, SHORT_ID_LENGTH) ?? actorKind

/** Finds the ids of the box and the user. @throws CliError */
export async function toFilter(client: Client, options: FilterOptions, now: number): Promise<AuditFilter> {
  const { since, until, kind, box, actor, origin } = options
  const toInstant = (option: string, text: string) => new Date(parseTime(option, text, now)).toISOString()
  const user = actor === undefined ? null : await findUserId(client, actor)
  const query = new URLSearchParams({
    ...(since !== undefined && { since: toInstant('--since', since) }),
    ...(until !== undefined && { until: toInstant('--until', until) }),
    ...(kind !== undefined && { kind: kind.join(',') }),
    ...(box !== undefined && { box: await findBoxId(client, box) }),
    ...(user !== null && { actor: user }),
    ...(origin !== undefined && { origin }),
  })
  return { query, matches: actor === undefined || user !== null ? null : createActorMatcher(actor) }
}

const isOtherActor = (typed: string): boolean =>
  /^(key|ses|tkt)_/.test(typed) || (AUDIT_ACTOR_KINDS as readonly string[]).includes(typed)

const createActorMatcher = (typed: string) => (event: AuditEvent) =>
  event.actorUserId === null
    ? formatOtherActor(event) === typed || (event.actorTokenId?.startsWith(typed) ?? false)
    : event.actorUserId.startsWith(typed)

/** Of a box whose record was deleted, only the whole id is known. */
const findBoxId = async (client: Client, typed: string): Promise<string> =>
  isUuid(typed) ? typed : (await findBoxWithRecords(client, typed)).id

/**
 * null: the events have to be compared with the text. Without a sign-in, only the own email and name are known; an id may also
 * be that of a removed member.
 */
async function findUserId(client: Client, typed: string): Promise<string | null> {
  if (/^usr_\w{20,}$/.test(typed)) return typed
  if (isOtherActor(typed)) return null
  const users = await loadKnownUsers(client)
  const isUnknownId = typed.startsWith('usr_') && !users.some(({ id }) => id.startsWith(typed))
  return isUnknownId ? null : findMember(users, typed).id
}

/** Newest first. @param count at most this many events */
export async function loadEvents(
  client: Client,
  { query, matches }: AuditFilter,
  count: number,
): Promise<AuditList> {
  const events: AuditEvent[] = []
  let nextBefore: number | null = null
  do {
    const limit = Math.min(LIMITS.auditPage.max, count - events.length)
    if (limit <= 0) break
    const page = await loadPage(client, query, matches === null ? limit : LIMITS.auditPage.max, nextBefore)
    const found = matches === null ? page.events : page.events.filter(matches)
    events.push(...found.slice(0, limit))
    if (found.length > limit) return { events, nextBefore: events.at(-1)?.id ?? null }
    nextBefore = page.nextBefore
  } while (nextBefore !== null)
  return { events, nextBefore }
}

/** Newest first: the events with ids greater than `id`. */
export async function loadEventsAfter(
  client: Client,
  { query, matches }: AuditFilter,
  id: number,
): Promise<AuditEvent[]> {
  const events: AuditEvent[] = []
  let before: number | null = null
  do {
    const page: AuditList = await loadPage(client, query, LIMITS.auditPage.default, before)
    events.push(...page.events.filter((event) => event.id > id && (matches?.(event) ?? true)))
    // A page of several filters may be empty, and not the last one.
    before = page.nextBefore !== null && page.nextBefore > id ? page.nextBefore : null
  } while (before !== null)
  return events
}

const loadPage = (
  client: Client,
  query: URLSearchParams,
  limit: number,
  before: number | null,
): Promise<AuditList> => {
  const page = new URLSearchParams(query)
  page.set('limit', String(limit))
  if (before !== null) page.set('before', String(before))
  return client.request('GET', `/audit?${page}`)
}

/** The names of boxes by id, as far as the credentials allow. */
export async function loadBoxNames(client: Client): Promise<(id: string) => string> {
  try {
    const { boxes } = await client.request<{ boxes: Box[] }>('GET', '/boxes')
    const names = new Map(boxes.map(({ id, hostname }) => [id, hostname]))
    return (id) => names.get(id) ?? id.slice(0, 8)
  } catch (error) {
    // A key for the area workspace.
    if (!(error instanceof CliError) || error.code !== 'key_access_denied') throw error
    return (id) => id.slice(0, 8)
  }
}
