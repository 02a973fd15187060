// The commands that do the same as a page or an action, with buttons that copy them.
import { useSignal } from '@preact/signals'
import { copyText } from '../data/copy-text.ts'
import { Icon } from '../design/icon.tsx'
import { PromptIcon } from '../design/icons.ts'
import { usePopover } from '../design/use-popover.ts'

/** A command in a dialog or a text. */
export const Command = ({ text }: { text: string }) => (
  <span class="command">
    <code>{text}</code>
    <CopyButton text={text} label={text} />
  </span>
)

const LABEL = 'The same in a terminal'

/** A button that shows the commands of a page. */
export function Commands({ texts }: { texts: readonly string[] }) {
  const { isOpen, buttonRef, panelRef, button, panel } = usePopover()
  return (
    <>
      <button
        ref={buttonRef}
        type="button"
        class="quiet icon-button commands-button"
        aria-label={LABEL}
        title={LABEL}
        {...button}
      >
        <Icon of={PromptIcon} />
      </button>
      <div ref={panelRef} class="popover" {...panel}>
        {isOpen.value && (
          <>
            <p>{LABEL}</p>
            {texts.map((text) => (
              <Command key={text} text={text} />
            ))}
          </>
        )}
      </div>
    </>
  )
}

/** @param props.label names the text for screen readers */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const result = useSignal('')
  async function copy() {
    result.value = (await copyText(text)) ? 'Copied' : 'Select the text to copy it'
  }
  return (
    <>
      <button type="button" onClick={copy} aria-label={`Copy: ${label}`}>
        Copy
      </button>
      <span role="status">{result}</span>
    </>
  )
}
