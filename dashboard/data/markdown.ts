// Parses the Markdown of answers to nodes: a subset without HTML and images. The text is hostile, so that the time is linear:
// no construct is searched twice for its end.

export type Inline =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'strong' | 'emphasis'; children: Inline[] }
  /** `url` is http or https. */
  | { kind: 'link'; url: string; children: Inline[] }

export type ListItem = { depth: number; children: Inline[] }
export type MarkdownBlock =
  | { kind: 'paragraph' | 'quote'; children: Inline[] }
  | { kind: 'heading'; level: number; children: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'list'; isOrdered: boolean; start: number; items: ListItem[] }
  | { kind: 'rule' }

const FENCE = /^ {0,3}(`{3,}|~{3,})/
const HEADING = /^(#{1,6}) +(.*)$/
const ITEM = /^( {0,40})(?:([-*+])|(\d{1,9})[.)]) +(.*)$/
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,}) *$/
const TABLE_ROW = /^ {0,3}\|/
const MAX_DEPTH = 4

export function parseMarkdown(text: string): MarkdownBlock[] {
  const blocks: MarkdownBlock[] = []
  const lines = text.replaceAll('\r\n', '\n').split('\n')
  /** Takes the lines from `index` that fit, and returns the index after them. */
  const takeWhile = (index: number, fits: (line: string) => boolean): number => {
    let end = index
    while (end < lines.length && fits(lines[end] ?? '')) end += 1
    return end
  }
  for (let index = 0; index < lines.length; ) {
    const line = lines[index] ?? ''
    const fence = FENCE.exec(line)?.[1]
    const heading = HEADING.exec(line)
    if (line.trim() === '') index += 1
    else if (fence !== undefined) {
      const end = takeWhile(index + 1, (other) => !other.trimStart().startsWith(fence))
      blocks.push({ kind: 'code', text: lines.slice(index + 1, end).join('\n') })
      index = end + 1
    } else if (heading !== null) {
      const [, marks = '', title = ''] = heading
      blocks.push({ kind: 'heading', level: marks.length, children: parseInline(title) })
      index += 1
    } else if (RULE.test(line)) {
      blocks.push({ kind: 'rule' })
      index += 1
    } else if (TABLE_ROW.test(line)) {
      // A table keeps its columns as text of a fixed width.
      const end = takeWhile(index, (other) => TABLE_ROW.test(other))
      blocks.push({ kind: 'code', text: lines.slice(index, end).join('\n') })
      index = end
    } else if (ITEM.test(line)) index = addList(blocks, lines, index)
    else if (line.startsWith('>')) {
      const end = takeWhile(index, (other) => other.startsWith('>'))
      const quoted = lines.slice(index, end).map((other) => other.replace(/^> ?/, ''))
      blocks.push({ kind: 'quote', children: parseInline(quoted.join('\n')) })
      index = end
    } else {
      const end = takeWhile(index + 1, (other) => !startsBlock(other))
      blocks.push({ kind: 'paragraph', children: parseInline(lines.slice(index, end).join('\n')) })
      index = end
    }
  }
  return blocks
}

const startsBlock = (line: string): boolean =>
  line.trim() === '' ||
  [FENCE, HEADING, ITEM, RULE, TABLE_ROW].some((pattern) => pattern.test(line)) ||
  line.startsWith('>')

/** Returns the index after the list. */
function addList(blocks: MarkdownBlock[], lines: readonly string[], from: number): number {
  const first = ITEM.exec(lines[from] ?? '')
  const isOrdered = first?.[3] !== undefined
  const items: { depth: number; text: string[] }[] = []
  let index = from
  for (; index < lines.length; index++) {
    const line = lines[index] ?? ''
    const item = ITEM.exec(line)
    const depth = Math.min(Math.floor((item?.[1] ?? '').length / 2), MAX_DEPTH)
    // A list of the other kind at the same depth is another list.
    if (item !== null && depth === 0 && (item[3] !== undefined) !== isOrdered) break
    if (item !== null) items.push({ depth, text: [item[4] ?? ''] })
    else if (/^ +\S/.test(line) && !FENCE.test(line)) items.at(-1)?.text.push(line.trim())
    else break
  }
  blocks.push({
    kind: 'list',
    isOrdered,
    start: Number(first?.[3] ?? 1),
    items: items.map(({ depth, text }) => ({ depth, children: parseInline(text.join('\n')) })),
  })
  return index
}

const URL_PATTERN = /https?:\/\/[^\s<>"'`)\]]{1,2000}/y
const TOKEN = /[`*_[!h]/g
const MAX_NESTING = 4
const MAX_LABEL = 1000

export function parseInline(text: string, nesting = 0): Inline[] {
  const nodes: Inline[] = []
  const find = createFinder(text)
  let plainFrom = 0
  let index = 0
  const push = (node: Inline, from: number, end: number) => {
    if (from > plainFrom) nodes.push({ kind: 'text', text: text.slice(plainFrom, from) })
    nodes.push(node)
    plainFrom = end
    index = end
  }
  while (index < text.length) {
    TOKEN.lastIndex = index
    const at = TOKEN.exec(text)?.index
    if (at === undefined) break
    index = at + 1
    const parsed = parseToken(text, at, find, nesting)
    if (parsed !== null) push(parsed.node, at, parsed.end)
  }
  if (plainFrom < text.length) nodes.push({ kind: 'text', text: text.slice(plainFrom) })
  return nodes
}

type Finder = (needle: string, from: number) => number

/** indexOf() that remembers the last result of each needle, so that all calls together read the text once. */
function createFinder(text: string): Finder {
  const known = new Map<string, { from: number; at: number }>()
  return (needle, from) => {
    const last = known.get(needle)
    if (last !== undefined && from >= last.from && (last.at === -1 || from <= last.at)) return last.at
    const at = text.indexOf(needle, from)
    known.set(needle, { from, at })
    return at
  }
}

type Parsed = { node: Inline; end: number } | null

function parseToken(text: string, at: number, find: Finder, nesting: number): Parsed {
  const character = text[at]
  if (character === '`') {
    const marks = text.startsWith('``', at) ? '``' : '`'
    const end = find(marks, at + marks.length)
    if (end === -1) return null
    return {
      node: { kind: 'code', text: text.slice(at + marks.length, end).trim() },
      end: end + marks.length,
    }
  }
  if (character === 'h') {
    URL_PATTERN.lastIndex = at
    const [match] = URL_PATTERN.exec(text) ?? []
    const shown = match?.replace(/[.,;:!?*_]+$/, '')
    const url = shown === undefined ? null : toWebUrl(shown)
    if (shown === undefined || url === null || /\w/.test(text[at - 1] ?? '')) return null
    return { node: { kind: 'link', url, children: [{ kind: 'text', text: shown }] }, end: at + shown.length }
  }
  if (character === '[') return parseLink(text, at, find, nesting)
  if (character === '!' || nesting >= MAX_NESTING) return null
  const marks = text.startsWith(`${character}${character}`, at) ? `${character}${character}` : `${character}`
  const from = at + marks.length
  // snake_case and a multiplication are not emphasis.
  if (character === '_' && /\w/.test(text[at - 1] ?? '')) return null
  if (/^$|\s/.test(text[from] ?? '')) return null
  const end = find(marks, from + 1)
  if (end === -1 || /\s/.test(text[end - 1] ?? '')) return null
  if (character === '_' && /\w/.test(text[end + marks.length] ?? '')) return null
  const children = parseInline(text.slice(from, end), nesting + 1)
  return { node: { kind: marks.length === 2 ? 'strong' : 'emphasis', children }, end: end + marks.length }
}

function parseLink(text: string, at: number, find: Finder, nesting: number): Parsed {
  const middle = find('](', at)
  const end = middle === -1 ? -1 : find(')', middle)
  if (end === -1 || middle - at > MAX_LABEL || end - middle > 2 * MAX_LABEL || nesting >= MAX_NESTING)
    return null
  const label = text.slice(at + 1, middle)
  const url = toWebUrl(text.slice(middle + 2, end).split(/\s/)[0] ?? '')
  if (url === null || label.includes('[') || text[at - 1] === '!') return null
  return { node: { kind: 'link', url, children: [{ kind: 'text', text: label }] }, end: end + 1 }
}

/** Null: the URL is not one of the web. */
function toWebUrl(text: string): string | null {
  if (!/^https?:\/\//i.test(text)) return null
  try {
    return new URL(text).href
  } catch {
    return null
  }
}
