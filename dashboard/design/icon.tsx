// An icon beside a text. Screen readers do not read it.
import type { IconNode } from 'lucide'
import { h } from 'preact'

/** @param size in pixels */
export function Icon({ of, size = 16 }: { of: IconNode; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {of.map(([tag, attributes], index) => h(tag, { key: index, ...attributes }))}
    </svg>
  )
}
