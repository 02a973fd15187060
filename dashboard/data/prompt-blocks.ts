// The events of a run as what the page shows: texts, reasoning, and tool calls with their results and diffs.
import type { ShownEvent } from './prompt-runs.ts'

export type DiffLine = { kind: 'same' | 'removed' | 'added'; text: string }
export type FileDiff = { path: string | null; lines: DiffLine[] }

export type ToolBlock = {
  kind: 'tool'
  seq: number
  name: string
  /** One line: what the tool does. */
  summary: string
  input: unknown
  diffs: FileDiff[]
  /** Undefined: there is no result yet. */
  result: string | null | undefined
}
export type Block =
  | { kind: 'text' | 'reasoning' | 'notice' | 'error' | 'usage'; seq: number; text: string }
  | ToolBlock

/** A result belongs to the oldest call of the same tool that has none. */
export function toBlocks(events: readonly ShownEvent[]): Block[] {
  const blocks: Block[] = []
  const open: ToolBlock[] = []
  for (const { seq, type, text, tool } of events) {
    if (type === 'tool') {
      const { name, input } = tool ?? { name: 'unknown', input: null }
      const block: ToolBlock = {
        kind: 'tool',
        seq,
        name,
        summary: summarizeInput(input),
        input,
        diffs: findDiffs(input),
        result: undefined,
      }
      blocks.push(block)
      open.push(block)
    } else if (type === 'tool_result') {
      const index = open.findIndex(({ name }) => name === tool?.name)
      const [call] = open.splice(index === -1 ? 0 : index, 1)
      if (call !== undefined) call.result = text
      else {
        const name = tool?.name ?? 'unknown'
        blocks.push({ kind: 'tool', seq, name, summary: '', input: null, diffs: [], result: text })
      }
    } else if (
      text !== null &&
      text.trim() !== '' &&
      (type === 'text' || type === 'reasoning' || type === 'notice' || type === 'error' || type === 'usage')
    )
      blocks.push({ kind: type, seq, text })
  }
  return blocks
}

/** Names of input fields that identify what a tool does, in the order of preference. */
const MAIN_FIELDS = [
  'command',
  'cmd',
  'file_path',
  'filePath',
  'path',
  'pattern',
  'query',
  'url',
  'description',
]
const MAX_SUMMARY = 200

export function summarizeInput(input: unknown): string {
  const main = isRecord(input)
    ? MAIN_FIELDS.map((name) => toText(input[name])).find((text) => text !== null)
    : toText(input)
  const text = main ?? (isRecord(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : '')
  const [first = ''] = text.trim().split('\n')
  return first.length > MAX_SUMMARY ? `${first.slice(0, MAX_SUMMARY)}…` : first
}

function toText(value: unknown): string | null {
  if (typeof value === 'string' && value.trim() !== '') return value
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string')
    ? value.join(' ')
    : null
}

/** Names of the fields of a replaced text and of its replacement, of the four coding agents. */
const REPLACEMENTS = [
  ['old_string', 'new_string'],
  ['oldString', 'newString'],
  ['oldText', 'newText'],
] as const
const PATHS = ['file_path', 'filePath', 'path']
const PATCHES = ['diff', 'unified_diff', 'patch', 'patchText']
const LISTS = ['edits', 'changes']
const MAX_DIFFS = 20

/** The changes of files that the input of a tool describes. */
export function findDiffs(input: unknown): FileDiff[] {
  if (!isRecord(input)) return []
  const path = PATHS.map((name) => input[name]).find((value) => typeof value === 'string') ?? null
  const lists = LISTS.flatMap((name) => (Array.isArray(input[name]) ? input[name].slice(0, MAX_DIFFS) : []))
  if (lists.length > 0) return lists.flatMap(findDiffs).map((diff) => ({ ...diff, path: diff.path ?? path }))
  for (const [before, after] of REPLACEMENTS)
    if (typeof input[before] === 'string' && typeof input[after] === 'string')
      return [{ path, lines: diffLines(input[before], input[after]) }]
  const patch = PATCHES.map((name) => input[name]).find((value) => typeof value === 'string')
  if (patch !== undefined) return [{ path, lines: parsePatch(patch) }]
  if (path !== null && typeof input.content === 'string')
    return [{ path, lines: toLines('added', input.content) }]
  return []
}

/** The lines between the common start and the common end are the change. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split('\n'), after.split('\n')]
  const limit = Math.min(a.length, b.length)
  let start = 0
  while (start < limit && a[start] === b[start]) start += 1
  let end = 0
  while (end < limit - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  const part = (kind: DiffLine['kind'], lines: string[]) => lines.map((text) => ({ kind, text }))
  return [
    ...part('same', a.slice(0, start)),
    ...part('removed', a.slice(start, a.length - end)),
    ...part('added', b.slice(start, b.length - end)),
    ...part('same', a.slice(a.length - end)),
  ]
}

const toLines = (kind: DiffLine['kind'], text: string): DiffLine[] =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => ({ kind, text: line }))

const parsePatch = (patch: string): DiffLine[] =>
  toLines('same', patch).map(({ text }) => {
    if (text.startsWith('+++') || text.startsWith('---')) return { kind: 'same', text }
    if (text.startsWith('+')) return { kind: 'added', text: text.slice(1) }
    if (text.startsWith('-')) return { kind: 'removed', text: text.slice(1) }
    return { kind: 'same', text: text.startsWith(' ') ? text.slice(1) : text }
  })

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
