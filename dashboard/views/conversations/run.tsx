// One run of a coding agent: its prompt, and its events as they arrive.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { PromptStatus, Run } from '../../../shared/api/prompts.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import { formatAge } from '../../data/age.ts'
import type { BoxPrompts } from '../../data/box-prompts.ts'
import { now } from '../../data/live.ts'
import { type Block, type FileDiff, type ToolBlock, toBlocks } from '../../data/prompt-blocks.ts'
import { showHidden, showHiddenInOutput } from '../../data/visible-text.ts'
import { Problem } from '../problem.tsx'
import { Markdown } from './markdown.tsx'

const SHOWN_BLOCKS = 200
const MAX_TEXT = 100_000
/** `promptPreviewChars` of shared/limits.ts: what a list has of a prompt. */
const PREVIEW_CHARS = 2048

type RunViewProps = { boxPrompts: BoxPrompts; run: Run; isNewest: boolean }

export function RunView({ boxPrompts, run, isNewest }: RunViewProps) {
  const { runs, changes, loadEvents, prompts, feed } = boxPrompts
  const isShown = useSignal(isNewest)
  const isBusy = useSignal(false)
  const detail = useSignal<PromptStatus | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const isRunning = run.status === 'running'
  const attempt = async (send: () => Promise<unknown>) => {
    error.value = null
    try {
      await send()
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    }
  }
  // The stream sends the events of a run in progress.
  useEffect(() => {
    if (isShown.value && !isRunning) void attempt(() => loadEvents(run.id))
  }, [isShown.value, isRunning])
  const { events, isComplete } = runs.get(run.id)
  // The events grow in place.
  const count = changes.value >= 0 ? events.length : 0
  const blocks = useMemo(() => toBlocks(events), [count])
  const name = `${run.provider} ${run.id}`
  return (
    <section class="run" aria-label={`Run ${run.id}`}>
      <p class="prompt">{showHiddenInOutput(detail.value?.run.prompt ?? run.prompt)}</p>
      <p class="tools">
        <span class={`state ${STATE_CLASSES[run.status]}`}>{run.status}</span>
        <small>
          {run.provider}
          {run.model !== null && `, ${showHidden(run.model)}`}, started{' '}
          <time dateTime={run.startedAt}>{formatAge(now.value - Date.parse(run.startedAt))} ago</time>
        </small>
        {isRunning && (
          <button
            type="button"
            disabled={isBusy.value}
            aria-label={`Interrupt ${name}`}
            onClick={async () => {
              isBusy.value = true
              await attempt(() => prompts.interrupt(run.id))
              isBusy.value = false
              await feed.refresh()
            }}
          >
            {isBusy.value ? 'Interrupting' : 'Interrupt'}
          </button>
        )}
        {detail.value === null && (run.prompt.length >= PREVIEW_CHARS || run.status === 'failed') && (
          <button
            type="button"
            aria-label={`Show the whole prompt and the error output of ${name}`}
            onClick={() =>
              attempt(async () => {
                detail.value = await prompts.loadRun(run.id)
              })
            }
          >
            Show the whole prompt and the error output
          </button>
        )}
        {!isShown.value && !isRunning && (
          <button
            type="button"
            aria-label={`Show the events of ${name}`}
            onClick={() => {
              isShown.value = true
            }}
          >
            Show the events
          </button>
        )}
      </p>
      {(isShown.value || isRunning) && (
        <div role="log" aria-label={`Events of ${name}`}>
          <Blocks blocks={blocks} />
          {!isComplete && !isRunning && error.value === null && <p>Loading the events.</p>}
        </div>
      )}
      {detail.value !== null && detail.value.stderr !== '' && <Text text={detail.value.stderr} />}
      {run.error !== null && <p class="problem">{showHiddenInOutput(run.error)}</p>}
      <Problem error={error.value} />
    </section>
  )
}

const STATE_CLASSES: Record<Run['status'], string> = {
  running: 'running',
  done: '',
  failed: 'degraded',
  interrupted: 'degraded',
}

function Blocks({ blocks }: { blocks: Block[] }) {
  const count = useSignal(SHOWN_BLOCKS)
  const hidden = Math.max(0, blocks.length - count.value)
  return (
    <>
      {hidden > 0 && (
        <button
          type="button"
          onClick={() => {
            count.value += SHOWN_BLOCKS
          }}
        >
          Show earlier events ({hidden})
        </button>
      )}
      {blocks.slice(hidden).map((block) => (
        <BlockView key={block.seq} block={block} />
      ))}
    </>
  )
}

function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case 'text':
      return <Markdown text={block.text} />
    case 'reasoning':
      return (
        <Fold summary="Reasoning">
          <Markdown text={block.text} />
        </Fold>
      )
    case 'tool':
      return <Tool block={block} />
    case 'error':
      return <p class="problem">{showHiddenInOutput(block.text)}</p>
    default:
      return (
        <p>
          <small>{showHiddenInOutput(block.text)}</small>
        </p>
      )
  }
}

function Tool({ block }: { block: ToolBlock }) {
  const { name, summary, input, diffs, result } = block
  const state = result === undefined ? ' …' : ''
  return (
    <Fold summary={`${showHidden(name)} ${showHidden(summary)}${state}`}>
      {diffs.length > 0
        ? diffs.map((diff, index) => <Diff key={index} diff={diff} />)
        : input !== null && <Text text={JSON.stringify(input, null, 2)} />}
      {result !== undefined && <Text text={result ?? 'no output'} />}
    </Fold>
  )
}

function Diff({ diff }: { diff: FileDiff }) {
  return (
    <>
      {diff.path !== null && <p>{showHidden(diff.path)}</p>}
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

const MAX_DIFF_LINES = 500

function Text({ text }: { text: string }) {
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

/** The content is created when it is opened. */
function Fold({ summary, children }: { summary: string; children: ComponentChildren }) {
  const isOpen = useSignal(false)
  return (
    <details
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open
      }}
    >
      <summary>{summary}</summary>
      {isOpen.value && children}
    </details>
  )
}
