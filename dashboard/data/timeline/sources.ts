// Reads what the timeline shows. Each source has its own error: one that fails does not hide the others.
import type { AuditEvent, AuditList } from '../../../shared/api/audit.ts'
import type { Command, CommandList } from '../../../shared/api/commands.ts'
import type { Run } from '../../../shared/api/prompts.ts'
import type { CommandQuery } from '../../api/client.ts'
import type { Prompts } from '../../api/prompts.ts'
import type { Range } from './range.ts'

export type CommandPages = {
  /** Newest first. */
  commands: Command[]
  /** Continues with earlier commands of the range; null: all are loaded. */
  next: string | null
}

export type LoadCommandPage = (query: CommandQuery) => Promise<CommandList>

const PAGE_SIZE = 200
/** Requests until the user asks for more. */
const PAGES = 3

/**
 * The newest commands of a range, at most 600, and all that are still running. A command that started before the range and
 * finished in it is found when it is on the same page as the first one of the range.
 * @param previous a result with `next`, which is continued
 */
export async function loadCommands(
  loadPage: LoadCommandPage,
  range: Range,
  previous?: CommandPages,
): Promise<CommandPages> {
  const to = new Date(range.to).toISOString()
  const byId = new Map((previous?.commands ?? []).map((command) => [command.id, command]))
  const add = (commands: readonly Command[]) => {
    for (const command of commands) byId.set(command.id, command)
  }
  let next = previous?.next ?? null
  for (let page = 0; page < PAGES && (page === 0 || next !== null); page += 1) {
    const list = await loadPage({ limit: PAGE_SIZE, to, ...(next !== null && { before: next }) })
    add(list.commands)
    const oldest = list.commands.at(-1)
    next = oldest && Date.parse(oldest.startedAt) >= range.from ? list.nextBefore : null
  }
  if (previous === undefined) add((await loadPage({ limit: PAGE_SIZE, to, status: 'running' })).commands)
  return { commands: [...byId.values()], next }
}

/** The newest commands of a range that advances, and the earlier ones that were loaded with `next`. */
export function addNewest(earlier: CommandPages | null, newest: CommandPages | null): CommandPages | null {
  if (earlier === null || newest === null) return newest
  const commands = new Map([...earlier.commands, ...newest.commands].map((command) => [command.id, command]))
  return { commands: [...commands.values()], next: earlier.next }
}

/** The most runs and conversations of a list of a box (LIMITS.listedPrompts). */
export const LISTED_PROMPTS = 50

export type EarlierRuns = {
  runs: Run[]
  /** Whether all runs of the range that the box has are loaded. */
  isComplete: boolean
}

/**
 * The runs of a range before those of the list of all conversations: the newest ones of each conversation that was active
 * in the range.
 */
export async function loadEarlierRuns(
  { list, listConversations }: Pick<Prompts, 'list' | 'listConversations'>,
  range: Range,
): Promise<EarlierRuns> {
  const { conversations } = await listConversations()
  // The list has the conversations that were active last.
  const last = conversations.at(-1)
  let isComplete =
    conversations.length < LISTED_PROMPTS || (last !== undefined && Date.parse(last.updatedAt) < range.from)
  const runs: Run[] = []
  for (const { id, createdAt, updatedAt } of conversations) {
    if (Date.parse(updatedAt) < range.from || Date.parse(createdAt) > range.to) continue
    const page = await list(id)
    runs.push(...page.runs)
    if (hasEarlierRuns(page.runs, range)) isComplete = false
  }
  return { runs, isComplete }
}

/** Whether the range has runs before those of a list, newest first, that may have reached its limit. */
export function hasEarlierRuns(runs: readonly Run[], range: Range): boolean {
  const oldest = runs.at(-1)
  return oldest !== undefined && runs.length >= LISTED_PROMPTS && Date.parse(oldest.startedAt) > range.from
}

export type RequestPages = {
  requests: AuditEvent[]
  /** Continues with earlier events; null: all are loaded. */
  next: number | null
}

/** The requests that change the state of a box. */
const REQUEST_KINDS = ['box.create', 'box.wake', 'box.suspend', 'box.sleep', 'box.resize', 'box.move']
const AUDIT_PAGE = 200

/**
 * A page of the requests that have changed the state of a box, from the audit log.
 * @param previous a result with `next`, which is continued
 */
export async function loadRequests(
  loadPage: (query: URLSearchParams) => Promise<AuditList>,
  boxId: string,
  range: Range,
  previous: RequestPages | null,
): Promise<RequestPages> {
  const query = new URLSearchParams({
    box: boxId,
    kind: REQUEST_KINDS.join(','),
    since: new Date(range.from).toISOString(),
    until: new Date(range.to).toISOString(),
    limit: String(AUDIT_PAGE),
  })
  if (previous !== null && previous.next !== null) query.set('before', String(previous.next))
  const { events, nextBefore } = await loadPage(query)
  return { requests: [...(previous?.requests ?? []), ...events], next: nextBefore }
}
