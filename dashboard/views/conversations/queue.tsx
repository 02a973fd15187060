// The prompts that wait, in their order. One that is edited leaves the queue, and its text is in the field again.
import { useSignal } from '@preact/signals'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { QueuedPrompt } from '../../../shared/api/prompts.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import type { BoxPrompts } from '../../data/box-prompts.ts'
import { PREVIEW_CHARS, toTitle } from '../../data/prompt-blocks.ts'
import { showHidden } from '../../data/visible-text.ts'
import { IconButton } from '../../design/icon-button.tsx'
import { CloseIcon, PencilIcon } from '../../design/icons.ts'
import { focusHeading } from '../focus-heading.ts'
import { Problem } from '../problem.tsx'

type QueueProps = {
  boxPrompts: BoxPrompts
  queued: readonly QueuedPrompt[]
  onEdit(prompt: string): void
}

export function Queue({ boxPrompts, queued, onEdit }: QueueProps) {
  const error = useSignal<BoxwoodError | null>(null)
  if (queued.length === 0) return <Problem error={error.value} />
  /** Returns whether the prompt was still in the queue. */
  async function remove(id: string): Promise<boolean> {
    const button = document.activeElement
    error.value = null
    try {
      const { dequeued } = await boxPrompts.prompts.interrupt(id)
      await boxPrompts.feed.refresh()
      // The button is removed. The user may have moved on since, such as to the next prompt.
      if ([button, document.body].includes(document.activeElement)) focusHeading()
      return dequeued
    } catch (reason) {
      error.value = toBoxwoodError(reason)
      return false
    }
  }
  return (
    <section class="queue" aria-label="Queue">
      <p>
        <small>Queued: starts when the run before it has ended</small>
      </p>
      <ol>
        {queued.map(({ id, prompt, position }) => (
          <li key={id}>
            <span title={showHidden(toTitle(prompt))}>{showHidden(toTitle(prompt))}</span>
            {/* The list has the start of a longer prompt. */}
            {prompt.length < PREVIEW_CHARS && (
              <IconButton
                icon={PencilIcon}
                label={`Edit prompt ${position} of the queue`}
                onClick={async () => {
                  if (await remove(id)) onEdit(prompt)
                }}
              />
            )}
            <IconButton
              icon={CloseIcon}
              label={`Remove prompt ${position} from the queue`}
              onClick={() => void remove(id)}
            />
          </li>
        ))}
      </ol>
      <Problem error={error.value} />
    </section>
  )
}
