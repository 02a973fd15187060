// Reads the tables of docs/access.md, which state who may use which route.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The columns of the tables, in their order. */
export const COLUMNS = [
  'owner key',
  'member key',
  'contractor key',
  'read-only key',
  'boxes: read',
  'boxes: run',
  'boxes: write',
  'workspace: read',
  'workspace: write',
  'some boxes',
  'ticket',
  'owner session',
  'member session',
  'contractor session',
  'foreign key',
  'foreign session',
] as const
export type Column = (typeof COLUMNS)[number]

export const CELLS = ['✓', 'own', '401', 'area', 'scope', 'role', 'owner', '404'] as const
export type Cell = (typeof CELLS)[number]

export type Row = {
  /** As in the tables, such as `GET /boxes/{id}`. */
  route: string
  method: string
  path: string
  area: string
  host: 'control' | 'edge'
  cells: Record<Column, Cell>
}

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/access.md'), 'utf8')

const isCell = (text: string): text is Cell => (CELLS as readonly string[]).includes(text)

/** Throws for a cell that is not in the list of cells. */
export function readRows(): Row[] {
  let host: Row['host'] = 'control'
  const rows: Row[] = []
  for (const line of PAGE.slice(PAGE.indexOf('## Routes')).split('\n')) {
    if (line.startsWith('### ')) host = line === '### Edge' ? 'edge' : 'control'
    const [route, area = '', ...texts] = line
      .split('|')
      .slice(1, -1)
      .map((text) => text.trim())
    const [, method = '', path = ''] = /^`([A-Z]+) (\/\S*)`$/.exec(route ?? '') ?? []
    if (method === '') continue
    if (texts.length !== COLUMNS.length) throw new Error(`${route} has ${texts.length} cells`)
    const cells = COLUMNS.map((column, index) => {
      const text = texts[index] ?? ''
      if (!isCell(text)) throw new Error(`${route} has an unknown cell for ${column}: ${text}`)
      return [column, text] as const
    })
    rows.push({
      ...{ route: `${method} ${path}`, method, path, area, host },
      cells: Object.fromEntries(cells) as Row['cells'],
    })
  }
  return rows
}

/** The routes that need no credential, such as `POST /sign-in`. */
export function readRoutesWithoutCredential(): string[] {
  const line = PAGE.split('\n').find((text) => text.startsWith('These routes need no credential')) ?? ''
  return [...line.matchAll(/`([A-Z]+ \/\S*)`/g)].map(([, route = '']) => route)
}
