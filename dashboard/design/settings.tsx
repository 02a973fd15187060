// A list of settings: each has a name, a sentence, its value, and at the right its actions.
import type { ComponentChildren } from 'preact'

export const Settings = ({ children }: { children: ComponentChildren }) => (
  <ul class="settings">{children}</ul>
)

export type SettingProps = {
  title: string
  description?: string
  value?: ComponentChildren
  /** Why the value has no effect; null: nothing prevents it. */
  problem?: string | null
  /** The actions. */
  children?: ComponentChildren
}

export function Setting({ title, description, value, problem = null, children }: SettingProps) {
  return (
    <li>
      <div>
        <strong>{title}</strong>
        {description !== undefined && <small>{description}</small>}
        {problem !== null && <small class="problem">{problem}</small>}
      </div>
      <span>{value}</span>
      <div class="actions">{children}</div>
    </li>
  )
}
