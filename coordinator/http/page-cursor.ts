// Cursors of lists that are sorted by time and id, newest first.
import { ApiError } from '../../shared/errors.ts'

/** The position after the row with this time and id. `at`: milliseconds since the epoch. */
export type PageCursor = { at: number; id: string }

export const encodeCursor = ({ at, id }: PageCursor): string =>
  Buffer.from(`${at}.${id}`).toString('base64url')

/** Throws invalid_cursor for a text that encodeCursor did not create from such an id. */
export function parseCursor(text: string, isValidId: (id: string) => boolean): PageCursor {
  const [, at, id] = /^(\d{1,15})\.(.+)$/.exec(Buffer.from(text, 'base64url').toString()) ?? []
  if (at === undefined || id === undefined || !isValidId(id)) throw new ApiError('invalid_cursor')
  return { at: Number(at), id }
}
