// Lists of the API, page by page.

/** Yields the items of all pages. The next page is requested when its first item is. */
export async function* readPages<Item>(
  load: (cursor: string | undefined) => Promise<{ items: readonly Item[]; next: string | null | undefined }>,
): AsyncGenerator<Item, void, undefined> {
  let cursor: string | undefined
  do {
    const { items, next } = await load(cursor)
    yield* items
    cursor = next ?? undefined
  } while (cursor !== undefined)
}
