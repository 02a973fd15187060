// The events of a run as what the page shows: texts, reasoning, and tool calls with their results and diffs.
import type { ShownEvent } from './prompt-runs.ts'

export type DiffLine = { kind: 'same' | 'removed' | 'added'; text: string }
export type FileDiff = { path: string | null; lines: DiffLine[] }

export type ToolBlock = {
  kind: 'tool'
  seq: number
  name: string
  icon: ToolIcon
  /** One line: what the tool does. */
  summary: string
  input: unknown
  diffs: FileDiff[]
  /** Undefined: there is no result yet. */
  result: string | null | undefined
  startedAt: string
  /** Null: there is no result yet. */
  finishedAt: string | null
}
export type Block = { kind: 'text' | 'reasoning' | 'notice' | 'error'; seq: number; text: string } | ToolBlock

/** A result belongs to the oldest call of the same tool that has none. */
export function toBlocks(events: readonly ShownEvent[]): Block[] {
  const blocks: Block[] = []
  const open: ToolBlock[] = []
  for (const event of events) {
    const { type, tool, text } = event
    if (type === 'tool') {
      const block = createToolBlock(event)
      blocks.push(block)
      open.push(block)
    } else if (type === 'tool_result') {
      const index = open.findIndex(({ name }) => name === tool?.name)
      let [call] = open.splice(index === -1 ? 0 : index, 1)
      if (call === undefined) {
        call = createToolBlock(event)
        blocks.push(call)
      }
      Object.assign(call, { result: text, finishedAt: event.at })
    } else if (
      text !== null &&
      text.trim() !== '' &&
      (type === 'text' || type === 'reasoning' || type === 'notice' || type === 'error')
    )
      blocks.push({ kind: type, seq: event.seq, text })
  }
  return blocks
}

function createToolBlock({ seq, at, tool }: ShownEvent): ToolBlock {
  const { name, input } = tool ?? { name: 'unknown', input: null }
  return {
    kind: 'tool',
    seq,
    name,
    icon: findToolIcon(name),
    summary: summarizeInput(input),
    input,
    diffs: findDiffs(input),
    result: undefined,
    startedAt: at,
    finishedAt: null,
  }
}

/** Words in the names of the tools of the four coding agents. The first that occurs decides. */
const TOOL_ICONS = {
  web: /web|fetch|browser/,
  plan: /todo|plan/,
  agent: /^(task|agent)|agent$/,
  shell: /bash|shell|command|exec|terminal/,
  edit: /edit|write|patch|change|create/,
  search: /grep|glob|search|find|^ls$|^list/,
  file: /read|view|file/,
} as const
export type ToolIcon = keyof typeof TOOL_ICONS | 'other'

export function findToolIcon(name: string): ToolIcon {
  const lower = name.toLowerCase()
  return (
    (Object.keys(TOOL_ICONS) as (keyof typeof TOOL_ICONS)[]).find((icon) => TOOL_ICONS[icon].test(lower)) ??
    'other'
  )
}

/** Tokens, and the cost in US dollars; null: not reported. */
export type Usage = { input: number | null; output: number | null; cost: number | null }

const USAGE_PARTS = {
  input: /(?:^|, )(\d+) input tokens/,
  output: /(?:^|, )(\d+) output tokens/,
  cost: /(?:^|, )([\d.e-]+) USD/,
} as const

/**
 * What the run has used, from the texts of its usage events.
 * @param isPerStep the coding agent reports each request to the model, not the sum
 */
export function sumUsage(events: readonly ShownEvent[], isPerStep: boolean): Usage {
  const texts = events.filter(({ type }) => type === 'usage').map(({ text }) => text ?? '')
  const sum = (part: keyof Usage): number | null => {
    const values = (isPerStep ? texts : texts.slice(-1))
      .map((text) => Number.parseFloat(USAGE_PARTS[part].exec(text)?.[1] ?? ''))
      .filter(Number.isFinite)
    return values.length === 0 ? null : Number(values.reduce((total, value) => total + value, 0).toFixed(6))
  }
  return { input: sum('input'), output: sum('output'), cost: sum('cost') }
}

const TOKENS = new Intl.NumberFormat('en')
/** Small costs keep two digits that count. */
const DOLLARS = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumSignificantDigits: 2,
  roundingPriority: 'morePrecision',
})

export const formatUsage = ({ input, output, cost }: Usage): string[] => [
  ...(input === null ? [] : [`${TOKENS.format(input)} tokens in`]),
  ...(output === null ? [] : [`${TOKENS.format(output)} out`]),
  ...(cost === null ? [] : [DOLLARS.format(cost)]),
]

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

/** The input of a tool as a text. Null: its summary has all of it. */
export function formatInput(input: unknown, summary: string): string | null {
  const format = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))
  if (!isRecord(input)) return input === null || input === summary ? null : format(input)
  const fields = Object.entries(input)
  const [only] = fields
  if (only === undefined) return null
  if (fields.length > 1) return fields.map(([name, value]) => `${name}: ${format(value)}`).join('\n')
  const text = toText(only[1]) ?? format(only[1])
  return text.trim() === summary ? null : text
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

/** The lines of changes, and how many of them are new and removed. */
export function countLines(diffs: readonly FileDiff[]): { added: number; removed: number; all: number } {
  const lines = diffs.flatMap((diff) => diff.lines)
  const count = (wanted: DiffLine['kind']) => lines.filter(({ kind }) => kind === wanted).length
  return { added: count('added'), removed: count('removed'), all: lines.length }
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

/** `promptPreviewChars` of shared/limits.ts: what a list has of a prompt. */
export const PREVIEW_CHARS = 2048

const MAX_TITLE = 120

/** The first line of a prompt. */
export function toTitle(prompt: string): string {
  const [line = ''] = prompt.trim().split('\n')
  return line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE)}…` : line
}
