// What a page without items shows: what the page is for, and how to begin.
import type { IconNode } from 'lucide'
import type { ComponentChildren } from 'preact'
import { Icon } from './icon.tsx'

/** @param children the sentence, and buttons */
export function EmptyState({
  icon,
  title,
  children,
}: {
  icon: IconNode
  title: string
  children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <Icon of={icon} size={28} />
      <h2>{title}</h2>
      {children}
    </div>
  )
}
