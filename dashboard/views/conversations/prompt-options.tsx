// What a prompt may set besides its text: the model, the effort, and the directory of a new conversation.
import type { Signal } from '@preact/signals'
import type { ReasoningEffort } from '../../../shared/api/prompts.ts'
import { REASONING_EFFORTS } from '../../data/coding-agents.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Icon } from '../../design/icon.tsx'
import { SlidersIcon } from '../../design/icons.ts'
import { usePopover } from '../../design/use-popover.ts'

export type PromptOptions = {
  /** Empty, as the others: the default. */
  model: string
  effort: ReasoningEffort | ''
  directory: string
}
export const NO_OPTIONS: PromptOptions = { model: '', effort: '', directory: '' }

type PromptOptionsProps = { options: Signal<PromptOptions>; hasDirectory: boolean }

export function PromptOptionsButton({ options, hasDirectory }: PromptOptionsProps) {
  const { isOpen, buttonRef, panelRef, button, panel, close } = usePopover(() =>
    panelRef.current?.querySelector('input')?.focus(),
  )
  const { model, effort, directory } = options.value
  const set = (changes: Partial<PromptOptions>) => {
    options.value = { ...options.value, ...changes }
  }
  /** Not a submission of the form around it. */
  const closeOnEnter = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    close()
  }
  const summary = [
    model.trim() || 'Default model',
    effort && `${effort} effort`,
    hasDirectory && directory && `in ${directory}`,
  ]
  return (
    <>
      <button ref={buttonRef} type="button" class="quiet" {...button}>
        <Icon of={SlidersIcon} />
        <span class="options-summary">{showHidden(summary.filter(Boolean).join(' · '))}</span>
      </button>
      <div ref={panelRef} class="popover prompt-options" {...panel}>
        {isOpen.value && (
          <>
            <label>
              Model
              <input
                value={model}
                placeholder="default"
                autocapitalize="off"
                autocomplete="off"
                spellcheck={false}
                onKeyDown={closeOnEnter}
                onInput={({ currentTarget }) => set({ model: currentTarget.value })}
              />
            </label>
            <label>
              Effort
              <select
                value={effort}
                onChange={({ currentTarget }) =>
                  set({ effort: currentTarget.value as PromptOptions['effort'] })
                }
              >
                <option value="">default</option>
                {REASONING_EFFORTS.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            {hasDirectory && (
              <label>
                Directory
                <input
                  class="code"
                  value={directory}
                  placeholder="~"
                  autocapitalize="off"
                  autocomplete="off"
                  spellcheck={false}
                  onKeyDown={closeOnEnter}
                  onInput={({ currentTarget }) => set({ directory: currentTarget.value })}
                />
              </label>
            )}
          </>
        )}
      </div>
    </>
  )
}
