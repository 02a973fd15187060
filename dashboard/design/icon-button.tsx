// A button that shows only an icon. Its label is its name, and its tooltip.
import type { IconNode } from 'lucide'
import { Icon } from './icon.tsx'

export type IconButtonProps = {
  icon: IconNode
  label: string
  class?: string
  isExpanded?: boolean
  isPressed?: boolean
  onClick(): void
}

export function IconButton({
  icon,
  label,
  class: name = '',
  isExpanded,
  isPressed,
  onClick,
}: IconButtonProps) {
  return (
    <button
      type="button"
      class={`quiet icon-button ${name}`}
      aria-label={label}
      title={label}
      aria-expanded={isExpanded}
      aria-pressed={isPressed}
      onClick={onClick}
    >
      <Icon of={icon} />
    </button>
  )
}
