// A command that does the same as a page or an action, with a button that copies it.
import { useSignal } from '@preact/signals'

export const Command = ({ text }: { text: string }) => (
  <span class="command">
    <code>{text}</code>
    <CopyButton text={text} label={text} />
  </span>
)

/** @param props.label names the text for screen readers */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const result = useSignal('')
  async function copy() {
    // Plain HTTP from another machine has no clipboard.
    result.value = await (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
      () => 'Copied',
      () => 'Select the text to copy it',
    )
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
