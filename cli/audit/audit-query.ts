// The filters of box audit, and the requests that read events page by page.
import type { AuditEvent, AuditList } from '../../shared/api/audit.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { parseTime } from '../arguments/parse-time.ts'
import { findBox } from '../boxes/find-box.ts'
import type { Client } from '../connection/client.ts'
import { findMember, loadMembers } from '../members/change-members.ts'
import { CliError } from '../output/exit-codes.ts'

export type FilterOptions = {
  since?: string
  until?: string
  kind?: string[]
  box?: string
  actor?: string
  origin?: 'server' | 'client'
}

/** The parameters of GET /audit. Finds the ids of the box and the user. @throws CliError */
export async function toQuery(client: Client, options: FilterOptions, now: number): Promise<URLSearchParams> {
  const { since, until, kind, box, actor, origin } = options
  const toInstant = (option: string, text: string) => new Date(parseTime(option, text, now)).toISOString()
  return new URLSearchParams({
    ...(since !== undefined && { since: toInstant('--since', since) }),
    ...(until !== undefined && { until: toInstant('--until', until) }),
    ...(kind !== undefined && { kind: kind.join(',') }),
    ...(box !== undefined && { box: await findBoxId(client, box) }),
    ...(actor !== undefined && { actor: await findUserId(client, actor) }),
    ...(origin !== undefined && { origin }),
  })
}

/** A deleted box is found too; of a box whose record was deleted, only the whole id is known. */
async function findBoxId(client: Client, typed: string): Promise<string> {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(typed)) return typed
  const { boxes } = await client.request<{ boxes: Box[] }>('GET', '/boxes')
  return findBox(boxes, typed)?.id ?? (await client.findBox(typed)).id
}

/** An id may be that of a removed member. An email needs a sign-in. */
async function findUserId(client: Client, typed: string): Promise<string> {
  if (/^usr_\w{20,}$/.test(typed)) return typed
  return findMember(await loadMembers(client), typed).id
}

/** Newest first. @param count at most this many events */
export async function loadEvents(client: Client, query: URLSearchParams, count: number): Promise<AuditList> {
  const events: AuditEvent[] = []
  let nextBefore: number | null = null
  do {
    const limit = Math.min(LIMITS.auditPage.max, count - events.length)
    if (limit <= 0) break
    const page = await loadPage(client, query, limit, nextBefore)
    events.push(...page.events)
    nextBefore = page.nextBefore
  } while (nextBefore !== null)
  return { events, nextBefore }
}

/** Newest first: the events with ids greater than `id`. */
export async function loadEventsAfter(
  client: Client,
  query: URLSearchParams,
  id: number,
): Promise<AuditEvent[]> {
  const events: AuditEvent[] = []
  let before: number | null = null
  do {
    const page: AuditList = await loadPage(client, query, LIMITS.auditPage.default, before)
    events.push(...page.events.filter((event) => event.id > id))
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
