// Lists of the API, page by page.
import { createInvalidError } from '../http/errors.ts'

/** Yields the items of all pages. The next page is requested when its first item is. */
export async function* readPages<Item, Cursor = string>(
  load: (cursor: Cursor | undefined) => Promise<{ items: readonly Item[]; next: Cursor | null | undefined }>,
): AsyncGenerator<Item, void, undefined> {
  let cursor: Cursor | undefined
  do {
    const { items, next } = await load(cursor)
    yield* items
    if (next !== undefined && next === cursor) throw createInvalidError('the same page twice')
    cursor = next ?? undefined
  } while (cursor !== undefined)
}

/** Of the pages of most lists. */
const PAGE = 200

/** The parameters of a list that select its items. */
export type Filter<Query> = Omit<Query, 'before' | 'limit' | 'format'>

type BeforePage<Cursor> = { nextBefore?: Cursor | null }

/** The same for a route whose cursor is `before`. @param getItems the items of a page */
export const readBefore = <Item, Page extends BeforePage<Cursor>, Cursor extends string | number>(
  load: (page: { limit: number; before?: Cursor }) => Promise<Page>,
  getItems: (page: Page) => readonly Item[],
): AsyncGenerator<Item, void, undefined> =>
  readPages<Item, Cursor>(async (before) => {
    const page = await load({ limit: PAGE, ...(before !== undefined && { before }) })
    return { items: getItems(page), next: page.nextBefore }
  })
