// A command that does the same as a page or an action, with a button that copies it.
import { useSignal } from '@preact/signals'

export function Command({ text }: { text: string }) {
  const result = useSignal('')
  async function copy() {
    // Plain HTTP from another machine has no clipboard.
    result.value = await (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
      () => 'Copied',
      () => 'Select the text to copy it',
    )
  }
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" onClick={copy} aria-label={`Copy: ${text}`}>
        Copy
      </button>
      <span role="status">{result}</span>
    </span>
  )
}
