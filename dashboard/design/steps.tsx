// Numbered steps, of which those before the current one are done.
import { type ComponentChildren, toChildArray } from 'preact'
import { Icon } from './icon.tsx'
import { CheckIcon } from './icons.ts'

export type StepsProps = {
  titles: readonly string[]
  /** The index of the current step. */
  current: number
  /** One child for each step. */
  children: ComponentChildren
}

export function Steps({ titles, current, children }: StepsProps) {
  const contents = toChildArray(children)
  return (
    <ol class="steps">
      {titles.map((title, index) => (
        <li key={title} aria-current={index === current ? 'step' : undefined}>
          <span class="step-number" aria-hidden="true">
            {index < current ? <Icon of={CheckIcon} size={14} /> : index + 1}
          </span>
          <div>
            <strong>{title}</strong>
            {index < current && <span class="visually-hidden">: done</span>}
            {contents[index]}
          </div>
        </li>
      ))}
    </ol>
  )
}
