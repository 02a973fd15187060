// Responses with all items of a list that grows with the workspace. They are read and serialized page by page, and other
// requests are served between two pages.
import { setImmediate } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import type { PageCursor } from './page-cursor.ts'

/** The rows of a page, where they take about a millisecond. */
const PAGE_SIZE = 100

/**
 * Reads all rows of a list that is sorted by time and id, newest first. Leaves out rows that are inserted meanwhile, which
 * are newer.
 * @param limit the rows of a page; lower where a row has a list of its own
 */
export async function* readPages<Row extends { id: string; created_at: number }>(
  readPage: (page: { before: PageCursor | undefined; limit: number }) => Promise<Row[]>,
  limit = PAGE_SIZE,
): AsyncGenerator<Row[]> {
  let before: PageCursor | undefined
  for (;;) {
    const rows = await readPage({ before, limit })
    yield rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < limit) return
    before = { at: last.created_at, id: last.id }
  }
}

/** Returns the JSON text of a list of all items. */
export async function stringifyPages(
  pages: AsyncIterable<readonly object[]> | Iterable<readonly object[]>,
): Promise<string> {
  const texts: string[] = []
  for await (const items of pages) {
    if (items.length > 0) texts.push(JSON.stringify(items).slice(1, -1))
    await setImmediate()
  }
  return `[${texts.join(',')}]`
}

/**
 * Returns the JSON text of an object.
 * @param lists the fields that stringifyPages() has serialized
 * @param others the other fields
 */
export function joinFields(lists: Readonly<Record<string, string>>, others: object = {}): string {
  const fields = Object.entries(lists).map(([name, json]) => `${JSON.stringify(name)}:${json}`)
  const otherFields = JSON.stringify(others).slice(1, -1)
  return `{${[...fields, ...(otherFields === '' ? [] : [otherFields])].join(',')}}`
}

export const sendJson = (reply: FastifyReply, json: string): FastifyReply =>
  reply.type('application/json; charset=utf-8').send(json)
