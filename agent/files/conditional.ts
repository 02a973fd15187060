// Conditional and range requests for a file (RFC 9110, chapters 13 and 14). Pure.
import type { Stats } from 'node:fs'

export type ConditionalHeaders = {
  ifNoneMatch?: string | undefined
  ifRange?: string | undefined
  range?: string | undefined
}

/** Positions are in bytes. */
export type Selection =
  | { kind: 'complete' }
  | { kind: 'part'; start: number; length: number }
  | { kind: 'not modified' }
  | { kind: 'not satisfiable' }

/** The kernel changes ctime with every write, and no program can set it. The inode differs when a file is replaced. */
export const createEntityTag = ({ ino, size, ctimeMs }: Stats): string =>
  `"${[ino, size, Math.round(ctimeMs * 1000)].map((number) => number.toString(16)).join('-')}"`

/** @param entityTag null for a file whose content changes without its ctime, such as in /proc */
export function selectContent(
  headers: ConditionalHeaders,
  entityTag: string | null,
  size: number,
): Selection {
  const { ifNoneMatch, ifRange, range } = headers
  if (ifNoneMatch !== undefined && matchesAny(ifNoneMatch, entityTag)) return { kind: 'not modified' }
  // If-Range with a date never matches: downloads have no Last-Modified.
  if (range === undefined || (ifRange !== undefined && ifRange !== entityTag)) return { kind: 'complete' }
  return selectRange(range, size)
}

/** A weak comparison, which ignores W/. */
const matchesAny = (header: string, entityTag: string | null): boolean =>
  header.split(',').some((text) => text.trim() === '*' || text.trim().replace(/^W\//, '') === entityTag)

/** A server may ignore Range. Several ranges and malformed ones are ignored. */
function selectRange(header: string, size: number): Selection {
  const match = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/i.exec(header.replaceAll(' ', ''))
  if (match === null) return { kind: 'complete' }
  const [, first, last, suffix] = match
  const start = suffix === undefined ? Number(first) : Math.max(0, size - Number(suffix))
  const end = suffix === undefined && last ? Math.min(Number(last) + 1, size) : size
  if (suffix === undefined && last && Number(last) < start) return { kind: 'complete' }
  if (start >= size) return { kind: 'not satisfiable' }
  return { kind: 'part', start, length: end - start }
}
