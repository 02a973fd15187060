// A tool call of a coding agent as a card: what it does, its result, and the lines that it has changed.

import { useSignal } from '@preact/signals'
import type { IconNode } from 'lucide'
import type { ComponentChildren } from 'preact'
import { formatDuration } from '../../data/local-time.ts'
import {
  countLines,
  type FileDiff,
  formatInput,
  type ToolBlock,
  type ToolIcon,
} from '../../data/prompt-blocks.ts'
import { showHidden, showHiddenInOutput } from '../../data/visible-text.ts'
import { Icon } from '../../design/icon.tsx'
import {
  BotIcon,
  FileIcon,
  FindIcon,
  GlobeIcon,
  PencilIcon,
  PlanIcon,
  PromptIcon,
  WrenchIcon,
} from '../../design/icons.ts'

const ICONS: Record<ToolIcon, IconNode> = {
  web: GlobeIcon,
  plan: PlanIcon,
  agent: BotIcon,
  shell: PromptIcon,
  edit: PencilIcon,
  search: FindIcon,
  file: FileIcon,
  other: WrenchIcon,
}

/** A change of up to this number of lines is shown at once. */
const OPEN_DIFF_LINES = 24
/** Times are exact to 100 ms. */
const MIN_DURATION_MS = 100

export function Tool({ block }: { block: ToolBlock }) {
  const { name, icon, summary, input, diffs, result, startedAt, finishedAt } = block
  const { added, removed, all } = countLines(diffs)
  const text = formatInput(input, summary)
  const isFinished = finishedAt !== null
  const ms = isFinished ? Date.parse(finishedAt) - Date.parse(startedAt) : 0
  return (
    <Fold
      class="tool"
      isInitiallyOpen={all > 0 && all <= OPEN_DIFF_LINES}
      summary={
        <>
          <Icon of={ICONS[icon]} />
          <span class="tool-title" title={showHidden(summary)}>
            <strong>{showHidden(formatToolName(name))}</strong> {showHidden(summary)}
          </span>
          {added > 0 && <span class="added">+{added}</span>}
          {removed > 0 && <span class="removed">−{removed}</span>}
          {!isFinished && <span class="dot running">running</span>}
          {ms >= MIN_DURATION_MS && <small>{formatDuration(ms)}</small>}
        </>
      }
    >
      {diffs.length > 0
        ? diffs.map((diff, index) => <Diff key={index} diff={diff} />)
        : text !== null && <Text text={text} />}
      {result !== undefined && <Text text={result ?? 'no output'} />}
    </Fold>
  )
}

/** `web_search` → `web search`. */
const formatToolName = (name: string): string =>
  /^[a-z]+(_[a-z]+)+$/.test(name) ? name.replaceAll('_', ' ') : name

const MAX_DIFF_LINES = 500

function Diff({ diff }: { diff: FileDiff }) {
  return (
    <>
      {diff.path !== null && <p class="diff-path">{showHidden(diff.path)}</p>}
      <div class="diff">
        {diff.lines.slice(0, MAX_DIFF_LINES).map(({ kind, text }, index) => (
          <div key={index} class={kind}>
            {showHidden(text.replaceAll('\t', '    '))}
          </div>
        ))}
        {diff.lines.length > MAX_DIFF_LINES && <p>{diff.lines.length - MAX_DIFF_LINES} more lines</p>}
      </div>
    </>
  )
}

const MAX_TEXT = 100_000

export function Text({ text }: { text: string }) {
  const isWhole = useSignal(text.length <= MAX_TEXT)
  return (
    <>
      <pre>{showHiddenInOutput(isWhole.value ? text : text.slice(0, MAX_TEXT))}</pre>
      {!isWhole.value && (
        <button
          type="button"
          onClick={() => {
            isWhole.value = true
          }}
        >
          Show all {text.length} characters
        </button>
      )}
    </>
  )
}

type FoldProps = {
  class: string
  summary: ComponentChildren
  isInitiallyOpen?: boolean
  children: ComponentChildren
}

/** The content is created when it is opened. */
export function Fold({ class: name, summary, isInitiallyOpen = false, children }: FoldProps) {
  const isOpen = useSignal(isInitiallyOpen)
  return (
    <details
      class={name}
      open={isOpen.value}
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open
      }}
    >
      <summary>{summary}</summary>
      {isOpen.value && <div class="fold">{children}</div>}
    </details>
  )
}
