// A field whose words select what a page shows.
import type { Signal } from '@preact/signals'
import { Icon } from '../design/icon.tsx'
import { SearchIcon } from '../design/icons.ts'

export function SearchField({ label, value }: { label: string; value: Signal<string> }) {
  return (
    <label class="search-field">
      <span class="visually-hidden">{label}</span>
      <Icon of={SearchIcon} />
      <input
        type="search"
        placeholder={label}
        value={value}
        onInput={({ currentTarget }) => {
          value.value = currentTarget.value
        }}
      />
    </label>
  )
}
