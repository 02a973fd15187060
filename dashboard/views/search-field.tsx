// A field whose words select what a page shows.
import type { Signal } from '@preact/signals'

export function SearchField({ label, value }: { label: string; value: Signal<string> }) {
  return (
    <label>
      {label}{' '}
      <input
        type="search"
        value={value}
        onInput={({ currentTarget }) => {
          value.value = currentTarget.value
        }}
      />
    </label>
  )
}
