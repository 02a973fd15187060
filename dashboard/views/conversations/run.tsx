// One run of a coding agent: its prompt, its answer as it arrives, and what it has used.

import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { PromptStatus, Run } from '../../../shared/api/prompts.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import type { BoxPrompts } from '../../data/box-prompts.ts'
import { getAgentLabel } from '../../data/coding-agents.ts'
import { now } from '../../data/live.ts'
import { formatDuration } from '../../data/local-time.ts'
import { type Block, formatUsage, PREVIEW_CHARS, sumUsage, toBlocks } from '../../data/prompt-blocks.ts'
import { showHidden, showHiddenInOutput } from '../../data/visible-text.ts'
import { Avatar } from '../../design/avatar.tsx'
import { Icon } from '../../design/icon.tsx'
import { BrainIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age } from '../age.tsx'
import { Problem } from '../problem.tsx'
import { Markdown } from './markdown.tsx'
import { Fold, Text, Tool } from './tool.tsx'

const SHOWN_BLOCKS = 200

type RunViewProps = {
  boxPrompts: BoxPrompts
  run: Run
  /** In the conversation. */
  number: number
  isNewest: boolean
}

export function RunView({ boxPrompts, run, number, isNewest }: RunViewProps) {
  const { runs, changes, loadEvents, prompts } = boxPrompts
  const isShown = useSignal(isNewest)
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
  const { events, isComplete, model } = runs.get(run.id)
  // The events grow in place.
  const count = changes.value >= 0 ? events.length : 0
  const blocks = useMemo(() => toBlocks(events), [count])
  const label = getAgentLabel(run.provider)
  const moreLabel = [
    run.prompt.length >= PREVIEW_CHARS && 'the whole prompt',
    run.status === 'failed' && 'the error output',
  ].filter((text) => text !== false)
  return (
    <section class="run" aria-label={`Run ${number}`}>
      <div class="prompt">
        <p>{showHiddenInOutput(detail.value?.run.prompt ?? run.prompt)}</p>
        <small>
          <Age at={run.startedAt} />
        </small>
      </div>
      <p class="turn-head">
        <Avatar name={label} />
        <strong>{label}</strong>
        <small>
          {showHidden(
            [run.model ?? model, run.reasoningEffort && `${run.reasoningEffort} effort`]
              .filter(Boolean)
              .join(' · '),
          )}
        </small>
      </p>
      {isShown.value || isRunning ? (
        <div class="answer" role="log" aria-label={`Answer of ${label}, run ${number}`}>
          <Blocks blocks={blocks} />
          {!isComplete && !isRunning && error.value === null && (
            <Skeleton label="Loading the answer." rows={3} />
          )}
        </div>
      ) : (
        <button
          type="button"
          aria-label={`Show the answer of run ${number}`}
          onClick={() => {
            isShown.value = true
          }}
        >
          Show the answer
        </button>
      )}
      {detail.value !== null && detail.value.stderr !== '' && <Text text={detail.value.stderr} />}
      {run.error !== null && <p class="problem">{showHiddenInOutput(run.error)}</p>}
      <Problem error={error.value} />
      <p class="turn-foot">
        <span class={`state ${STATE_CLASSES[run.status]}`}>{run.status}</span>
        <small>
          {[
            formatDuration(getRunMs(run)),
            ...formatUsage(sumUsage(events, PER_STEP.includes(run.provider))),
          ].join(' · ')}
        </small>
        {detail.value === null && moreLabel.length > 0 && (
          <button
            type="button"
            class="quiet"
            aria-label={`Show ${moreLabel.join(' and ')} of run ${number}`}
            onClick={() =>
              attempt(async () => {
                detail.value = await prompts.loadRun(run.id)
              })
            }
          >
            Show {moreLabel.join(' and ')}
          </button>
        )}
      </p>
    </section>
  )
}

/** These report the tokens of each request to the model. */
const PER_STEP: readonly Run['provider'][] = ['opencode', 'pi']

/** The time of the coordinator advances every few seconds. */
const getRunMs = ({ startedAt, finishedAt }: Run): number =>
  finishedAt === null
    ? 1000 * Math.floor((now.value - Date.parse(startedAt)) / 1000)
    : Date.parse(finishedAt) - Date.parse(startedAt)

const STATE_CLASSES: Record<Run['status'], string> = {
  running: 'running',
  done: '',
  failed: 'degraded',
  interrupted: 'suspending',
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
        <Fold
          class="reasoning"
          summary={
            <>
              <Icon of={BrainIcon} />
              Reasoning
            </>
          }
        >
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
