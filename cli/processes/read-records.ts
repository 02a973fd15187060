// Reads the records of a box's command history, page by page.
import type { CommandList, Command as CommandRecord } from '../../shared/api/commands.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Client } from '../connection/client.ts'

/** The query of GET /boxes/{id}/commands. */
export type PageQuery = { mode?: string; status?: string; limit?: number; before?: string }

export const getPath = (boxId: string): string => `/boxes/${encodeURIComponent(boxId)}/commands`

export function getPage(
  client: Client,
  boxId: string,
  { mode, status, limit, before }: PageQuery,
): Promise<CommandList> {
  const query = new URLSearchParams({
    ...(mode !== undefined && { mode }),
    ...(status !== undefined && { status }),
    ...(limit !== undefined && { limit: String(limit) }),
    ...(before !== undefined && { before }),
  })
  const path = getPath(boxId)
  return client.request<CommandList>('GET', query.size > 0 ? `${path}?${query}` : path)
}

/** Yields the records newest first, and requests the next page when it is needed. */
export async function* readRecords(
  client: Client,
  boxId: string,
  query: Omit<PageQuery, 'limit'>,
): AsyncGenerator<CommandRecord, void, undefined> {
  for (let cursor: { before?: string } = {}; ; ) {
    const page = await getPage(client, boxId, { ...query, ...cursor, limit: LIMITS.commandPage.max })
    yield* page.commands
    if (page.nextBefore === null) return
    cursor = { before: page.nextBefore }
  }
}
